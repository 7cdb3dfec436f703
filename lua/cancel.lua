-- cancel: give a reservation back; seats, counters and limit return exactly once, however often it is asked.
--
-- KEYS       meta reservation session map stock remaining payment_due journal sockets_due
-- ARGV       now_ms token reservation_id; token is empty for the operator
-- OUTCOMES   RESERVATION_NOT_FOUND: unknown, or somebody else's
--            BOOKING_NOT_CANCELLABLE: it has expired
--            CANCELLED stream_id remaining field, value, …: a repeat has no stream id
-- COMPLEXITY O(seats reserved)
local meta, reservation, session, map = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local stock, remaining, payment_due, journal = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local sockets_due = KEYS[9]
local now_ms, token, reservation_id = ARGV[1], ARGV[2], ARGV[3]
--@include clock
--@include seats
--@include stir

local now = clock(now_ms)
local keys = { map = map, stock = stock, remaining = remaining }

local function cancelled(stream_id)
  return { 'CANCELLED', stream_id, tonumber(redis.call('GET', remaining) or 0), redis.call('HGETALL', reservation) }
end

local field = redis.call('HMGET', reservation, 'token', 'status', 'version', 'items')
if not field[1] or (token ~= '' and field[1] ~= token) then return { 'RESERVATION_NOT_FOUND' } end
if field[2] == 'CANCELLED' then return cancelled(false) end
if field[2] == 'EXPIRED' then return { 'BOOKING_NOT_CANCELLABLE' } end
local items = parse_items(field[4])
for _, item in ipairs(items) do
  for _, byte in ipairs(item.seats and bytes_of(map, item.seats) or {}) do
    if byte ~= SOLD then return redis.error_reply('GUARD a reserved seat is not sold') end
  end
end
free_items(keys, items)
redis.call('HSET', reservation, 'status', 'CANCELLED', 'version', field[3] + 1, 'updatedAt', now)
redis.call('ZREM', payment_due, reservation_id)
redis.call('HSET', session, 'tickets', 0)
stir(sockets_due, { field[1] })
local epoch = redis.call('HGET', meta, 'epoch')
local stream_id = record(journal, 'BOOKING_CANCELLED', epoch, now, unpack(redis.call('HGETALL', reservation)))
return cancelled(stream_id .. '/' .. epoch)
