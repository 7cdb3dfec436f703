-- Whoever has not paid is reminded once, in the last quarter of the time there was, at most a day before its end.
local REMINDER_PART, REMINDER_MS = 4, 86400000

local function reminder(booked_at, due_at)
  return due_at - math.min(math.floor((due_at - booked_at) / REMINDER_PART), REMINDER_MS)
end
