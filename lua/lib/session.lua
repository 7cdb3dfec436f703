--@include claim
-- The live session of a token that has not booked, or nil and the refusal. Acting is arriving: a called token that acts
-- claims at once.
local function open_session(keys, token, now, rules)
  local field = redis.call('HMGET', keys.session, 'expiresAt', 'holdExpiresAt', 'items', 'request', 'requestItem',
    'account')
  if field[1] then
    if field[2] and tonumber(field[2]) <= now then return nil, { 'HOLD_EXPIRED' } end
    if tonumber(field[1]) <= now then return nil, { 'ADMISSION_EXPIRED' } end
    return { expires_at = tonumber(field[1]), hold_expires_at = field[2] and tonumber(field[2]),
      items = field[3] or '', request = field[4], request_item = field[5], account = field[6] }
  end
  local call = read_call(keys.called, token)
  if not call or call.claim_by == 0 then return nil, { 'NOT_ADMITTED' } end
  if call.claim_by <= now then return nil, { 'ADMISSION_EXPIRED' } end
  local expires_at, account = claim(keys, call, token, now, rules)
  return { expires_at = expires_at, items = '', account = account }
end

-- The same of any token.
local function live_session(keys, token, now, rules)
  local reservation = redis.call('GET', keys.done)
  if reservation then return nil, { 'ALREADY_BOOKED', reservation } end
  return open_session(keys, token, now, rules)
end
