//! Ids and instants. Every id is validated where it is made: ids become parts of Redis keys, and nothing
//! unvalidated ever does.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// Why a text is not the id it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct InvalidId {
    /// What an id of this kind looks like.
    pub reason: &'static str,
}

/// Unix milliseconds, the unit of every instant in bodies, Redis and facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub i64);

impl Millis {
    /// The system's clock. Redis' clock decides everything that matters to a sale; this one only stamps
    /// what never meets it (poll windows, logs).
    pub fn now() -> Self {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Self(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    /// This instant moved by `by_ms`, which may be negative.
    #[must_use]
    pub fn plus(self, by_ms: i64) -> Self {
        Self(self.0.saturating_add(by_ms))
    }
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $valid:expr, $reason:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                let valid: fn(&str) -> bool = $valid;
                if valid(text) { Ok(Self(text.to_owned())) } else { Err(InvalidId { reason: $reason }) }
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

fn is_event_id(text: &str) -> bool {
    let small = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (1..=63).contains(&text.len())
        && text.bytes().enumerate().all(|(at, byte)| small(byte) || (at > 0 && byte == b'-'))
        // The other audience of every access token: a gateway that asks for it lets in buyers of every sale.
        && text != "jari"
}

fn is_place_id(text: &str) -> bool {
    (1..=32).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn is_free_text(text: &str) -> bool {
    (1..=255).contains(&text.len()) && !text.chars().any(char::is_control)
}

fn is_connection_id(text: &str) -> bool {
    (1..=128).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=_-".contains(&byte))
}

text_id!(
    /// One sale: `[a-z0-9][a-z0-9-]{0,62}`, but not `jari`.
    EventId,
    is_event_id,
    "must be 1 to 63 of a-z, 0-9 and -, not starting with -, and not jari"
);
text_id!(
    /// A thing in an event that has places: a train on a date, a performance.
    OfferingId,
    is_place_id,
    "must be 1 to 32 of A-Z, a-z, 0-9 and -"
);
text_id!(
    /// A part of an offering with one price.
    SectionId,
    is_place_id,
    "must be 1 to 32 of A-Z, a-z, 0-9 and -"
);
text_id!(
    /// A seat, unique within its offering.
    SeatName,
    is_place_id,
    "must be 1 to 32 of A-Z, a-z, 0-9 and -"
);

text_id!(
    /// The authenticated buyer, as whoever proved it names it. Never a part of a key.
    Account,
    is_free_text,
    "must be 1 to 255 bytes without control characters"
);

text_id!(
    /// An open socket, as API Gateway or a local listener names it.
    ConnectionId,
    is_connection_id,
    "must be 1 to 128 of A-Z, a-z, 0-9, +, /, =, _ and -"
);

text_id!(
    /// A payment, as its provider names it. Never a part of a key: keys have its digest.
    PaymentId,
    is_free_text,
    "must be 1 to 255 bytes without control characters"
);

impl PaymentId {
    /// SHA-256 in hex, as keys have it.
    pub fn digest(&self) -> String {
        crate::shuffle::hex(&Sha256::digest(self.0.as_bytes()))
    }
}

/// A secret that names one place in the line: a UUID v4, written in lower case with hyphens. Its first half may be what an
/// account's name gives, its second half is always random.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Token(Uuid);

impl Token {
    /// A new random token.
    pub fn random() -> Self {
        Self(Uuid::new_v4())
    }

    /// A new token for a place in an event. The first half of an account's is the same for all of them, so that one entry
    /// finds the place by the account and the account by the token. Others may guess that half, and 62 random bits remain.
    pub fn of(event: &EventId, account: Option<&Account>) -> Self {
        let Some(account) = account else { return Self::random() };
        let mut bytes = Uuid::new_v4().into_bytes();
        let digest = Sha256::new().chain_update(b"place:").chain_update(event.as_str()).chain_update(b":");
        let digest = digest.chain_update(account.as_str()).finalize();
        bytes[..8].copy_from_slice(&digest[..8]);
        Self(uuid::Builder::from_random_bytes(bytes).into_uuid())
    }

    /// Its two halves, as they are written.
    pub fn halves(&self) -> (String, String) {
        let mut first = self.to_string();
        let second = first.split_off(first.len() / 2);
        (first, second)
    }

    /// The 16 bytes.
    pub fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    /// The UUID, for libraries that have a type for it.
    pub fn as_uuid(&self) -> Uuid {
        self.0
    }

    /// A token from stored bytes; `None` where they are no UUID v4.
    pub fn from_uuid(uuid: Uuid) -> Option<Self> {
        (uuid.get_version_num() == 4).then_some(Self(uuid))
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_hyphenated().fmt(f)
    }
}

impl FromStr for Token {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let invalid = InvalidId { reason: "must be a UUID version 4 with hyphens" };
        if text.len() != 36 {
            return Err(invalid);
        }
        Uuid::try_parse(text).ok().and_then(Self::from_uuid).ok_or(invalid)
    }
}

impl<'de> Deserialize<'de> for Token {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// What a booking makes: `{eventId}.{uuid}`, so that the id alone tells the event.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReservationId {
    event: EventId,
    uuid: Uuid,
}

impl ReservationId {
    /// The one reservation that `token` can ever make in `event`. Derived, so that a repeated booking finds
    /// what the first one made without asking; one-way, so that it does not tell the token.
    pub fn of(event: EventId, token: Token) -> Self {
        let digest = Sha256::new().chain_update(b"reservation:").chain_update(token.as_bytes()).finalize();
        let mut bytes = [0u8; 16];
        bytes.copy_from_slice(&digest[..16]);
        Self { event, uuid: uuid::Builder::from_random_bytes(bytes).into_uuid() }
    }

    /// The event the reservation belongs to.
    pub fn event(&self) -> &EventId {
        &self.event
    }

    /// The part behind the dot.
    pub fn uuid(&self) -> Uuid {
        self.uuid
    }
}

impl fmt::Display for ReservationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.event, self.uuid.as_hyphenated())
    }
}

