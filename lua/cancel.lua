-- cancel: give a reservation back; seats, counters and limit return exactly once, however often it is asked.
--
-- KEYS       meta reservation map stock remaining tickets payment_due payment_reminders sockets_due journal
-- ARGV       now_ms token account reservation_id: the owner's token or account; both empty for the operator
-- OUTCOMES   RECOVERING: a newer state of the reservation may be lost for now
--            RESERVATION_NOT_FOUND: unknown, or somebody else's
--            BOOKING_NOT_CANCELLABLE: it has expired
--            CANCELLED stream_id remaining field, value, …: a repeat has no stream id
-- COMPLEXITY O(seats reserved)
local meta, reservation, map, stock, remaining = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local tickets, payment_due, payment_reminders, sockets_due, journal = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local now_ms, token, account, reservation_id = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
--@include clock
--@include owner
--@include replication
--@include reservation

local now = clock(now_ms)
local keys = { reservation = reservation, map = map, stock = stock, remaining = remaining, tickets = tickets,
  payment_due = payment_due, payment_reminders = payment_reminders, sockets_due = sockets_due,
  journal = journal }

local function cancelled(stream_id)
  return { 'CANCELLED', stream_id, tonumber(redis.call('GET', remaining) or 0), redis.call('HGETALL', reservation) }
end

local field = redis.call('HMGET', meta, 'epoch', 'recoveringSince', 'replicationId')
if is_recovering(field[2], field[3]) then return { 'RECOVERING' } end
local known = read_reservation(reservation)
if not known or not is_owner(known.token, known.account, token, account) then return { 'RESERVATION_NOT_FOUND' } end
if known.status == 'CANCELLED' then return cancelled(false) end
if known.status == 'EXPIRED' then return { 'BOOKING_NOT_CANCELLABLE' } end
if not owns_its_seats(map, known.items) then return redis.error_reply('GUARD a reserved seat is not sold') end
local epoch = field[1]
local stream_id = give_back(keys, known, 'BOOKING_CANCELLED', epoch, now, reservation_id, 'CANCELLED')
if known.status == 'PAID' then
  refund(journal, epoch, now, reservation_id, known.payment_id, known.amount, known.currency, 'CANCELLED')
end
return cancelled(stream_id .. '/' .. epoch)
