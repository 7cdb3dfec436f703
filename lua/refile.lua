-- refile: put a reservation's fact into the journal once more, because it was lost on its way to PostgreSQL.
--
-- KEYS       meta reservation journal
-- ARGV       version: the one that is missing there
-- OUTCOMES   EVENT_NOT_FOUND
--            RESERVATION_NOT_FOUND
--            STALE version: it has changed since, with a fact of its own
--            REFILED
-- COMPLEXITY O(seats reserved)
local meta, reservation, journal = KEYS[1], KEYS[2], KEYS[3]
local version = ARGV[1]
--@include journal

local KINDS = { CONFIRMED = 'BOOKED', PENDING_PAYMENT = 'BOOKED', PAID = 'PAID', CANCELLED = 'BOOKING_CANCELLED',
  EXPIRED = 'BOOKING_EXPIRED' }

local epoch = redis.call('HGET', meta, 'epoch')
if not epoch then return { 'EVENT_NOT_FOUND' } end
local field = redis.call('HMGET', reservation, 'status', 'version', 'updatedAt')
if not field[1] then return { 'RESERVATION_NOT_FOUND' } end
if field[2] ~= version then return { 'STALE', tonumber(field[2]) } end
record(journal, KINDS[field[1]], epoch, field[3], unpack(redis.call('HGETALL', reservation)))
return { 'REFILED' }
