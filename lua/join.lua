-- join: take a new place in the line; an account that has one gets that.
--
-- KEYS       meta sequence waiting remaining called join_rate accounts owners journal
-- ARGV       now_ms token drawn_score account: empty where none was proven
-- OUTCOMES   EVENT_NOT_FOUND
--            RATE_LIMIT retry_after_ms
--            EVENT_CLOSED
--            ACCOUNT_REQUIRED
--            NOT_OPEN opens_at
--            KNOWN token ticket_number place view: the account waits already
--            ELSEWHERE token: the account's place was called already; rejoin tells how it stands
--            JOURNAL_FULL: too many facts wait for the queues, so nobody new joins
--            JOINED ticket_number place view; a repeat of a drawn place, or of one that was called since, has no number
-- COMPLEXITY O(log n) in the line
local meta, sequence, waiting, remaining = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local called, join_rate, accounts, owners, journal = KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local now_ms, token, drawn_score, account = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
--@include clock
--@include limit
--@include view
--@include enter
--@include epoch

local now = clock(now_ms)
local view, field = read_line(meta, now, 'joinsPerAddressPerSecond', 'preQueue', 'requireAccount',
  'joinsRefused', 'version', 'recoveringSince', 'replicationId')
if not view then return { 'EVENT_NOT_FOUND' } end
local retry_after_ms = over_limit(join_rate, field[9])
if retry_after_ms then return { 'RATE_LIMIT', retry_after_ms } end
local status, pre_queue = view[2], field[10]
if status == 'CLOSED' then return { 'EVENT_CLOSED' } end
if account == '' and field[11] == '1' then return { 'ACCOUNT_REQUIRED' } end
if status == 'UPCOMING' and pre_queue == 'closed' then return { 'NOT_OPEN', view[3] } end

local keys = { meta = meta, sequence = sequence, waiting = waiting, accounts = accounts, owners = owners,
  journal = journal }
if account ~= '' then
  local known = redis.call('HGET', accounts, account)
  if known and known ~= token then
    local score = redis.call('ZSCORE', waiting, known)
    if not score then return { 'ELSEWHERE', known } end
    return { 'KNOWN', known, number_of(score, pre_queue), waiting_place(keys, known, tonumber(score), status),
      count_line(view, waiting, remaining) }
  end
end
local score = redis.call('ZSCORE', waiting, token)
local number = score and number_of(score, pre_queue) or false
local is_new = not score
if is_new then
  -- The first try's answer was lost and the place has been called since: the token is in the client's way only now.
  if redis.call('HEXISTS', called, token) == 1 then
    return { 'JOINED', false, { 'CALLED' }, count_line(view, waiting, remaining) }
  end
  if field[12] == '1' then return { 'JOURNAL_FULL' } end
  view[4] = tonumber((watch_epoch(keys, field[13], view[4], field[14], field[15], now)))
  number, score = enter(keys, token, account, drawn_score, status, pre_queue, view[4], now)
end
count_line(view, waiting, remaining)
if is_new and status ~= 'UPCOMING' then
  -- Nobody stands behind the newest number.
  return { 'JOINED', number, { 'WAITING', score, view[7] }, view }
end
return { 'JOINED', number, waiting_place(keys, token, tonumber(score), status), view }
