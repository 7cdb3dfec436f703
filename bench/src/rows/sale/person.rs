//! Somebody in the sale, and what that one does when its time has come.

use anyhow::{Context, bail, ensure};
use domain::{EventId, Millis, Token};
use gateway::{KeyRing, PlaceKey};
use support::MASTER_KEY;

use crate::handlers::{Form, Instance, Template};
use crate::world::NAMED;

/// Tries to get seats before one goes home.
const TRIES: u8 = 8;
/// Polls, at most, of those who stand behind more people than places are free, before they give up.
const PATIENCE: std::ops::RangeInclusive<u16> = 4..=12;
/// The longest that anybody does nothing, in seconds; answers ask for twelve at most.
pub(crate) const LONGEST_WAIT: usize = 40;

/// What became of people, counted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    /// Joins that were refused, as the journal was full, and came again.
    pub(crate) turned_away: u64,
    pub(crate) joined: u64,
    pub(crate) polls: u64,
    /// Called people who came.
    pub(crate) came: u64,
    /// Called people who asked too late, though they asked as told.
    pub(crate) late: u64,
    /// Tabs closed without a word.
    pub(crate) closed: u64,
    /// Places given up properly.
    pub(crate) left: u64,
    /// Holds that nobody came back for.
    pub(crate) abandoned: u64,
    pub(crate) bookings: u64,
    pub(crate) seats: u64,
}

impl Tally {
    pub(crate) fn and(self, more: &Self) -> Self {
        Self {
            turned_away: self.turned_away + more.turned_away,
            joined: self.joined + more.joined,
            polls: self.polls + more.polls,
            came: self.came + more.came,
            late: self.late + more.late,
            closed: self.closed + more.closed,
            left: self.left + more.left,
            abandoned: self.abandoned + more.abandoned,
            bookings: self.bookings + more.bookings,
            seats: self.seats + more.seats,
        }
    }
}

/// An instance of the functions, and the requests that people send to it.
pub(crate) struct Desk {
    pub(crate) instance: Instance,
    event: EventId,
    ring: KeyRing,
    join: Form,
    poll: Form,
    leave: Form,
    hold: Form,
    book_held: Form,
    book_plain: Form,
}

