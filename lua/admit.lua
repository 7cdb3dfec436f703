-- admit: one tick of an event: give back what is due, end what is over, call who is next.
--
-- KEYS       meta sequence waiting called active map stock remaining holds due payment_due payment_reminders journal
--            sockets_due
-- ARGV       now_ms backlog journal_limit: backlog is the number of messages about bookings that wait for PostgreSQL, empty
--            where that is not known yet, full where it has not been for too long
-- OUTCOMES   EVENT_NOT_FOUND
--            TICKED now standing opens_at closes_at admitted lapsed expired reaped more waiting active remaining epoch
--            recovering pace_factor joins_refused overdue: more is 1 where another call at once would go on; recovering
--            is 1 after a loss of Redis; pace_factor is the part of the pace that the backlog leaves; overdue:
--            reservations to be expired, each by its own step
-- COMPLEXITY O(k log n) for k ≤ 1 000 people called, 500 ended, 500 places given back and 500 buyers reminded
local meta, sequence, waiting, called, active = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local map, stock, remaining, holds, due = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local payment_due, payment_reminders, journal, sockets_due = KEYS[11], KEYS[12], KEYS[13], KEYS[14]
local now_ms, backlog, journal_limit = ARGV[1], ARGV[2], tonumber(ARGV[3])
--@include clock
--@include standing
--@include seats
--@include stir
--@include epoch

-- People called, and visits ended, by one step at most.
local CALL_LIMIT, END_LIMIT = 1000, 500
-- Buyers reminded by one step, and overdue reservations that it names, at most.
local REMIND_LIMIT, OVERDUE_LIMIT = 500, 100
-- Credit is counted in thousandths of a person; one second and one missed tick are banked at most.
local BANK_MS = 2000
-- The part of a person that no tick could call yet is never lost.
local PART = 999
-- The pace seen is an average over about so long.
local PACE_MS = 30000

local now = clock(now_ms)
local field = redis.call('HMGET', meta, 'status', 'opensAt', 'closesAt', 'perSecond', 'maxActive', 'claimMs',
  'compensateNoShows', 'credit', 'callCredit', 'clock', 'headScore', 'net', 'pace', 'epoch', 'openedAt',
  'recoveringSince', 'replicationId', 'backpressureSeconds', 'paceFactor', 'joinsRefused')
if not field[1] then return { 'EVENT_NOT_FOUND' } end
local status = standing(field[1], field[2], field[3], now)
local opens_at, closes_at = tonumber(field[2]), tonumber(field[3])
local epoch, recovering_since = watch_epoch({ meta = meta, sequence = sequence, journal = journal }, field[14],
  field[16], field[17], now)
local compensate = field[7] == '1'
local keys = { map = map, stock = stock, remaining = remaining, holds = holds, due = due, journal = journal }

local reaped = reap(keys, epoch, now)

