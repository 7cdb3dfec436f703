-- connect: a socket follows a token from now on; where the token stands. A socket follows one token of an event.
--
-- KEYS       meta waiting remaining called session done reservation sockets connections sockets_due sockets_refused
--            accounts tickets poll_rate
-- ARGV       now_ms token connection language is_limited most; is_limited 0: the caller's address is not known
-- OUTCOMES   EVENT_NOT_FOUND
--            RATE_LIMIT retry_after_ms: of the address, or because the event has so many sockets already
--            CONNECTED place view tickets details: a token that is not found is not followed
-- COMPLEXITY O(log n) in the line and in the sockets
local meta, waiting, remaining, called, session, done = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local reservation, sockets, connections, sockets_due = KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local sockets_refused, accounts, tickets, poll_rate = KEYS[11], KEYS[12], KEYS[13], KEYS[14]
local now_ms, token, connection, language, is_limited = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local most = tonumber(ARGV[6])
--@include clock
--@include limit
--@include view
--@include sockets

-- When to come back where the event has all the sockets it may have.
local FULL_RETRY_MS = 5000

local now = clock(now_ms)
local field = read_line(meta, now, 'accounts', 'joinsPerAddressPerSecond')
if not field then return { 'EVENT_NOT_FOUND' } end
local retry_after_ms = is_limited == '1' and over_limit(poll_rate, field[10])
if retry_after_ms then return { 'RATE_LIMIT', retry_after_ms } end
local keys = { waiting = waiting, called = called, session = session, done = done, reservation = reservation,
  accounts = accounts, tickets = tickets, sockets = sockets, connections = connections, sockets_due = sockets_due, sockets_refused = sockets_refused }
if redis.call('HLEN', connections) >= most and redis.call('HEXISTS', connections, connection) == 0 then
  return { 'RATE_LIMIT', FULL_RETRY_MS }
end
local place, bought, details, word = stand(keys, token, field, now)
if place[1] ~= 'NOT_FOUND' then attach(keys, connection, language, token, word, now) end
local view = view_of(field, now, waiting, remaining)
return { 'CONNECTED', place, view, bought, details }
