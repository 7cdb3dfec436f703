-- join: take a new place in the line; an account that has one gets that.
--
-- KEYS       meta sequence waiting remaining called join_rate accounts journal
-- ARGV       now_ms token drawn_score account: empty where none was proven, else the token is made for it
-- OUTCOMES   EVENT_NOT_FOUND
--            RATE_LIMIT retry_after_ms
--            EVENT_CLOSED
--            ACCOUNT_REQUIRED
--            NOT_OPEN opens_at
--            KNOWN token ticket_number view place: the account waits already
--            ELSEWHERE token: the account's place was called already; rejoin tells how it stands
--            JOURNAL_FULL: too many facts wait for the queues, so nobody new joins
--            JOINED ticket_number view place; a repeat of a drawn place, or of one that was called since, has no number
-- COMPLEXITY O(log n) in the line
local meta, sequence, waiting, remaining = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local called, join_rate, accounts, journal = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local now_ms, token, drawn_score, account = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
--@include clock
--@include limit
--@include view
--@include enter
--@include waiting
--@include epoch

local now = clock(now_ms)
local field = read_line(meta, now, 'joinsPerAddressPerSecond', 'preQueue', 'requireAccount', 'joinsRefused',
  'replicationId')
if not field then return { 'EVENT_NOT_FOUND' } end
local retry_after_ms = over_limit(join_rate, field[9])
if retry_after_ms then return { 'RATE_LIMIT', retry_after_ms } end
local status, pre_queue = field[1], field[10]
if status == 'CLOSED' then return { 'EVENT_CLOSED' } end
if account == '' and field[11] == '1' then return { 'ACCOUNT_REQUIRED' } end
if status == 'UPCOMING' and pre_queue == 'closed' then return { 'NOT_OPEN', field[2] } end

local keys = { meta = meta, sequence = sequence, waiting = waiting, accounts = accounts, journal = journal }

-- Who waits already gets the place that it has.
local function same(word, known, score)
  local view = view_of(field, now, waiting, remaining)
  return { word, number_of(score, pre_queue), view, waiting_of(waiting, known, score, status) }
end

if account ~= '' then
  local known = place_of_account(accounts, token, account)
  if known and known ~= token then
    local score = redis.call('ZSCORE', waiting, known)
    if not score then return { 'ELSEWHERE', known } end
    local answer = same('KNOWN', known, score)
    table.insert(answer, 2, known)
    return answer
  end
end
-- Hardly anybody is a repeat, so the line is searched for the token only where it must not enter; else `enter` tells.
local was_called, is_full = redis.call('HEXISTS', called, token) == 1, field[12] == '1'
if was_called or is_full then
  local score = redis.call('ZSCORE', waiting, token)
  if score then return same('JOINED', token, score) end
  -- The first try's answer was lost and the place has been called since: the token is in the client's way only now.
  if was_called then return { 'JOINED', false, (view_of(field, now, waiting, remaining)), 'CALLED' } end
  return { 'JOURNAL_FULL' }
end
field[4] = watch_epoch(keys, field[4], nil, field[13], now)
local number, score = enter(keys, token, account, drawn_score, status, pre_queue, field[4], digits(now))
if not number then return same('JOINED', token, redis.call('ZSCORE', waiting, token)) end
local view, total = view_of(field, now, waiting, remaining)
if status == 'UPCOMING' then return { 'JOINED', number, view, waiting_of(waiting, token, score, status) } end
-- Nobody stands behind the newest number.
return { 'JOINED', number, view, 'WAITING', score, total }
