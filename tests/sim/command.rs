//! Random commands. They are drawn without looking at the sale, so that any part of a list is a list again; whom and
//! what they mean is settled when their turn comes.

use std::sync::LazyLock;

use domain::Token;
use fastrand::Rng;
use store::{BookingsWaiting, Load};

use crate::model::{Model, Reservation, State};
use crate::rules::{Edit, Habit, LETTERS, Seat, SeatState};

/// A token that is nobody's.
pub(crate) static UNKNOWN: LazyLock<Token> = LazyLock::new(Token::random);

/// Whom a command means: one of those who stand so, or of all where nobody does.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Who {
    Any(u8),
    In(&'static str, u8),
    Nobody,
}

/// A moment to pass to, and how far from it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Moment {
    Opening,
    Close,
    ClaimEnd,
    SessionEnd,
    HoldEnd,
    PaymentDue,
    Reminder,
    ReentryEnd,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Command {
    Join(Option<u8>),
    Rejoin(Who, Option<u8>),
    Leave(Who),
    Poll(Who, bool),
    Progress,
    Search(Who),
    Map(Who, bool),
    Session(Who),
    HoldNamed(Who, u32, Option<u8>),
    HoldCounted {
        who: Who,
        section: u8,
        count: u8,
        best: bool,
        key: Option<u8>,
    },
    Release(Who, u32, Option<u8>),
    Book {
        who: Who,
        plain: Option<(u8, u8)>,
        key: Option<u8>,
    },
    Read(u8, u8),
    Cancel(u8, u8),
    Pay {
        reservation: u8,
        payment: u8,
        money: Money,
    },
    Expire(u8),
    /// Redis forgets a reservation, or only its last change, and gets it back.
    Lose(u8, bool),
    Sweep,
    Tick(u8),
    Pass(i64),
    Until(Moment, i64),
    /// An operator's change, and at once what it is about, by the other instance.
    Overtaken(u8),
    /// To the moment, a millisecond before or after it, and at once what that moment decides.
    Brink(Moment, i64, u8),
    Operate(u8),
    /// Redis is another one, which may have lost a place.
    Failover(Option<u8>),
    /// A place is lost, in a failover or by an operator's hand, and its owner comes back at once.
    Back(u8, bool),
    Recover,
    /// The end of a recovery, of this epoch or of the one before.
    Recovered(bool),
    /// One of the last requests once more, as it was: repeated by its sender or late.
    Again(u8),
    /// More calls from one address than it may send.
    Burst(u8),
    NoSuchSale,
}

