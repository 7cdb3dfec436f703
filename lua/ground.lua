-- ground: lay out an event whose state was lost, all but its status: until it is resumed, nobody finds it here.
--
-- KEYS       meta definition map stock remaining sequence
-- ARGV       now_ms version epoch number head_score net definition seats total field_count stock_count
--            field value … section free …: number is the last ticket number, seats the bytes of the map
-- OUTCOMES   CONFLICT version: it is in place, or half laid out in another version
--            GROUNDED
-- COMPLEXITY O(sections + bytes of the map)
local meta, definition_key, map, stock, remaining, sequence = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local now_ms, version, epoch, number, head_score, net = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local definition, seats, total = ARGV[7], ARGV[8], ARGV[9]
local field_count, stock_count = tonumber(ARGV[10]), tonumber(ARGV[11])
--@include clock
--@include padding

local now = clock(now_ms)
local known = redis.call('HMGET', meta, 'status', 'version')
if known[1] or (known[2] and known[2] ~= version) then return { 'CONFLICT', tonumber(known[2] or 0) } end
-- Places that were put back already stay as they are.
if not known[2] then
  redis.call('HSET', meta, 'padding', PADDING, 'version', version, 'credit', '0', 'callCredit', '0', 'clock', now,
    'createdAt', now, 'totalSeats', total, unpack(ARGV, 12, 11 + 2 * field_count))
  redis.call('HSET', meta, 'pace', redis.call('HGET', meta, 'perSecond'))
  redis.call('SET', definition_key, definition)
  redis.call('SET', map, seats)
  redis.call('HSET', stock, 'sequence', 1, unpack(ARGV, 12 + 2 * field_count, 11 + 2 * field_count + 2 * stock_count))
  redis.call('SET', remaining, total)
end
redis.call('HSET', meta, 'epoch', epoch, 'headScore', head_score, 'net', net)
redis.call('SET', sequence, number)
return { 'GROUNDED' }
