//! Places: counters, the seat map, holds and reservations must tell the same.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;

use domain::layout::{Layout, Places, Row, Section};
use domain::reservation::{Reservation, ReservedPlaces};
use domain::{Millis, ReservationId, SeatName, Token};
use store::{Hold, Snapshot, Unit};

use super::History;
use crate::finding::{Fault, Findings, digest};

pub(crate) const FREE: u8 = b'.';
pub(crate) const KEPT: u8 = b'h';
pub(crate) const SOLD: u8 = b's';
pub(crate) const OFF_SALE: u8 = b'x';
pub(crate) const ROW_END: u8 = b'/';

/// What Redis counts in one moment, moving or not.
pub(crate) fn counters(snapshot: &Snapshot) -> Findings {
    let mut findings = Findings::default();
    let layout = &snapshot.edition.layout;
    let event = snapshot.edition.sale.event_id.as_str();
    if snapshot.remaining < 0 {
        findings.add(Fault::NegativeCounter, event, "0 or more free places", snapshot.remaining);
    }
    let stock: i64 = snapshot.stock.values().sum();
    if snapshot.remaining != stock {
        findings.add(Fault::RemainingDiffersFromStock, event, stock, snapshot.remaining);
    }
    let (holds, due) = snapshot.hold_counts;
    if holds != due {
        let expected = format!("{holds} units due");
        findings.add(Fault::HoldsDifferFromDue, event, expected, format!("{due} units due"));
    }
    for section in &layout.sections {
        match snapshot.stock.get(&section.number) {
            None => findings.add(Fault::CounterWithoutSection, name(section), "a counter", "none"),
            Some(free) if *free < 0 => {
                findings.add(Fault::NegativeCounter, name(section), "0 or more free places", free);
            }
            Some(_) => {}
        }
    }
    for (number, free) in &snapshot.stock {
        if layout.by_number(*number).is_none() {
            let place = format!("{event} section number {number}");
            findings.add(Fault::CounterWithoutSection, place, "a section", format!("{free} places free"));
        }
    }
    findings.append(map(snapshot));
    findings
}

/// The seat map against the layout and the stock of named seats.
fn map(snapshot: &Snapshot) -> Findings {
    let mut findings = Findings::default();
    let (layout, bytes) = (&snapshot.edition.layout, snapshot.map.as_bytes());
    if bytes.len() != layout.map_length as usize {
        let place = snapshot.edition.sale.event_id.as_str();
        let expected = format!("{} bytes of seat map", layout.map_length);
        findings.add(Fault::MapDiffersFromLayout, place, expected, format!("{} bytes", bytes.len()));
        return findings;
    }
    for section in &layout.sections {
        let Places::Assigned { rows } = &section.places else { continue };
        let mut free = 0_i64;
        for row in rows {
            let seats = row.offset as usize..row.offset as usize + row.seats.len();
            let allowed: &[u8] = if row.removed { &[OFF_SALE] } else { &[FREE, KEPT, SOLD] };
            for (byte, seat) in bytes[seats.clone()].iter().zip(&row.seats) {
                free += i64::from(*byte == FREE);
                if !allowed.contains(byte) {
                    let expected = format!("one of {:?}", text(allowed));
                    findings.add(Fault::MapDiffersFromLayout, at(section, seat), expected, text(&[*byte]));
                }
            }
            if bytes[seats.end] != ROW_END {
                let place = format!("{} behind row {}", name(section), row.name);
                findings.add(
                    Fault::MapDiffersFromLayout,
                    place,
                    text(&[ROW_END]),
                    text(&bytes[seats.end..=seats.end]),
                );
            }
        }
        let stock = snapshot.stock.get(&section.number).copied().unwrap_or_default();
        if stock != free {
            let expected = format!("{free} free, as in the seat map");
            findings.add(Fault::StockDiffers, name(section), expected, format!("{stock} free"));
        }
    }
    findings
}

/// Holds and reservations against the counters and the map. Only a snapshot that stood still tells.
pub(crate) fn owners(snapshot: &Snapshot, forgotten: &[Reservation]) -> Findings {
    let mut owners = Owners::of(&snapshot.edition.layout);
    for (one, other, told) in [
        (&keys(&snapshot.holds), &keys(&snapshot.due), "due"),
        (&keys(&snapshot.due), &keys(&snapshot.holds), "held"),
    ] {
        for unit in one.difference(other) {
            let found = format!("not {told}");
            owners.findings.add(Fault::HoldsDifferFromDue, owners.unit(unit), told, found);
        }
    }
    for (unit, hold) in &snapshot.holds {
        owners.hold(unit, hold);
    }
    for reservation in snapshot.reservations.iter().chain(forgotten) {
        owners.reservation(reservation);
    }
    owners.compare(snapshot);
    owners.findings
}

fn keys<V>(of: &BTreeMap<String, V>) -> BTreeSet<&str> {
    of.keys().map(String::as_str).collect()
}

