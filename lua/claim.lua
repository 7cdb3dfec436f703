-- claim: a called token has come; its session begins.
--
-- KEYS       meta waiting remaining called active session done reservation accounts tickets journal
-- ARGV       now_ms token
-- OUTCOMES   EVENT_NOT_FOUND
--            POLLED tickets view place: as after the claim; as it is where there was nothing to claim
-- COMPLEXITY O(log n) in the active set
local meta, waiting, remaining, called = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local active, session, done, reservation = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local accounts, tickets, journal = KEYS[9], KEYS[10], KEYS[11]
local now_ms, token = ARGV[1], ARGV[2]
--@include clock
--@include view
--@include claim
--@include poll

local now = clock(now_ms)
local field = read_line(meta, now, 'accounts', 'activeMs', 'closesAt')
if not field then return { 'EVENT_NOT_FOUND' } end
local keys = { waiting = waiting, remaining = remaining, called = called, active = active, session = session,
  done = done, reservation = reservation, accounts = accounts, tickets = tickets, journal = journal }
local place = place_of(keys, token, field[1], now)
if place[1] == 'CALLED' then
  claim(keys, read_call(called, token), token, now,
    { active_ms = tonumber(field[10]), closes_at = tonumber(field[11]), epoch = field[4] })
end
return poll(keys, token, field, now)
