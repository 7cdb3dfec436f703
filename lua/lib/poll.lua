--@include view
--@include place
-- A poll's answer, after its limit where it has one.
local function poll(keys, token, view, now)
  count_line(view, keys.waiting, keys.remaining)
  return { 'POLLED', place_of(keys, token, view[2], now), view }
end
