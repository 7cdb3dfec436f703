//! Take a place in the line, or come back to one.

use domain::command::{Join, Rejoin};
use domain::line::ProvenPlace;
use domain::outcome::{Joined, Outcome, Refusal};
use domain::{Account, Token};

use crate::keys::Keys;
use crate::reply::Reply;
use crate::step::{Call, JOIN, REJOIN};
use crate::{Store, StoreError};

/// A token with the score that a shuffle would give it.
#[derive(Debug, Clone, Copy)]
pub struct Drawn {
    /// The token.
    pub token: Token,
    /// Its score in the draw.
    pub score: u64,
}

/// An account that acts on several devices at once may move between two steps; each turn follows it once.
const TURNS: u32 = 5;

impl Store {
    /// Take a new place for `new`, which is made for the account ([`Token::of`]) and which nobody has seen yet; an
    /// account that has a place gets that. Answers the token whose place it is. `draw` tells where a shuffle would put a
    /// token.
    pub async fn join(
        &self,
        join: &Join,
        new: Drawn,
        draw: impl Fn(Token) -> Drawn,
    ) -> Result<Outcome<(Token, Joined)>, StoreError> {
        for _ in 0..TURNS {
            let keys = Keys::of(&join.event).token(new.token).address(join.address);
            let call = Call::new(&JOIN, keys)
                .arg(self.now_ms())
                .arg(new.token.to_string())
                .arg(new.score)
                .arg(text_of(join.account.as_ref()));
            let mut reply = self.run(call).await?;
            let known = match reply.word() {
                "JOINED" => return joined(reply).map(|joined| Ok((new.token, joined))),
                "KNOWN" => {
                    let known = reply.parsed()?;
                    return same_place(reply).map(|joined| Ok((known, joined)));
                }
                "ELSEWHERE" => draw(reply.parsed()?),
                _ => return reply.refusal().map(Err),
            };
            let rejoin = Rejoin {
                event: join.event.clone(),
                token: known.token,
                key: None,
                address: join.address,
                account: join.account.clone(),
            };
            match self.rejoin_once(&rejoin, known, new, None, true).await? {
                // Booked since: the account may have a new place.
                Rejoined::Answered(Err(Refusal::AlreadyBooked { .. })) | Rejoined::Elsewhere(_) => {}
                Rejoined::Answered(answer) => return Ok(answer),
            }
        }
        Err(StoreError::Exhausted { step: "join", times: TURNS })
    }

    /// Come back to `known`'s place, or take a new one for `new`, which is made for the account; an account that has a
    /// place by another token gets that. `proven` is what its key says, should Redis have lost the place. Answers the
    /// token whose place it is.
    pub async fn rejoin(
        &self,
        rejoin: &Rejoin,
        proven: Option<ProvenPlace>,
        new: Drawn,
        draw: impl Fn(Token) -> Drawn,
    ) -> Result<Outcome<(Token, Joined)>, StoreError> {
        let mut known = draw(rejoin.token);
        for turn in 0..TURNS {
            // The key is that of the token that came, not of the one that the account's place has.
            let proven = proven.filter(|_| turn == 0);
            match self.rejoin_once(rejoin, known, new, proven, turn > 0).await? {
                Rejoined::Answered(answer) => return Ok(answer),
                Rejoined::Elsewhere(token) => known = draw(token),
            }
        }
        Err(StoreError::Exhausted { step: "rejoin", times: TURNS })
    }

    /// `counted`: whether the address' limit has counted this request already.
    async fn rejoin_once(
        &self,
        rejoin: &Rejoin,
        known: Drawn,
        new: Drawn,
        proven: Option<ProvenPlace>,
        counted: bool,
    ) -> Result<Rejoined, StoreError> {
        let keys = Keys::of(&rejoin.event).token(known.token).address(rejoin.address);
        let call = Call::new(&REJOIN, keys)
            .arg(self.now_ms())
            .arg(known.token.to_string())
            .arg(known.score)
            .arg(new.token.to_string())
            .arg(new.score)
            .arg(text_of(rejoin.account.as_ref()))
            .arg(u8::from(counted))
            .arg(proven.map(|proven| proven.epoch.to_string()).unwrap_or_default())
            .arg(proven.map_or(0, |proven| proven.score))
            .arg(proven.and_then(|proven| proven.ticket_number).unwrap_or(0));
        let mut reply = self.run(call).await?;
        let answer = match reply.word() {
            "KNOWN" => (known.token, same_place(reply)?),
            "REQUEUED" => (known.token, joined(reply)?),
            "JOINED" => (new.token, joined(reply)?),
            "ELSEWHERE" => return reply.parsed().map(Rejoined::Elsewhere),
            _ => return reply.refusal().map(|refusal| Rejoined::Answered(Err(refusal))),
        };
        Ok(Rejoined::Answered(Ok(answer)))
    }
}

enum Rejoined {
    Answered(Outcome<(Token, Joined)>),
    /// The account's place is this token's.
    Elsewhere(Token),
}

fn text_of(account: Option<&Account>) -> &str {
    account.map_or("", Account::as_str)
}

/// A new place: its ticket number, then where it stands.
fn joined(mut reply: Reply) -> Result<Joined, StoreError> {
    let ticket_number = reply.optional_integer()?.and_then(|number| u64::try_from(number).ok());
    let standing = reply.standing()?;
    Ok(Joined { ticket_number, joined_at: Some(standing.view.now), standing })
}

/// A place that was there before.
fn same_place(reply: Reply) -> Result<Joined, StoreError> {
    Ok(Joined { joined_at: None, ..joined(reply)? })
}
