--@include seats
-- `count` seats side by side in one row, leaving no single seat alone where a choice exists; nil where no row has them.
-- `spans` are offset, length, offset, length, … of the section's rows in the order in which they are offered.
local function pick_adjacent(map, spans, count)
  local wanted = FREE:rep(count)
  local fallback
  for at = 1, #spans, 2 do
    local offset = tonumber(spans[at])
    local row = redis.call('GETRANGE', map, offset, offset + spans[at + 1] - 1)
    if row:find(wanted, 1, true) then
      for first, behind in row:gmatch('()%.+()') do
        local spare = behind - first - count
        if spare == 0 or spare > 1 then return offset + first - 1 end
        if spare == 1 and not fallback then fallback = offset + first - 1 end
      end
    end
  end
  return fallback
end

-- The first `count` free seats wherever they are; nil where there are fewer.
local function pick_scattered(map, spans, count)
  local seats = {}
  for at = 1, #spans, 2 do
    local offset = tonumber(spans[at])
    local row = redis.call('GETRANGE', map, offset, offset + spans[at + 1] - 1)
    for position in row:gmatch('()%.') do
      seats[#seats + 1] = offset + position - 1
      if #seats == count then return seats end
    end
  end
end

-- The places that a request for `count` in a section gets: an item, or nil and why not. Reaps what is due before it
-- says no; says AGAIN where more may be due than one step gives back.
local function pick(keys, want, epoch, now)
  while true do
    local free = tonumber(redis.call('HGET', keys.stock, want.section))
    local seats
    if free >= want.count then
      if want.mode == 'general' then return { section = want.section, price = want.price, count = want.count } end
      local first = pick_adjacent(keys.map, want.spans, want.count)
      if first then
        seats = {}
        for at = 1, want.count do seats[at] = first + at - 1 end
      elseif want.mode == 'count' then
        seats = pick_scattered(keys.map, want.spans, want.count)
      end
      if seats then return { section = want.section, price = want.price, count = want.count, seats = seats } end
    end
    if want.reaped then
      if want.reaped == REAP_LIMIT then return nil, { 'AGAIN' } end
      if free < want.count then return nil, { 'SOLD_OUT', free } end
      return nil, { 'NO_ADJACENT_SEATS' }
    end
    want.reaped = reap(keys, epoch, now)
  end
end
