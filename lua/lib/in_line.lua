--@include view
--@include waiting
-- A poll's answer as most are: of a token that waits, in a sale that has no accounts. Nil for any other. The first
-- further field of the line is `accounts`.
local function poll_in_line(waiting, remaining, token, field, now)
  local score = not field[9] and redis.call('ZSCORE', waiting, token)
  if not score then return nil end
  local view = view_of(field, now, waiting, remaining)
  return { 'POLLED', 0, view, waiting_of(waiting, token, score, field[1]) }
end
