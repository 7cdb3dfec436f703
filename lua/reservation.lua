-- reservation: read a reservation as its owner. Read-only.
--
-- KEYS       reservation
-- ARGV       token: the owner, or empty for the operator
-- OUTCOMES   RESERVATION_NOT_FOUND: unknown, or somebody else's
--            RESERVED field, value, …
-- COMPLEXITY O(1)
local reservation = KEYS[1]
local token = ARGV[1]

local owner = redis.call('HGET', reservation, 'token')
if not owner or (token ~= '' and owner ~= token) then return { 'RESERVATION_NOT_FOUND' } end
return { 'RESERVED', redis.call('HGETALL', reservation) }
