-- Tokens whose standing has changed: their sockets are told at the next look. Who has no socket costs nothing more.
local function stir(sockets_due, tokens)
  if #tokens == 0 or redis.call('EXISTS', sockets_due) == 0 then return end
  local arguments = {}
  for at, token in ipairs(tokens) do arguments[2 * at - 1], arguments[2 * at] = 0, token end
  redis.call('ZADD', sockets_due, 'XX', unpack(arguments))
end

-- Why a request of this token came to nothing is told to its sockets too. Returns the refusal.
local function tell_refusal(sockets_due, sockets_refused, token, refusal)
  if refusal[1] ~= 'AGAIN' and redis.call('ZSCORE', sockets_due, token) then
    redis.call('HSET', sockets_refused, token, refusal[1])
    stir(sockets_due, { token })
  end
  return refusal
end
