-- One account, one place: `accounts` has the token of an account's place, `owners` the account of a token. Both forget
-- a place once it was left or has booked. `tickets` counts what an account has bought over all its visits.
local function take_place(keys, token, account)
  redis.call('HSET', keys.accounts, account, token)
  redis.call('HSET', keys.owners, token, account)
  -- Answers to anonymous sales are spared the look for an account.
  redis.call('HSETNX', keys.meta, 'accounts', '1')
end

-- The token's account may take a new place from now on.
local function give_up_place(keys, token)
  local account = redis.call('HGET', keys.owners, token)
  if not account then return end
  redis.call('HDEL', keys.owners, token)
  if redis.call('HGET', keys.accounts, account) == token then redis.call('HDEL', keys.accounts, account) end
end

-- Places that an account has bought; a token without one has bought nothing before.
local function bought_by(tickets, account)
  if not account then return 0 end
  return tonumber(redis.call('HGET', tickets, account) or 0)
end
