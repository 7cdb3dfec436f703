//! What a failover may lose of a reservation, taken out of Redis by hand so that it can be put back.

use std::collections::HashMap;

use domain::ReservationId;
use domain::items::{Item, Items, Units};
use domain::reservation::{Reservation, ReservationStatus};
use redis::aio::MultiplexedConnection;
use redis::{Cmd, FromRedisValue};
use store::{KeyName, Keys, Restored, Store, StoreConfig};

pub(crate) struct Loss {
    connection: MultiplexedConnection,
    fields: HashMap<String, String>,
    items: Items,
    reservation: Reservation,
}

/// Loses a reservation, or only its last change, and puts it back as PostgreSQL would have it.
pub(crate) async fn lose(config: &StoreConfig, store: &Store, id: &ReservationId, whole: bool) -> String {
    let known = store.any_reservation(id).await.expect("redis answers");
    let Ok(reservation) = known else { return "not there".to_owned() };
    let mut loss = Loss::of(config, reservation).await;
    if whole || !loss.take_back().await {
        loss.forget().await;
    }
    let restored = store.restore(&loss.reservation).await;
    if let Some(request) = loss.fields.get("request").cloned() {
        // What a client asked for stays between it and Redis.
        let key = loss.key(KeyName::Reservation);
        loss.ask::<()>(redis::cmd("HSET").arg(key).arg("request").arg(request)).await;
    }
    match restored {
        Ok(Restored::Restored { evicted: 0 }) => "restored".to_owned(),
        other => format!("{other:?}"),
    }
}

impl Loss {
    async fn of(config: &StoreConfig, reservation: Reservation) -> Self {
        let client = redis::Client::open(config.url.as_str()).expect("a Redis URL");
        let connection = client.get_multiplexed_async_connection().await.expect("redis answers");
        let mut loss = Self { connection, fields: HashMap::new(), items: Items::default(), reservation };
        let key = loss.key(KeyName::Reservation);
        loss.fields = loss.ask(redis::cmd("HGETALL").arg(key)).await;
        loss.items = loss.fields["items"].parse().expect("items");
        loss
    }

    fn key(&self, name: KeyName) -> String {
        let id = &self.reservation.reservation_id;
        Keys::of(id.event()).token(self.reservation.token).reservation(id).name(name)
    }

    async fn ask<T: FromRedisValue>(&mut self, command: &Cmd) -> T {
        command.query_async(&mut self.connection).await.expect("redis does it")
    }

    /// As if the booking had never been.
    async fn forget(&mut self) {
        if self.reservation.status.keeps_seats() {
            self.move_places(1).await;
        }
        let id = self.reservation.reservation_id.to_string();
        for name in [KeyName::Reservation, KeyName::Done] {
            let key = self.key(name);
            self.ask::<()>(redis::cmd("DEL").arg(key)).await;
        }
        for name in [KeyName::Reservations, KeyName::PaymentDue, KeyName::PaymentReminders] {
            let key = self.key(name);
            self.ask::<()>(redis::cmd("ZREM").arg(key).arg(&id)).await;
        }
    }

    /// As if the last change had never been; false where others have its places by now.
    async fn take_back(&mut self) -> bool {
        let Reservation { status, .. } = self.reservation;
        let was_paid = self.reservation.payment_id.is_some();
        let before = match status {
            ReservationStatus::Paid => {
                let (key, id) = (self.key(KeyName::PaymentDue), self.reservation.reservation_id.to_string());
                let due_at = self.reservation.payment_due_at.expect("it was to be paid").0;
                self.ask::<()>(redis::cmd("ZADD").arg(key).arg(due_at).arg(id)).await;
                "PENDING_PAYMENT"
            }
            ReservationStatus::Cancelled | ReservationStatus::Expired if self.are_free().await => {
                self.move_places(-1).await;
                if was_paid { "PAID" } else { "CONFIRMED" }
            }
            _ => return false,
        };
        let (key, version) = (self.key(KeyName::Reservation), self.reservation.version - 1);
        let change =
            redis::cmd("HSET").arg(key).arg("status").arg(before).arg("version").arg(version).clone();
        self.ask::<()>(&change).await;
        true
    }

    async fn are_free(&mut self) -> bool {
        let (map, stock) = (self.key(KeyName::Map), self.key(KeyName::Stock));
        for Item { section, units, .. } in self.items.0.clone() {
            match units {
                Units::Count(count) => {
                    let free: u32 = self.ask(redis::cmd("HGET").arg(&stock).arg(section)).await;
                    if free < count {
                        return false;
                    }
                }
                Units::Seats(seats) => {
                    for seat in seats {
                        let byte: String =
                            self.ask(redis::cmd("GETRANGE").arg(&map).arg(seat).arg(seat)).await;
                        if byte != "." {
                            return false;
                        }
                    }
                }
            }
        }
        true
    }

    /// Give the places back (1), or take them again (-1), with all that is counted.
    async fn move_places(&mut self, sign: i64) {
        let byte = if sign > 0 { "." } else { "s" };
        let (map, stock) = (self.key(KeyName::Map), self.key(KeyName::Stock));
        for item in self.items.0.clone() {
            if let Units::Seats(seats) = &item.units {
                for seat in seats {
                    self.ask::<()>(redis::cmd("SETRANGE").arg(&map).arg(*seat).arg(byte)).await;
                }
            }
            let count = sign * i64::from(item.count());
            self.ask::<()>(redis::cmd("HINCRBY").arg(&stock).arg(item.section).arg(count)).await;
        }
        let (remaining, count) = (self.key(KeyName::Remaining), sign * i64::from(self.items.count()));
        self.ask::<()>(redis::cmd("INCRBY").arg(remaining).arg(count)).await;
        if let Some(account) = self.reservation.account.clone() {
            let tickets = self.key(KeyName::Tickets);
            self.ask::<()>(redis::cmd("HINCRBY").arg(tickets).arg(account.as_str()).arg(-count)).await;
        }
    }
}
