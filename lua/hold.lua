-- hold: keep places for a token, all or none.
--
-- KEYS       meta called active session done map stock remaining holds due accounts tickets idempotency journal
--            sockets_due sockets_refused
-- ARGV       now_ms version token request asked section price mode count place …: asked is the digest of a request with an
--            Idempotency-Key
--            mode general | count | best: places are offset, length of the section's rows; mode seats: indices
-- OUTCOMES   IDEMPOTENCY_KEY_REUSED
--            EVENT_NOT_FOUND
--            STALE version: the caller's definition is not the newest
--            EVENT_CLOSED
--            MAINTENANCE
--            RECOVERING
--            ALREADY_BOOKED reservation
--            NOT_ADMITTED
--            HOLD_EXPIRED
--            ADMISSION_EXPIRED
--            PURCHASE_LIMIT_EXCEEDED limit used requested
--            SEAT_TAKEN seat …
--            AGAIN: more holds were due than one step gives back; the same call goes on
--            SOLD_OUT free
--            NO_ADJACENT_SEATS
--            HELD now item hold_expires_at expires_at held bought account prolonged: account only where there is one,
--            prolonged 1 where the session got longer
-- COMPLEXITY O(seats asked for); count, best: O(seats of the section)
local meta, called, active, session, done, map = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local stock, remaining, holds, due = KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local accounts, tickets, idempotency, journal = KEYS[11], KEYS[12], KEYS[13], KEYS[14]
local sockets_due, sockets_refused = KEYS[15], KEYS[16]
local now_ms, version, token, request, asked = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local section, price, mode, count = ARGV[6], ARGV[7], ARGV[8], tonumber(ARGV[9])
--@include clock
--@include standing
--@include replication
--@include session
--@include pick
--@include account
--@include replay
--@include stir

local now = clock(now_ms)
local replayed = replay(idempotency, asked)
if replayed then return replayed end
local field = redis.call('HMGET', meta, 'status', 'opensAt', 'closesAt', 'version', 'maintenance', 'epoch',
  'activeMs', 'limitPerAccount', 'holdMs', 'recoveringSince', 'replicationId')
if not field[1] then return { 'EVENT_NOT_FOUND' } end
if field[4] ~= version then return { 'STALE', tonumber(field[4]) } end
if standing(field[1], field[2], field[3], now) == 'CLOSED' then return { 'EVENT_CLOSED' } end
if field[5] == '1' then return { 'MAINTENANCE' } end
if is_recovering(field[10], field[11]) then return { 'RECOVERING' } end
local epoch = field[6]
local keys = { called = called, active = active, session = session, done = done, map = map, stock = stock,
  remaining = remaining, holds = holds, due = due, accounts = accounts, journal = journal }
local live, refusal = live_session(keys, token, now,
  { active_ms = tonumber(field[7]), closes_at = tonumber(field[3]), epoch = epoch })
local function refused(why) return tell_refusal(sockets_due, sockets_refused, token, why) end
if not live then return refused(refusal) end
local items = parse_items(live.items)
local bought = bought_by(tickets, live.account)
local used = bought + count_items(items)
local expired_at = live.expires_at

local function held(item)
  return remember(idempotency, asked, { 'HELD', now, item, live.hold_expires_at, live.expires_at, count_items(items),
    bought, live.account or false, live.expires_at > expired_at and 1 or 0 })
end

-- The connection may have hidden that this very request was served.
if live.request == request then return held(live.request_item) end

-- What of the named seats is to be taken: those not yet the token's own. A hold whose time is over ends here.
local function wanted_seats()
  local seats, wanted, taken = {}, {}, {}
  for at = 10, #ARGV do seats[#seats + 1] = tonumber(ARGV[at]) end
  local own, over = {}, {}
  for _, item in ipairs(items) do
    for _, seat in ipairs(item.seats or {}) do own[seat] = true end
  end
  local bytes = bytes_of(map, seats)
  for at, seat in ipairs(seats) do
    if bytes[at] == FREE then
      wanted[#wanted + 1] = seat
    elseif not own[seat] then
      if bytes[at] == KEPT and tonumber(redis.call('ZSCORE', due, seat)) <= now then
        over[#over + 1] = seat
        wanted[#wanted + 1] = seat
      else
        taken[#taken + 1] = seat
      end
    end
  end
  return seats, wanted, taken, over
end

local item
if mode == 'seats' then
  local seats, wanted, taken, over = wanted_seats()
  local asked = section .. '@' .. price .. '=' .. table.concat(ARGV, ',', 10)
  if #wanted == 0 and #taken == 0 then return held(asked) end
  if used + #wanted > tonumber(field[8]) then
    return refused({ 'PURCHASE_LIMIT_EXCEEDED', tonumber(field[8]), used, #wanted })
  end
  if #taken > 0 then return refused({ 'SEAT_TAKEN', unpack(taken) }) end
  if #over > 0 then free_units(keys, over, epoch, now) end
  item = { section = section, price = price, count = #wanted, seats = wanted }
  live.request_item = asked
else
  if used + count > tonumber(field[8]) then
    return refused({ 'PURCHASE_LIMIT_EXCEEDED', tonumber(field[8]), used, count })
  end
  item, refusal = pick(keys, { mode = mode, section = section, price = price, count = count,
    spans = { unpack(ARGV, 10) } }, epoch, now)
  if not item then return refused(refusal) end
  live.request_item = format_item(item)
end

if not live.hold_expires_at then
  -- One budget a token: its first hold starts it, and the session ends with it.
  live.hold_expires_at = now + field[9]
  live.expires_at = live.hold_expires_at
  redis.call('ZADD', active, live.expires_at, token)
end
-- As text from here on: Redis would make one of a number at each use.
local until_ms = tostring(live.hold_expires_at)
local count_taken = item.count
-- What was asked for is what is taken, but where some of it was the token's own already.
local taken = count_taken == count and live.request_item or format_item(item)
local joined = add_item(items, item)
local owner = item.section .. ':' .. item.price .. ':'
local kept, expiries = {}, {}
if item.seats then
  local owner_token = owner .. token
  paint(map, item.seats, KEPT)
  for at, seat in ipairs(item.seats) do
    kept[2 * at - 1], kept[2 * at] = seat, owner_token
    expiries[2 * at - 1], expiries[2 * at] = until_ms, seat
  end
else
  local unit = units_of(item, token)[1]
  -- Left from this token's visit before, not given back yet.
  if joined == item and redis.call('HEXISTS', holds, unit) == 1 then free_units(keys, { unit }, epoch, now) end
  kept = { unit, owner .. joined.count }
  expiries = { until_ms, unit }
end
redis.call('HSET', holds, unpack(kept))
redis.call('ZADD', due, unpack(expiries))
move_stock(keys, section, -count_taken)
changed_places(keys)
redis.call('HSET', session, 'items', #items == 1 and joined == item and taken or format_items(items), 'holdExpiresAt',
  until_ms, 'expiresAt', live.expires_at, 'request', request, 'requestItem', live.request_item)
stir(sockets_due, { token })
record(journal, 'SEATS_HELD', epoch, now, 'token', token, 'items', taken, 'expiresAt', until_ms)
return held(live.request_item)
