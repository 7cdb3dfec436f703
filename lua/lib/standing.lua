-- Whether the sale lets people in: its times decide with no operator awake.
local function standing(status, opens_at, closes_at, now)
  if status == 'CLOSED' or now >= tonumber(closes_at) then return 'CLOSED' end
  if now < tonumber(opens_at) then return 'UPCOMING' end
  return status
end
