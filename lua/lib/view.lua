--@include standing
-- The line as every answer shows it: now, standing, opensAt, epoch, headScore, net, total, remaining, pace, message.
-- `read_line` returns it with the values of the further meta fields asked for, nil where the event is unknown.
local function read_line(meta, now, ...)
  local field = redis.call('HMGET', meta, 'status', 'opensAt', 'closesAt', 'epoch', 'headScore', 'net', 'pace',
    'message', ...)
  if not field[1] then return nil end
  local status = standing(field[1], field[2], field[3], now)
  local view = { now, status, field[2], field[4], field[5], field[6], 0, 0,
    status == 'PAUSED' and '0' or field[7], field[8] or '' }
  return view, field
end

local function count_line(view, waiting, remaining)
  view[7] = redis.call('ZCARD', waiting)
  view[8] = redis.call('GET', remaining)
  return view
end

-- An answer that shows the line and a place in it: the word, what is told beside them, the view, the place. Flat, for
-- Redis asks each table of a reply what it is (an error, a map, …), which costs as much as eight of its values.
local function show(word, beside, view, place)
  return { word, beside, view[1], view[2], view[3], view[4], view[5], view[6], view[7], view[8], view[9], view[10],
    unpack(place) }
end
