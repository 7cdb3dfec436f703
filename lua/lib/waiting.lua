-- What is told of a token that waits: WAITING score rank, or EXPIRED 0. Before the opening nothing tells the place.
local function waiting_of(waiting, token, score, status)
  if status == 'CLOSED' then return 'EXPIRED', 0 end
  if status == 'UPCOMING' then return 'WAITING', 0, false end
  return 'WAITING', score, redis.call('ZRANK', waiting, token) + 1
end
