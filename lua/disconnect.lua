-- disconnect: these connections are gone.
--
-- KEYS       sockets connections sockets_due sockets_refused
-- ARGV       connection …
-- OUTCOMES   DISCONNECTED count: how many of them followed a token
-- COMPLEXITY O(k log n) for k ≤ 1 000 connections
local sockets, connections, sockets_due, sockets_refused = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
--@include sockets

local keys = { sockets = sockets, connections = connections, sockets_due = sockets_due,
  sockets_refused = sockets_refused }
local count = 0
for at = 1, #ARGV do
  if detach(keys, ARGV[at]) then count = count + 1 end
end
return { 'DISCONNECTED', count }
