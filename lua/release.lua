-- release: give held places back; only the owner can. Releasing twice is fine.
--
-- KEYS       meta called active session done map stock remaining holds due accounts idempotency journal
--            sockets_due
-- ARGV       now_ms version token asked mode place …: asked is the digest of a request with an Idempotency-Key
--            mode all: any version will do; sections: section numbers; seats: indices
-- OUTCOMES   IDEMPOTENCY_KEY_REUSED
--            EVENT_NOT_FOUND
--            STALE version: the caller's definition is not the newest
--            ALREADY_BOOKED reservation
--            NOT_ADMITTED
--            HOLD_EXPIRED
--            ADMISSION_EXPIRED
--            RELEASED count
-- COMPLEXITY O(seats held)
local meta, called, active, session, done, map = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local stock, remaining, holds, due = KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local accounts, idempotency, journal, sockets_due = KEYS[11], KEYS[12], KEYS[13], KEYS[14]
local now_ms, version, token, asked, mode = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
--@include clock
--@include session
--@include seats
--@include replay
--@include stir

local now = clock(now_ms)
local replayed = replay(idempotency, asked)
if replayed then return replayed end
local field = redis.call('HMGET', meta, 'epoch', 'activeMs', 'closesAt', 'version')
if not field[1] then return { 'EVENT_NOT_FOUND' } end
-- A row that left and came back lies elsewhere under the same names.
if mode ~= 'all' and field[4] ~= version then return { 'STALE', tonumber(field[4]) } end
local keys = { called = called, active = active, session = session, done = done, map = map, stock = stock,
  remaining = remaining, holds = holds, due = due, accounts = accounts, journal = journal }
local live, refusal = live_session(keys, token, now,
  { active_ms = tonumber(field[2]), closes_at = tonumber(field[3]), epoch = field[1] })
if not live then return refusal end

local named = {}
for at = 6, #ARGV do named[ARGV[at]] = true end
local kept, released = {}, {}
for _, item in ipairs(parse_items(live.items)) do
  if mode == 'all' or (mode == 'sections' and named[item.section]) then
    released[#released + 1] = item
  elseif mode == 'seats' and item.seats then
    for _, seat in ipairs(item.seats) do
      add_item(named[tostring(seat)] and released or kept,
        { section = item.section, price = item.price, count = 1, seats = { seat } })
    end
  else
    kept[#kept + 1] = item
  end
end
if #released == 0 then return remember(idempotency, asked, { 'RELEASED', 0 }) end
drop_holds(keys, released, token)
free_items(keys, released)
-- A request that this undoes must not be answered as if its seats were still held.
redis.call('HDEL', session, 'request', 'requestItem')
redis.call('HSET', session, 'items', format_items(kept))
stir(sockets_due, { token })
record(journal, 'SEATS_RELEASED', field[1], now, 'token', token, 'items', format_items(released))
return remember(idempotency, asked, { 'RELEASED', count_items(released) })