/// A command whose turn has come.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Ask {
    Join { account: Option<String> },
    Rejoin { who: Option<usize>, account: Option<String> },
    Leave { who: Option<usize> },
    Poll { who: Option<usize>, keyed: bool },
    Progress,
    Search { who: Option<usize> },
    Map { who: Option<usize>, offering: &'static str },
    Session { who: Option<usize> },
    Hold { who: Option<usize>, choice: Choice, key: Option<u8> },
    Release { who: Option<usize>, named: Named, key: Option<u8> },
    Book { who: Option<usize>, plain: Option<(usize, usize)>, key: Option<u8> },
    Read { reservation: Option<usize>, owner: Owner },
    Cancel { reservation: Option<usize>, owner: Owner },
    Pay { reservation: Option<usize>, payment: u8, money: Money },
    Expire { reservation: Option<usize> },
    Lose { reservation: usize, whole: bool },
    Tick(Load),
    Change(Change),
    Failover { lost: Option<usize> },
    Mislay { who: usize },
    Recover,
    Recovered { epoch: u64 },
    Pass(i64),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Choice {
    Seats { offering: &'static str, names: Vec<String> },
    Counted { section: usize, count: usize, best: bool },
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Named {
    All,
    Offering(&'static str),
    Seats { offering: &'static str, names: Vec<String> },
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Owner {
    Token(Token),
    Account(String),
    Operator,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Money {
    Right,
    Failed,
    TooMuch,
    TooLittle,
    Foreign,
}

impl Money {
    /// Amount and currency that are sent where `owed` is owed.
    pub(crate) fn sent(self, owed: u64) -> (u64, &'static str) {
        match self {
            Self::Right | Self::Failed => (owed, "KRW"),
            Self::TooMuch => (owed + 1, "KRW"),
            Self::TooLittle => (owed.saturating_sub(1), "KRW"),
            Self::Foreign => (owed, "USD"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Change {
    Status(&'static str, &'static str),
    Message(&'static str),
    Maintenance(bool),
    Edit(Edit),
    /// An edition that was made from one before the newest.
    Conflict,
    /// The newest edition once more: the answer to the first try was lost.
    Repeat,
}

/// The list of a seed.
pub(crate) fn commands(seed: u64, count: usize) -> Vec<Command> {
    let mut rng = Rng::with_seed(seed);
    let habit = Habit::of_seed(seed);
    (0..count).map(|_| by_habit(habit, command(&mut rng), &mut rng)).collect()
}

fn by_habit(habit: Habit, command: Command, rng: &mut Rng) -> Command {
    match (habit, command) {
        (
            Habit::Absent,
            Command::Poll(..)
            | Command::HoldNamed(..)
            | Command::HoldCounted { .. }
            | Command::Search(_)
            | Command::Map(..)
            | Command::Release(..)
            | Command::Book { .. },
        ) if rng.u8(..10) < 9 => match rng.u8(..4) {
            0 => Command::Tick(rng.u8(..)),
            1 => Command::Pass(1_000),
            _ => Command::Join(account(rng)),
        },
        (Habit::Absent, Command::Operate(_) | Command::Overtaken(_)) if rng.u8(..5) > 0 => {
            Command::Tick(rng.u8(..))
        }
        // Second by second: over a jump the bank is full anyway.
        (Habit::Absent, Command::Pass(_) | Command::Until(..) | Command::Brink(..)) => Command::Pass(1_000),
        (Habit::Regular, Command::Join(_)) => Command::Join(Some(rng.u8(..3))),
        (Habit::Regular, Command::Operate(_) | Command::Read(..) | Command::Search(_)) => {
            Command::Operate([18, 20, 21, 22, 23, 24][rng.usize(..6)])
        }
        (Habit::Scarce, Command::HoldCounted { who, section, best, key, .. }) => {
            Command::HoldCounted { who, section, count: 1, best, key }
        }
        (Habit::Scarce, Command::Book { who, plain: Some((section, _)), key }) => {
            Command::Book { who, plain: Some((section, 1)), key }
        }
        (Habit::Scarce, Command::Operate(_) | Command::Cancel(..)) if rng.u8(..3) > 0 => {
            Command::Join(account(rng))
        }
        (_, command) => command,
    }
}

fn command(rng: &mut Rng) -> Command {
    let key = |rng: &mut Rng| (rng.u8(..4) == 0).then(|| rng.u8(..2));
    match rng.u32(..1000) {
        0..90 => Command::Join(account(rng)),
        90..130 => Command::Rejoin(someone(rng), account(rng)),
        130..155 => Command::Leave(someone(rng)),
        155..270 => Command::Poll(one_of(rng, &["CALLED", "CALLED", "WAITING", "LAPSED"]), rng.bool()),
        270..278 => Command::Progress,
        278..280 => Command::Recover,
        280..290 => Command::Recovered(rng.u8(..8) == 0),
        290..304 => {
            Command::Search(one_of(rng, &["ACTIVE", "ACTIVE", "holding", "holding", "CALLED", "LOST"]))
        }
        304 => Command::Search(Who::Nobody),
        305..325 => Command::Map(or_lost(inside(rng)), rng.bool()),
        325..335 => Command::Session(or_lost(someone(rng))),
        335..405 => Command::HoldNamed(inside(rng), rng.u32(..), key(rng)),
        405..475 => Command::HoldCounted {
            who: inside(rng),
            section: rng.u8(..4),
            count: rng.u8(1..=5),
            best: rng.bool(),
            key: key(rng),
        },
        475..505 => Command::Release(or_lost(inside(rng)), rng.u32(..), key(rng)),
        505..545 => {
            Command::Book { who: one_of(rng, &["holding", "holding", "ACTIVE"]), plain: None, key: key(rng) }
        }
        545..570 => Command::Book {
            who: one_of(rng, &["ACTIVE", "ACTIVE", "CALLED", "holding", "BOOKED"]),
            plain: Some((rng.u8(..4), rng.u8(1..=4))),
            key: key(rng),
        },
        570..590 => Command::Read(rng.u8(..), rng.u8(..8)),
        590..615 => Command::Cancel(rng.u8(..), rng.u8(..8)),
        615..655 => Command::Pay { reservation: rng.u8(..), payment: rng.u8(..2), money: money(rng) },
        655..665 => Command::Expire(rng.u8(..)),
        665..675 => Command::Sweep,
        675..790 => Command::Tick(rng.u8(..)),
        790..845 => Command::Pass([1, 250, 999, 1_000, 1_000, 1_001, 3_000, 10_000][rng.usize(..8)]),
        845..860 => Command::Until(moment(rng), rng.i64(-1..=1)),
        860..905 => Command::Brink(moment(rng), rng.i64(-1..=1), rng.u8(..)),
        905..945 => Command::Operate(rng.u8(..)),
        945..975 => Command::Again(rng.u8(..12)),
        975..984 => Command::Overtaken(rng.u8(..)),
        984..990 => Command::Lose(rng.u8(..), rng.bool()),
        990..994 => Command::Burst(rng.u8(..4)),
        994..996 => Command::Failover(rng.u8(..4).checked_sub(1).map(|_| rng.u8(..))),
        996..998 => Command::Back(rng.u8(..), rng.bool()),
        _ => Command::NoSuchSale,
    }
}

fn account(rng: &mut Rng) -> Option<u8> {
    (rng.u8(..5) < 2).then(|| rng.u8(..6))
}

fn someone(rng: &mut Rng) -> Who {
    const STATES: [&str; 9] =
        ["WAITING", "CALLED", "LAPSED", "ACTIVE", "holding", "EXPIRED", "BOOKED", "LEFT", "LOST"];
    match rng.usize(..11) {
        10 => Who::Nobody,
        9 => Who::Any(rng.u8(..)),
        at => Who::In(STATES[at], rng.u8(..)),
    }
}

fn inside(rng: &mut Rng) -> Who {
    one_of(rng, &["ACTIVE", "ACTIVE", "holding", "holding", "CALLED"])
}

/// Who was lost comes back soon, so now and then somebody lost is looked for first.
fn or_lost(who: Who) -> Who {
    match who {
        Who::In(_, pick) if pick % 3 == 0 => Who::In("LOST", pick),
        who => who,
    }
}

/// Mostly one of these.
fn one_of(rng: &mut Rng, states: &[&'static str]) -> Who {
    if rng.u8(..6) == 0 { someone(rng) } else { Who::In(states[rng.usize(..states.len())], rng.u8(..)) }
}

fn money(rng: &mut Rng) -> Money {
    match rng.u8(..10) {
        0 => Money::Failed,
        1 => Money::TooMuch,
        2 => Money::TooLittle,
        3 | 4 => Money::Foreign,
        _ => Money::Right,
    }
}

fn moment(rng: &mut Rng) -> Moment {
    match rng.u8(..200) {
        0 => Moment::Close,
        1..=15 => Moment::Opening,
        16..=22 => Moment::ReentryEnd,
        23..=60 => Moment::ClaimEnd,
        61..=90 => Moment::SessionEnd,
        91..=140 => Moment::HoldEnd,
        141..=160 => Moment::Reminder,
        _ => Moment::PaymentDue,
    }
}

/// What a tick is told: mostly that nothing waits and that the journal is short.
fn load(pick: u8, model: &Model) -> Load {
    let bearable = f64::from(model.rules.backpressure_seconds.unwrap_or(1)) * model.rules.per_second;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a handful")]
    let messages = |part: f64| BookingsWaiting::Messages((bearable * part).round() as u64);
    let backlog = match pick % 16 {
        0 => BookingsWaiting::Unknown,
        1 => BookingsWaiting::TooMany,
        2 => messages(1.0),
        3 => messages(1.25),
        4 => messages(1.5),
        5 => messages(2.0),
        6 => messages(3.0),
        _ => BookingsWaiting::Messages(0),
    };
    let journal_limit = match pick / 16 {
        0 => model.journal,
        1 => model.journal + 1,
        2 => 2 * model.journal,
        3 => 2 * model.journal - 1,
        _ => store::JOURNAL_LIMIT,
    };
    Load { backlog, journal_limit }
}

/// What a command means as the sale stands; nothing where there is nothing that it could mean.
pub(crate) fn settled(command: Command, model: &Model) -> Option<Ask> {
    let named = |account: Option<u8>| account.map(|account| format!("account {account}"));
    Some(match command {
        Command::Join(account) => Ask::Join { account: named(account) },
        Command::Rejoin(who, account) => {
            let who = place(who, model);
            // Mostly its own account, sometimes another's.
            let own = who.and_then(|who| model.places[who].account.clone());
            Ask::Rejoin { who, account: account.and_then(|at| if at < 2 { own } else { named(Some(at)) }) }
        }
        Command::Leave(who) => Ask::Leave { who: place(who, model) },
        Command::Poll(who, keyed) => Ask::Poll { who: place(who, model), keyed },
        Command::Progress => Ask::Progress,
        Command::Search(who) => Ask::Search { who: place(who, model) },
        Command::Map(who, first) => {
            Ask::Map { who: place(who, model), offering: if first { "T1" } else { "T2" } }
        }
        Command::Session(who) => Ask::Session { who: place(who, model) },
        Command::HoldNamed(who, pick, key) => {
            let who = place(who, model);
            let (offering, names) = seats(who, pick, model);
            Ask::Hold { who, choice: Choice::Seats { offering, names }, key }
        }
        Command::HoldCounted { who, section, count, best, key } => {
            let choice = Choice::Counted { section: section.into(), count: count.into(), best };
            Ask::Hold { who: place(who, model), choice, key }
        }
        Command::Release(who, pick, key) => {
            let who = place(who, model);
            let named = match pick % 4 {
                0 => Named::All,
                1 => Named::Offering(if pick & 64 == 0 { "T1" } else { "T2" }),
                _ => {
                    let (offering, names) = seats(who, pick, model);
                    Named::Seats { offering, names }
                }
            };
            Ask::Release { who, named, key }
        }
        Command::Book { who, plain, key } => {
            let plain = plain.map(|(section, count)| (section.into(), count.into()));
            Ask::Book { who: place(who, model), plain, key }
        }
        Command::Read(pick, owner) => {
            let reservation = reservation(pick, model);
            Ask::Read { reservation, owner: owner_of(reservation, owner, model) }
        }
        Command::Cancel(pick, owner) => {
            let reservation = reservation(pick, model);
            Ask::Cancel { reservation, owner: owner_of(reservation, owner, model) }
        }
        Command::Pay { reservation: pick, payment, money } => {
            Ask::Pay { reservation: reservation(pick, model), payment, money }
        }
        Command::Expire(pick) => Ask::Expire { reservation: Some(reservation(pick, model)?) },
        Command::Lose(pick, whole) => {
            let at = reservation(pick, model)?;
            let Reservation { status, remind_at, .. } = &model.reservations[at];
            // Nobody could say whether its buyer was reminded.
            let is_to_be_reminded = remind_at.is_some_and(|at| at <= model.now);
            if *status == "PENDING_PAYMENT" && is_to_be_reminded {
                return None;
            }
            let whole = whole || ["CONFIRMED", "PENDING_PAYMENT"].contains(status);
            Ask::Lose { reservation: at, whole }
        }
        Command::Tick(pick) => Ask::Tick(load(pick, model)),
        Command::Pass(ms) => Ask::Pass(ms),
        Command::Until(moment, off) => Ask::Pass((next(moment, model)?.0 + off - model.now).max(0)),
        Command::Operate(pick) => Ask::Change(change(pick)),
        Command::Failover(lost) => Ask::Failover { lost: lost.and_then(|pick| to_be_lost(pick, model)) },
        Command::Recover => Ask::Recover,
        Command::Recovered(late) => Ask::Recovered { epoch: model.epoch - u64::from(late) },
        // What is more than one request, or one of those before, is the runner's matter.
        Command::Brink(..)
        | Command::Overtaken(_)
        | Command::Back(..)
        | Command::Sweep
        | Command::Again(_)
        | Command::Burst(_)
        | Command::NoSuchSale => {
            return None;
        }
    })
}

fn place(who: Who, model: &Model) -> Option<usize> {
    let all = 0..model.places.len();
    let (candidates, pick): (Vec<usize>, u8) = match who {
        Who::Nobody => return None,
        Who::Any(pick) => (all.collect(), pick),
        Who::In(state, pick) => {
            let stands = |state| all.clone().filter(move |at| model.name_of(Some(*at)) == state).collect();
            // Where nobody is so far, those who are on their way.
            let ways: &[&str] = match state {
                "holding" => &["holding", "ACTIVE", "CALLED"],
                "ACTIVE" => &["ACTIVE", "CALLED", "holding"],
                other => &[other],
            };
            let mut found =
                ways.iter().map(|state| stands(*state)).filter(|found: &Vec<usize>| !found.is_empty());
            (found.next().unwrap_or_else(|| all.clone().collect()), pick)
        }
    };
    // The newest ones are the most likely to be talked about.
    let at = candidates.len().checked_sub(1 + usize::from(pick) % candidates.len().clamp(1, 8))?;
    candidates.get(at).copied()
}

fn to_be_lost(pick: u8, model: &Model) -> Option<usize> {
    place(Who::In("WAITING", pick), model).filter(|who| model.may_be_lost(*who))
}

/// The loss of a place, and its return.
pub(crate) fn back(pick: u8, in_a_failover: bool, model: &Model) -> Option<[Ask; 2]> {
    let who = to_be_lost(pick, model)?;
    let loss = if in_a_failover { Ask::Failover { lost: Some(who) } } else { Ask::Mislay { who } };
    Some([loss, Ask::Rejoin { who: Some(who), account: model.places[who].account.clone() }])
}

/// One to four names: neighbours in a row, some of them taken, the asker's own or none at all.
fn seats(who: Option<usize>, pick: u32, model: &Model) -> (&'static str, Vec<String>) {
    let offering = if pick & 3 == 3 { "T2" } else { "T1" };
    let rows = if pick & 64 == 0 { 3 } else { 6 };
    let row = 1 + (pick >> 8) % rows;
    let (from, count) = ((pick >> 16) as usize % 5, 1 + (pick >> 24) as usize % 3);
    let names = LETTERS.iter().skip(from).take(count).map(|letter| format!("{row}{letter}"));
    let mut names: Vec<String> = names.collect();
    let section = model.rules.sections.iter().find(|section| section.offering == offering);
    let own = section
        .into_iter()
        .flat_map(|section| &section.seats)
        .filter(|seat| matches!(seat.state, SeatState::Held { by, .. } if Some(by) == who));
    if pick & 32 != 0 {
        names.extend(own.map(|seat| seat.name.clone()));
        names.sort();
        names.dedup();
    }
    (offering, names)
}

fn reservation(pick: u8, model: &Model) -> Option<usize> {
    if pick % 16 == 15 {
        return None;
    }
    let count = model.reservations.len();
    count.checked_sub(1 + usize::from(pick) % count.clamp(1, 6))
}

fn owner_of(reservation: Option<usize>, pick: u8, model: &Model) -> Owner {
    let known = reservation.map(|at| &model.reservations[at]);
    let account = known.and_then(|known| known.account.clone());
    match pick {
        0 | 1 => Owner::Operator,
        2 => Owner::Token(*UNKNOWN),
        3 => Owner::Account("account 5".to_owned()),
        4 | 5 if account.is_some() => Owner::Account(account.unwrap_or_default()),
        _ => Owner::Token(known.map_or(*UNKNOWN, |known| known.token)),
    }
}

/// Whom a moment is about: a place or a reservation, by position.
pub(crate) type Subject = Option<usize>;

/// The next such moment.
fn next(moment: Moment, model: &Model) -> Option<(i64, Subject)> {
    let of_places = |end: fn(&State) -> Option<i64>| {
        let ends = model.places.iter().enumerate();
        let ends = ends.filter_map(|(at, place)| Some((end(&place.state)?, Some(at))));
        ends.filter(|(end, _)| *end > model.now).min()
    };
    let of_reservations = |end: fn(&Reservation) -> Option<i64>| {
        let known = model.reservations.iter().enumerate();
        let known = known.filter(|(_, known)| known.status == "PENDING_PAYMENT");
        let ends = known.filter_map(|(at, known)| Some((end(known)?, Some(at))));
        ends.filter(|(end, _)| *end > model.now).min()
    };
    let of_sale = |at: i64| Some((at, None)).filter(|(at, _)| *at > model.now);
    match moment {
        Moment::Opening => of_sale(model.rules.opens_at),
        Moment::Close => of_sale(model.rules.closes_at),
        Moment::ClaimEnd => of_places(|state| match state {
            State::Called { claim_by, .. } => Some(*claim_by),
            _ => None,
        }),
        Moment::ReentryEnd => of_places(|state| match state {
            State::Called { claim_by, .. } => Some(*claim_by + 600_000),
            _ => None,
        }),
        Moment::SessionEnd => of_places(|state| match state {
            State::Active { expires_at, .. } => Some(*expires_at),
            _ => None,
        }),
        Moment::HoldEnd => of_places(|state| match state {
            State::Active { hold_expires_at, .. } => *hold_expires_at,
            _ => None,
        }),
        Moment::PaymentDue => of_reservations(|known| known.due_at),
        Moment::Reminder => of_reservations(|known| known.remind_at),
    }
}

/// How long it is to a moment, and what to ask then.
pub(crate) fn brink(moment: Moment, off: i64, pick: u8, model: &Model) -> Option<(i64, Vec<Ask>)> {
    let (at, subject) = next(moment, model)?;
    let counted = Choice::Counted { section: usize::from(pick) % 4, count: 1, best: false };
    let hold = |who, choice| Ask::Hold { who, choice, key: None };
    let active = place(Who::In("ACTIVE", pick), model);
    let who = subject;
    let ask = match (moment, pick % 6) {
        // Somebody else wants the seat at once, or one more than are free.
        (Moment::HoldEnd, 0 | 1) => {
            hold(other(subject, pick, model), contested(subject, model).unwrap_or(counted))
        }
        (Moment::HoldEnd, 2) => {
            hold(other(subject, pick, model), one_more(subject, model).unwrap_or(counted))
        }
        (Moment::HoldEnd, 3) => Ask::Book { who, plain: None, key: None },
        (Moment::HoldEnd, 4) => Ask::Release { who, named: Named::All, key: None },
        (Moment::ClaimEnd | Moment::SessionEnd, 0) => hold(who, counted),
        (Moment::ClaimEnd | Moment::SessionEnd, 1) => Ask::Leave { who },
        (Moment::ClaimEnd | Moment::SessionEnd, 2) => Ask::Session { who },
        (Moment::ClaimEnd | Moment::SessionEnd, 3) => Ask::Search { who },
        (Moment::ClaimEnd | Moment::SessionEnd | Moment::ReentryEnd, 4) | (Moment::ClaimEnd, 5) => {
            Ask::Rejoin { who, account: None }
        }
        (Moment::PaymentDue, 0 | 1) => Ask::Pay { reservation: subject, payment: 0, money: Money::Right },
        (Moment::PaymentDue, 2 | 3) => Ask::Expire { reservation: subject },
        (Moment::PaymentDue | Moment::Reminder, _) => Ask::Tick(Load::default()),
        (Moment::Opening, 0 | 1) | (Moment::Close, 0) => Ask::Join { account: None },
        (Moment::Opening, 2 | 3) => Ask::Tick(Load::default()),
        (Moment::Close, 1 | 2) => hold(active, counted),
        (Moment::Opening | Moment::Close, _) => {
            Ask::Poll { who: place(Who::In("WAITING", pick), model), keyed: true }
        }
        _ => Ask::Poll { who, keyed: true },
    };
    let mut asks = vec![ask];
    match (moment, pick % 6) {
        // Back in the line is not inside.
        (Moment::ClaimEnd, 4) => asks.push(Ask::Release { who, named: Named::All, key: None }),
        // Who came back and left is known no more.
        (Moment::ClaimEnd, 5) => asks.extend([Ask::Leave { who }, Ask::Poll { who, keyed: true }]),
        _ => {}
    }
    Some(((at + off - model.now).max(0), asks))
}

/// Somebody inside who is not the subject.
fn other(subject: Subject, pick: u8, model: &Model) -> Option<usize> {
    let is_inside = |at: &usize| {
        Some(*at) != subject && matches!(model.name_of(Some(*at)), "ACTIVE" | "CALLED" | "holding")
    };
    let inside: Vec<usize> = (0..model.places.len()).filter(is_inside).collect();
    inside.get(usize::from(pick) % inside.len().max(1)).copied()
}

/// A named seat that the subject holds.
fn contested(subject: Subject, model: &Model) -> Option<Choice> {
    model.rules.sections.iter().filter(|section| !section.is_general).find_map(|section| {
        let held = section
            .seats
            .iter()
            .find(|seat| matches!(seat.state, SeatState::Held { by, .. } if Some(by) == subject))?;
        Some(Choice::Seats { offering: section.offering, names: vec![held.name.clone()] })
    })
}

/// One place more than is free in a section where the subject holds some.
fn one_more(subject: Subject, model: &Model) -> Option<Choice> {
    model.rules.sections.iter().enumerate().find_map(|(at, section)| {
        let is_held = |seat: &Seat| matches!(seat.state, SeatState::Held { by, .. } if Some(by) == subject);
        let is_there = section.seats.iter().any(is_held);
        let count = section.free() + 1;
        is_there.then_some(Choice::Counted { section: at, count, best: false })
    })
}

/// A change, and what it must not let through.
pub(crate) fn overtaken(pick: u8, model: &Model) -> Option<(Change, Ask)> {
    let section = usize::from(pick) / 4 % 4;
    let active = place(Who::In("ACTIVE", pick), model);
    let held_by = |who: usize| {
        let seats = model.rules.sections.iter().flat_map(|section| &section.seats);
        let held = |seat: &&Seat| matches!(seat.state, SeatState::Held { by, .. } if by == who);
        u32::try_from(seats.filter(held).count()).unwrap_or(0)
    };
    Some(match pick % 4 {
        0 => {
            // As much as is held may be bought, were nothing bought before.
            let who = (0..model.places.len()).find(|at| {
                let account = model.places[*at].account.as_ref();
                model.name_of(Some(*at)) == "holding" && model.bought(account) > 0
            })?;
            let ask = Ask::Book { who: Some(who), plain: None, key: None };
            (Change::Edit(Edit::Limit(held_by(who))), ask)
        }
        1 => {
            let ask = Ask::Book { who: active, plain: Some((section, 1)), key: None };
            (Change::Edit(Edit::Price(110)), ask)
        }
        2 => {
            let choice = Choice::Counted { section, count: 1, best: true };
            (Change::Edit(Edit::Price(90)), Ask::Hold { who: active, choice, key: None })
        }
        _ => {
            let section = &model.rules.sections[1];
            let taken = section.seats.len() - section.free();
            (Change::Edit(Edit::Capacity(taken.saturating_sub(1).max(1))), Ask::Search { who: active })
        }
    })
}

fn change(pick: u8) -> Change {
    match pick % 40 {
        0..7 => Change::Status("OPEN", "open"),
        7 => Change::Status("PAUSED", "pause"),
        8 => Change::Status("CLOSED", "close"),
        9 => Change::Message("Please be patient"),
        10 => Change::Message(""),
        11 => Change::Maintenance(true),
        12..16 => Change::Maintenance(false),
        16 => Change::Edit(Edit::PerSecond(0.5)),
        17 => Change::Edit(Edit::PerSecond(2.0)),
        18 => Change::Edit(Edit::PerSecond(5.0)),
        19 => Change::Edit(Edit::MaxActive(3)),
        20 => Change::Edit(Edit::MaxActive(9)),
        21 => Change::Edit(Edit::Limit(1)),
        22 => Change::Edit(Edit::Limit(2)),
        23 => Change::Edit(Edit::Limit(4)),
        24 => Change::Edit(Edit::Limit(5)),
        25 => Change::Edit(Edit::HoldSeconds(20)),
        26 => Change::Edit(Edit::HoldSeconds(150)),
        27 | 28 => Change::Edit(Edit::Price(110)),
        29 => Change::Edit(Edit::Rows(1)),
        30 => Change::Edit(Edit::Rows(3)),
        31 | 32 => Change::Edit(Edit::Rows(5)),
        33 => Change::Edit(Edit::Capacity(2)),
        34 => Change::Edit(Edit::Capacity(4)),
        35 => Change::Edit(Edit::Capacity(9)),
        36 => Change::Edit(Edit::OpenNow),
        37 => Change::Conflict,
        38 => Change::Repeat,
        // Mostly it would take seats that are in use.
        _ => Change::Edit(Edit::Rows(1)),
    }
}
