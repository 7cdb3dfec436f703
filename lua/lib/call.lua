-- A called place in the `called` hash: score, until when it may claim (0: back in the line), when it was called,
-- whether it has used its one re-entry.
local function read_call(called, token)
  local text = redis.call('HGET', called, token)
  if not text then return nil end
  local score, claim_by, called_at, reentered = text:match('^(%d+):(%d+):(%d+):(%d)$')
  return { score = score, claim_by = tonumber(claim_by), called_at = called_at, reentered = reentered == '1' }
end
