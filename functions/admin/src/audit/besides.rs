//! What stands beside the places: sessions, done keys, payments due, the line's own numbers.

use std::collections::{BTreeMap, BTreeSet};

use domain::items::{Item, Items, Units};
use domain::reservation::{Reservation, ReservationStatus};
use domain::sale::PreQueue;
use domain::shuffle::AFTER_THE_DRAW;
use domain::{Millis, Token};
use store::{Besides, HeldSession, Snapshot};

use crate::finding::{Fault, Findings, digest};

const DAY_MS: i64 = 86_400_000;

/// Everything but the epoch, which only facts tell.
pub(crate) fn besides(snapshot: &Snapshot, besides: &Besides, now: Millis) -> Findings {
    let mut findings = Findings::default();
    // A day after the sale done keys are forgotten.
    if now.0 < snapshot.edition.sale.closes_at.0 + DAY_MS {
        for id in &besides.undone {
            findings.add(Fault::DoneDiffers, id.to_string(), "named by its token's done key", "not named");
        }
    }
    for id in &besides.in_line {
        let expected = "out of the line and of the active";
        findings.add(Fault::BookedInLine, id.to_string(), expected, "its token is in one of them");
    }
    for token in &besides.idle_slots {
        findings.add(Fault::IdleSlot, digest(*token), "called or in a session", "neither");
    }
    payments(&mut findings, snapshot, besides);
    for (token, _) in unbacked(snapshot, besides, now) {
        let found = "they name other places";
        findings.add(Fault::HoldsDifferFromSessions, digest(token), "holds and session name the same", found);
    }
    number(&mut findings, snapshot, besides);
    findings
}

fn payments(findings: &mut Findings, snapshot: &Snapshot, besides: &Besides) {
    let owed = |reservation: &&Reservation| reservation.status == ReservationStatus::PendingPayment;
    let owed: BTreeMap<String, Option<i64>> = snapshot
        .reservations
        .iter()
        .filter(owed)
        .map(|reservation| {
            let due_at = reservation.payment_due_at.map(|at| at.0);
            (reservation.reservation_id.to_string(), due_at)
        })
        .collect();
    let told = |at: Option<i64>| at.map_or("not due".to_owned(), |at| format!("due at {at}"));
    let ids: BTreeSet<&String> = owed.keys().chain(besides.payment_due.keys()).collect();
    for id in ids {
        let (expected, found) = (owed.get(id).copied().flatten(), besides.payment_due.get(id).copied());
        if expected != found {
            findings.add(Fault::PaymentDueDiffers, id.clone(), told(expected), told(found));
        }
    }
    for id in besides.reminders.iter().filter(|id| !owed.contains_key(*id)) {
        findings.add(Fault::PaymentDueDiffers, id.clone(), "no reminder", "one");
    }
}

/// Tokens whose session names other held places than their holds do, and the held units that none names. What is over
/// counts for nobody, tidied or not.
pub(crate) fn unbacked(snapshot: &Snapshot, besides: &Besides, now: Millis) -> Vec<(Token, Vec<String>)> {
    let mut held: BTreeMap<Token, BTreeMap<String, &String>> = BTreeMap::new();
    for (unit, hold) in &snapshot.holds {
        let is_live = snapshot.due.get(unit).is_some_and(|due| *due > now.0);
        if let Some((token, name)) = held_unit(unit, hold).filter(|_| is_live) {
            held.entry(token).or_default().insert(name, unit);
        }
    }
    let none = BTreeMap::new();
    let differs = |(token, session): (&Token, &HeldSession)| {
        let is_live = session.hold_expires_at.is_some_and(|at| at > now.0);
        let named = if is_live { session_units(&session.items) } else { BTreeSet::new() };
        let holds = held.get(token).unwrap_or(&none);
        let unnamed =
            holds.iter().filter(|(name, _)| !named.contains(*name)).map(|(_, unit)| (*unit).clone());
        (!holds.keys().eq(named.iter())).then(|| (*token, unnamed.collect()))
    };
    besides.sessions.iter().filter_map(differs).collect()
}

/// Whose a held unit is, and how its session would name it.
fn held_unit(unit: &str, hold: &str) -> Option<(Token, String)> {
    match unit.rsplit_once('*') {
        Some((places, token)) => {
            Some((token.parse().ok()?, format!("{places}*{}", hold.rsplit_once(':')?.1)))
        }
        None => Some((hold.rsplit_once(':')?.1.parse().ok()?, unit.to_owned())),
    }
}

fn session_units(items: &str) -> BTreeSet<String> {
    let items: Items = items.parse().unwrap_or_default();
    let units = items.0.into_iter().flat_map(|Item { section, price, units }| match units {
        Units::Count(count) => vec![format!("{section}*{price}*{count}")],
        Units::Seats(seats) => seats.iter().map(u32::to_string).collect(),
    });
    units.collect()
}

/// The last number that was given out stands in the line at most.
fn number(findings: &mut Findings, snapshot: &Snapshot, besides: &Besides) {
    let sale = &snapshot.edition.sale;
    let last = besides.last_score.unwrap_or(0);
    let last = if sale.pre_queue == PreQueue::Shuffle { last.saturating_sub(AFTER_THE_DRAW) } else { last };
    if besides.number < last {
        let expected = format!("{last} or more");
        findings.add(Fault::SequenceBehindLine, sale.event_id.as_str(), expected, besides.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_and_sessions_name_the_same_units() {
        let token = Token::random();
        let seat = held_unit("12", &format!("0:100:{token}"));
        let count = held_unit(&format!("1*10*{token}"), "1:10:3");
        assert_eq!((seat, count), (Some((token, "12".into())), Some((token, "1*10*3".into()))));
        assert_eq!(session_units("0@100=12;1@10*3"), BTreeSet::from(["12".into(), "1*10*3".into()]));
        assert_eq!(held_unit("12", "?"), None);
    }
}
