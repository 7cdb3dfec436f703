--@include standing
--@include call
-- Why a token may not look at the sale's places; nil where it may, and until when. Read-only, so it claims nothing.
local function why_not_admitted(keys, token, now)
  local reservation = redis.call('GET', keys.done)
  if reservation then return { 'ALREADY_BOOKED', reservation } end
  local expires_at = redis.call('HGET', keys.session, 'expiresAt')
  if not expires_at then
    local call = read_call(keys.called, token)
    if not call or call.claim_by == 0 then return { 'NOT_ADMITTED' } end
    expires_at = call.claim_by
  end
  if tonumber(expires_at) <= now then return { 'ADMISSION_EXPIRED' } end
  return nil, tonumber(expires_at)
end

-- The same while the sale goes on, for a caller whose definition, where it has one, is the newest.
local function why_not_look(keys, token, version, now)
  local field = redis.call('HMGET', keys.meta, 'status', 'opensAt', 'closesAt', 'version')
  if not field[1] then return { 'EVENT_NOT_FOUND' } end
  if version and field[4] ~= version then return { 'STALE', tonumber(field[4]) } end
  if standing(field[1], field[2], field[3], now) == 'CLOSED' then return { 'EVENT_CLOSED' } end
  return why_not_admitted(keys, token, now)
end
