-- change: set what an operator changes of a running sale without a new edition: status, message, maintenance.
--
-- KEYS       meta journal
-- ARGV       now_ms by change field value …
-- OUTCOMES   EVENT_NOT_FOUND
--            CHANGED version
-- COMPLEXITY O(1)
local meta, journal = KEYS[1], KEYS[2]
local now_ms, by, change = ARGV[1], ARGV[2], ARGV[3]
--@include clock
--@include journal

local field = redis.call('HMGET', meta, 'version', 'epoch')
if not field[1] then return { 'EVENT_NOT_FOUND' } end
redis.call('HSET', meta, unpack(ARGV, 4))
record(journal, 'EVENT_CHANGED', field[2], clock(now_ms), 'by', by, 'change', change, 'version', field[1],
  'value', ARGV[5])
return { 'CHANGED', tonumber(field[1]) }
