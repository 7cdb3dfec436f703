-- tell: where a token that is followed stands, unless it was told that already.
--
-- KEYS       meta waiting remaining called session done reservation sockets connections sockets_due sockets_refused
--            accounts tickets
-- ARGV       now_ms token
-- OUTCOMES   EVENT_NOT_FOUND
--            UNCHANGED: or followed no longer
--            TOLD listeners place view tickets details: a token that is not found is followed no longer
-- COMPLEXITY O(log n) in the line
local meta, waiting, remaining, called, session, done = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local reservation, sockets, connections, sockets_due = KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local sockets_refused, accounts, tickets = KEYS[11], KEYS[12], KEYS[13]
local now_ms, token = ARGV[1], ARGV[2]
--@include clock
--@include view
--@include sockets

local now = clock(now_ms)
local field = read_line(meta, now, 'accounts')
if not field then return { 'EVENT_NOT_FOUND' } end
local entry = redis.call('HGET', sockets, token)
if not entry then return { 'UNCHANGED' } end
local keys = { waiting = waiting, called = called, session = session, done = done, reservation = reservation,
  accounts = accounts, tickets = tickets, sockets = sockets, connections = connections, sockets_due = sockets_due, sockets_refused = sockets_refused }
local place, bought, details, word = stand(keys, token, field, now)
local told, listeners = read_entry(entry)
if (place[1] == 'BOOKED' or place[1] == 'EXPIRED') and tonumber(redis.call('ZSCORE', sockets_due, token)) > 0 then
  -- Nothing more comes of itself; what is done to it makes it due.
  redis.call('ZADD', sockets_due, 'XX', '+inf', token)
end
if word == told then return { 'UNCHANGED' } end
if place[1] == 'NOT_FOUND' then
  for _, listener in ipairs(listeners) do redis.call('HDEL', connections, connection_of(listener)) end
  forget_token(keys, token)
else
  redis.call('HSET', sockets, token, word .. ' ' .. table.concat(listeners, ' '))
end
local view = view_of(field, now, waiting, remaining)
return { 'TOLD', table.concat(listeners, ' '), place, view, bought, details }
