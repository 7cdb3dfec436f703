-- A success is kept for a day under its Idempotency-Key, together with what was asked. `request` is empty where the
-- caller brought no key.
local REPLAY_MS = 86400000

-- The reply that the same request got before, or a refusal where the key came with another one.
local function replay(idempotency, request)
  if request == '' then return nil end
  local kept = redis.call('GET', idempotency)
  if not kept then return nil end
  if kept:sub(1, #request) ~= request then return { 'IDEMPOTENCY_KEY_REUSED' } end
  return cmsgpack.unpack(kept:sub(#request + 1))
end

-- Keep a success; returns it.
local function remember(idempotency, request, reply)
  if request ~= '' then
    redis.call('SET', idempotency, request .. cmsgpack.pack(reply), 'PX', REPLAY_MS)
  end
  return reply
end
