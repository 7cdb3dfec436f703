-- After a failover of Redis the newest changes are held against it.

create index reservations_by_change on reservations (event_id, updated_at_ms, reservation_id);
