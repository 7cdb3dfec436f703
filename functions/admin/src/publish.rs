//! Create and change sales. Nothing here touches what is held or sold: a step of the store refuses that.

use domain::layout::Edition;
use domain::sale::{MAX_PER_SECOND, MIN_PER_SECOND, PreQueue, Problem, Sale, check};
use domain::{EventId, Millis};
use serde_json::{Value, json};
use store::{Applied, EventState, StatusChange, Store};

use crate::command::Definition;
use crate::reply::{Refused, Reply};
use crate::{AdminError, AdminState};

/// How often an edition is made anew because somebody else changed the event meanwhile.
const TRIES: u32 = 5;
const MAX_MESSAGE_CHARACTERS: usize = 500;
const MAX_NAME_CHARACTERS: usize = 100;

/// Refused, or what was asked for; infrastructure is told apart by the layer around.
type Allowed<T> = Result<T, Refused>;

/// Turns a refusal into the reply that says so.
macro_rules! allowed {
    ($allowed:expr) => {
        match $allowed {
            Ok(value) => value,
            Err(refused) => return Ok(Reply::Refused(refused)),
        }
    };
}

/// Create an event, or bring it to this definition.
pub(crate) async fn apply(
    state: &AdminState,
    definition: &Definition,
    opens_at: Option<Millis>,
    by: &str,
) -> Result<Reply, AdminError> {
    allowed!(check_name(by));
    let sale = allowed!(read(definition, opens_at));
    let event = sale.event_id.clone();
    let store = state.store();
    allowed!(check_unrecorded(state, &event).await?);
    let make = |known: Option<&EventState>, now| {
        check_times(&sale, known, now)?;
        Ok(sale.clone())
    };
    let (version, created) = allowed!(publish(store, &event, by, "apply", make).await?);
    Ok(Reply::Applied { event, version, created })
}

/// Let people in: after a pause or a close, and before the opening instead of at it.
pub(crate) async fn open(store: &Store, event: &EventId, by: &str) -> Result<Reply, AdminError> {
    allowed!(check_name(by));
    let Ok(state) = store.event_state(event).await? else { return Ok(unknown(event)) };
    allowed!(check_not_over(&state));
    if !state.view.is_opened() {
        let make = |known: Option<&EventState>, now| {
            let mut sale = known_sale(known, event)?;
            sale.opens_at = sale.opens_at.min(now);
            checked_again(&sale)?;
            Ok(sale)
        };
        allowed!(publish(store, event, by, "open", make).await?);
    }
    set(store, event, by, &StatusChange::Open).await
}

/// Change a running sale's status or maintenance.
pub(crate) async fn change(
    store: &Store,
    event: &EventId,
    by: &str,
    change: &StatusChange,
) -> Result<Reply, AdminError> {
    allowed!(check_name(by));
    let Ok(state) = store.event_state(event).await? else { return Ok(unknown(event)) };
    allowed!(check_change(&state, change));
    set(store, event, by, change).await
}

/// Set the pace.
pub(crate) async fn pace(
    store: &Store,
    event: &EventId,
    per_second: f64,
    by: &str,
) -> Result<Reply, AdminError> {
    allowed!(check_name(by));
    allowed!(check_pace(per_second));
    let make = |known: Option<&EventState>, _| {
        let mut sale = known_sale(known, event)?;
        if let Some(known) = known {
            check_not_over(known)?;
        }
        sale.admission.per_second = per_second;
        Ok(sale)
    };
    let (version, _) = allowed!(publish(store, event, by, "pace", make).await?);
    Ok(Reply::Changed { event: event.clone(), version })
}

/// Tell everybody who waits; nothing takes the message away.
pub(crate) async fn message(
    store: &Store,
    event: &EventId,
    text: &str,
    by: &str,
) -> Result<Reply, AdminError> {
    let text = text.trim();
    if text.chars().count() > MAX_MESSAGE_CHARACTERS {
        let reason = format!("must have at most {MAX_MESSAGE_CHARACTERS} characters");
        return Ok(Reply::Refused(Refused::value("text", reason)));
    }
    if text.chars().any(char::is_control) {
        let reason = "must not have line breaks or other control characters";
        return Ok(Reply::Refused(Refused::value("text", reason)));
    }
    change(store, event, by, &StatusChange::Message(text.to_owned())).await
}

