-- push: whose sockets are to be told something now, and what, as far as the line alone tells. Whoever is looked at is
-- looked at again after the interval of its rank; a step that changes a token's standing makes it due at once.
--
-- KEYS       meta waiting remaining called sockets sockets_due sockets_refused accounts tickets
-- ARGV       now_ms count called_ms settled_ms rank interval_ms …: the first rank that is passed decides
-- OUTCOMES   EVENT_NOT_FOUND
--            PUSHES more following view notice …: more is 1 where another call at once would go on; following counts
--            tokens that may yet have something to hear; a notice is {token, listeners, place, refusal, tickets}: without a
--            place `tell` knows it, without a refusal there was none
-- COMPLEXITY O(k log n) for k ≤ count tokens
local meta, waiting, remaining, called = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local sockets, sockets_due, sockets_refused = KEYS[5], KEYS[6], KEYS[7]
local accounts, tickets = KEYS[8], KEYS[9]
local now_ms, count, called_ms, settled_ms = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
--@include clock
--@include view
--@include sockets

-- Before the opening there is only a message to tell; at the opening everybody hears within so long.
local UPCOMING_MS, OPENING_MS = 10000, 2000

local now = clock(now_ms)
local field = read_line(meta, now, 'accounts')
if not field then return { 'EVENT_NOT_FOUND' } end
local view = view_of(field, now, waiting, remaining)
local status, opens_at, message = field[1], tonumber(field[2]), field[8]

-- When a waiting token is looked at next. Where it stands among those who hear of the opening, its name decides.
local function next_look(token, rank)
  if status == 'UPCOMING' then
    if now + UPCOMING_MS < opens_at then return now + UPCOMING_MS end
    return opens_at + tonumber(token:sub(1, 6), 16) % OPENING_MS
  end
  for at = 5, #ARGV, 2 do
    if rank > tonumber(ARGV[at]) then return now + ARGV[at + 1] end
  end
end

-- A waiting or called token's place, the word for it, when it is looked at next, and whether it is told again though
-- it was told: a called one is until it comes, for its time runs. Any other token's place is for `tell`.
local function look(token, score, call)
  if score then
    local place = { waiting_of(waiting, token, score, status) }
    if place[1] == 'EXPIRED' then return place, 'expired:0', '+inf', false end
    return place, waiting_word(place[3], message), next_look(token, place[3]), false
  end
  local claim_by = call and tonumber(call:match('^%d+:(%d+):'))
  if claim_by and claim_by > now and status ~= 'CLOSED' then return { 'CALLED' }, 'ready', now + called_ms, true end
  return false, nil, now + settled_ms, true
end

local tokens = redis.call('ZRANGE', sockets_due, '-inf', now, 'BYSCORE', 'LIMIT', 0, count)
local notices = {}
if #tokens > 0 then
  local entries = redis.call('HMGET', sockets, unpack(tokens))
  local scores = redis.call('ZMSCORE', waiting, unpack(tokens))
  local calls = redis.call('HMGET', called, unpack(tokens))
  local refusals = redis.call('HMGET', sockets_refused, unpack(tokens))
  local looks, told = {}, {}
  for at, token in ipairs(tokens) do
    local place, word, due, is_told_again = look(token, scores[at], calls[at])
    looks[2 * at - 1], looks[2 * at] = due, token
    -- An entry that is missing would be a bug; nobody else's push is to fail of it.
    local last, listeners = (entries[at] or 'left '):match('^(%S+) (.*)$')
    local is_new = is_told_again or word ~= last
    if is_new or refusals[at] then
      local account = place and field[9] and account_of(accounts, token)
      notices[#notices + 1] = { token, listeners, is_new and place, refusals[at], bought_by(tickets, account) }
    end
    if word and word ~= last then
      told[#told + 1] = token
      told[#told + 1] = word .. ' ' .. listeners
    end
  end
  redis.call('ZADD', sockets_due, unpack(looks))
  redis.call('HDEL', sockets_refused, unpack(tokens))
  if #told > 0 then redis.call('HSET', sockets, unpack(told)) end
end
return { 'PUSHES', #tokens == count and 1 or 0, redis.call('ZCOUNT', sockets_due, '-inf', '(+inf'), view,
  unpack(notices) }
