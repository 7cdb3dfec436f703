-- audit: the counters of places, in one moment. Read-only.
--
-- KEYS       meta map stock remaining holds due
-- ARGV       none
-- OUTCOMES   EVENT_NOT_FOUND
--            COUNTED sequence version remaining holds due map section, free, …: the stock's own sequence included
-- COMPLEXITY O(sections + bytes of the map)
local meta, map, stock, remaining, holds, due = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]

local version = redis.call('HGET', meta, 'version')
if not version then return { 'EVENT_NOT_FOUND' } end
return { 'COUNTED', tonumber(redis.call('HGET', stock, 'sequence')), tonumber(version),
  tonumber(redis.call('GET', remaining)), redis.call('HLEN', holds), redis.call('ZCARD', due),
  redis.call('GET', map) or '', redis.call('HGETALL', stock) }
