//! The signed key that goes with every place: what was read of it and when, so that a later poll can be
//! answered from it and a place proven after a loss of Redis.
//!
//! Sixty bytes, always: every field has a fixed width, so that a key's length tells nothing about a place.
//! Event and token are not carried, only signed: a key is worth nothing beside another token.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::line::{LastRead, ProvenPlace};
use domain::{EventId, Millis, Token};
use hmac::digest::Key;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// The format; another one is another number.
const VERSION: u8 = 2;
/// A count of tickets that is none. A count above it is not told either.
const NOT_TOLD: u64 = 255;
const FIELDS_BYTES: usize = 44;
const MAC_BYTES: usize = 16;
const KEY_BYTES: usize = FIELDS_BYTES + MAC_BYTES;
/// The length of every key, in characters of base64url without padding.
pub const KEY_LENGTH: usize = KEY_BYTES / 3 * 4;

/// What a key says: a place as last read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceKey {
    /// The event's epoch; below 2^24.
    pub epoch: u64,
    /// Where the place stands; 0: not told, before the opening or without a place in the line. Below 2^56.
    pub score: u64,
    /// 1-based; `None` as above. Below 2^40.
    pub rank: Option<u64>,
    /// The arrival order behind the place, from 1, where it is known. Below 2^56.
    pub ticket_number: Option<u64>,
    /// Places that its account had bought when this was read; `None`: not told, so that the place is read anew. Below
    /// 2^8 - 1.
    pub ticket_count: Option<u32>,
    /// The view's net when this was read. Below 2^48.
    pub net: u64,
    /// Redis' clock when this was read.
    pub read_at: Millis,
    /// From when on the next poll is welcome, by the functions' clock.
    pub earliest_at: Millis,
    /// The interval it was asked to wait, before jitter; below 2^16.
    pub interval_ms: u32,
}

/// Where a moment lies in a key's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// Asked before its time.
    TooEarly {
        /// How long to wait.
        wait_ms: u32,
    },
    /// As it should be.
    Open,
    /// Too late: the key counts as none, but still proves the place.
    Over,
}

impl PlaceKey {
    /// The earliest next poll after an answer at `answered_at` that asked for `interval_ms`.
    ///
    /// Half of the interval: jitter takes a fifth of it at most, the rest is for clocks of functions that
    /// differ and answers that travelled slowly, so that nobody who waits as told is ever too early.
    pub fn earliest_after(answered_at: Millis, interval_ms: u32) -> Millis {
        answered_at.plus(i64::from(interval_ms / 2))
    }

    /// Where `now`, by the functions' clock, lies: the window is two intervals wide.
    pub fn window(&self, now: Millis) -> Window {
        let wait_ms = self.earliest_at.0.saturating_sub(now.0).max(0);
        match u32::try_from(wait_ms) {
            Ok(0) => {}
            Ok(wait_ms) if wait_ms <= self.interval_ms / 2 => return Window::TooEarly { wait_ms },
            // Longer than anybody was told to wait: who answered has another clock, which must hold up nobody.
            _ => return Window::Over,
        }
        if now <= self.earliest_at.plus(2 * i64::from(self.interval_ms)) {
            Window::Open
        } else {
            Window::Over
        }
    }

    /// The place as it was last read.
    pub fn last_read(&self) -> LastRead {
        let Self { epoch, score, rank, net, read_at, .. } = *self;
        LastRead { epoch, score, rank, net, read_at }
    }

    /// What it proves, for the whole sale.
    pub fn proven(&self) -> ProvenPlace {
        let Self { epoch, score, ticket_number, .. } = *self;
        ProvenPlace { epoch, score, ticket_number }
    }

    fn write(&self) -> [u8; FIELDS_BYTES] {
        let mut writer = Writer { bytes: [0; FIELDS_BYTES], at: 0 };
        writer.put(VERSION.into(), 1);
        writer.put(self.epoch, 3);
        writer.put(self.ticket_count.map_or(NOT_TOLD, u64::from), 1);
        writer.put(self.score, 7);
        writer.put(self.rank.unwrap_or(0), 5);
        writer.put(self.ticket_number.unwrap_or(0), 7);
        writer.put(self.net, 6);
        writer.put(self.read_at.0.try_into().unwrap_or(0), 6);
        writer.put(self.earliest_at.0.try_into().unwrap_or(0), 6);
        writer.put(self.interval_ms.into(), 2);
        writer.bytes
    }

