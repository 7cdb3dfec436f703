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
--@include standing
--@include look

local now = clock(now_ms)
local field = redis.call('HMGET', meta, 'status', 'opensAt', 'closesAt')
if not field[1] then return { 'EVENT_NOT_FOUND' } end
if standing(field[1], field[2], field[3], now) == 'CLOSED' then return { 'EVENT_CLOSED' } end
local keys = { called = called, session = session, done = done }
local refusal = why_not_admitted(keys, token, now)
if refusal then return refusal end
local expires_at = redis.call('HGET', session, 'expiresAt') or read_call(called, token).claim_by
return { 'LIVE', tonumber(expires_at) }
