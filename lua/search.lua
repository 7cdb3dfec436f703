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
--@include look

local keys = { meta = meta, called = called, session = session, done = done }
local refusal = why_not_look(keys, token, version, clock(now_ms))
if refusal then return refusal end
return { 'FOUND', redis.call('HGETALL', stock) }