    fn read(fields: &[u8; FIELDS_BYTES]) -> Option<Self> {
        let mut reader = Reader { bytes: fields, at: 0 };
        if reader.take(1) != u64::from(VERSION) {
            return None;
        }
        Some(Self {
            epoch: reader.take(3),
            ticket_count: Some(reader.take(1))
                .filter(|count| *count < NOT_TOLD)
                .and_then(|count| count.try_into().ok()),
            score: reader.take(7),
            rank: Some(reader.take(5)).filter(|rank| *rank > 0),
            ticket_number: Some(reader.take(7)).filter(|number| *number > 0),
            net: reader.take(6),
            read_at: Millis(reader.take(6).try_into().ok()?),
            earliest_at: Millis(reader.take(6).try_into().ok()?),
            interval_ms: reader.take(2).try_into().ok()?,
        })
    }
}

struct Writer {
    bytes: [u8; FIELDS_BYTES],
    at: usize,
}

impl Writer {
    /// Big-endian in `width` bytes; what does not fit becomes the most that does.
    fn put(&mut self, value: u64, width: usize) {
        let most = (1u64 << (8 * width)) - 1;
        let bytes = value.min(most).to_be_bytes();
        self.bytes[self.at..self.at + width].copy_from_slice(&bytes[8 - width..]);
        self.at += width;
    }
}

struct Reader<'a> {
    bytes: &'a [u8; FIELDS_BYTES],
    at: usize,
}

impl Reader<'_> {
    fn take(&mut self, width: usize) -> u64 {
        let bytes = &self.bytes[self.at..self.at + width];
        self.at += width;
        bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
    }
}

/// What signs and checks keys: the deployment's current secret, and the one before it while both are valid.
#[derive(Clone)]
pub struct KeyRing {
    current: Hmac<Sha256>,
    previous: Option<Hmac<Sha256>>,
}

impl KeyRing {
    /// The ring of a master key, and of the previous one during a change.
    pub fn new(master_key: &[u8], previous_master_key: Option<&[u8]>) -> Self {
        Self { current: derived(master_key), previous: previous_master_key.map(derived) }
    }

    /// The key of a place, [`KEY_LENGTH`] characters.
    pub fn sign(&self, event: &EventId, token: Token, place: &PlaceKey) -> String {
        let fields = place.write();
        let mac = mac_of(&self.current, event, token, &fields).finalize().into_bytes();
        let mut key = [0u8; KEY_BYTES];
        key[..FIELDS_BYTES].copy_from_slice(&fields);
        key[FIELDS_BYTES..].copy_from_slice(&mac[..MAC_BYTES]);
        URL_SAFE_NO_PAD.encode(key)
    }

    /// What a key says, if it is one of ours for this event and token. Takes the same time for every forgery.
    pub fn check(&self, event: &EventId, token: Token, text: &str) -> Option<PlaceKey> {
        if text.len() != KEY_LENGTH {
            return None;
        }
        let mut key = [0u8; KEY_BYTES];
        if URL_SAFE_NO_PAD.decode_slice(text, &mut key) != Ok(KEY_BYTES) {
            return None;
        }
        let (fields, mac) = key.split_first_chunk::<FIELDS_BYTES>()?;
        let is_signed_by = |signer| mac_of(signer, event, token, fields).verify_truncated_left(mac).is_ok();
        let is_ours = is_signed_by(&self.current) || self.previous.as_ref().is_some_and(is_signed_by);
        if is_ours { PlaceKey::read(fields) } else { None }
    }
}

impl std::fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyRing").finish_non_exhaustive()
    }
}

/// A signer of its own purpose: a place key tells nothing about anything else made from the master key. Kept
/// keyed, so that a signature costs no key schedule.
fn derived(master_key: &[u8]) -> Hmac<Sha256> {
    keyed(&keyed(master_key).chain_update(b"place-key").finalize().into_bytes())
}

fn keyed(key: &[u8]) -> Hmac<Sha256> {
    // A digest fits into HMAC's block, so that a key of any length does.
    let mut block = Key::<Hmac<Sha256>>::default();
    block[..32].copy_from_slice(&Sha256::digest(key));
    Hmac::new(&block)
}

fn mac_of(signer: &Hmac<Sha256>, event: &EventId, token: Token, fields: &[u8; FIELDS_BYTES]) -> Hmac<Sha256> {
    // Only the last part has no fixed width: no two inputs look alike.
    signer.clone().chain_update(fields).chain_update(token.as_bytes()).chain_update(event.as_str())
}
