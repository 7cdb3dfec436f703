--@include journal
-- Put a token at the end of the line; before the opening of a shuffled sale, where the draw puts it. Scores of a
-- shuffled sale's late comers start above every drawn one.
local AFTER_THE_DRAW = 4503599627370496

local function enter(keys, token, drawn_score, status, pre_queue, epoch, now)
  local number = redis.call('INCR', keys.sequence)
  local score = number
  if pre_queue == 'shuffle' then
    score = status == 'UPCOMING' and tonumber(drawn_score) or AFTER_THE_DRAW + number
  end
  redis.call('ZADD', keys.waiting, score, token)
  record(keys.journal, 'USER_ENTER_QUEUE', epoch, now, 'token', token, 'number', number, 'score', score)
  return number, score
end

-- A waiting token's part of an answer. Before the opening nothing tells the place.
local function waiting_place(keys, token, score, status)
  if status == 'UPCOMING' then return { 'WAITING', 0, false } end
  return { 'WAITING', score, redis.call('ZRANK', keys.waiting, token) + 1 }
end