async fn set(store: &Store, event: &EventId, by: &str, change: &StatusChange) -> Result<Reply, AdminError> {
    match store.change(event, by, change).await? {
        Ok(version) => Ok(Reply::Changed { event: event.clone(), version }),
        Err(_) => Ok(unknown(event)),
    }
}

fn unknown(event: &EventId) -> Reply {
    Reply::Refused(Refused::EventNotFound { event: event.clone() })
}

/// Bring an event to what `make` says of how it stands; again where somebody else was quicker. Answers the version
/// and whether the event is new.
async fn publish(
    store: &Store,
    event: &EventId,
    by: &str,
    what: &str,
    make: impl Fn(Option<&EventState>, Millis) -> Allowed<Sale>,
) -> Result<Allowed<(u64, bool)>, AdminError> {
    for _ in 0..TRIES {
        let known = store.event_state(event).await?.ok();
        let now = match &known {
            Some(known) => known.view.now,
            None => store.clock().await?,
        };
        let sale = match make(known.as_ref(), now) {
            Ok(sale) => sale,
            Err(refused) => return Ok(Err(refused)),
        };
        let (edition, change) = match &known {
            None => Edition::first(sale),
            Some(known) => match known.edition.next(sale) {
                Ok(next) => next,
                Err(problems) => return Ok(Err(Refused::mistakes(problems))),
            },
        };
        match store.apply(&edition, &change, by, what).await? {
            Applied::Applied { version } => return Ok(Ok((version, known.is_none()))),
            Applied::InUse { section } => return Ok(Err(in_use(&edition, section))),
            Applied::Recovering => {
                let reason = format!("{event} recovers from a loss of Redis: try again in some seconds");
                return Ok(Err(Refused::not_now(reason)));
            }
            Applied::Conflict { .. } => {}
        }
    }
    Ok(Err(Refused::Conflict { event: event.clone() }))
}

fn in_use(edition: &Edition, number: u32) -> Refused {
    match edition.layout.by_number(number) {
        Some(section) => {
            Refused::InUse { offering_id: section.offering.clone(), section_id: section.id.clone() }
        }
        None => Refused::not_now(format!("places of section number {number} are held or sold")),
    }
}

fn read(definition: &Definition, opens_at: Option<Millis>) -> Allowed<Sale> {
    let sale = match definition {
        Definition::Text(text) => check(text).map_err(Refused::mistakes)?,
        Definition::Json(value) => check(&value.to_string()).map_err(without_lines)?,
    };
    let Some(opens_at) = opens_at else { return Ok(sale) };
    let moved = sale.opening_at(opens_at);
    checked_again(&moved)?;
    Ok(moved)
}

/// One line is all that a definition has which never was a file.
fn without_lines(problems: Vec<Problem>) -> Refused {
    Refused::mistakes(problems.into_iter().map(|problem| Problem { line: None, ..problem }).collect())
}

fn known_sale(known: Option<&EventState>, event: &EventId) -> Allowed<Sale> {
    known
        .map(|known| Sale::clone(&known.edition.sale))
        .ok_or_else(|| Refused::EventNotFound { event: event.clone() })
}

/// Whether a changed sale still obeys the rules of a definition: bounds stand in one place alone.
fn checked_again(sale: &Sale) -> Allowed<()> {
    let mut definition = json!(sale);
    if let Value::Object(fields) = &mut definition
        && !sale.require_account
    {
        // Whoever wrote the definition said so, else it would not be here.
        fields.insert("anonymous".to_owned(), json!("accepted"));
    }
    check(&definition.to_string()).map(drop).map_err(without_lines)
}

pub(crate) fn check_name(by: &str) -> Allowed<()> {
    let fits = (1..=MAX_NAME_CHARACTERS).contains(&by.chars().count()) && !by.chars().any(char::is_control);
    let reason = format!("must have 1 to {MAX_NAME_CHARACTERS} characters, none of them control characters");
    if fits { Ok(()) } else { Err(Refused::value("by", reason)) }
}

