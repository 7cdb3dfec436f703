-- apply: create an event or bring it to its next edition; nothing sold or held is touched.
--
-- KEYS       meta map stock remaining holds due definition journal
-- ARGV       now_ms by change expected_version version definition sale appended field_count stock_count removed_count
--            field value … section delta … section offset length …
-- OUTCOMES   CONFLICT version: somebody else changed it since it was read
--            RECOVERING: what was sold may be more than is known here
--            AGAIN: more holds were due than one step gives back; the same call goes on
--            IN_USE section: fewer places than are held or sold, or a row that is
--            APPLIED version
-- COMPLEXITY O(sections + bytes appended)
local meta, map, stock, remaining = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local holds, due, definition_key, journal = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local now_ms, by, change, expected_version, version = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local definition, sale, appended = ARGV[6], ARGV[7], ARGV[8]
local field_count, stock_count, removed_count = tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11])
--@include clock
--@include seats
--@include replication
--@include padding

local now = clock(now_ms)
local keys = { map = map, stock = stock, remaining = remaining, holds = holds, due = due, journal = journal }
local current = redis.call('HMGET', meta, 'version', 'epoch', 'recoveringSince', 'replicationId')
-- The first try's answer was lost: this very edition is in place.
if current[1] == version and redis.call('GET', definition_key) == definition then return { 'APPLIED', tonumber(version) } end
if (current[1] or '0') ~= expected_version then return { 'CONFLICT', tonumber(current[1] or 0) } end
-- What was sold and is forgotten for now must not be taken off sale.
if is_recovering(current[3], current[4]) then return { 'RECOVERING' } end
local epoch = current[2] or '1'
if current[1] and reap(keys, epoch, now) == REAP_LIMIT then return { 'AGAIN' } end

local fields_at = 12
local stock_at = fields_at + 2 * field_count
local removed_at = stock_at + 2 * stock_count
for at = removed_at, removed_at + 3 * (removed_count - 1), 3 do
  local bytes = redis.call('GETRANGE', map, ARGV[at + 1], ARGV[at + 1] + ARGV[at + 2] - 1)
  if bytes:find('[^%./]') then return { 'IN_USE', tonumber(ARGV[at]) } end
end
local added = 0
for at = stock_at, stock_at + 2 * (stock_count - 1), 2 do
  local free = tonumber(redis.call('HGET', stock, ARGV[at]) or 0)
  if free + ARGV[at + 1] < 0 then return { 'IN_USE', tonumber(ARGV[at]) } end
  added = added + ARGV[at + 1]
end

if not current[1] then
  redis.call('HSET', meta, 'status', 'OPEN', 'epoch', '1', 'credit', '0', 'callCredit', '0', 'clock', '0',
    'headScore', '0', 'net', '0', 'createdAt', now)
  local id = other_replication_id(nil)
  if id then redis.call('HSET', meta, 'replicationId', id) end
  redis.call('SET', remaining, 0)
end
redis.call('HSET', meta, 'padding', PADDING, 'version', version, unpack(ARGV, fields_at, stock_at - 1))
-- Until people move, the pace that is seen is the one that was set.
redis.call('HSETNX', meta, 'pace', redis.call('HGET', meta, 'perSecond'))
redis.call('SET', definition_key, definition)
if appended ~= '' then redis.call('APPEND', map, appended) end
for at = removed_at, removed_at + 3 * (removed_count - 1), 3 do
  local bytes = redis.call('GETRANGE', map, ARGV[at + 1], ARGV[at + 1] + ARGV[at + 2] - 1)
  redis.call('SETRANGE', map, ARGV[at + 1], (bytes:gsub('%.', 'x')))
end
for at = stock_at, stock_at + 2 * (stock_count - 1), 2 do
  redis.call('HINCRBY', stock, ARGV[at], ARGV[at + 1])
end
redis.call('INCRBY', remaining, added)
redis.call('HINCRBY', meta, 'totalSeats', added)
changed_places(keys)
record(journal, 'EVENT_CHANGED', epoch, now, 'by', by, 'change', change, 'version', version, 'definition', sale)
return { 'APPLIED', tonumber(version) }
