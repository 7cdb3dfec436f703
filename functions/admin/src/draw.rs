//! The draw, checked: every place before the opening stands where the published seed puts it, and people were
//! called in that order.

use std::collections::HashSet;

use domain::fact::{Fact, StreamId, What};
use domain::sale::PreQueue;
use domain::shuffle::{AFTER_THE_DRAW, Seed};
use domain::{EventId, Millis, Token};
use records::Records;
use serde::{Deserialize, Serialize};
use store::Store;

use crate::audit::{History, Pending, Position, Turns, each_admission, position};
use crate::command::ListCursor;
use crate::finding::{Fault, Finding, Findings, digest};
use crate::reply::{Refused, Reply};
use crate::{AdminError, AdminState};

/// Facts of the line read at once.
const PAGE: u32 = 10_000;
/// The fact that tells where a token was put.
const ENTERED: &str = "USER_ENTER_QUEUE";

/// What checking a draw came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DrawReport {
    /// The event.
    pub event: EventId,
    /// When it opens or opened.
    pub opens_at: Millis,
    /// SHA-256 of the seed in hex, public from the start.
    pub commitment: String,
    /// The seed in hex; none before the opening.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<String>,
    /// Drawn places, each recomputed.
    pub places: u64,
    /// Of these, still waiting.
    pub waiting: u64,
    /// Calls of people whose order was checked.
    pub admitted: u64,
    /// What is not as the seed says.
    pub mismatches: Vec<Finding>,
    /// How many more mismatches there are.
    pub more: u64,
}

/// A sale that draws its places.
struct DrawnSale {
    opens_at: Millis,
    is_opened: bool,
    edition: std::sync::Arc<domain::layout::Edition>,
}

impl DrawnSale {
    async fn of(store: &Store, event: &EventId) -> Result<Result<Self, Refused>, AdminError> {
        let Ok(state) = store.event_state(event).await? else {
            return Ok(Err(Refused::EventNotFound { event: event.clone() }));
        };
        let sale = &state.edition.sale;
        if sale.pre_queue != PreQueue::Shuffle {
            return Ok(Err(Refused::not_now(format!(
                "{event} draws no places: its preQueue is not shuffle"
            ))));
        }
        Ok(Ok(Self { opens_at: sale.opens_at, is_opened: state.view.is_opened(), edition: state.edition }))
    }
}

pub(crate) async fn verify(state: &AdminState, event: &EventId) -> Result<Reply, AdminError> {
    let (store, records) = (state.store(), state.records()?);
    let sale = match DrawnSale::of(store, event).await? {
        Ok(sale) => sale,
        Err(refused) => return Ok(Reply::Refused(refused)),
    };
    let seed = state.seed(event)?;
    let pending = Pending::read(store, event).await?;
    let history = History::read(records, event, &pending, &sale.edition).await?;
    let mut check = Check::new(&seed, sale.is_opened, &history);
    each_entry(records, store, event, |fact| check.entered(fact)).await?;
    check.line(store, event).await?;
    let mut turns = Turns::default();
    each_admission(records, event, &pending, |fact| {
        turns.called(fact);
        check.called(fact);
    })
    .await?;
    check.findings.append(turns.findings);
    let (mismatches, more) = check.findings.report();
    Ok(Reply::Verified(DrawReport {
        event: event.clone(),
        opens_at: sale.opens_at,
        commitment: seed.commitment(),
        seed: sale.is_opened.then(|| seed.reveal()),
        places: check.drawn.len() as u64,
        waiting: check.waiting,
        admitted: turns.admitted,
        mismatches,
        more,
    }))
}

/// All facts of taken places: those in PostgreSQL, then those in the journal.
async fn each_entry(
    records: &Records,
    store: &Store,
    event: &EventId,
    mut each: impl FnMut(&Fact),
) -> Result<(), AdminError> {
    records.each_fact(event, ENTERED, |fact| each(&fact)).await?;
    let until_ms = store.redis_time_ms().await?;
    let mut from = None;
    loop {
        let page = store.journal(event, from, until_ms).await?;
        page.facts.iter().for_each(&mut each);
        match page.next {
            Some(next) => from = Some(next),
            None => return Ok(()),
        }
    }
}

/// Recorded places against the seed.
struct Check<'a> {
    seed: &'a Seed,
    is_opened: bool,
    history: &'a History,
    drawn: HashSet<Token>,
    waiting: u64,
    findings: Findings,
}

