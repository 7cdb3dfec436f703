-- Append a fact to the journal, in the step that made it true. Returns its stream id.
local function record(journal, kind, epoch, now, ...)
  return redis.call('XADD', journal, '*', 'kind', kind, 'epoch', epoch, 'at', now, ...)
end
