-- One account, one place, found by either: the first half of an account's token is what its name gives (Token::of), so one
-- entry of `accounts`, that half → the other half and the name, answers both ways. It is forgotten once the place was left
-- or has booked. `tickets` counts what an account has bought over all its visits.
local HALF = 18

-- The account of a token.
local function account_of(accounts, token)
  local entry = redis.call('HGET', accounts, token:sub(1, HALF))
  if entry and entry:sub(1, HALF) == token:sub(HALF + 1) then return entry:sub(HALF + 1) end
end

-- The token of an account's place; `own` is any token made for that account.
local function place_of_account(accounts, own, account)
  local half = own:sub(1, HALF)
  local entry = redis.call('HGET', accounts, half)
  if not entry then return nil end
  -- Once in half a million sales of two million people; nobody is given the place of another.
  if entry:sub(HALF + 1) ~= account then error('GUARD two accounts of one half') end
  return half .. entry:sub(1, HALF)
end

-- Whether two tokens are made for one account; any other two have halves of their own.
local function is_of_one_account(token, other) return token:sub(1, HALF) == other:sub(1, HALF) end

local function take_place(keys, token, account)
  redis.call('HSET', keys.accounts, token:sub(1, HALF), token:sub(HALF + 1) .. account)
  -- Answers to anonymous sales are spared the look for an account.
  redis.call('HSETNX', keys.meta, 'accounts', '1')
end

-- The token's account may take a new place from now on.
local function give_up_place(accounts, token)
  if account_of(accounts, token) then redis.call('HDEL', accounts, token:sub(1, HALF)) end
end

-- Places that an account has bought; a token without one has bought nothing before.
local function bought_by(tickets, account)
  if not account then return 0 end
  return tonumber(redis.call('HGET', tickets, account) or 0)
end
