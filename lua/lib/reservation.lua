--@include account
--@include seats
--@include stir
-- What a reservation needs to be given back.
local function read_reservation(reservation)
  local field = redis.call('HMGET', reservation, 'token', 'status', 'version', 'items', 'account', 'amount', 'currency',
    'paymentDueAt', 'paymentId', 'seatCount')
  if not field[1] then return nil end
  return { token = field[1], status = field[2], version = tonumber(field[3]), items = parse_items(field[4]),
    account = field[5], amount = field[6], currency = field[7], due_at = tonumber(field[8]), payment_id = field[9],
    seat_count = tonumber(field[10]) }
end

-- Whether its seats are all sold, as they must be.
local function owns_its_seats(map, items)
  for _, item in ipairs(items) do
    for _, byte in ipairs(item.seats and bytes_of(map, item.seats) or {}) do
      if byte ~= SOLD then return false end
    end
  end
  return true
end

-- Move a reservation to its next version. Returns the stream id of the fact.
local function move_reservation(keys, known, kind, epoch, now, status, ...)
  stir(keys.sockets_due, { known.token })
  redis.call('HSET', keys.reservation, 'status', status, 'version', known.version + 1, 'updatedAt', now, ...)
  return record(keys.journal, kind, epoch, now, unpack(redis.call('HGETALL', keys.reservation)))
end

local function forget_payment(keys, reservation_id)
  redis.call('ZREM', keys.payment_due, reservation_id)
  redis.call('ZREM', keys.payment_reminders, reservation_id)
end

-- End a reservation: seats, counters and limit return. Returns the stream id of the fact.
local function give_back(keys, known, kind, epoch, now, reservation_id, status)
  free_items(keys, known.items)
  if known.account then redis.call('HINCRBY', keys.tickets, known.account, -known.seat_count) end
  forget_payment(keys, reservation_id)
  return move_reservation(keys, known, kind, epoch, now, status)
end

-- Money that nothing was bought for, or nothing is bought for any more.
local function refund(journal, epoch, now, reservation_id, payment_id, amount, currency, reason)
  record(journal, 'REFUND_DUE', epoch, now, 'reservation', reservation_id, 'payment', payment_id, 'amount', amount,
    'currency', currency, 'reason', reason)
end
