--@include digits
--@include standing
-- What every answer shows of the line, as meta has it, but for the first, which is how the sale stands: status, opensAt,
-- closesAt, epoch, headScore, net, pace, message; then the further meta fields asked for. Nil where the event is unknown.
local function read_line(meta, now, ...)
  local field = redis.call('HMGET', meta, 'status', 'opensAt', 'closesAt', 'epoch', 'headScore', 'net', 'pace',
    'message', ...)
  if not field[1] then return nil end
  field[1] = standing(field[1], field[2], field[3], now)
  return field
end

-- The view: now, status, opensAt, epoch, headScore, net, total, remaining, pace and the message, which may have spaces in
-- it. One text, for each value of a reply costs Redis and its reader as much as a few more words. Also the total alone.
local function view_of(field, now, waiting, remaining)
  local total, pace = redis.call('ZCARD', waiting), field[1] == 'PAUSED' and '0' or field[7]
  return digits(now) .. ' ' .. field[1] .. ' ' .. field[2] .. ' ' .. field[4] .. ' ' .. field[5] .. ' ' .. field[6] .. ' ' ..
    digits(total) .. ' ' .. (redis.call('GET', remaining) or 0) .. ' ' .. pace .. ' ' .. (field[8] or ''), total
end