impl<'a> Check<'a> {
    fn new(seed: &'a Seed, is_opened: bool, history: &'a History) -> Self {
        let (drawn, findings) = (HashSet::new(), Findings::default());
        Self { seed, is_opened, history, drawn, waiting: 0, findings }
    }

    /// A token took a place. One that comes back to its old score has no ticket number and proves nothing new.
    fn entered(&mut self, fact: &Fact) {
        let What::UserEnterQueue { token, ticket_number, score, .. } = &fact.what else { return };
        let here = position(fact);
        let opens_at = self.history.between(None, here).last().map_or(fact.at, |rules| rules.opens_at);
        let is_drawn = *score < AFTER_THE_DRAW;
        if ticket_number.is_some() && is_drawn != (fact.at < opens_at) {
            let told = |is_drawn: bool| if is_drawn { "a drawn place" } else { "a place by arrival" };
            let place = digest(*token);
            self.findings.add(Fault::DrawnAtTheWrongTime, place, told(!is_drawn), told(is_drawn));
        }
        self.score(*token, *score);
    }

    fn called(&mut self, fact: &Fact) {
        let What::UserAdmitted { places } = &fact.what else { return };
        for place in places {
            self.score(place.token, place.score);
        }
    }

    /// What the waiting line itself says.
    async fn line(&mut self, store: &Store, event: &EventId) -> Result<(), AdminError> {
        // A page may bring again what another one brought.
        let mut waiting = HashSet::new();
        let mut cursor = 0;
        loop {
            let page = store.waiting(event, cursor).await?;
            for place in page.places.into_iter().filter(|place| place.score < AFTER_THE_DRAW) {
                waiting.insert(place.token);
                self.score(place.token, place.score);
            }
            match page.next {
                Some(next) => cursor = next,
                None => break,
            }
        }
        self.waiting = waiting.len() as u64;
        Ok(())
    }

    fn score(&mut self, token: Token, score: u64) {
        if score >= AFTER_THE_DRAW {
            return;
        }
        self.drawn.insert(token);
        let expected = self.seed.score(token);
        if score == expected {
            return;
        }
        // Nothing tells a place before the opening, not even to an operator.
        let (expected, found) = if self.is_opened {
            (expected.to_string(), score.to_string())
        } else {
            ("the score that the seed gives".to_owned(), "another".to_owned())
        };
        self.findings.add(Fault::DifferentScore, digest(token), expected, found);
    }
}

/// A page of what is published at the opening.
pub(crate) async fn list(
    state: &AdminState,
    event: &EventId,
    after: Option<ListCursor>,
) -> Result<Reply, AdminError> {
    let (store, records) = (state.store(), state.records()?);
    match DrawnSale::of(store, event).await? {
        Ok(sale) if sale.is_opened => {}
        Ok(_) => {
            let reason = format!("{event} has not opened: until then more places are drawn");
            return Ok(Reply::Refused(Refused::not_now(reason)));
        }
        Err(refused) => return Ok(Reply::Refused(refused)),
    }
    let (places, next) = match after {
        None => recorded(records, event, None).await?,
        Some(ListCursor::Recorded { epoch, id }) => recorded(records, event, Some((epoch, id))).await?,
        Some(ListCursor::Journal { from }) => {
            let page = store.journal(event, Some(from), store.redis_time_ms().await?).await?;
            let next =
                page.next.map_or(ListCursor::Waiting { cursor: 0 }, |from| ListCursor::Journal { from });
            (entered(&page.facts), Some(next))
        }
        Some(ListCursor::Waiting { cursor }) => {
            let page = store.waiting(event, cursor).await?;
            let places = page.places.iter().map(|place| (place.token, place.score)).collect();
            (places, page.next.map(|cursor| ListCursor::Waiting { cursor }))
        }
    };
    let drawn = places.into_iter().filter(|(_, score)| *score < AFTER_THE_DRAW);
    Ok(Reply::ShuffleListed { digests: drawn.map(|(token, _)| digest(token)).collect(), next })
}

type Places = Vec<(Token, u64)>;

