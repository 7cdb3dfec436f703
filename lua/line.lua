-- line: put back places of a line that is being laid out anew. Repeating a call changes nothing.
--
-- KEYS       meta waiting called active left accounts
-- ARGV       waiting_count called_count left_count account_count score token … token call until … token … token account …:
--            until is when a visit that goes on ends, empty for one that is over
-- OUTCOMES   CONFLICT: the event is in place, or not laid out at all
--            PLACED
-- COMPLEXITY O(k log n) for k places, at most 1 000
local meta, waiting, called, active, left = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local accounts = KEYS[6]
local waiting_count, called_count = tonumber(ARGV[1]), tonumber(ARGV[2])
local left_count, account_count = tonumber(ARGV[3]), tonumber(ARGV[4])
--@include account

local field = redis.call('HMGET', meta, 'status', 'version')
if field[1] or not field[2] then return { 'CONFLICT' } end
local at = 5
if waiting_count > 0 then
  redis.call('ZADD', waiting, unpack(ARGV, at, at + 2 * waiting_count - 1))
  at = at + 2 * waiting_count
end
for _ = 1, called_count do
  redis.call('HSET', called, ARGV[at], ARGV[at + 1])
  if ARGV[at + 2] ~= '' then redis.call('ZADD', active, ARGV[at + 2], ARGV[at]) end
  at = at + 3
end
if left_count > 0 then
  redis.call('SADD', left, unpack(ARGV, at, at + left_count - 1))
  at = at + left_count
end
local keys = { meta = meta, accounts = accounts }
for _ = 1, account_count do
  take_place(keys, ARGV[at], ARGV[at + 1])
  at = at + 2
end
return { 'PLACED' }
