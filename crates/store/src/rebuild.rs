//! Lay an event out anew whose state Redis has lost: the ground, then its places, and at the end the event itself.

use domain::layout::{Edition, Places};
use domain::outcome::Outcome;
use domain::{Account, EventId, Millis, Token};

use crate::keys::{EVENTS, Keys};
use crate::sale::meta_fields;
use crate::step::{Call, GROUND, LINE, RESUME};
use crate::{Store, StoreError};

/// What an event stands on before anybody has a place in it.
#[derive(Debug, Clone, Copy)]
pub struct Ground<'a> {
    /// The edition, its version above all that were known.
    pub edition: &'a Edition,
    /// Above all that were known.
    pub epoch: u64,
    /// The last ticket number, far above all that were known.
    pub number: u64,
    /// The highest score that was called.
    pub head_score: u64,
    /// Calls, less those who came back to the front.
    pub net: i64,
}

/// A called place: who comes, or came and is out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RebuiltCall {
    /// Whose it is.
    pub token: Token,
    /// Where it stood.
    pub score: u64,
    /// Until when it may claim.
    pub claim_by: Millis,
    /// When it was called.
    pub called_at: Millis,
    /// Whether it has used its one re-entry.
    pub reentered: bool,
    /// Whether the visit goes on.
    pub is_live: bool,
}

/// Whose place a token's is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountPlace<'a> {
    /// The token.
    pub token: Token,
    /// Its account.
    pub account: &'a Account,
}

/// Places to put back by one step: a thousand at most in all.
#[derive(Debug, Clone, Default)]
pub struct LinePage<'a> {
    /// Waiting places: token and score.
    pub waiting: Vec<(Token, u64)>,
    /// Called places.
    pub called: Vec<RebuiltCall>,
    /// Tokens that have left.
    pub left: Vec<Token>,
    /// Accounts of places in the line.
    pub accounts: Vec<AccountPlace<'a>>,
}

/// How an event last stood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// OPEN, PAUSED or CLOSED.
    pub status: String,
    /// What everybody who waits is told; empty for nothing.
    pub message: String,
    /// Whether holds and bookings were refused.
    pub maintenance: bool,
}

impl Default for Standing {
    fn default() -> Self {
        Self { status: "OPEN".to_owned(), message: String::new(), maintenance: false }
    }
}

impl LinePage<'_> {
    /// Places in it.
    pub fn len(&self) -> usize {
        self.waiting.len() + self.called.len() + self.left.len() + self.accounts.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Store {
    /// Lay out an event without anybody in it; nobody finds it yet. False where it is in place, or was begun
    /// from another edition.
    pub async fn ground(&self, ground: &Ground<'_>) -> Result<bool, StoreError> {
        let Ground { edition, epoch, number, head_score, net } = *ground;
        let fields = meta_fields(&edition.sale);
        let sections = &edition.layout.sections;
        let mut call = Call::new(&GROUND, Keys::of(&edition.sale.event_id))
            .arg(self.now_ms())
            .arg(edition.version)
            .arg(epoch)
            .arg(number)
            .arg(head_score)
            .arg(net)
            .arg(edition.to_json())
            .arg(empty_map(edition))
            .arg(edition.layout.capacity())
            .arg(fields.len())
            .arg(sections.len());
        for (field, value) in &fields {
            call = call.arg(*field).arg(value);
        }
        for section in sections {
            call = call.arg(section.number).arg(section.capacity());
        }
        Ok(self.run(call).await?.word() == "GROUNDED")
    }

    /// Put back some places of an event that is being laid out. False where it is in place.
    pub async fn line(&self, event: &EventId, page: &LinePage<'_>) -> Result<bool, StoreError> {
        let mut call = Call::new(&LINE, Keys::of(event))
            .arg(page.waiting.len())
            .arg(page.called.len())
            .arg(page.left.len())
            .arg(page.accounts.len());
        let text = |token: Token| token.to_string();
        for (token, score) in &page.waiting {
            call = call.arg(*score).arg(text(*token));
        }
        for called in &page.called {
            let RebuiltCall { token, score, claim_by, called_at, reentered, is_live } = *called;
            let until = if is_live { claim_by.to_string() } else { String::new() };
            call = call.arg(text(token));
            call = call.arg(format!("{score}:{claim_by}:{called_at}:{}", u8::from(reentered))).arg(until);
        }
        for token in &page.left {
            call = call.arg(text(*token));
        }
        for AccountPlace { token, account } in &page.accounts {
            call = call.arg(text(*token)).arg(account.as_str());
        }
        Ok(self.run(call).await?.word() == "PLACED")
    }

    /// The event is in place again; bookings wait until what is on its way has been put back.
    pub async fn resume(
        &self,
        edition: &Edition,
        by: &str,
        standing: &Standing,
    ) -> Result<Outcome<u64>, StoreError> {
        let event = &edition.sale.event_id;
        let sale = serde_json::to_string(&edition.sale).map_err(|error| StoreError::Definition {
            event: event.to_string(),
            reason: error.to_string(),
        })?;
        let call = Call::new(&RESUME, Keys::of(event))
            .arg(self.now_ms())
            .arg(by)
            .arg(&standing.status)
            .arg(&standing.message)
            .arg(if standing.maintenance { "1" } else { "0" })
            .arg(sale);
        let mut reply = self.run(call).await?;
        if reply.word() != "CHANGED" {
            return reply.refusal().map(Err);
        }
        self.query("SADD", redis::cmd("SADD").arg(EVENTS).arg(event.as_str())).await?;
        reply.count().map(Ok)
    }
}

/// The map of an edition of which nothing is sold.
fn empty_map(edition: &Edition) -> String {
    let mut map = vec![b'x'; edition.layout.map_length as usize];
    for section in &edition.layout.sections {
        let Places::Assigned { rows } = &section.places else { continue };
        for row in rows {
            let end = row.offset as usize + row.seats.len();
            if let Some(seats) = map.get_mut(row.offset as usize..end).filter(|_| !row.removed) {
                seats.fill(b'.');
            }
            if let Some(byte) = map.get_mut(end) {
                *byte = b'/';
            }
        }
    }
    String::from_utf8(map).unwrap_or_default()
}