-- Visits whose time is over: called people who did not come, sessions without a booking.
local function end_visits()
  local over = redis.call('ZRANGEBYSCORE', active, '-inf', now, 'LIMIT', 0, END_LIMIT)
  if #over == 0 then return 0, 0 end
  local calls = redis.call('HMGET', called, unpack(over))
  local lapsed, expired = {}, {}
  for at, token in ipairs(over) do
    local list = calls[at] and lapsed or expired
    list[#list + 1] = token
  end
  redis.call('ZREM', active, unpack(over))
  stir(sockets_due, over)
  if #lapsed > 0 then record(journal, 'ADMISSION_LAPSED', epoch, now, 'tokens', table.concat(lapsed, ' ')) end
  if #expired > 0 then record(journal, 'ADMISSION_EXPIRED', epoch, now, 'tokens', table.concat(expired, ' ')) end
  return #lapsed, #expired
end
local lapsed, expired = end_visits()

-- Payments that are due soon are told once, for whoever sends mail.
local function remind()
  local ids = redis.call('ZRANGEBYSCORE', payment_reminders, '-inf', now, 'LIMIT', 0, REMIND_LIMIT)
  if #ids == 0 then return 0 end
  local due_at = redis.call('ZMSCORE', payment_due, unpack(ids))
  redis.call('ZREM', payment_reminders, unpack(ids))
  local soon = {}
  for at, id in ipairs(ids) do
    if due_at[at] then soon[#soon + 1] = id .. ':' .. due_at[at] end
  end
  if #soon > 0 then record(journal, 'PAYMENT_DUE_SOON', epoch, now, 'reservations', table.concat(soon, ' ')) end
  return #ids
end
-- Who has paid may have paid in what was lost.
local reminded = recovering_since and 0 or remind()
local overdue = recovering_since and {}
  or redis.call('ZRANGEBYSCORE', payment_due, '-inf', now, 'LIMIT', 0, OVERDUE_LIMIT)

-- The part of the pace that is left while bookings wait to be written: all of it as long as they wait no longer than
-- the sale says, nothing where they wait twice as long. Each of them stands for one person let in.
local function backpressure()
  local bearable_seconds = tonumber(field[18] or 0)
  if bearable_seconds == 0 then return 1 end
  if backlog == 'full' then return 0 end
  if backlog == '' then return tonumber(field[19] or 1) end
  local left = 2 - backlog / tonumber(field[4]) / bearable_seconds
  return math.floor(math.max(0, math.min(1, left)) * 100 + 0.5) / 100
end
local pace_factor = backpressure()
local per_second = tonumber(field[4]) * pace_factor

-- A journal that nobody empties must not fill Redis: nobody new joins until half of the limit is left.
local journalled = redis.call('XLEN', journal)
local joins_refused = journalled >= journal_limit or (field[20] == '1' and 2 * journalled > journal_limit)

-- A clock that stepped back further than a late tick explains has been set: the line must not wait until it catches up.
local ticked_at = tonumber(field[10])
if ticked_at - now > BANK_MS then ticked_at = now end
local since = math.max(ticked_at, opens_at)
local elapsed = math.max(now - since, 0)
local credit = math.min(tonumber(field[8]) + per_second * elapsed + (compensate and lapsed * 1000 or 0),
  per_second * BANK_MS + PART)
-- Making up for no-shows may call twice the pace, never more: a second account of what was called.
local call_credit = math.min(tonumber(field[9]) + 2 * per_second * elapsed, 2 * per_second * BANK_MS + PART)

-- People to call now.
local function callable()
  if status ~= 'OPEN' or recovering_since or tonumber(redis.call('GET', remaining)) <= 0 then return 0, 0 end
  local allowed = math.floor((compensate and math.min(credit, call_credit) or credit) / 1000)
  allowed = math.min(allowed, tonumber(field[5]) - redis.call('ZCARD', active))
  return math.max(math.min(allowed, CALL_LIMIT), 0), allowed
end

local head_score, net = tonumber(field[11]), tonumber(field[12])
local function call(count)
  local popped = redis.call('ZPOPMIN', waiting, count)
  if #popped == 0 then return 0 end
  local claim_by = now + field[6]
  local tokens, places, active_args, called_args = {}, {}, {}, {}
  for at = 1, #popped, 2 do tokens[#tokens + 1] = popped[at] end
  local before = redis.call('HMGET', called, unpack(tokens))
  for at, token in ipairs(tokens) do
    local score = popped[2 * at]
    places[at] = token .. ':' .. score
    active_args[2 * at - 1], active_args[2 * at] = claim_by, token
    called_args[2 * at - 1] = token
    called_args[2 * at] = score .. ':' .. claim_by .. ':' .. now .. (before[at] and ':1' or ':0')
  end
  redis.call('ZADD', active, unpack(active_args))
  redis.call('HSET', called, unpack(called_args))
  stir(sockets_due, tokens)
  record(journal, 'USER_ADMITTED', epoch, now, 'places', table.concat(places, ' '))
  head_score = math.max(head_score, tonumber(popped[#popped]))
  net = net + #tokens
  return #tokens
end

local count, allowed = callable()
local admitted = count > 0 and call(count) or 0
credit, call_credit = credit - admitted * 1000, call_credit - admitted * 1000
if status ~= 'OPEN' or recovering_since then credit, call_credit = 0, 0 end
local left = redis.call('ZCARD', waiting)
local pace = tonumber(field[13])
-- An empty line shows no pace: only a tick that left people waiting tells how fast they move.
if status == 'OPEN' and left > 0 and elapsed > 0 then
  pace = pace + (1000 * admitted / elapsed - pace) * (1 - math.exp(-elapsed / PACE_MS))
end
redis.call('HSET', meta, 'credit', string.format('%.3f', credit), 'callCredit', string.format('%.3f', call_credit),
  'clock', math.max(now, ticked_at), 'headScore', head_score, 'net', net, 'pace',
  string.format('%.3f', pace), 'paceFactor', tostring(pace_factor), 'joinsRefused', joins_refused and '1' or '0')
if status == 'OPEN' and not field[15] then redis.call('HSET', meta, 'openedAt', now) end
local more = (reaped == REAP_LIMIT or lapsed + expired == END_LIMIT or reminded == REMIND_LIMIT or #overdue == OVERDUE_LIMIT or (allowed > count and admitted == count and left > 0))
  and 1 or 0
return { 'TICKED', now, status, opens_at, closes_at, admitted, lapsed, expired, reaped, more, left,
  redis.call('ZCARD', active), tonumber(redis.call('GET', remaining)), tonumber(epoch), recovering_since and 1 or 0,
  tostring(pace_factor), joins_refused and 1 or 0,
  overdue }
