--@include replication
--@include journal
-- Numbers that a lost write may have given out are not given out again.
local NUMBERS_SKIPPED = 1000000

-- Begin the next epoch where Redis is another one than was noted. Returns the epoch, and since when the sale recovers;
-- nil where it does not. Also whoever takes a new place asks, so that no number is given out that a lost place has.
local function watch_epoch(keys, epoch, recovering_since, noted_id, now)
  local id = other_replication_id(noted_id)
  if not id then return epoch, recovering_since end
  redis.call('HSET', keys.meta, 'replicationId', id)
  if not noted_id then return epoch, recovering_since end
  redis.call('INCRBY', keys.sequence, NUMBERS_SKIPPED)
  epoch = tostring(redis.call('HINCRBY', keys.meta, 'epoch', 1))
  redis.call('HSET', keys.meta, 'recoveringSince', now)
  record(keys.journal, 'EVENT_CHANGED', epoch, now, 'by', 'jari', 'change', 'epoch', 'version',
    redis.call('HGET', keys.meta, 'version'))
  return epoch, now
end
