-- poll_limited: where a token stands, for callers without a good key: exact, and limited per address.
--
-- KEYS       meta waiting remaining called session done reservation accounts tickets poll_rate
-- ARGV       now_ms token
-- OUTCOMES   EVENT_NOT_FOUND
--            RATE_LIMIT retry_after_ms
--            POLLED tickets view place
-- COMPLEXITY O(log n) in the line
local meta, waiting, remaining, called, session, done = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local reservation, accounts, tickets, poll_rate = KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local now_ms, token = ARGV[1], ARGV[2]
--@include clock
--@include limit
--@include in_line

local now = clock(now_ms)
local field = read_line(meta, now, 'accounts', 'joinsPerAddressPerSecond')
if not field then return { 'EVENT_NOT_FOUND' } end
local retry_after_ms = over_limit(poll_rate, field[10])
if retry_after_ms then return { 'RATE_LIMIT', retry_after_ms } end
local answer = poll_in_line(waiting, remaining, token, field, now)
if answer then return answer end
-- Only now, for Lua makes every function anew at each run.
--@include poll
local keys = { waiting = waiting, remaining = remaining, called = called, session = session, done = done,
  reservation = reservation, accounts = accounts, tickets = tickets }
return poll(keys, token, field, now)
