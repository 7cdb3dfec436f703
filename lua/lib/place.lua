--@include call
--@include waiting
-- Where a token stands: {'WAITING', score, rank}, {'CALLED'}, {'ACTIVE', expires_at, account}, {'BOOKED', reservation},
-- {'EXPIRED', reentry} or {'NOT_FOUND'}. Most callers wait: that is looked at first, and who waits is nothing else.
local REENTRY_MS = 600000

local function place_of(keys, token, status, now)
  local score = redis.call('ZSCORE', keys.waiting, token)
  if score then return { waiting_of(keys.waiting, token, score, status) } end
  local reservation = redis.call('GET', keys.done)
  if reservation then return { 'BOOKED', reservation } end
  local field = redis.call('HMGET', keys.session, 'expiresAt', 'account')
  if field[1] then
    if status == 'CLOSED' or tonumber(field[1]) <= now then return { 'EXPIRED', 0 } end
    return { 'ACTIVE', tonumber(field[1]), field[2] }
  end
  local call = read_call(keys.called, token)
  if not call then return { 'NOT_FOUND' } end
  if status == 'CLOSED' then return { 'EXPIRED', 0 } end
  if call.claim_by > now then return { 'CALLED' } end
  return { 'EXPIRED', (not call.reentered and now - call.claim_by <= REENTRY_MS) and 1 or 0 }
end
