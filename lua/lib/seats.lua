--@include digits
--@include items
--@include journal
-- The map has one byte a seat: free, held, sold; `x` took it off sale, `/` ends a row.
local FREE, KEPT, SOLD = '.', 'h', 's'
-- Expired holds that one step gives back at most.
local REAP_LIMIT = 500

-- Write `byte` over seats, a run at a time.
local function paint(map, seats, byte)
  local at = 1
  while at <= #seats do
    local last = at
    while seats[last + 1] == seats[last] + 1 do last = last + 1 end
    redis.call('SETRANGE', map, seats[at], byte:rep(last - at + 1))
    at = last + 1
  end
end

-- Each seat's byte, in the order of `seats`.
local function bytes_of(map, seats)
  local low, high = seats[1], seats[1]
  for _, seat in ipairs(seats) do low, high = math.min(low, seat), math.max(high, seat) end
  local bytes = {}
  if high - low > 4096 then
    for at, seat in ipairs(seats) do bytes[at] = redis.call('GETRANGE', map, seat, seat) end
    return bytes
  end
  local range = redis.call('GETRANGE', map, low, high)
  for at, seat in ipairs(seats) do bytes[at] = range:sub(seat - low + 1, seat - low + 1) end
  return bytes
end

-- Move `count` places of a section out of (negative) or into (positive) what is free.
local function move_stock(keys, section, count)
  local change = digits(count)
  redis.call('HINCRBY', keys.stock, section, change)
  redis.call('INCRBY', keys.remaining, change)
end

-- Every change of places moves the sequence that seat maps carry.
local function changed_places(keys)
  redis.call('HINCRBY', keys.stock, 'sequence', '1')
end

-- The names under which an item's places stand in `holds` and `due`.
local function units_of(item, token)
  return item.seats or { item.section .. '*' .. item.price .. '*' .. token }
end

-- Take held items out of `holds` and `due`; what becomes of the places is the caller's matter.
local function drop_holds(keys, items, token)
  for _, item in ipairs(items) do
    local units = units_of(item, token)
    redis.call('HDEL', keys.holds, unpack(units))
    redis.call('ZREM', keys.due, unpack(units))
  end
end

-- Put sold or held items back on sale.
local function free_items(keys, items)
  for _, item in ipairs(items) do
    if item.seats then paint(keys.map, item.seats, FREE) end
    move_stock(keys, item.section, item.count)
  end
  changed_places(keys)
end

-- Give back these units, whose time is over.
local function free_units(keys, units, epoch, now)
  local owners = redis.call('HMGET', keys.holds, unpack(units))
  local items = {}
  for at, unit in ipairs(units) do
    local section, price, count = owners[at]:match('^(%d+):(%d+):(%d*)')
    local seat = tonumber(unit)
    if seat then
      add_item(items, { section = section, price = price, count = 1, seats = { seat } })
    else
      add_item(items, { section = section, price = price, count = tonumber(count) })
    end
  end
  redis.call('HDEL', keys.holds, unpack(units))
  redis.call('ZREM', keys.due, unpack(units))
  free_items(keys, items)
  record(keys.journal, 'SEATS_RELEASED', epoch, now, 'items', format_items(items))
end

-- Give back what is due, at most REAP_LIMIT units. Returns how many.
local function reap(keys, epoch, now)
  local units = redis.call('ZRANGEBYSCORE', keys.due, '-inf', now, 'LIMIT', 0, REAP_LIMIT)
  if #units > 0 then free_units(keys, units, epoch, now) end
  return #units
end
