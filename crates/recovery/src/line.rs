//! The line as its facts tell it: where each token stood when the last of them was written.

use std::collections::{HashMap, HashSet};

use domain::fact::{Fact, What};
use domain::{Account, EventId, Millis, Token};
use records::Records;
use store::{AccountPlace, LinePage, RebuiltCall};

use crate::RecoveryError;

/// Facts read at once.
const PAGE: u32 = 10_000;
/// Places put back by one step.
const PLACES_A_STEP: usize = 1_000;
/// What the line's facts are called.
const KINDS: [&str; 6] = [
    "USER_ENTER_QUEUE",
    "USER_LEFT_QUEUE",
    "USER_ADMITTED",
    "TOKEN_ISSUED",
    "ADMISSION_LAPSED",
    "ADMISSION_EXPIRED",
];

/// Where a token stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// `called_at`: when it was called before it lapsed and came back.
    Waiting {
        score: u64,
        called_at: Option<Millis>,
    },
    /// Called, and claimed or not: its visit goes on.
    Visiting {
        score: u64,
        called_at: Millis,
        reentered: bool,
    },
    /// Its visit is over; `lapsed_at` where it may come back once.
    Over {
        score: u64,
        called_at: Millis,
        lapsed_at: Option<Millis>,
    },
    Left,
}

/// What has been read so far.
#[derive(Debug, Default)]
pub(crate) struct Line {
    places: HashMap<Token, Place>,
    accounts: HashMap<Account, Token>,
    /// The highest ticket number.
    pub(crate) number: u64,
    /// The highest score that was called.
    pub(crate) head_score: u64,
    /// Calls, less those who came back to the front.
    pub(crate) net: i64,
    /// Facts that were read.
    pub(crate) facts: u64,
}

/// What the line's clock makes of the time between its last fact and now: none has passed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pause {
    pub(crate) last_fact_at: Millis,
    pub(crate) now: Millis,
    /// How long a call waits for its claim.
    pub(crate) claim_ms: i64,
}

impl Line {
    pub(crate) async fn read(
        records: &Records,
        event: &EventId,
        told: impl Fn(u64),
    ) -> Result<Self, RecoveryError> {
        let mut line = Self::default();
        let mut after = None;
        loop {
            let page = records.facts_of(event, &KINDS, after, PAGE).await?;
            for fact in &page {
                line.add(fact);
            }
            told(line.facts);
            match page.last() {
                Some(last) => after = Some((last.epoch, last.id)),
                None => return Ok(line),
            }
        }
    }

    /// Places and accounts that it has.
    pub(crate) fn len(&self) -> u64 {
        (self.places.len() + self.accounts.len()) as u64
    }

    /// A fact of the line; they come in the journal's order.
    pub(crate) fn add(&mut self, fact: &Fact) {
        self.facts += 1;
        match &fact.what {
            What::UserEnterQueue { token, ticket_number, score, account } => {
                self.entered(*token, *ticket_number, *score, account.as_ref());
            }
            What::UserLeftQueue { token } => drop(self.places.insert(*token, Place::Left)),
            What::UserAdmitted { places } => {
                for place in places {
                    let before = self.places.get(&place.token);
                    let reentered = matches!(before, Some(Place::Waiting { called_at: Some(_), .. }));
                    let visiting = Place::Visiting { score: place.score, called_at: fact.at, reentered };
                    self.places.insert(place.token, visiting);
                    self.head_score = self.head_score.max(place.score);
                    self.net += 1;
                }
            }
            What::AdmissionLapsed { tokens } => self.ended(tokens, Some(fact.at)),
            What::AdmissionExpired { tokens } => self.ended(tokens, None),
            _ => {}
        }
    }

    fn entered(&mut self, token: Token, number: Option<u64>, score: u64, account: Option<&Account>) {
        let called_at = match self.places.get(&token) {
            // Back at its old score: a new number has none to come back to.
            Some(Place::Over { score: old, called_at, lapsed_at: Some(_) }) if *old == score => {
                self.net -= 1;
                Some(*called_at)
            }
            Some(Place::Waiting { score: old, called_at }) if *old == score => *called_at,
            _ => None,
        };
        self.number = self.number.max(number.unwrap_or(0));
        self.places.insert(token, Place::Waiting { score, called_at });
        if let Some(account) = account
            && let Some(other) = self.accounts.insert(account.clone(), token)
            && other != token
        {
            // One account, one place: that the other one was given up is a fact that was lost, or it has booked.
            self.places.insert(other, Place::Left);
        }
    }

