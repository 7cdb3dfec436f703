-- delete: forget a sale that is over or was never opened: first noted in its journal, then, once a queue has taken all
-- of that, made unknown. What is left of it are keys that no step reads.
--
-- KEYS       meta definition waiting active payment_due journal
-- ARGV       now_ms by
-- OUTCOMES   EVENT_NOT_FOUND
--            RECOVERING: what was answered before may not be known here
--            ONGOING standing waiting active unpaid: somebody still needs it
--            NOTED journal: facts that no queue has taken; the same call goes on
--            DELETED
-- COMPLEXITY O(1)
local meta, definition, waiting = KEYS[1], KEYS[2], KEYS[3]
local active, payment_due, journal = KEYS[4], KEYS[5], KEYS[6]
local now_ms, by = ARGV[1], ARGV[2]
--@include clock
--@include standing
--@include replication
--@include journal

local now = clock(now_ms)
local field = redis.call('HMGET', meta, 'version', 'epoch', 'status', 'opensAt', 'closesAt', 'deleting',
  'recoveringSince', 'replicationId')
if not field[1] then return { 'EVENT_NOT_FOUND' } end
if is_recovering(field[7], field[8]) then return { 'RECOVERING' } end
local status = standing(field[3], field[4], field[5], now)
local left, inside = redis.call('ZCARD', waiting), redis.call('ZCARD', active)
local unpaid = redis.call('ZCARD', payment_due)
-- Who waits in a closed line has been told that it is over.
local is_over = status == 'CLOSED' or (status == 'UPCOMING' and left == 0)
if not is_over or inside > 0 or unpaid > 0 then return { 'ONGOING', status, left, inside, unpaid } end
if not field[6] then
  redis.call('HSET', meta, 'deleting', now)
  record(journal, 'EVENT_CHANGED', field[2], now, 'by', by, 'change', 'delete', 'version', field[1])
end
local facts = redis.call('XLEN', journal)
if facts > 0 then return { 'NOTED', facts } end
redis.call('UNLINK', meta, definition)
return { 'DELETED' }