async fn recorded(
    records: &Records,
    event: &EventId,
    after: Option<Position>,
) -> Result<(Places, Option<ListCursor>), AdminError> {
    let page = records.facts_behind(event, ENTERED, after, PAGE).await?;
    let next = page.last().map_or(ListCursor::Journal { from: StreamId { ms: 0, sequence: 0 } }, |last| {
        ListCursor::Recorded { epoch: last.epoch, id: last.id }
    });
    Ok((entered(&page), Some(next)))
}

fn entered(facts: &[Fact]) -> Places {
    let place = |fact: &Fact| match &fact.what {
        What::UserEnterQueue { token, score, .. } => Some((*token, *score)),
        _ => None,
    };
    facts.iter().filter_map(place).collect()
}

#[cfg(test)]
mod tests {
    use domain::fact::CalledPlace;
    use domain::layout::Edition;

    use super::*;

    const OPENS_AT: Millis = Millis(1_790_000_000_000);

    fn history() -> History {
        let text = format!(
            r#"{{"eventId": "e", "title": "E", "opensAt": {OPENS_AT}, "closesAt": {}, "preQueue": "shuffle",
                "anonymous": "accepted", "admission": {{"perSecond": 10, "maxActive": 100}},
                "offerings": [{{"id": "A", "date": "2026-09-24", "sections": [
                    {{"id": "s", "name": "S", "price": 10, "capacity": 10}}]}}]}}"#,
            OPENS_AT.0 + 1
        );
        History::of(Vec::new(), &Edition::first(domain::sale::check(&text).unwrap()).0)
    }

    fn fact(at_ms: i64, what: What) -> Fact {
        let id = StreamId { ms: 1, sequence: 1 };
        Fact { event: "e".parse().unwrap(), epoch: 1, id, at: OPENS_AT.plus(at_ms), what }
    }

    fn entered(at_ms: i64, token: Token, score: u64) -> Fact {
        fact(at_ms, What::UserEnterQueue { token, ticket_number: Some(1), score, account: None })
    }

    /// What is found in these facts, and how many drawn places are counted.
    fn check(is_opened: bool, facts: &[Fact]) -> (Vec<Finding>, usize) {
        let (seed, history) = (seed(), history());
        let mut check = Check::new(&seed, is_opened, &history);
        for fact in facts {
            check.entered(fact);
            check.called(fact);
        }
        (check.findings.report().0, check.drawn.len())
    }

    fn kinds(facts: &[Fact]) -> (Vec<Fault>, usize) {
        let (findings, drawn) = check(true, facts);
        (findings.into_iter().map(|finding| finding.what).collect(), drawn)
    }

    fn seed() -> Seed {
        Seed::of(b"a master key", &"e".parse().unwrap())
    }

    #[test]
    fn a_drawn_place_stands_where_the_seed_puts_it() {
        let token = Token::random();
        let score = seed().score(token);
        let called = |score| fact(5, What::UserAdmitted { places: vec![CalledPlace { token, score }] });
        assert_eq!(kinds(&[entered(-1, token, score), called(score)]), (vec![], 1));
        assert_eq!(kinds(&[entered(-1, token, score ^ 1)]), (vec![Fault::DifferentScore], 1));
        assert_eq!(kinds(&[called(score ^ 1)]), (vec![Fault::DifferentScore], 1));
    }

    #[test]
    fn who_comes_after_the_opening_is_not_drawn() {
        let token = Token::random();
        let score = seed().score(token);
        assert_eq!(kinds(&[entered(0, token, AFTER_THE_DRAW + 1)]), (vec![], 0));
        assert_eq!(kinds(&[entered(0, token, score)]), (vec![Fault::DrawnAtTheWrongTime], 1));
        assert_eq!(kinds(&[entered(-1, token, AFTER_THE_DRAW + 1)]), (vec![Fault::DrawnAtTheWrongTime], 0));
        let back = What::UserEnterQueue { token, ticket_number: None, score, account: None };
        assert_eq!(kinds(&[fact(9, back)]), (vec![], 1), "a re-entry at the old score");
    }

    #[test]
    fn no_score_is_told_before_the_opening_and_no_token_ever() {
        let token = Token::random();
        let score = seed().score(token);
        for is_opened in [false, true] {
            let text = serde_json::to_string(&check(is_opened, &[entered(-1, token, score ^ 1)]).0).unwrap();
            assert_eq!(text.contains(&score.to_string()), is_opened, "{text}");
            assert!(text.contains(&digest(token)) && !text.contains(&token.to_string()), "{text}");
        }
    }
}
