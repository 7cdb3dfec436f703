-- resume: an event that was laid out anew is in place again, as it last stood; bookings wait until what is still on
-- its way has been put back too.
--
-- KEYS       meta journal
-- ARGV       now_ms by status message maintenance definition
-- OUTCOMES   EVENT_NOT_FOUND: it was not laid out
--            CHANGED version
-- COMPLEXITY O(1)
local meta, journal = KEYS[1], KEYS[2]
local now_ms, by, status, message, maintenance = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local definition = ARGV[6]
--@include clock
--@include journal

local now = clock(now_ms)
local field = redis.call('HMGET', meta, 'version', 'epoch', 'status')
if not field[1] then return { 'EVENT_NOT_FOUND' } end
if not field[3] then
  redis.call('HSET', meta, 'status', status, 'message', message, 'maintenance', maintenance, 'recoveringSince', now)
  record(journal, 'EVENT_CHANGED', field[2], now, 'by', by, 'change', 'rebuild', 'version', field[1],
    'definition', definition)
end
return { 'CHANGED', tonumber(field[1]) }