/// Who has which seat, and how many of each general section.
pub(crate) struct Owners<'a> {
    pub(crate) layout: &'a Layout,
    /// Each row's seats and its section's number, by the first seat.
    rows: Vec<(Range<u32>, u32)>,
    pub(crate) held_seats: HashSet<u32>,
    pub(crate) sold_seats: HashMap<u32, &'a ReservationId>,
    pub(crate) held: BTreeMap<u32, u64>,
    pub(crate) sold: BTreeMap<u32, u64>,
    pub(crate) findings: Findings,
}

impl<'a> Owners<'a> {
    pub(crate) fn of(layout: &'a Layout) -> Self {
        let mut rows: Vec<(Range<u32>, u32)> = Vec::new();
        for section in &layout.sections {
            let Places::Assigned { rows: of_section } = &section.places else { continue };
            rows.extend(of_section.iter().map(|row| (seats(row), section.number)));
        }
        rows.sort_unstable_by_key(|(seats, _)| seats.start);
        Self {
            layout,
            rows,
            held_seats: HashSet::new(),
            sold_seats: HashMap::new(),
            held: BTreeMap::new(),
            sold: BTreeMap::new(),
            findings: Findings::default(),
        }
    }

    fn section_of(&self, seat: u32) -> Option<&'a Section> {
        let behind = self.rows.partition_point(|(seats, _)| seats.start <= seat);
        let (seats, section) = self.rows[..behind].last()?;
        self.layout.by_number(*section).filter(|_| seats.contains(&seat))
    }

    /// How a finding names a held unit: not by the token in it.
    fn unit(&self, unit: &str) -> String {
        match Unit::read(unit) {
            Some(Unit::Seat(seat)) => match (self.section_of(seat), self.layout.seat_name(seat)) {
                (Some(section), Some(name)) => at(section, name),
                _ => format!("byte {seat} of the seat map"),
            },
            Some(Unit::Count { section, token, .. }) => {
                let section =
                    self.layout.by_number(section).map_or_else(|| format!("section {section}"), name);
                format!("{section} held by {}", owner_name(token))
            }
            None => "a unit of no known form".to_owned(),
        }
    }

    pub(crate) fn hold(&mut self, unit: &str, text: &str) {
        let hold = Hold::read(unit, text).filter(|hold| {
            let section = match hold.seat {
                Some(seat) => self.section_of(seat),
                None => self.layout.by_number(hold.section).filter(|section| section.is_general()),
            };
            section.is_some_and(|section| section.number == hold.section)
        });
        match hold {
            Some(Hold { seat: Some(seat), .. }) => drop(self.held_seats.insert(seat)),
            Some(Hold { section, count, .. }) => *self.held.entry(section).or_default() += count,
            None => {
                let found = "one of another section or form";
                self.findings.add(Fault::UnreadableHold, self.unit(unit), "a hold of this unit", found);
            }
        }
    }

    pub(crate) fn reservation(&mut self, reservation: &'a Reservation) {
        let id = &reservation.reservation_id;
        let own = ReservationId::of(id.event().clone(), reservation.token);
        if *id != own {
            let found = "one of another token";
            self.findings.add(Fault::ForeignReservation, id.to_string(), "its token's reservation", found);
        }
        if reservation.status.keeps_seats() {
            for places in &reservation.places {
                self.sold(id, places);
            }
        }
    }

    fn sold(&mut self, id: &'a ReservationId, places: &ReservedPlaces) {
        let section = self.layout.section(&places.offering_id, &places.section_id);
        match section {
            Some(section) if section.is_general() && places.seats.is_empty() => {
                *self.sold.entry(section.number).or_default() += u64::from(places.count);
                return;
            }
            Some(section) if !section.is_general() && !places.seats.is_empty() => {
                for seat in &places.seats {
                    match self.layout.seat(&places.offering_id, seat) {
                        Some(found) if found.section == section.number => {
                            self.sold_seat(id, section, seat, found.index);
                        }
                        _ => self.unknown(id, format!("{}/{} {seat}", places.offering_id, places.section_id)),
                    }
                }
                return;
            }
            _ => {}
        }
        self.unknown(id, format!("{}/{}", places.offering_id, places.section_id));
    }

    fn sold_seat(&mut self, id: &'a ReservationId, section: &Section, seat: &SeatName, index: u32) {
        if let Some(other) = self.sold_seats.insert(index, id) {
            let found = format!("{other} and {id}");
            self.findings.add(Fault::SeatSoldTwice, at(section, seat), "one reservation", found);
        }
    }

    fn unknown(&mut self, id: &ReservationId, place: String) {
        self.findings.add(Fault::UnknownPlace, id.to_string(), "places on sale", place);
    }

    fn compare(&mut self, snapshot: &Snapshot) {
        for section in &snapshot.edition.layout.sections {
            if section.is_general() {
                self.compare_general(section, snapshot);
            } else if snapshot.map.len() == snapshot.edition.layout.map_length as usize {
                self.compare_assigned(section, snapshot.map.as_bytes());
            }
        }
    }

    fn compare_general(&mut self, section: &Section, snapshot: &Snapshot) {
        let count = |counts: &BTreeMap<u32, u64>| counts.get(&section.number).copied().unwrap_or_default();
        let (held, sold, capacity) = (count(&self.held), count(&self.sold), u64::from(section.capacity()));
        let told = format!("{held} held and {sold} sold of {capacity}");
        let free = capacity.cast_signed() - (held + sold).cast_signed();
        let stock = snapshot.stock.get(&section.number).copied().unwrap_or_default();
        if free < 0 {
            self.findings.add(Fault::Oversold, name(section), format!("at most {capacity}"), &told);
        }
        if stock != free {
            let expected = format!("{free} free: {told}");
            self.findings.add(Fault::StockDiffers, name(section), expected, format!("{stock} free"));
        }
    }

    fn compare_assigned(&mut self, section: &Section, bytes: &[u8]) {
        let Places::Assigned { rows } = &section.places else { return };
        for row in rows {
            for (index, seat) in (row.offset..).zip(&row.seats) {
                let byte = bytes[index as usize];
                let (held, sold) = (self.held_seats.contains(&index), self.sold_seats.get(&index));
                if held != (byte == KEPT) {
                    let told = |held: bool| if held { "held" } else { "not held" };
                    let (expected, found) =
                        (format!("{} as by holds", told(held)), format!("{} in the map", told(!held)));
                    self.findings.add(Fault::MapDiffersFromHolds, at(section, seat), expected, found);
                }
                if sold.is_some() != (byte == SOLD) {
                    let expected = sold
                        .map_or("not sold: no reservation has it".to_owned(), |id| format!("sold to {id}"));
                    let found = format!("{:?} in the map", text(&[byte]));
                    self.findings.add(Fault::MapDiffersFromReservations, at(section, seat), expected, found);
                }
            }
        }
    }
}

