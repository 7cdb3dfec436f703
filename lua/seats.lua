-- seats: the seat map of some sections. Read-only.
--
-- KEYS       meta called session done map stock
-- ARGV       now_ms version token span_count offset length … section …
-- OUTCOMES   EVENT_NOT_FOUND
--            STALE version: the caller's definition is not the newest
--            EVENT_CLOSED
--            ALREADY_BOOKED reservation
--            NOT_ADMITTED
--            ADMISSION_EXPIRED
--            SEATS sequence bytes-of-each-span free-of-each-section
-- COMPLEXITY O(bytes asked for)
local meta, called, session, done, map, stock = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local now_ms, version, token, span_count = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
--@include clock
--@include look

local keys = { meta = meta, called = called, session = session, done = done }
local refusal = why_not_look(keys, token, version, clock(now_ms))
if refusal then return refusal end
local bytes, at = {}, 5
for span = 1, tonumber(span_count) do
  local offset = tonumber(ARGV[at])
  bytes[span] = redis.call('GETRANGE', map, offset, offset + ARGV[at + 1] - 1)
  at = at + 2
end
local sections = { unpack(ARGV, at) }
local free = redis.call('HMGET', stock, 'sequence', unpack(sections))
local sequence = tonumber(table.remove(free, 1) or 0)
for position, count in ipairs(free) do free[position] = tonumber(count) end
return { 'SEATS', sequence, bytes, free }
