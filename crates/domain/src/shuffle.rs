//! The draw: everyone who came before the opening stands in a random order that anybody can check.
//!
//! `seed = HMAC-SHA256(master key, event)`; `SHA-256(seed)` is public from the start; at the opening the
//! seed itself is. A place's score is 52 bits of `HMAC-SHA256(seed, SHA-256(token))`.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use crate::{EventId, Token};

/// In a shuffled sale, scores of those who came after the opening start here: above every drawn score.
pub const AFTER_THE_DRAW: u64 = 1 << 52;

/// The secret of one event's draw, until its opening.
#[derive(Clone)]
pub struct Seed([u8; 32]);

impl Seed {
    /// The seed of `event`, from the deployment's master key.
    pub fn of(master_key: &[u8], event: &EventId) -> Self {
        Self(hmac_sha256(master_key, &[b"shuffle:", event.as_str().as_bytes()]))
    }

    /// What is published before the opening: hex SHA-256 of the seed's bytes.
    pub fn commitment(&self) -> String {
        hex(&Sha256::digest(self.0))
    }

    /// What is published at the opening: the seed's bytes in hex.
    pub fn reveal(&self) -> String {
        hex(&self.0)
    }

    /// The drawn score of a token, below [`AFTER_THE_DRAW`].
    pub fn score(&self, token: Token) -> u64 {
        self.score_of_digest(&token_digest(token))
    }

    /// The same from the published digest of a token.
    pub fn score_of_digest(&self, digest: &[u8; 32]) -> u64 {
        let mac = hmac_sha256(&self.0, &[digest]);
        let mut first = [0u8; 8];
        first.copy_from_slice(&mac[..8]);
        u64::from_be_bytes(first) >> 12
    }
}

/// SHA-256 of the token as it is written, the form in which the list of places is published.
pub fn token_digest(token: Token) -> [u8; 32] {
    let mut text = [0u8; 36];
    token.as_uuid().as_hyphenated().encode_lower(&mut text);
    Sha256::digest(text).into()
}

/// Lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

fn hmac_sha256(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    // HMAC takes keys of every length: the error type exists for other MACs.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return [0; 32] };
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seed(master: &str) -> Seed {
        Seed::of(master.as_bytes(), &"concert-2026".parse().unwrap())
    }

    #[test]
    fn the_published_seed_gives_the_commitment_and_every_score() {
        let seed = seed("master");
        let revealed: Vec<u8> =
            (0..32).map(|at| u8::from_str_radix(&seed.reveal()[2 * at..2 * at + 2], 16).unwrap()).collect();
        assert_eq!(hex(&Sha256::digest(&revealed)), seed.commitment());
        let token = Token::random();
        assert_eq!(seed.score(token), seed.score_of_digest(&token_digest(token)));
        assert!(seed.score(token) < AFTER_THE_DRAW);
    }

    #[test]
    fn another_master_key_or_event_is_another_draw() {
        let token: Token = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff".parse().unwrap();
        assert_ne!(seed("a").score(token), seed("b").score(token));
        let other = Seed::of(b"a", &"other".parse().unwrap());
        assert_ne!(seed("a").commitment(), other.commitment());
    }
}
