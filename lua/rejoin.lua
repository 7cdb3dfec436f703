-- rejoin: come back to a place after a reload, a lapse or an expiry; an unknown token takes a new place.
--
-- KEYS       meta sequence waiting remaining called active session done join_rate accounts left journal sockets_due
-- ARGV       now_ms token drawn_score new_token new_drawn_score account counted key_epoch key_score key_number:
--            account is empty where none was proven, else new_token is made for it; counted 1 where the address'
--            limit has counted this request already; what the place's key proves, key_epoch empty where it brought
--            none, key_score 0 where it was made before the opening, key_number 0 where it tells none
-- OUTCOMES   EVENT_NOT_FOUND
--            RATE_LIMIT retry_after_ms
--            ALREADY_BOOKED reservation
--            ANOTHER_ACCOUNT: the place belongs to an account that is not the proven one
--            EVENT_CLOSED
--            ACCOUNT_REQUIRED
--            NOT_OPEN opens_at
--            KNOWN ticket_number view place: the same place, a lapsed one back at its old score, or one that Redis lost
--            and its key proves; a drawn place has no ticket number
--            ELSEWHERE token: the token has no place, and the account has one by another
--            JOURNAL_FULL: too many facts wait for the queues, so nobody gets a place at the end of the line
--            REQUEUED ticket_number view place: the same token at the end of the line
--            JOINED ticket_number view place: the new token at the end of the line
-- COMPLEXITY O(log n) in the line
local meta, sequence, waiting, remaining, called = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local active, session, done, join_rate = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local accounts, left, journal, sockets_due = KEYS[10], KEYS[11], KEYS[12], KEYS[13]
local now_ms, token, drawn_score, new_token = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local new_drawn_score, account, counted = ARGV[5], ARGV[6], ARGV[7]
local key_epoch, key_score, key_number = tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10])
--@include clock
--@include limit
--@include view
--@include enter
--@include claim
--@include place
--@include stir
--@include epoch

local now = clock(now_ms)
local field = read_line(meta, now, 'joinsPerAddressPerSecond', 'preQueue', 'requireAccount', 'activeMs',
  'closesAt', 'replicationId', 'joinsRefused')
if not field then return { 'EVENT_NOT_FOUND' } end
local retry_after_ms = counted ~= '1' and over_limit(join_rate, field[9])
if retry_after_ms then return { 'RATE_LIMIT', retry_after_ms } end
local status, pre_queue = field[1], field[10]
local keys = { meta = meta, sequence = sequence, waiting = waiting, called = called, active = active,
  session = session, done = done, accounts = accounts, left = left, journal = journal }

-- What follows is the place.
local function answer(outcome, number, ...)
  return { outcome, number, view_of(field, now, waiting, remaining), ... }
end

local function known(score, ...)
  return answer('KNOWN', number_of(score, pre_queue), ...)
end

local function enter_at_the_end(outcome, entering, owner, drawn)
  field[4] = watch_epoch(keys, field[4], nil, field[14], now)
  local number, score = enter(keys, entering, owner, drawn, status, pre_queue, field[4], now)
  return answer(outcome, number, waiting_of(waiting, entering, score, status))
end

-- Leave the active set if the tick has not tidied it yet, with the fact that the tick would have written.
local function end_visit(fact)
  if redis.call('ZREM', active, token) == 1 then record(journal, fact, field[4], now, 'tokens', token) end
end

-- Whether the token is one of the proven account's.
local function is_own() return account ~= '' and is_of_one_account(token, new_token) end

-- Where a place stood that Redis knew in an epoch before, and forgot; nil where its key does not prove one. Nobody comes
-- back who was served or has left, nor to the place of another account.
local function lost_score()
  if not key_epoch or redis.call('SISMEMBER', left, token) == 1 then return nil end
  if field[11] == '1' and not is_own() then return nil end
  if key_epoch >= tonumber(field[4]) and not is_recovering(nil, field[14]) then return nil end
  local score = key_score
  if score == 0 then score = pre_queue == 'shuffle' and tonumber(drawn_score) or key_number end
  if score <= tonumber(field[5]) then return nil end
  return score
end

-- A numbered line's fact says the number once more; a drawn place has none.
local function restore(score)
  redis.call('ZADD', waiting, score, token)
  local fact = { 'token', token, 'score', score }
  if is_own() then
    take_place(keys, token, account)
    fact[#fact + 1], fact[#fact + 2] = 'account', account
  end
  record(journal, 'USER_ENTER_QUEUE', field[4], now, unpack(fact))
  stir(sockets_due, { token })
  return known(score, waiting_of(waiting, token, score, status))
end

local place = place_of(keys, token, status == 'CLOSED' and 'OPEN' or status, now)
if place[1] == 'BOOKED' then return { 'ALREADY_BOOKED', place[2] } end
local owner = account_of(accounts, token)
if owner and account ~= '' and owner ~= account then return { 'ANOTHER_ACCOUNT' } end
if status == 'CLOSED' then return { 'EVENT_CLOSED' } end
if place[1] == 'WAITING' then return known(redis.call('ZSCORE', waiting, token), unpack(place)) end
if place[1] == 'ACTIVE' then return known(redis.call('HGET', session, 'score'), unpack(place)) end
local call = read_call(called, token)
if place[1] == 'CALLED' then
  local rules = { active_ms = tonumber(field[12]), closes_at = tonumber(field[13]), epoch = field[4] }
  return known(call.score, 'ACTIVE', claim(keys, call, token, now, rules))
end
if place[1] == 'NOT_FOUND' then
  if account == '' and field[11] == '1' then return { 'ACCOUNT_REQUIRED' } end
  if status == 'UPCOMING' and pre_queue == 'closed' then return { 'NOT_OPEN', field[2] } end
  local score = redis.call('ZSCORE', waiting, new_token)
  if score then return answer('JOINED', false, waiting_of(waiting, new_token, score, status)) end
  local elsewhere = account ~= '' and place_of_account(accounts, new_token, account)
  if elsewhere and elsewhere ~= token then return { 'ELSEWHERE', elsewhere } end
  local lost = lost_score()
  if lost then return restore(lost) end
  if field[15] == '1' then return { 'JOURNAL_FULL' } end
  return enter_at_the_end('JOINED', new_token, account, new_drawn_score)
end

if place[2] == 0 and field[15] == '1' then return { 'JOURNAL_FULL' } end
stir(sockets_due, { token })
if not call then
  end_visit('ADMISSION_EXPIRED')
  redis.call('DEL', session)
  return enter_at_the_end('REQUEUED', token, owner or '', drawn_score)
end
end_visit('ADMISSION_LAPSED')
if place[2] == 0 then
  redis.call('HDEL', called, token)
  return enter_at_the_end('REQUEUED', token, owner or '', drawn_score)
end
redis.call('ZADD', waiting, call.score, token)
redis.call('HSET', called, token, call.score .. ':0:' .. call.called_at .. ':1')
field[6] = redis.call('HINCRBY', meta, 'net', -1)
record(journal, 'USER_ENTER_QUEUE', field[4], now, 'token', token, 'score', call.score)
return known(call.score, waiting_of(waiting, token, call.score, status))
