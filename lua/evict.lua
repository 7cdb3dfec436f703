-- evict: take held places from a token, because they are sold or sold out; what its session has and no hold backs any
-- more goes too.
--
-- KEYS       meta session map stock remaining holds due sockets_due journal
-- ARGV       now_ms token unit …: units of holds; none: only the session is put right
-- OUTCOMES   EVENT_NOT_FOUND
--            EVICTED count
-- COMPLEXITY O(places held)
local meta, session, map, stock, remaining = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local holds, due, sockets_due, journal = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local now_ms, token = ARGV[1], ARGV[2]
--@include clock
--@include own
--@include stir

local now = clock(now_ms)
local epoch = redis.call('HGET', meta, 'epoch')
if not epoch then return { 'EVENT_NOT_FOUND' } end
local keys = { session = session, map = map, stock = stock, remaining = remaining, holds = holds, due = due }

local evicted = {}
for at = 3, #ARGV do
  local unit, hold = ARGV[at], redis.call('HGET', holds, ARGV[at]) or ''
  local section, price, last = hold:match('^(%d+):(%d+):(.+)$')
  local seat = tonumber(unit)
  if seat and last == token then
    add_item(evicted, { section = section, price = price, count = 1, seats = { seat } })
  elseif section and unit == section .. '*' .. price .. '*' .. token then
    add_item(evicted, { section = section, price = price, count = tonumber(last) })
  end
end
if #evicted > 0 then
  drop_holds(keys, evicted, token)
  free_items(keys, evicted)
  record(journal, 'SEATS_RELEASED', epoch, now, 'token', token, 'items', format_items(evicted))
end
local items = redis.call('HGET', session, 'items')
local backed = format_items(own_holds(keys, token))
if items and items ~= backed then
  redis.call('HSET', session, 'items', backed)
  redis.call('HDEL', session, 'request', 'requestItem')
  stir(sockets_due, { token })
end
return { 'EVICTED', count_items(evicted) }
