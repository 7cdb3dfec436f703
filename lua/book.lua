-- book: sell what is held, or so many places of a section; the session ends with it.
--
-- KEYS       meta called active session done map stock remaining holds due reservation reservations payment_due
--            payment_reminders accounts tickets idempotency journal sockets_due sockets_refused
-- ARGV       now_ms version token reservation_id request asked mode section price count offset length …: asked is the
--            digest of a request with an Idempotency-Key
--            mode held: nothing follows and any version will do; general | count: as in hold
-- OUTCOMES   IDEMPOTENCY_KEY_REUSED
--            EVENT_NOT_FOUND
--            ALREADY_BOOKED reservation: by another request, or given back since
--            STALE version: the caller's definition is not the newest
--            EVENT_CLOSED
--            MAINTENANCE
--            RECOVERING
--            NOT_ADMITTED
--            HOLD_EXPIRED
--            ADMISSION_EXPIRED
--            NOTHING_HELD
--            SEAT_COUNT_WHILE_HOLDING
--            PURCHASE_LIMIT_EXCEEDED limit used requested
--            AGAIN: more holds were due than one step gives back; the same call goes on
--            SOLD_OUT free
--            BOOKED stream_id remaining fields: names and values, each on a line; a repeat has an array of them, and no
--            stream id
-- COMPLEXITY O(seats held); count: O(seats of the section)
local meta, called, active, session, done, map = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local stock, remaining, holds, due = KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local reservation, reservations, payment_due, payment_reminders = KEYS[11], KEYS[12], KEYS[13], KEYS[14]
local accounts, tickets, idempotency, journal = KEYS[15], KEYS[16], KEYS[17], KEYS[18]
local sockets_due, sockets_refused = KEYS[19], KEYS[20]
local now_ms, version, token, reservation_id, request = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local asked, mode, section, price, count = ARGV[6], ARGV[7], ARGV[8], ARGV[9], tonumber(ARGV[10])
--@include clock
--@include standing
--@include replication
--@include session
--@include pick
--@include account
--@include replay
--@include stir
--@include reminder

local now = clock(now_ms)
local replayed = replay(idempotency, asked)
if replayed then return replayed end
local field = redis.call('HMGET', meta, 'status', 'opensAt', 'closesAt', 'version', 'maintenance', 'epoch',
  'activeMs', 'limitPerAccount', 'paymentMode', 'paymentDueAt', 'paymentDueAfterMs', 'currency',
  'recoveringSince', 'replicationId')
if not field[1] then return { 'EVENT_NOT_FOUND' } end
local keys = { called = called, active = active, session = session, done = done, map = map, stock = stock,
  remaining = remaining, holds = holds, due = due, accounts = accounts, journal = journal }

local function booked(stream_id, fields)
  return { 'BOOKED', stream_id, tonumber(redis.call('GET', remaining)), fields }
end
local function repeated(fields)
  return remember(idempotency, asked, booked(false, fields))
end

local bought = redis.call('GET', done)
if bought then
  local known = redis.call('HMGET', reservation, 'request', 'status')
  -- What was put back from PostgreSQL does not know how it was asked for.
  if (known[1] or request) ~= request or known[2] == 'CANCELLED' or known[2] == 'EXPIRED' then
    return { 'ALREADY_BOOKED', bought }
  end
  return repeated(redis.call('HGETALL', reservation))
end
if mode ~= 'held' and field[4] ~= version then return { 'STALE', tonumber(field[4]) } end
if standing(field[1], field[2], field[3], now) == 'CLOSED' then return { 'EVENT_CLOSED' } end
if field[5] == '1' then return { 'MAINTENANCE' } end
if is_recovering(field[13], field[14]) then return { 'RECOVERING' } end
local epoch, closes_at, limit = field[6], tonumber(field[3]), tonumber(field[8])
local live, refusal = open_session(keys, token, now,
  { active_ms = tonumber(field[7]), closes_at = closes_at, epoch = epoch })
local function refused(why) return tell_refusal(sockets_due, sockets_refused, token, why) end
if not live then return refused(refusal) end

-- Every held unit must still be this token's. If it is not, that is a bug, and nothing is sold.
local function check_owner(item)
  local owners = redis.call('HMGET', holds, unpack(units_of(item, token)))
  local prefix = item.section .. ':' .. item.price .. ':'
  for _, owner in ipairs(owners) do
    if owner ~= prefix .. (item.seats and token or item.count) then return false end
  end
  return true
end

local items = parse_items(live.items)
local bought_before = bought_by(tickets, live.account)
if mode == 'held' then
  if #items == 0 then return { 'NOTHING_HELD' } end
  for _, item in ipairs(items) do
    if not check_owner(item) then return redis.error_reply('GUARD a held place is not its holder\'s') end
  end
  if bought_before + count_items(items) > limit then
    return refused({ 'PURCHASE_LIMIT_EXCEEDED', limit, bought_before, count_items(items) })
  end
  drop_holds(keys, items, token)
  for _, item in ipairs(items) do
    if item.seats then paint(map, item.seats, SOLD) end
  end
else
  if #items > 0 then return { 'SEAT_COUNT_WHILE_HOLDING' } end
  if bought_before + count > limit then return refused({ 'PURCHASE_LIMIT_EXCEEDED', limit, bought_before, count }) end
  local item
  item, refusal = pick(keys, { mode = mode, section = section, price = price, count = count,
    spans = { unpack(ARGV, 11) } }, epoch, now)
  if not item then return refused(refusal) end
  if item.seats then paint(map, item.seats, SOLD) end
  move_stock(keys, section, -count)
  items = { item }
end
changed_places(keys)

local amount = 0
for _, item in ipairs(items) do amount = amount + item.price * item.count end
local seat_count = count_items(items)
-- As text from here on: Redis would make one of a number at each use.
local at, status, due_at = digits(now), 'CONFIRMED', ''
if field[9] == 'deferred' then
  status = 'PENDING_PAYMENT'
  due_at = field[10] and tonumber(field[10]) or now + field[11]
  redis.call('ZADD', payment_due, due_at, reservation_id)
  redis.call('ZADD', payment_reminders, reminder(now, due_at), reservation_id)
end
local fields = { 'id', reservation_id, 'token', token, 'status', status, 'version', '1', 'items', format_items(items),
  'seatCount', digits(seat_count), 'amount', digits(amount), 'currency', field[12], 'createdAt', at,
  'updatedAt', at, 'paymentDueAt', tostring(due_at), 'request', request }
if live.account then
  fields[#fields + 1] = 'account'
  fields[#fields + 1] = live.account
  redis.call('HINCRBY', tickets, live.account, seat_count)
  give_up_place(accounts, token)
end
local known_until = math.max(closes_at, tonumber(due_at) or 0) + DAY_MS
redis.call('HSET', reservation, unpack(fields))
redis.call('PEXPIREAT', reservation, digits(known_until))
redis.call('ZADD', reservations, at, reservation_id)
redis.call('SET', done, reservation_id, 'PXAT', digits(closes_at + DAY_MS))
redis.call('HSET', session, 'state', 'BOOKED')
if live.request or live.hold_expires_at or live.items ~= '' then
  redis.call('HDEL', session, 'items', 'holdExpiresAt', 'request', 'requestItem')
end
redis.call('ZREM', active, token)
stir(sockets_due, { token })
local stream_id = record(journal, 'BOOKED', epoch, at, unpack(fields))
-- A replay must not bring the fact again.
if asked ~= '' then repeated(fields) end
return booked(stream_id .. '/' .. epoch, table.concat(fields, '\n'))
