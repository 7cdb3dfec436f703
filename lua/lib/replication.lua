-- Another replication id than the one that was noted means a failover or a restart, which may have lost the newest
-- writes: what was answered may be more than Redis knows. Until that has been put back nothing is sold, given back or
-- paid. A sale of which none is noted yet, or a Redis that tells none, is taken for healthy.
local function replication_id()
  return redis.call('INFO', 'replication'):match('master_replid:(%x+)')
end

local function is_recovering(recovering_since, noted_id)
  if recovering_since then return true end
  local id = noted_id and replication_id()
  return id and id ~= noted_id
end
