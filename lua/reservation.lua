-- reservation: read a reservation as its owner. Read-only.
--
-- KEYS       reservation
-- ARGV       token account: the owner's; both empty for the operator
-- OUTCOMES   RESERVATION_NOT_FOUND: unknown, or somebody else's
--            RESERVED field, value, …
-- COMPLEXITY O(1)
local reservation = KEYS[1]
local token, account = ARGV[1], ARGV[2]
--@include owner

local owner = redis.call('HMGET', reservation, 'token', 'account')
if not owner[1] or not is_owner(owner[1], owner[2], token, account) then return { 'RESERVATION_NOT_FOUND' } end
return { 'RESERVED', redis.call('HGETALL', reservation) }
