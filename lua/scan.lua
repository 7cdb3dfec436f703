-- scan: a page of the names of one sale's keys, asked where the sale lies. Read-only.
--
-- KEYS       meta
-- ARGV       pattern cursor
-- OUTCOMES   SCANNED cursor names: 0 for the cursor behind the last page
-- COMPLEXITY O(1 000) of all keys of the node
local meta = KEYS[1]
local pattern, cursor = ARGV[1], ARGV[2]

local PAGE = 1000
local page = redis.call('SCAN', cursor, 'MATCH', pattern, 'COUNT', PAGE)
return { 'SCANNED', page[1], page[2] }
