--@include standing
-- The line as every answer shows it: now, standing, opensAt, epoch, headScore, net, total, remaining, pace, message.
-- `read_line` returns it with the values of the further meta fields asked for, nil where the event is unknown.
local function read_line(meta, now, ...)
  local field = redis.call('HMGET', meta, 'status', 'opensAt', 'closesAt', 'epoch', 'headScore', 'net', 'pace',
    'message', ...)
  if not field[1] then return nil end
  local status = standing(field[1], field[2], field[3], now)
  local view = { now, status, tonumber(field[2]), tonumber(field[4]), tonumber(field[5]), tonumber(field[6]), 0, 0,
    status == 'PAUSED' and '0' or field[7], field[8] or '' }
  return view, field
end

local function count_line(view, waiting, remaining)
  view[7] = redis.call('ZCARD', waiting)
  view[8] = tonumber(redis.call('GET', remaining))
  return view
end