impl FromStr for ReservationId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let invalid = || InvalidId { reason: "must be an event id, a dot and a UUID" };
        let (event, uuid) = text.split_once('.').ok_or_else(invalid)?;
        if uuid.len() != 36 {
            return Err(invalid());
        }
        Ok(Self {
            event: event.parse().map_err(|_| invalid())?,
            uuid: Uuid::try_parse(uuid).map_err(|_| invalid())?,
        })
    }
}

impl Serialize for ReservationId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ReservationId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_refuse_what_could_leave_its_place_in_a_key() {
        for text in ["", "-a", "A", "jari", "a{b", "a}b", "a:b", "a\nb", "é", &"a".repeat(64)] {
            assert!(text.parse::<EventId>().is_err(), "{text:?}");
        }
        for text in ["", "a_b", "a b", "1:2", "{x}", "특실", &"a".repeat(33)] {
            assert!(text.parse::<SeatName>().is_err(), "{text:?}");
        }
        assert_eq!("ktx-2026-chuseok".parse::<EventId>().unwrap().as_str(), "ktx-2026-chuseok");
        assert_eq!("12A".parse::<SeatName>().unwrap().as_str(), "12A");
    }

    #[test]
    fn accounts_are_texts_that_a_log_and_a_database_can_hold() {
        for text in ["", "a\0b", "a\nb", "\u{7f}", &"가".repeat(86)] {
            assert!(text.parse::<Account>().is_err(), "{text:?}");
        }
        for text in ["google-oauth2|1234", "kim@example.com", "김민수 {x}:*", &"가".repeat(85)] {
            assert_eq!(text.parse::<Account>().unwrap().as_str(), text);
        }
        assert_eq!(
            "abc".parse::<PaymentId>().unwrap().digest(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn tokens_are_uuid_v4_with_hyphens() {
        let token = Token::random();
        assert_eq!(token.to_string().parse::<Token>(), Ok(token));
        assert_eq!(token.to_string().to_uppercase().parse::<Token>(), Ok(token));
        for text in ["", "x", "00000000-0000-1000-8000-000000000000", &token.as_uuid().simple().to_string()] {
            assert!(text.parse::<Token>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn tokens_of_an_account_have_one_half_in_common() {
        let event = |name: &str| name.parse::<EventId>().unwrap();
        let of = |name, account: &str| Token::of(&event(name), Some(&account.parse().unwrap()));
        let (one, two) = (of("concert-2026", "kim"), of("concert-2026", "kim"));
        assert_eq!(one.halves().0, two.halves().0);
        assert_ne!(one.halves().1, two.halves().1);
        for other in [of("concert-2026", "lee"), of("concert-2027", "kim"), Token::random()] {
            assert_ne!(one.halves().0, other.halves().0);
        }
        assert_eq!(one.to_string().parse::<Token>(), Ok(one), "a UUID v4 like any other");
        let (first, second) = one.halves();
        assert_eq!((first.len(), second.len()), (18, 18), "as lib/account.lua cuts it");
        assert_eq!(first + &second, one.to_string());
    }

    #[test]
    fn a_reservation_id_tells_its_event() {
        let token = Token::random();
        let id = ReservationId::of("concert-2026".parse().unwrap(), token);
        assert_eq!(id, ReservationId::of("concert-2026".parse().unwrap(), token));
        assert_ne!(id, ReservationId::of("concert-2026".parse().unwrap(), Token::random()));
        let read: ReservationId = id.to_string().parse().unwrap();
        assert_eq!(read, id);
        assert_eq!(read.event().as_str(), "concert-2026");
        for text in
            ["x", "a.b", "A.00000000-0000-4000-8000-000000000000", ".00000000-0000-4000-8000-000000000000"]
        {
            assert!(text.parse::<ReservationId>().is_err(), "{text:?}");
        }
    }
}
