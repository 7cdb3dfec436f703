-- Milliseconds a caller has to wait, nil while it is within `limit` calls in the second that its first one began. A
-- limit is 1 or more, and most callers are the first of their second: they cost one command.
local function over_limit(rate, limit)
  if redis.call('SET', rate, '1', 'PX', '1000', 'NX') then return nil end
  local count = redis.call('INCR', rate)
  if count > tonumber(limit) then return math.max(redis.call('PTTL', rate), 1) end
end
