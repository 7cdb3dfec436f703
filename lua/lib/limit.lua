-- Milliseconds a caller has to wait, nil while it is within `limit` calls in the second that its first one began.
local function over_limit(rate, limit)
  local count = redis.call('INCR', rate)
  if count == 1 then redis.call('PEXPIRE', rate, 1000) end
  if count > tonumber(limit) then return math.max(redis.call('PTTL', rate), 1) end
end
