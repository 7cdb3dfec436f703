-- poll: where a token stands. Read-only, for callers whose key is good.
--
-- KEYS       meta waiting remaining called session done reservation accounts tickets
-- ARGV       now_ms token
-- OUTCOMES   EVENT_NOT_FOUND
--            POLLED tickets view place
-- COMPLEXITY O(log n) in the line
local meta, waiting, remaining, called, session, done = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local reservation, accounts, tickets = KEYS[7], KEYS[8], KEYS[9]
local now_ms, token = ARGV[1], ARGV[2]
--@include clock
--@include in_line

local now = clock(now_ms)
local field = read_line(meta, now, 'accounts')
if not field then return { 'EVENT_NOT_FOUND' } end
local answer = poll_in_line(waiting, remaining, token, field, now)
if answer then return answer end
-- Only now, for Lua makes every function anew at each run.
--@include poll
local keys = { waiting = waiting, remaining = remaining, called = called, session = session, done = done,
  reservation = reservation, accounts = accounts, tickets = tickets }
return poll(keys, token, field, now)
