--@include items
--@include poll
-- A token's entry in `sockets`: the word that stands for what it was told last, then its connections, each with its
-- language, the oldest first: `waiting:7: id,en id,ko`. The oldest gives way where there are more than these.
local LISTENERS = 8

local function read_entry(entry)
  local told, listeners = entry:match('^%S+'), {}
  for listener in entry:gmatch(' (%S+)') do listeners[#listeners + 1] = listener end
  return told, listeners
end

local function connection_of(listener) return listener:match('^[^,]+') end

-- Nobody follows this token any more.
local function forget_token(keys, token)
  redis.call('HDEL', keys.sockets, token)
  redis.call('ZREM', keys.sockets_due, token)
  redis.call('HDEL', keys.sockets_refused, token)
end

-- A connection follows nothing any more. Whether it did.
local function detach(keys, connection)
  local token = redis.call('HGET', keys.connections, connection)
  if not token then return false end
  redis.call('HDEL', keys.connections, connection)
  local told, listeners = read_entry(redis.call('HGET', keys.sockets, token))
  local kept = { told }
  for _, listener in ipairs(listeners) do
    if connection_of(listener) ~= connection then kept[#kept + 1] = listener end
  end
  if #kept == 1 then
    forget_token(keys, token)
  else
    redis.call('HSET', keys.sockets, token, table.concat(kept, ' '))
  end
  return true
end

-- A connection follows this token from now on, and no other of the event. It is looked at in a second at the latest;
-- the word of others who follow the token stays, for they may not have been told.
local function attach(keys, connection, language, token, word, now)
  detach(keys, connection)
  local entry = redis.call('HGET', keys.sockets, token)
  local told, listeners = read_entry(entry or word)
  if #listeners == LISTENERS then
    redis.call('HDEL', keys.connections, connection_of(table.remove(listeners, 1)))
  end
  listeners[#listeners + 1] = connection .. ',' .. language
  redis.call('HSET', keys.connections, connection, token)
  redis.call('HSET', keys.sockets, token, told .. ' ' .. table.concat(listeners, ' '))
  redis.call('ZADD', keys.sockets_due, 'LT', now + 1000, token)
end

-- What a waiting token was told: its rank and the operator's message.
local function waiting_word(rank, message)
  return 'waiting:' .. (rank or 0) .. ':' .. ((message or '') == '' and '' or redis.sha1hex(message):sub(1, 8))
end

-- Where a token stands, in full: place, places bought, {held, hold_expires_at, reservation_status}, the word for it. The
-- first further field of the line is `accounts`.
local function stand(keys, token, line, now)
  local place = place_of(keys, token, line[1], now)
  local kind = place[1]
  local field = redis.call('HMGET', keys.session, 'items', 'holdExpiresAt')
  local held, reserved, word = 0, false, 'ready'
  if kind == 'WAITING' then
    word = waiting_word(place[3], line[8])
  elseif kind == 'ACTIVE' then
    held = count_items(parse_items(field[1] or ''))
    if held > 0 then word = 'seated:' .. held end
  elseif kind == 'BOOKED' then
    reserved = redis.call('HGET', keys.reservation, 'status')
    word = 'booked:' .. (reserved or '')
  elseif kind == 'EXPIRED' then
    word = 'expired:' .. place[2]
  elseif kind == 'NOT_FOUND' then
    word = 'left'
  end
  local details = { held, field[2] and tonumber(field[2]), reserved }
  return place, tickets_of(keys, token, place, line[9]), details, word
end
