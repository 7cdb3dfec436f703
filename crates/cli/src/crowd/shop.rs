//! Inside: look, choose, hold, book, read it back.

use serde_json::{Map, Value, json};

use super::answers::{Booked, Found, Held, MapSection, Offering, Reservation, SeatMap};
use super::cast::{Manner, Wish};
use super::client::Failure;
use super::tally::{Call, End};
use super::visit::{Visit, end_of};

/// How often somebody tries before they give up.
const TRIES: u32 = 8;

/// A section somebody has set their mind on.
struct Aim {
    offering_id: String,
    section_id: String,
}

/// Whether others were faster, and another choice may do.
fn is_lost(failure: &Failure) -> bool {
    ["SEAT_TAKEN", "SOLD_OUT", "NO_ADJACENT_SEATS", "PURCHASE_LIMIT_EXCEEDED"]
        .contains(&failure.code.as_str())
}

impl Visit {
    /// From being let in to the end.
    pub(crate) async fn shop(&mut self) -> Result<End, End> {
        self.think().await?;
        if self.person.manner == Manner::LeavesLine {
            return Ok(self.leave(End::Left).await);
        }
        if self.person.wish == Wish::Plain {
            let count = self.person.seats;
            return self.book(json!({ "seatCount": count })).await;
        }
        for _ in 0..TRIES {
            let found: Found = self.look("/api/offerings", Call::Search).await?;
            let Some(aim) = self.choose(&found.offerings) else {
                return Ok(self.leave(End::SoldOut).await);
            };
            self.think().await?;
            let wanted = self.wanted(&aim).await?;
            let Some(wanted) = wanted else { continue };
            self.think().await?;
            match self.hold(wanted).await {
                Ok(()) => return self.take().await,
                Err(failure) if is_lost(&failure) => self.person.seats = (self.person.seats - 1).max(1),
                Err(failure) => return Err(end_of(&failure)),
            }
        }
        Ok(self.leave(End::SoldOut).await)
    }

    /// Books what is held, or does not.
    async fn take(&mut self) -> Result<End, End> {
        if self.person.manner == Manner::LeavesHeld {
            // Half say so, half close the tab.
            return Ok(if self.person.random.bool() { self.leave(End::Left).await } else { End::Left });
        }
        self.think().await?;
        self.book(json!({})).await
    }

    /// With the token, which proves where the access token does not any more.
    fn proven(&self, mut fields: Value) -> Value {
        if let Some(fields) = fields.as_object_mut() {
            fields.insert("token".to_owned(), json!(self.token));
        }
        fields
    }

    /// Something that is only read.
    async fn look<T: serde::de::DeserializeOwned>(&mut self, path: &str, call: Call) -> Result<T, End> {
        let mark = if path.contains('?') { '&' } else { '?' };
        let target = format!("{path}{mark}token={}", self.token);
        self.act(call, target, None).await.map_err(|failure| end_of(&failure))
    }

    /// The first offerings are wanted most.
    fn choose(&mut self, offerings: &[Offering]) -> Option<Aim> {
        let seats = u64::from(self.person.seats);
        let sections = offerings.iter().enumerate().flat_map(|(at, offering)| {
            let weight = 1.0 / (at as f64 + 1.0);
            offering.sections.iter().map(move |section| (offering, section, weight))
        });
        let free: Vec<_> = sections.filter(|(_, section, _)| section.remaining > 0).collect();
        let enough: Vec<_> =
            free.iter().filter(|(_, section, _)| section.remaining >= seats).copied().collect();
        let choice = if enough.is_empty() { free } else { enough };
        let sum: f64 = choice.iter().map(|(.., weight)| weight).sum();
        let mut mark = self.person.random.f64() * sum;
        let last = choice.last().copied();
        let chosen = choice.into_iter().find(|(.., weight)| {
            mark -= weight;
            mark <= 0.0
        });
        let (offering, section, _) = chosen.or(last)?;
        Some(Aim { offering_id: offering.offering_id.clone(), section_id: section.section_id.clone() })
    }

    /// What to ask for there, having looked at the map. None: nothing is left.
    async fn wanted(&mut self, aim: &Aim) -> Result<Option<Map<String, Value>>, End> {
        let path = format!("/api/seats?offeringId={}&sectionId={}", aim.offering_id, aim.section_id);
        let map: SeatMap = self.look(&path, Call::Seats).await?;
        let Some(section) = map.sections.into_iter().next() else { return Ok(None) };
        let free = u32::try_from(section.remaining).unwrap_or(u32::MAX);
        let seats = self.person.seats.min(free);
        if seats == 0 {
            return Ok(None);
        }
        let mut wanted = Map::new();
        wanted.insert("offeringId".to_owned(), json!(aim.offering_id));
        wanted.insert("sectionId".to_owned(), json!(aim.section_id));
        let is_general = section.rows.is_empty();
        let named = match self.person.wish {
            Wish::Named if !is_general => self.side_by_side(&section, seats as usize),
            _ => Vec::new(),
        };
        if !named.is_empty() {
            wanted.insert("seats".to_owned(), json!(named));
        } else if is_general || self.person.wish == Wish::Count {
            wanted.insert("count".to_owned(), json!(seats));
        } else {
            wanted.insert("best".to_owned(), json!(seats));
        }
        Ok(Some(wanted))
    }

    /// Free seats next to each other, in the first row behind a random one that has them.
    fn side_by_side(&mut self, section: &MapSection, seats: usize) -> Vec<String> {
        let rows = &section.rows;
        let start = self.person.random.usize(0..rows.len().max(1));
        for row in rows.iter().cycle().skip(start).take(rows.len()) {
            let is_free = |seat: &String| !section.taken.contains_key(seat);
            let runs = row.seats.windows(seats).filter(|run| run.iter().all(is_free));
            let runs: Vec<_> = runs.collect();
            if !runs.is_empty() {
                return runs[self.person.random.usize(0..runs.len())].to_vec();
            }
        }
        Vec::new()
    }

    async fn hold(&mut self, wanted: Map<String, Value>) -> Result<(), Failure> {
        let body = self.proven(Value::Object(wanted));
        let held: Held = self.act(Call::Select, "/api/seat/select".to_owned(), Some(body)).await?;
        self.person.seats = held.seat_count;
        if held.access_token.is_some() {
            self.access_token = held.access_token;
        }
        Ok(())
    }

    async fn book(&mut self, fields: Value) -> Result<End, End> {
        let body = self.proven(fields);
        let booked: Booked = match self.act(Call::Book, "/api/booking".to_owned(), Some(body)).await {
            Ok(booked) => booked,
            Err(failure) if is_lost(&failure) => return Ok(self.leave(End::SoldOut).await),
            Err(failure) => return Err(end_of(&failure)),
        };
        self.world.tally.sold(booked.seat_count);
        let path = format!("/api/booking/{}", booked.reservation_id);
        let read: Reservation = self.look(&path, Call::Read).await?;
        self.world.witness.booked(&self.token, &booked, &read);
        Ok(End::Booked)
    }
}
