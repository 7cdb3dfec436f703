--@include account
--@include call
--@include journal
-- Turn a live call into a session. What ended stays known for a day after the sale. Returns when it ends, and the
-- token's account.
local DAY_MS = 86400000

local function claim(keys, call, token, now, rules)
  local expires_at = now + rules.active_ms
  local account = account_of(keys.accounts, token)
  redis.call('HSET', keys.session, 'state', 'ACTIVE', 'score', call.score, 'admittedAt', call.called_at,
    'claimedAt', now, 'expiresAt', expires_at, unpack(account and { 'account', account } or {}))
  redis.call('PEXPIREAT', keys.session, rules.closes_at + DAY_MS)
  redis.call('ZADD', keys.active, expires_at, token)
  redis.call('HDEL', keys.called, token)
  record(keys.journal, 'TOKEN_ISSUED', rules.epoch, now, 'token', token, 'expiresAt', expires_at)
  return expires_at, account
end
