-- Redis' clock in milliseconds; a driver may bring its own.
local function clock(driven_ms)
  local driven = tonumber(driven_ms)
  if driven > 0 then return driven end
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
