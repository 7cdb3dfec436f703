-- recount: set counters, map, due times and tickets to what holds and reservations say, unless places have moved since
-- those were read.
--
-- KEYS       meta map stock remaining holds due tickets journal
-- ARGV       now_ms by sequence free_places stock_count byte_count due_count dropped_count ticket_count
--            section free … offset bytes … unit due_at … unit … account count …: free, due_at or count empty: none
-- OUTCOMES   EVENT_NOT_FOUND
--            STALE sequence: places have moved
--            RECOUNTED sequence
-- COMPLEXITY O(what differs), at most 1 000 items a call
local meta, map, stock, remaining = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local holds, due, tickets, journal = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local now_ms, by, sequence, free_places = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local stock_count, byte_count, due_count = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local dropped_count, ticket_count = tonumber(ARGV[8]), tonumber(ARGV[9])
--@include clock
--@include journal

local field = redis.call('HMGET', meta, 'version', 'epoch')
if not field[1] then return { 'EVENT_NOT_FOUND' } end
local moved_to = tonumber(redis.call('HGET', stock, 'sequence') or 0)
if moved_to ~= sequence then return { 'STALE', moved_to } end

local at = 10
for _ = 1, stock_count do
  if ARGV[at + 1] == '' then redis.call('HDEL', stock, ARGV[at]) else redis.call('HSET', stock, ARGV[at], ARGV[at + 1]) end
  at = at + 2
end
for _ = 1, byte_count do
  redis.call('SETRANGE', map, ARGV[at], ARGV[at + 1])
  at = at + 2
end
for _ = 1, due_count do
  if ARGV[at + 1] == '' then redis.call('ZREM', due, ARGV[at]) else redis.call('ZADD', due, ARGV[at + 1], ARGV[at]) end
  at = at + 2
end
for _ = 1, dropped_count do
  redis.call('HDEL', holds, ARGV[at])
  redis.call('ZREM', due, ARGV[at])
  at = at + 1
end
for _ = 1, ticket_count do
  if ARGV[at + 1] == '' then redis.call('HDEL', tickets, ARGV[at]) else redis.call('HSET', tickets, ARGV[at], ARGV[at + 1]) end
  at = at + 2
end
redis.call('SET', remaining, free_places)
record(journal, 'EVENT_CHANGED', field[2], clock(now_ms), 'by', by, 'change', 'repair', 'version', field[1])
return { 'RECOUNTED', redis.call('HINCRBY', stock, 'sequence', 1) }