    fn ended(&mut self, tokens: &[Token], lapsed_at: Option<Millis>) {
        for token in tokens {
            if let Some(Place::Visiting { score, called_at, reentered }) = self.places.get(token).copied() {
                let lapsed_at = lapsed_at.filter(|_| !reentered);
                self.places.insert(*token, Place::Over { score, called_at, lapsed_at });
            }
        }
    }

    /// All places but those of tokens that have booked, in steps.
    pub(crate) fn pages<'a>(
        &'a self,
        booked: &'a HashSet<Token>,
        pause: Pause,
    ) -> impl Iterator<Item = LinePage<'a>> {
        let mut places = self.places.iter().filter(|(token, _)| !booked.contains(*token));
        let is_here = |token: &Token| {
            !booked.contains(token) && self.places.get(token).is_some_and(|place| *place != Place::Left)
        };
        let mut accounts = self.accounts.iter().filter(move |(_, token)| is_here(token));
        std::iter::from_fn(move || {
            let mut page = LinePage::default();
            // One place may take two entries.
            while page.len() < PLACES_A_STEP - 1 {
                if let Some((token, place)) = places.next() {
                    put(&mut page, *token, *place, pause);
                } else if let Some((account, token)) = accounts.next() {
                    page.accounts.push(AccountPlace { token: *token, account });
                } else {
                    break;
                }
            }
            (!page.is_empty()).then_some(page)
        })
    }
}

fn put(page: &mut LinePage<'_>, token: Token, place: Place, pause: Pause) {
    let Pause { last_fact_at, now, claim_ms } = pause;
    let long_ago = Millis(0);
    let call = match place {
        Place::Waiting { score, called_at } => {
            page.waiting.push((token, score));
            let Some(called_at) = called_at else { return };
            RebuiltCall { token, score, claim_by: long_ago, called_at, reentered: true, is_live: false }
        }
        // Whoever was inside is called anew: the visit's time has run while nothing could be done with it.
        Place::Visiting { score, called_at, reentered } => {
            RebuiltCall { token, score, claim_by: now.plus(claim_ms), called_at, reentered, is_live: true }
        }
        Place::Over { score, called_at, lapsed_at } => {
            let waited_ms = lapsed_at.map(|at| (last_fact_at.0 - at.0).max(0));
            let claim_by = waited_ms.map_or(long_ago.plus(1), |waited_ms| now.plus(-waited_ms));
            let reentered = lapsed_at.is_none();
            RebuiltCall { token, score, claim_by, called_at, reentered, is_live: false }
        }
        Place::Left => return page.left.push(token),
    };
    page.called.push(call);
}

#[cfg(test)]
mod tests {
    use domain::fact::{CalledPlace, StreamId};

    use super::*;

    const PAUSE: Pause = Pause { last_fact_at: Millis(9_000), now: Millis(70_000), claim_ms: 15_000 };

    #[derive(Default)]
    struct Told {
        line: Line,
        booked: HashSet<Token>,
    }

    impl Told {
        fn tell(&mut self, at: i64, what: What) {
            let id = StreamId { ms: at.cast_unsigned(), sequence: self.line.facts };
            self.line.add(&Fact { event: "e".parse().unwrap(), epoch: 1, id, at: Millis(at), what });
        }

        fn enter(&mut self, number: u64, account: Option<&str>) -> Token {
            let token = Token::random();
            let account = account.map(|name| name.parse().unwrap());
            let what = What::UserEnterQueue { token, ticket_number: Some(number), score: number, account };
            self.tell(1_000, what);
            token
        }

        fn call(&mut self, at: i64, token: Token, score: u64) {
            self.tell(at, What::UserAdmitted { places: vec![CalledPlace { token, score }] });
        }

        fn back(&mut self, at: i64, token: Token, score: u64) {
            self.tell(at, What::UserEnterQueue { token, ticket_number: None, score, account: None });
        }