/// A sale of this id that Redis does not know was deleted or lost: its places may be sold, and no fact of another one
/// could be told from its own.
async fn check_unrecorded(state: &AdminState, event: &EventId) -> Result<Allowed<()>, AdminError> {
    let Some(records) = &state.records else { return Ok(Ok(())) };
    if state.store.newest_edition(event).await?.is_some() || records.definition(event).await?.is_none() {
        return Ok(Ok(()));
    }
    Ok(Err(Refused::Recorded { event: event.clone() }))
}

fn check_pace(per_second: f64) -> Allowed<()> {
    if (MIN_PER_SECOND..=MAX_PER_SECOND).contains(&per_second) {
        return Ok(());
    }
    let reason = format!("must be from {MIN_PER_SECOND} to {MAX_PER_SECOND}; to admit nobody, pause");
    Err(Refused::value("perSecond", reason))
}

fn check_not_over(state: &EventState) -> Allowed<()> {
    let sale = &state.edition.sale;
    if sale.closes_at > state.view.now {
        return Ok(());
    }
    Err(Refused::not_now(format!(
        "{} is over: apply a definition with a later closesAt first",
        sale.event_id
    )))
}

fn check_change(state: &EventState, change: &StatusChange) -> Allowed<()> {
    // A pause of a closed sale would take people in again.
    if *change == StatusChange::Pause {
        check_not_over(state)?;
        if state.view.status == domain::outcome::SaleStatus::Closed {
            let event = &state.edition.sale.event_id;
            return Err(Refused::not_now(format!("{event} is closed: open it first")));
        }
    }
    Ok(())
}

