-- recovered: end a recovery: what was answered before is back, so the sale goes on.
--
-- KEYS       meta journal
-- ARGV       now_ms epoch: the one whose recovery is over
-- OUTCOMES   EVENT_NOT_FOUND
--            RECOVERING: another epoch has begun, or will, so that this is not over
--            RECOVERED
-- COMPLEXITY O(1)
local meta, journal = KEYS[1], KEYS[2]
local now_ms, epoch = ARGV[1], ARGV[2]
--@include clock
--@include replication
--@include journal

local field = redis.call('HMGET', meta, 'version', 'epoch', 'recoveringSince', 'replicationId')
if not field[1] then return { 'EVENT_NOT_FOUND' } end
if field[2] ~= epoch or is_recovering(nil, field[4]) then return { 'RECOVERING' } end
-- A repetition finds it ended.
if field[3] then
  redis.call('HDEL', meta, 'recoveringSince')
  record(journal, 'EVENT_CHANGED', epoch, clock(now_ms), 'by', 'jari', 'change', 'recovered', 'version', field[1])
end
return { 'RECOVERED' }
