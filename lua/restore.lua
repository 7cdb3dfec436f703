-- restore: put back a reservation that PostgreSQL knows in a higher version, or that was forgotten here: all that its
-- booking, payment or end would have left. No fact is written: PostgreSQL has the one that made it true.
--
-- KEYS       meta waiting called active session done map stock remaining holds due reservation reservations
--            payment_due payment_reminders accounts tickets sockets_due journal
-- ARGV       now_ms token reservation_id status version items seat_count account created_at due_at field value …:
--            account and due_at are empty where there is none; the fields are those that book writes
-- OUTCOMES   EVENT_NOT_FOUND
--            AGAIN: more holds were due than one step gives back; the same call goes on
--            CONFLICT seat: sold to another reservation, off sale, or not sold though it is to come back
--            HELD seat …: others hold these; evict gives them back, then the same call goes on
--            FULL section missing: so many places too few are free; likewise
--            KNOWN: this version or a newer one is here, and what stands beside this very one was put right; or its sale is
--            so long over that it is forgotten
--            RESTORED
-- COMPLEXITY O(seats reserved and held), O(log n) in the line
local meta, waiting, called, active, session, done = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local map, stock, remaining, holds, due = KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11]
local reservation, reservations, payment_due, payment_reminders = KEYS[12], KEYS[13], KEYS[14], KEYS[15]
local accounts, tickets, sockets_due, journal = KEYS[16], KEYS[17], KEYS[18], KEYS[19]
local now_ms, token, reservation_id, status, version = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
local items, seat_count, account = ARGV[6], tonumber(ARGV[7]), ARGV[8]
local created_at, due_at = tonumber(ARGV[9]), tonumber(ARGV[10])
--@include clock
--@include reservation
--@include own
--@include reminder

local DAY_MS = 86400000

local now = clock(now_ms)
local field = redis.call('HMGET', meta, 'version', 'epoch', 'closesAt', 'status')
if not field[1] then return { 'EVENT_NOT_FOUND' } end
local epoch, closes_at = field[2], tonumber(field[3])
local known_until = math.max(closes_at, due_at or 0) + DAY_MS
-- Rightly forgotten by now, but its seats stay sold; only where an event is laid out anew they are sold once more.
if field[4] and now >= known_until then return { 'KNOWN' } end
local keys = { meta = meta, session = session, map = map, stock = stock, remaining = remaining, holds = holds,
  due = due, reservation = reservation, tickets = tickets, payment_due = payment_due,
  payment_reminders = payment_reminders, sockets_due = sockets_due, journal = journal }

local function keeps_seats(of) return of ~= 'CANCELLED' and of ~= 'EXPIRED' end

local known = read_reservation(reservation)
if known and known.version > version then return { 'KNOWN' } end
local is_newer = not known or known.version < version
local kept, keeps = known and keeps_seats(known.status) or false, keeps_seats(status)
local wanted, own = parse_items(items), {}

-- Why the reservation cannot have its places; nil where it can. Its own holds are no reason: it ended them.
local function obstacle()
  local is_own, free, held = {}, {}, {}
  for _, item in ipairs(own) do
    for _, seat in ipairs(item.seats or {}) do is_own[seat] = true end
    if not item.seats then free[item.section] = (free[item.section] or 0) + item.count end
  end
  for _, item in ipairs(wanted) do
    if item.seats then
      for at, byte in ipairs(bytes_of(map, item.seats)) do
        local seat = item.seats[at]
        if byte == KEPT and not is_own[seat] then
          held[#held + 1] = seat
        elseif byte ~= KEPT and byte ~= FREE then
          return { 'CONFLICT', seat }
        end
      end
    else
      free[item.section] = (free[item.section] or 0) - item.count
    end
  end
  if #held > 0 then return { 'HELD', unpack(held) } end
  for section, spare in pairs(free) do
    local missing = -spare - tonumber(redis.call('HGET', stock, section) or 0)
    if missing > 0 then return { 'FULL', tonumber(section), missing } end
  end
end

if is_newer and keeps and not kept then
  if reap(keys, epoch, now) == REAP_LIMIT then return { 'AGAIN' } end
  own = own_holds(keys, token)
  local why = obstacle()
  if why then return why end
elseif is_newer and kept and not keeps then
  for _, item in ipairs(known.items) do
    for at, byte in ipairs(item.seats and bytes_of(map, item.seats) or {}) do
      if byte ~= SOLD then return { 'CONFLICT', item.seats[at] } end
    end
  end
end
if not known then own = own_holds(keys, token) end

drop_holds(keys, own, token)
if #own > 0 then free_items(keys, own) end
if is_newer then
  if keeps and not kept then
    for _, item in ipairs(wanted) do
      if item.seats then paint(map, item.seats, SOLD) end
      move_stock(keys, item.section, -item.count)
    end
    changed_places(keys)
  elseif kept and not keeps then
    free_items(keys, known.items)
  end
  local bought = (keeps and seat_count or 0) - (kept and known.seat_count or 0)
  if account ~= '' and bought ~= 0 then redis.call('HINCRBY', tickets, account, bought) end
  redis.call('HSET', reservation, unpack(ARGV, 11))
else
  status = known.status
end
redis.call('PEXPIREAT', reservation, known_until)
redis.call('ZADD', reservations, created_at, reservation_id)
redis.call('SET', done, reservation_id, 'PXAT', closes_at + DAY_MS)
if status == 'PENDING_PAYMENT' then
  redis.call('ZADD', payment_due, due_at, reservation_id)
  -- One whose time has come was told already.
  local remind_at = reminder(created_at, due_at)
  if not known and remind_at > now then redis.call('ZADD', payment_reminders, remind_at, reservation_id) end
else
  forget_payment(keys, reservation_id)
end
redis.call('ZREM', waiting, token)
redis.call('HDEL', called, token)
redis.call('ZREM', active, token)
give_up_place(accounts, token)
if redis.call('EXISTS', session) == 1 then
  redis.call('HSET', session, 'state', 'BOOKED')
  redis.call('HDEL', session, 'items', 'holdExpiresAt', 'request', 'requestItem')
end
stir(sockets_due, { token })
return { is_newer and 'RESTORED' or 'KNOWN' }
