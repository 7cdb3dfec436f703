-- Whether the sale lets people in: its times, which are texts, decide with no operator awake.
local function standing(status, opens_at, closes_at, now)
  if status == 'CLOSED' or now - closes_at >= 0 then return 'CLOSED' end
  if now - opens_at < 0 then return 'UPCOMING' end
  return status
end
