--@include account
--@include digits
--@include journal
-- Put a token at the end of the line; before the opening of a shuffled sale, where the draw puts it. Scores of a
-- shuffled sale's late comers start above every drawn one. `account` is empty where none was proven. Returns number and
-- score, nil where the token stands in the line already: then nothing was changed.
local AFTER_THE_DRAW = 4503599627370496

local function enter(keys, token, account, drawn_score, status, pre_queue, epoch, now)
  local number = redis.call('INCR', keys.sequence)
  -- As texts: Redis would make one of a number at each use.
  local number_text = digits(number)
  local score = number_text
  if pre_queue == 'shuffle' then
    score = status == 'UPCOMING' and drawn_score or digits(AFTER_THE_DRAW + number)
  end
  if redis.call('ZADD', keys.waiting, 'NX', score, token) == 0 then
    redis.call('DECR', keys.sequence)
    return nil
  end
  if account == '' then
    record(keys.journal, 'USER_ENTER_QUEUE', epoch, now, 'token', token, 'number', number_text, 'score', score)
  else
    take_place(keys, token, account)
    record(keys.journal, 'USER_ENTER_QUEUE', epoch, now, 'token', token, 'number', number_text, 'score', score,
      'account', account)
  end
  return number, score
end

-- The arrival number that a score stands for; a drawn score stands for none.
local function number_of(score, pre_queue)
  local number = tonumber(score)
  if pre_queue == 'shuffle' then return number > AFTER_THE_DRAW and number - AFTER_THE_DRAW end
  return number
end