        fn whole(&self) -> LinePage<'_> {
            let mut pages: Vec<LinePage<'_>> = self.line.pages(&self.booked, PAUSE).collect();
            assert!(pages.len() <= 1, "few places");
            pages.pop().unwrap_or_default()
        }
    }

    #[test]
    fn who_waits_waits_and_who_left_or_booked_does_not() {
        let mut told = Told::default();
        let (waits, leaves, books) = (told.enter(1, None), told.enter(2, None), told.enter(3, None));
        told.tell(2_000, What::UserLeftQueue { token: leaves });
        told.booked.insert(books);
        let page = told.whole();
        assert_eq!((page.waiting, page.left, page.called), (vec![(waits, 1)], vec![leaves], vec![]));
        assert_eq!((told.line.number, told.line.head_score, told.line.net), (3, 0, 0));
    }

    #[test]
    fn a_visit_that_went_on_begins_anew() {
        let mut told = Told::default();
        let token = told.enter(5, None);
        told.call(3_000, token, 5);
        told.tell(4_000, What::TokenIssued { token, expires_at: Millis(8_000) });
        let call = told.whole().called[0];
        assert_eq!((call.claim_by, call.called_at, call.is_live), (Millis(85_000), Millis(3_000), true));
        assert_eq!((told.line.head_score, told.line.net), (5, 1));
    }

    #[test]
    fn a_lapsed_place_keeps_what_was_left_of_its_ten_minutes_and_comes_back_once() {
        let mut told = Told::default();
        let (lapses, returns) = (told.enter(1, None), told.enter(2, None));
        for (token, score) in [(lapses, 1), (returns, 2)] {
            told.call(3_000, token, score);
        }
        told.tell(5_000, What::AdmissionLapsed { tokens: vec![lapses, returns] });
        told.back(6_000, returns, 2);
        assert_eq!(told.line.net, 1);
        let page = told.whole();
        assert_eq!(page.waiting, [(returns, 2)]);
        let of = |token| *page.called.iter().find(|call| call.token == token).unwrap();
        // Four seconds before the last fact, so four seconds before now.
        assert_eq!((of(lapses).claim_by, of(lapses).reentered), (Millis(66_000), false));
        assert_eq!((of(returns).claim_by, of(returns).reentered), (Millis(0), true));
        // Called and lapsed once more: that was its one return.
        told.call(7_000, returns, 2);
        told.tell(8_000, What::AdmissionLapsed { tokens: vec![returns] });
        let call = *told.whole().called.iter().find(|call| call.token == returns).unwrap();
        assert_eq!((call.reentered, call.is_live), (true, false));
    }

    #[test]
    fn an_expired_token_is_out_and_may_stand_at_the_end_again() {
        let mut told = Told::default();
        let token = told.enter(1, None);
        told.call(3_000, token, 1);
        told.tell(5_000, What::AdmissionExpired { tokens: vec![token] });
        assert_eq!((told.whole().called[0].reentered, told.whole().called[0].is_live), (true, false));
        let what = What::UserEnterQueue { token, ticket_number: Some(9), score: 9, account: None };
        told.tell(6_000, what);
        assert_eq!((told.whole().waiting, told.whole().called), (vec![(token, 9)], vec![]));
    }

    #[test]
    fn an_account_has_its_latest_place_alone() {
        let mut told = Told::default();
        let (first, second) = (told.enter(1, Some("kim")), told.enter(2, Some("kim")));
        let page = told.whole();
        assert_eq!((page.waiting.clone(), page.left.clone()), (vec![(second, 2)], vec![first]));
        assert_eq!((page.accounts.len(), page.accounts[0].token), (1, second));
        told.tell(3_000, What::UserLeftQueue { token: second });
        assert_eq!(told.whole().accounts, []);
    }

    #[test]
    fn no_step_gets_more_than_a_thousand() {
        let mut told = Told::default();
        for number in 0..2_500 {
            told.enter(number, Some(&format!("a{number}")));
        }
        let sizes: Vec<usize> = told.line.pages(&told.booked, PAUSE).map(|page| page.len()).collect();
        assert_eq!(sizes.iter().sum::<usize>(), 5_000);
        assert!(sizes.iter().all(|size| *size <= 1_000), "{sizes:?}");
    }
}
