-- expire: end a reservation that was not paid in time; seats, counters and limit return exactly once.
--
-- KEYS       meta reservation map stock remaining tickets payment_due payment_reminders sockets_due journal
-- ARGV       now_ms reservation_id
-- OUTCOMES   RECOVERING: a payment may be lost for now
--            EXPIRED
--            KEPT: paid, given back, or not due yet
-- COMPLEXITY O(seats reserved)
local meta, reservation, map, stock, remaining = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local tickets, payment_due, payment_reminders, sockets_due, journal = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local now_ms, reservation_id = ARGV[1], ARGV[2]
--@include clock
--@include replication
--@include reservation

local now = clock(now_ms)
local keys = { reservation = reservation, map = map, stock = stock, remaining = remaining, tickets = tickets,
  payment_due = payment_due, payment_reminders = payment_reminders, sockets_due = sockets_due,
  journal = journal }
local field = redis.call('HMGET', meta, 'epoch', 'recoveringSince', 'replicationId')
if is_recovering(field[2], field[3]) then return { 'RECOVERING' } end
local known = read_reservation(reservation)
if not known or known.status ~= 'PENDING_PAYMENT' then
  -- Nothing waits for this payment: the sweep must not meet it again.
  forget_payment(keys, reservation_id)
  return { 'KEPT' }
end
if known.due_at > now then return { 'KEPT' } end
if not owns_its_seats(map, known.items) then return redis.error_reply('GUARD a reserved seat is not sold') end
give_back(keys, known, 'BOOKING_EXPIRED', field[1], now, reservation_id, 'EXPIRED')
return { 'EXPIRED' }
