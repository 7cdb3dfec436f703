-- reservation: read a reservation as its owner. Read-only.
--
-- KEYS       meta reservation
-- ARGV       token account: the owner's; both empty for the operator
-- OUTCOMES   RECOVERING: it may be lost for now
--            RESERVATION_NOT_FOUND: unknown, or somebody else's
--            RESERVED field, value, …
-- COMPLEXITY O(1)
local meta, reservation = KEYS[1], KEYS[2]
local token, account = ARGV[1], ARGV[2]
--@include owner
--@include replication

local owner = redis.call('HMGET', reservation, 'token', 'account')
if not owner[1] and is_recovering(unpack(redis.call('HMGET', meta, 'recoveringSince', 'replicationId'))) then
  return { 'RECOVERING' }
end
if not owner[1] or not is_owner(owner[1], owner[2], token, account) then return { 'RESERVATION_NOT_FOUND' } end
return { 'RESERVED', redis.call('HGETALL', reservation) }
