-- leave: give up a place or a session; held seats and the slot are free at once.
--
-- KEYS       meta waiting called active session done map stock remaining holds due leave_rate accounts left
--            journal sockets_due
-- ARGV       now_ms token limit
-- OUTCOMES   EVENT_NOT_FOUND
--            RATE_LIMIT retry_after_ms
--            LEFT removed: 1, or 0 where there was nothing to leave
-- COMPLEXITY O(log n) in the line, O(seats held)
local meta, waiting, called, active, session, done = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local map, stock, remaining, holds, due = KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11]
local leave_rate, accounts, left = KEYS[12], KEYS[13], KEYS[14]
local journal, sockets_due = KEYS[15], KEYS[16]
local now_ms, token, limit = ARGV[1], ARGV[2], ARGV[3]
--@include clock
--@include limit
--@include call
--@include account
--@include seats
--@include stir

local now = clock(now_ms)
local epoch = redis.call('HGET', meta, 'epoch')
if not epoch then return { 'EVENT_NOT_FOUND' } end
local retry_after_ms = over_limit(leave_rate, limit)
if retry_after_ms then return { 'RATE_LIMIT', retry_after_ms } end
local keys = { map = map, stock = stock, remaining = remaining, holds = holds, due = due, journal = journal }

local function leave()
  if redis.call('ZREM', waiting, token) == 1 then
    redis.call('HDEL', called, token)
    return true
  end
  if redis.call('EXISTS', done) == 1 then return false end
  local field = redis.call('HMGET', session, 'expiresAt', 'holdExpiresAt', 'items')
  if field[1] then
    if tonumber(field[1]) <= now then return false end
    local items = parse_items(field[3] or '')
    if #items > 0 then
      drop_holds(keys, items, token)
      free_items(keys, items)
      record(journal, 'SEATS_RELEASED', epoch, now, 'token', token, 'items', field[3])
    end
    redis.call('DEL', session)
    redis.call('ZREM', active, token)
    return true
  end
  local call = read_call(called, token)
  if not call or call.claim_by <= now then return false end
  redis.call('HDEL', called, token)
  redis.call('ZREM', active, token)
  return true
end

if not leave() then return { 'LEFT', 0 } end
give_up_place(accounts, token)
-- Its key, which may outlive a loss of Redis, restores nothing.
redis.call('SADD', left, token)
stir(sockets_due, { token })
record(journal, 'USER_LEFT_QUEUE', epoch, now, 'token', token)
return { 'LEFT', 1 }
