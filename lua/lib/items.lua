-- What a token holds or bought: `section@price=seat,seat` for named seats, `section@price*count` for a general
-- section, joined by `;`.
local function parse_items(text)
  local items = {}
  if text == '' then return items end
  for section, price, kind, units in text:gmatch('(%d+)@(%d+)([=*])([^;]+)') do
    local item = { section = section, price = price }
    if kind == '*' then
      item.count = tonumber(units)
    else
      item.seats = {}
      for seat in units:gmatch('%d+') do item.seats[#item.seats + 1] = tonumber(seat) end
      item.count = #item.seats
    end
    items[#items + 1] = item
  end
  return items
end

local function format_item(item)
  local head = item.section .. '@' .. item.price
  if item.seats then return head .. '=' .. table.concat(item.seats, ',') end
  return head .. '*' .. item.count
end

local function format_items(items)
  local parts = {}
  for at, item in ipairs(items) do parts[at] = format_item(item) end
  return table.concat(parts, ';')
end

local function count_items(items)
  local count = 0
  for _, item in ipairs(items) do count = count + item.count end
  return count
end

-- Add `item` to `items`, joining places of one section at one price. Returns what it is part of now.
local function add_item(items, item)
  for _, known in ipairs(items) do
    if known.section == item.section and known.price == item.price and not known.seats == not item.seats then
      known.count = known.count + item.count
      for _, seat in ipairs(item.seats or {}) do known.seats[#known.seats + 1] = seat end
      return known
    end
  end
  items[#items + 1] = item
  return item
end