impl Desk {
    pub(crate) fn of(instance: Instance, event: &EventId) -> anyhow::Result<Self> {
        let said = |rest: &str| format!(r#"{{"eventId":"{event}","token":"%1%"{rest}}}"#);
        let id = event.as_str();
        let book = Template::book()?;
        Ok(Self {
            instance,
            event: event.clone(),
            ring: KeyRing::new(MASTER_KEY.as_bytes(), None),
            join: Template::join()?.form_saying(&format!(r#"{{"eventId":"{event}"}}"#))?,
            poll: Template::poll()?.form_asking(&[("token", "%1%"), ("eventId", id), ("key", "%2%")])?,
            leave: Template::leave()?.form_asking(&[("token", "%1%"), ("eventId", id)])?,
            hold: Template::hold()?.form_saying(&said(r#","sectionId":"A%2%","best":%3%"#))?,
            book_held: book.form_saying(&said(""))?,
            book_plain: book.form_saying(&said(r#","seatCount":%2%"#))?,
        })
    }

    async fn ask(&self, form: &Form, blanks: &[&str]) -> anyhow::Result<Told> {
        Told::read(self.instance.answer(&form.filled(blanks)).await?)
    }
}

/// What an answer says, found in its text: to read millions of them as JSON, twice over, would cost a fifth of what it
/// takes to answer.
struct Told(String);

impl Told {
    fn read(answer: Vec<u8>) -> anyhow::Result<Self> {
        Ok(Self(String::from_utf8(answer)?))
    }

    /// What stands behind the first of such names.
    fn behind(&self, name: &str) -> Option<&str> {
        self.0.split_once(name).map(|(_, behind)| behind)
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.behind(name)?.strip_prefix(r#"\""#)?.split_once('\\').map(|(text, _)| text)
    }

    fn number(&self, name: &str) -> Option<u64> {
        let behind = self.behind(name)?;
        let end = behind.find(|character: char| !character.is_ascii_digit()).unwrap_or(behind.len());
        behind[..end].parse().ok()
    }

    fn status(&self) -> u64 {
        self.number(r#""statusCode":"#).unwrap_or_default()
    }

    fn is_refused(&self, codes: &[&str]) -> bool {
        self.text(CODE).is_some_and(|code| codes.contains(&code))
    }
}

/// Names of the body, which stands in the answer as a text: with escaped quotes.
const CODE: &str = r#"\"code\":"#;
const TOKEN: &str = r#"\"token\":"#;
const STATUS: &str = r#"\"status\":"#;
const KEY: &str = r#"\"key\":"#;
const NEXT_POLL_MS: &str = r#"\"nextPollMs\":"#;
const AHEAD: &str = r#"\"ahead\":"#;
const REMAINING_SEATS: &str = r#"\"remainingSeats\":"#;
const SEAT_COUNT: &str = r#"\"seatCount\":"#;

/// What one is about to do.
#[derive(Clone, Copy)]
enum Stage {
    Join,
    Poll,
    /// Pick seats side by side, of the named ones.
    Hold,
    /// Buy what is held.
    BookHeld,
    /// Buy places without names.
    BookPlain,
}

/// Somebody: what must be kept between two requests, and no more.
pub(crate) struct Person {
    token: Option<Token>,
    /// The place as the last answer's key says it.
    key: Option<PlaceKey>,
    stage: Stage,
    /// Polls left until the tab is closed, whatever they say; most never do that.
    online: u16,
    /// Polls left while more people are ahead than places are free.
    patience: u16,
    tries: u8,
    /// Seats wanted; none: only a look.
    seats: u8,
}

impl Person {
    pub(crate) fn new() -> Self {
        Self {
            token: None,
            key: None,
            stage: Stage::Join,
            online: if one_in(10) { fastrand::u16(1..=20) } else { u16::MAX },
            patience: fastrand::u16(PATIENCE),
            tries: TRIES,
            seats: if one_in(20) { 0 } else { fastrand::u8(1..=4) },
        }
    }

    /// One acts: in how many milliseconds again, `None` where the sale is over for this one.
    pub(crate) async fn act(&mut self, desk: &Desk, tally: &mut Tally) -> anyhow::Result<Option<u32>> {
        match self.stage {
            Stage::Join => self.join(desk, tally).await,
            Stage::Poll => self.poll(desk, tally).await,
            Stage::Hold => self.hold(desk).await,
            Stage::BookHeld => self.book(desk, tally, &desk.book_held).await,
            Stage::BookPlain => self.book(desk, tally, &desk.book_plain).await,
        }
    }

    fn token(&self) -> anyhow::Result<Token> {
        self.token.context("nobody acts without a place")
    }

    async fn join(&mut self, desk: &Desk, tally: &mut Tally) -> anyhow::Result<Option<u32>> {
        let told = desk.ask(&desk.join, &[]).await?;
        if told.is_refused(&["UNAVAILABLE"]) {
            tally.turned_away += 1;
            return Ok(Some(thinking(5..=15)));
        }
        self.token = told.text(TOKEN).and_then(|token| token.parse().ok());
        tally.joined += 1;
        self.stage = Stage::Poll;
        self.waits(desk, &told)
    }

    async fn poll(&mut self, desk: &Desk, tally: &mut Tally) -> anyhow::Result<Option<u32>> {
        let token = self.token()?;
        // Whoever waited as told has a key whose time has come; when, is the functions' own clock's matter, which is
        // not driven.
        let place = PlaceKey { earliest_at: Millis::now(), ..self.key.take().context("a key")? };
        let key = desk.ring.sign(&desk.event, token, &place);
        let told = desk.ask(&desk.poll, &[&token.to_string(), &key]).await?;
        tally.polls += 1;
        match told.text(STATUS) {
            Some("WAITING") => {}
            Some("ACTIVE") => {
                tally.came += 1;
                return self.goes_in(desk, tally).await;
            }
            Some("EXPIRED") => {
                tally.late += 1;
                return Ok(None);
            }
            _ => bail!("a poll: {}", told.0),
        }
        self.online -= 1;
        if self.online == 0 {
            tally.closed += 1;
            return Ok(None);
        }
        // Before the opening nobody is told who is ahead, and nobody gives up.
        if told.number(AHEAD).is_some_and(|ahead| told.number(REMAINING_SEATS) <= Some(ahead)) {
            self.patience -= 1;
            if self.patience == 0 {
                return self.gives_up(desk, tally).await;
            }
        }
        self.waits(desk, &told)
    }

    /// Until the answer says.
    fn waits(&mut self, desk: &Desk, told: &Told) -> anyhow::Result<Option<u32>> {
        let key = told.text(KEY).and_then(|key| desk.ring.check(&desk.event, self.token().ok()?, key));
        self.key = Some(key.with_context(|| format!("no key of ours: {}", told.0))?);
        let next_ms = told.number(NEXT_POLL_MS).and_then(|ms| u32::try_from(ms).ok());
        Ok(Some(next_ms.with_context(|| format!("not when to ask again: {}", told.0))?))
    }

    /// A few say so; most tabs are only closed.
    async fn gives_up(&self, desk: &Desk, tally: &mut Tally) -> anyhow::Result<Option<u32>> {
        if one_in(8) {
            return self.leaves(desk, tally).await;
        }
        tally.closed += 1;
        Ok(None)
    }

    async fn leaves(&self, desk: &Desk, tally: &mut Tally) -> anyhow::Result<Option<u32>> {
        let told = desk.ask(&desk.leave, &[&self.token()?.to_string()]).await?;
        ensure!(told.status() == 200, "leaving: {}", told.0);
        tally.left += 1;
        Ok(None)
    }

    async fn goes_in(&mut self, desk: &Desk, tally: &mut Tally) -> anyhow::Result<Option<u32>> {
        if self.seats == 0 {
            return self.leaves(desk, tally).await;
        }
        self.stage = if one_in(3) { Stage::Hold } else { Stage::BookPlain };
        Ok(Some(thinking(5..=30)))
    }

    async fn hold(&mut self, desk: &Desk) -> anyhow::Result<Option<u32>> {
        let (section, seats) = (fastrand::usize(..NAMED).to_string(), self.seats.to_string());
        let told = desk.ask(&desk.hold, &[&self.token()?.to_string(), &section, &seats]).await?;
        if told.status() == 200 {
            self.stage = Stage::BookHeld;
            return Ok(Some(thinking(10..=40)));
        }
        self.tries_again(&told, Stage::BookPlain)
    }

    async fn book(&mut self, desk: &Desk, tally: &mut Tally, form: &Form) -> anyhow::Result<Option<u32>> {
        if matches!(self.stage, Stage::BookHeld) && one_in(25) {
            tally.abandoned += 1;
            return Ok(None);
        }
        let told = desk.ask(form, &[&self.token()?.to_string(), &self.seats.to_string()]).await?;
        if told.status() == 201 {
            tally.bookings += 1;
            tally.seats += told.number(SEAT_COUNT).unwrap_or_default();
            ensure!(told.number(SEAT_COUNT) == Some(self.seats.into()), "{} wanted: {}", self.seats, told.0);
            return Ok(None);
        }
        self.tries_again(&told, Stage::Hold)
    }

    /// What is gone is gone: the other kind of seats, one fewer, until one has had enough.
    fn tries_again(&mut self, told: &Told, other: Stage) -> anyhow::Result<Option<u32>> {
        ensure!(told.is_refused(&["SOLD_OUT", "NO_ADJACENT_SEATS"]), "a purchase: {}", told.0);
        self.stage = other;
        self.tries -= 1;
        self.seats = (self.seats - u8::from(self.tries.is_multiple_of(2))).max(1);
        Ok((self.tries > 0).then(|| thinking(2..=5)))
    }
}

fn one_in(count: u32) -> bool {
    fastrand::u32(..count) == 0
}

/// Milliseconds of so many seconds.
fn thinking(seconds: std::ops::RangeInclusive<u32>) -> u32 {
    1_000 * fastrand::u32(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(body: &str) -> Told {
        let answer = serde_json::json!({ "statusCode": 200, "headers": { "key": "no" }, "body": body });
        Told::read(answer.to_string().into_bytes()).unwrap()
    }

    #[test]
    fn an_answer_is_read_as_it_is_written() {
        let polled = told(
            r#"{"data":{"status":"WAITING","ahead":12,"remainingSeats":0,"nextPollMs":1000,"key":"a-_1"}}"#,
        );
        assert_eq!(
            (polled.status(), polled.text(STATUS), polled.text(KEY)),
            (200, Some("WAITING"), Some("a-_1"))
        );
        let numbers = [AHEAD, REMAINING_SEATS, NEXT_POLL_MS, SEAT_COUNT].map(|name| polled.number(name));
        assert_eq!(numbers, [Some(12), Some(0), Some(1_000), None]);
        let early = told(r#"{"data":{"status":"WAITING","rank":null,"ahead":null,"key":null}}"#);
        assert_eq!((early.number(AHEAD), early.text(KEY)), (None, None));
        let refused = told(r#"{"success":false,"error":{"code":"SOLD_OUT","message":"…"}}"#);
        assert!(refused.is_refused(&["SOLD_OUT"]) && !polled.is_refused(&["SOLD_OUT"]));
    }
}
