-- pay: what the payment provider says of one payment.
--
-- KEYS       meta reservation payment payment_due payment_reminders sockets_due journal
-- ARGV       now_ms reservation_id payment_id status amount currency: status PAID or FAILED
-- OUTCOMES   EVENT_NOT_FOUND
--            RECOVERING: a newer state of the reservation may be lost for now
--            RESERVATION_NOT_FOUND: not known here, or not yet
--            UNCHANGED status: a failed payment, or this very payment once more
--            BOOKING_NOT_PAYABLE: late, ended, asks for no payment, or paid by another one
--            AMOUNT_MISMATCH
--            PAID stream_id field, value, …
-- COMPLEXITY O(log n) in the reservations to be paid
local meta, reservation, payment = KEYS[1], KEYS[2], KEYS[3]
local payment_due, payment_reminders, sockets_due, journal = KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local now_ms, reservation_id, payment_id, status = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local amount, currency = ARGV[5], ARGV[6]
--@include clock
--@include replication
--@include reservation

-- A provider repeats itself for days.
local KNOWN_MS = 30 * 86400000

local now = clock(now_ms)
local field = redis.call('HMGET', meta, 'epoch', 'recoveringSince', 'replicationId')
local epoch = field[1]
if not epoch then return { 'EVENT_NOT_FOUND' } end
if is_recovering(field[2], field[3]) then return { 'RECOVERING' } end

-- Say no, with a fact the first time that this payment meets this answer.
local function refuse(outcome, reason, note)
  if redis.call('GET', payment) ~= outcome then
    redis.call('SET', payment, outcome, 'PX', KNOWN_MS)
    note(reason)
  end
  return { outcome }
end

local function note_refusal(reason)
  record(journal, 'PAYMENT_REFUSED', epoch, now, 'reservation', reservation_id, 'payment', payment_id, 'amount',
    amount, 'currency', currency, 'reason', reason)
end

local function note_refund(reason)
  refund(journal, epoch, now, reservation_id, payment_id, amount, currency, reason)
end

local known = read_reservation(reservation)
if not known then
  if status == 'FAILED' then return { 'RESERVATION_NOT_FOUND' } end
  return refuse('RESERVATION_NOT_FOUND', 'RESERVATION_NOT_FOUND', note_refusal)
end
if status == 'FAILED' or known.payment_id == payment_id then return { 'UNCHANGED', known.status } end
if known.status ~= 'PENDING_PAYMENT' then return refuse('BOOKING_NOT_PAYABLE', known.status, note_refund) end
-- The deadline is judged here: the sweep only tidies.
if known.due_at <= now then return refuse('BOOKING_NOT_PAYABLE', 'LATE', note_refund) end
if known.amount ~= amount or known.currency ~= currency then
  return refuse('AMOUNT_MISMATCH', 'AMOUNT_MISMATCH', note_refusal)
end
local keys = { reservation = reservation, payment_due = payment_due, payment_reminders = payment_reminders,
  sockets_due = sockets_due, journal = journal }
forget_payment(keys, reservation_id)
local stream_id = move_reservation(keys, known, 'PAID', epoch, now, 'PAID', 'paymentId', payment_id)
return { 'PAID', stream_id .. '/' .. epoch, redis.call('HGETALL', reservation) }