/// What a definition alone does not tell: whether it suits the time and those who stand in the line.
fn check_times(sale: &Sale, known: Option<&EventState>, now: Millis) -> Allowed<()> {
    if sale.closes_at <= now {
        return Err(Refused::not_now(
            "the sale would be over at once, its closesAt is past: move it with an opening of now or later",
        ));
    }
    let Some(EventState { edition, view, active, .. }) = known else { return Ok(()) };
    if view.is_opened() && sale.opens_at > now {
        // Who came after the opening would stand behind who comes now, and the seed of a draw is public by then.
        return Err(Refused::not_now(
            "the sale has opened, and an opening cannot be taken back: pause it instead",
        ));
    }
    let redrawn = edition.sale.pre_queue != sale.pre_queue
        && [edition.sale.pre_queue, sale.pre_queue].contains(&PreQueue::Shuffle);
    if redrawn && (view.total_waiting > 0 || view.head_score > 0 || *active > 0) {
        return Err(Refused::not_now(
            "people stand in the line, and scores of a drawn line and of another do not mix: keep preQueue",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use domain::outcome::{LineView, SaleStatus};

    use super::*;

    const NOW: Millis = Millis(1_790_000_000_000);

    fn text(pre_queue: &str) -> String {
        let (opens_at, closes_at) = (NOW.0 - 60_000, NOW.0 + 3_600_000);
        format!(
            r#"{{"eventId": "e", "title": "E", "opensAt": {opens_at}, "closesAt": {closes_at},
                "preQueue": "{pre_queue}", "anonymous": "accepted",
                "admission": {{"perSecond": 70, "maxActive": 100}},
                "payment": {{"mode": "deferred", "dueAt": {closes_at}, "currency": "KRW"}},
                "default": {{"offeringId": "A", "sectionId": "s"}},
                "offerings": [{{"id": "A", "date": "2026-09-24", "from": "서울", "sections": [
                    {{"id": "s", "name": "S", "price": 100, "capacity": 10}},
                    {{"id": "r", "name": "R", "price": 100, "seats": [
                        {{"rows": "1-2", "seats": "A-C", "prefix": "x-"}}]}}]}}]}}"#
        )
    }

    fn sale(pre_queue: &str) -> Sale {
        check(&text(pre_queue)).unwrap()
    }

    fn state(sale: Sale, status: SaleStatus, waiting: u64) -> EventState {
        let view = LineView {
            now: NOW,
            status,
            opens_at: sale.opens_at,
            epoch: 1,
            head_score: 0,
            net: 0,
            total_waiting: waiting,
            remaining_seats: 10,
            admitted_per_second: 0.0,
            message: None,
        };
        let edition = Arc::new(Edition::first(sale).0);
        EventState {
            edition,
            view,
            active: 0,
            reservations: 0,
            journal: 0,
            maintenance: false,
            pace_factor: 1.0,
            joins_refused: false,
            ticked_at: None,
            relayed_at: None,
        }
    }

    fn reason(allowed: Allowed<()>) -> String {
        allowed.unwrap_err().to_string()
    }

    #[test]
    fn every_checked_sale_passes_the_check_again_and_broken_bounds_do_not() {
        for pre_queue in ["closed", "fifo", "shuffle"] {
            assert_eq!(checked_again(&sale(pre_queue)), Ok(()));
        }
        for per_second in [0.0, -1.0, 10_001.0, f64::NAN, f64::INFINITY] {
            let mut sale = sale("fifo");
            sale.admission.per_second = per_second;
            assert!(reason(checked_again(&sale)).contains("$.admission.perSecond"), "{per_second}");
            assert!(reason(check_pace(per_second)).starts_with("perSecond must be from"), "{per_second}");
        }
        assert_eq!(check_pace(0.001), Ok(()));
        let mut long = sale("fifo");
        long.opens_at = long.closes_at.plus(-91 * 86_400_000);
        assert!(reason(checked_again(&long)).contains("at most 90 days"));
    }

    #[test]
    fn a_definition_may_be_json_and_its_mistakes_have_no_lines_then() {
        let value = |text: &str| Definition::Json(serde_json::from_str(text).unwrap());
        assert_eq!(read(&value(&text("fifo")), None), Ok(sale("fifo")));
        let Err(Refused::InvalidDefinition { problems }) = read(&value(r#"{"eventId": "E"}"#), None) else {
            panic!("mistakes")
        };
        assert!(problems.len() > 3 && problems.iter().all(|problem| problem.line.is_none()), "{problems:?}");
        let Err(Refused::InvalidDefinition { problems }) =
            read(&"{\n\"eventId\": 1}".to_owned().into(), None)
        else {
            panic!("mistakes")
        };
        assert!(problems.iter().any(|problem| problem.line == Some(2)), "{problems:?}");
    }

    #[test]
    fn a_moved_opening_is_checked_too() {
        let moved = read(&text("fifo").into(), Some(NOW)).unwrap();
        assert_eq!((moved.opens_at, moved.closes_at), (NOW, NOW.plus(3_660_000)));
        assert!(reason(read(&text("fifo").into(), Some(Millis(5))).map(drop)).contains("$.opensAt"));
    }

    #[test]
    fn what_does_not_suit_a_running_sale_is_refused_with_its_reason() {
        let opened = state(sale("fifo"), SaleStatus::Open, 0);
        assert_eq!(check_times(&sale("fifo"), Some(&opened), NOW), Ok(()));
        assert!(reason(check_times(&sale("fifo"), None, NOW.plus(3_600_000))).contains("closesAt is past"));
        let later = sale("fifo").opening_at(NOW.plus(1));
        assert!(reason(check_times(&later, Some(&opened), NOW)).contains("cannot be taken back"));
        assert_eq!(check_times(&later, None, NOW), Ok(()));
        assert_eq!(check_times(&sale("shuffle"), Some(&opened), NOW), Ok(()));
        let crowded = state(sale("fifo"), SaleStatus::Open, 1);
        assert!(reason(check_times(&sale("shuffle"), Some(&crowded), NOW)).contains("keep preQueue"));
        assert_eq!(check_times(&sale("closed"), Some(&crowded), NOW), Ok(()));
    }

    #[test]
    fn what_is_closed_or_over_is_not_paused() {
        let over = |by_ms: i64| {
            let mut state = state(sale("fifo"), SaleStatus::Closed, 0);
            state.view.now = state.edition.sale.closes_at.plus(by_ms);
            state
        };
        assert!(reason(check_change(&over(0), &StatusChange::Pause)).contains("is over"));
        assert!(reason(check_change(&over(-1), &StatusChange::Pause)).contains("open it first"));
        assert!(reason(check_not_over(&over(0))).contains("is over"));
        assert_eq!(check_change(&over(0), &StatusChange::Message("Danke".into())), Ok(()));
    }

    #[test]
    fn who_asks_has_a_name() {
        assert_eq!(check_name("kim"), Ok(()));
        for name in ["", "a\nb", &"x".repeat(101)] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
    }
}
