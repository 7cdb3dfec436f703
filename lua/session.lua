-- session: until when a token's session lives. Read-only.
--
-- KEYS       meta called session done
-- ARGV       now_ms token
-- OUTCOMES   EVENT_NOT_FOUND
--            EVENT_CLOSED
--            ALREADY_BOOKED reservation
--            NOT_ADMITTED
--            ADMISSION_EXPIRED
--            LIVE expires_at
-- COMPLEXITY O(1)
local meta, called, session, done = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local now_ms, token = ARGV[1], ARGV[2]
--@include clock
--@include look

local keys = { meta = meta, called = called, session = session, done = done }
local refusal, expires_at = why_not_look(keys, token, nil, clock(now_ms))
if refusal then return refusal end
return { 'LIVE', expires_at }
