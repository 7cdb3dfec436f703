-- recover: a relay looks at the sale, and leaves the time. Notice that Redis is another one than the sale was last seen
-- in; a new epoch begins, and the sale recovers.
--
-- KEYS       meta sequence journal
-- ARGV       now_ms
-- OUTCOMES   EVENT_NOT_FOUND
--            HEALTHY epoch
--            RECOVERING epoch since now
-- COMPLEXITY O(1)
local meta, sequence, journal = KEYS[1], KEYS[2], KEYS[3]
local now_ms = ARGV[1]
--@include clock
--@include epoch

local now = clock(now_ms)
local field = redis.call('HMGET', meta, 'epoch', 'recoveringSince', 'replicationId')
if not field[1] then return { 'EVENT_NOT_FOUND' } end
redis.call('HSET', meta, 'relayedAt', now)
local keys = { meta = meta, sequence = sequence, journal = journal }
local epoch, since = watch_epoch(keys, field[1], field[2], field[3], now)
if not since then return { 'HEALTHY', tonumber(epoch) } end
return { 'RECOVERING', tonumber(epoch), tonumber(since), now }
