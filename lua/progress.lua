-- progress: how the whole line moves. Read-only.
--
-- KEYS       meta waiting remaining
-- ARGV       now_ms
-- OUTCOMES   EVENT_NOT_FOUND
--            PROGRESS pre_queue view
-- COMPLEXITY O(1)
local meta, waiting, remaining = KEYS[1], KEYS[2], KEYS[3]
local now_ms = ARGV[1]
--@include clock
--@include view

local now = clock(now_ms)
local field = read_line(meta, now, 'preQueue')
if not field then return { 'EVENT_NOT_FOUND' } end
local view = view_of(field, now, waiting, remaining)
return { 'PROGRESS', field[9], view }
