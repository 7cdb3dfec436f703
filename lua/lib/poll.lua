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
  local account = place[1] == 'ACTIVE' and place[3] or account_of(keys.accounts, token)
  return bought_by(keys.tickets, account)
end

-- A poll's answer, after its limit where it has one. The first further field of the line is `accounts`.
local function poll(keys, token, field, now)
  local view = view_of(field, now, keys.waiting, keys.remaining)
  local place = place_of(keys, token, field[1], now)
  return { 'POLLED', tickets_of(keys, token, place, field[9]), view, unpack(place) }
end
