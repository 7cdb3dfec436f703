--@include items
--@include seats
-- What of a token's session its holds still back, as items.
local function own_holds(keys, token)
  local own = {}
  for _, item in ipairs(parse_items(redis.call('HGET', keys.session, 'items') or '')) do
    local owners = redis.call('HMGET', keys.holds, unpack(units_of(item, token)))
    local prefix = item.section .. ':' .. item.price .. ':'
    if item.seats then
      for at, seat in ipairs(item.seats) do
        if owners[at] == prefix .. token then
          add_item(own, { section = item.section, price = item.price, count = 1, seats = { seat } })
        end
      end
    else
      local count = owners[1] and tonumber(owners[1]:match('^' .. prefix .. '(%d+)$'))
      if count then own[#own + 1] = { section = item.section, price = item.price, count = count } end
    end
  end
  return own
end
