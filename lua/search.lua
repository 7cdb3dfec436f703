-- search: what is left in each section. Read-only.
--
-- KEYS       meta called session done stock
-- ARGV       now_ms version token
-- OUTCOMES   EVENT_NOT_FOUND
--            STALE version: the caller's definition is not the newest
--            EVENT_CLOSED
--            ALREADY_BOOKED reservation
--            NOT_ADMITTED
--            ADMISSION_EXPIRED
--            FOUND section, free, section, free, …
-- COMPLEXITY O(sections)
local meta, called, session, done, stock = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local now_ms, version, token = ARGV[1], ARGV[2], ARGV[3]
--@include clock
--@include standing
--@include look

local now = clock(now_ms)
local field = redis.call('HMGET', meta, 'status', 'opensAt', 'closesAt', 'version')
if not field[1] then return { 'EVENT_NOT_FOUND' } end
if field[4] ~= version then return { 'STALE', tonumber(field[4]) } end
if standing(field[1], field[2], field[3], now) == 'CLOSED' then return { 'EVENT_CLOSED' } end
local refusal = why_not_admitted({ called = called, session = session, done = done }, token, now)
if refusal then return refusal end
return { 'FOUND', redis.call('HGETALL', stock) }
