--@include view
--@include place
--@include account
-- Places bought by whoever asks: by the account over all its visits, or by the token. A sale that has no accounts is
-- not searched for one.
local function tickets_of(keys, token, place, has_accounts)
  if place[1] == 'BOOKED' then
    local field = redis.call('HMGET', keys.reservation, 'status', 'seatCount', 'account')
    if field[3] then return bought_by(keys.tickets, field[3]) end
    if field[1] == 'CANCELLED' or field[1] == 'EXPIRED' then return 0 end
    return tonumber(field[2] or 0)
  end
  if not has_accounts then return 0 end
  local account = place[1] == 'ACTIVE' and place[3] or redis.call('HGET', keys.owners, token)
  return bought_by(keys.tickets, account)
end

-- A poll's answer, after its limit where it has one.
local function poll(keys, token, view, has_accounts, now)
  count_line(view, keys.waiting, keys.remaining)
  local place = place_of(keys, token, view[2], now)
  return show('POLLED', tickets_of(keys, token, place, has_accounts), view, place)
end