/// What an account, or a token without one, has at once. A hold whose time is over is nobody's, tidied or not.
pub(crate) fn limits(snapshot: &Snapshot, history: &History, now: Millis) -> Findings {
    let mut findings = Findings::default();
    let mut used: BTreeMap<String, u64> = BTreeMap::new();
    for reservation in snapshot.reservations.iter().filter(|reservation| reservation.status.keeps_seats()) {
        let account = reservation.account.as_ref().map(ToString::to_string);
        let owner = account.unwrap_or_else(|| reservation.token.to_string());
        *used.entry(owner).or_default() += u64::from(reservation.seat_count);
    }
    for (unit, text) in &snapshot.holds {
        let is_live = snapshot.due.get(unit).is_some_and(|due| *due > now.0);
        if let Some(Hold { count, token, .. }) = Hold::read(unit, text).filter(|_| is_live) {
            let account = token.parse().ok().and_then(|token: Token| snapshot.owners.get(&token));
            *used.entry(account.map_or_else(|| token.to_owned(), ToString::to_string)).or_default() += count;
        }
    }
    let most = history.most(|rules| rules.limit_per_account);
    for (owner, used) in used.into_iter().filter(|(_, used)| *used > u64::from(most)) {
        findings.add(Fault::OverLimit, owner_name(&owner), format!("at most {most} places"), used);
    }
    findings
}

/// What is counted about accounts against what they have.
pub(crate) fn accounts(snapshot: &Snapshot, now: Millis) -> Findings {
    let mut findings = Findings::default();
    // A day after the sale Redis forgets reservations, and no limit is asked for any more.
    if now.0 >= snapshot.edition.sale.closes_at.0 {
        return findings;
    }
    for (account, (has, counted)) in ticket_counts(snapshot) {
        if has != counted {
            findings.add(Fault::TicketsDiffer, owner_name(account), has, counted);
        }
    }
    findings
}

/// Account → places that its reservations have, and that are counted.
pub(crate) fn ticket_counts(snapshot: &Snapshot) -> BTreeMap<&str, (i64, i64)> {
    let mut counts: BTreeMap<&str, (i64, i64)> =
        snapshot.tickets.iter().map(|(account, counted)| (account.as_str(), (0, *counted))).collect();
    for reservation in &snapshot.reservations {
        if let Some(account) = &reservation.account {
            let count = if reservation.status.keeps_seats() { i64::from(reservation.seat_count) } else { 0 };
            counts.entry(account.as_str()).or_default().0 += count;
        }
    }
    counts
}

pub(crate) fn seats(row: &Row) -> Range<u32> {
    // Bounded by the layout's own length.
    row.offset..row.offset + u32::try_from(row.seats.len()).unwrap_or_default()
}

fn name(section: &Section) -> String {
    format!("{}/{}", section.offering, section.id)
}

fn at(section: &Section, seat: &SeatName) -> String {
    format!("{} {seat}", name(section))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// An account's name, or the digest of a token, which is a secret.
fn owner_name(owner: &str) -> String {
    owner.parse().map_or_else(|_| format!("account {owner:?}"), digest)
}
