//! The payment provider's signature: `Jari-Signature: t=<unix seconds>,v1=<hex HMAC-SHA256(key, "t.body")>`.

use std::fmt;

use domain::Millis;
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, HeaderName};
use sha2::Sha256;

use crate::failure::Failure;

static SIGNATURE: HeaderName = HeaderName::from_static("jari-signature");

/// How old or early a signature may be, for clocks that differ and answers that took long.
const TOLERANCE_MS: i64 = 300_000;
/// A header is short: a time and a signature for each of two keys.
const MAX_HEADER_BYTES: usize = 512;

/// The secrets shared with a payment provider: the one in force and the one before or after it.
#[derive(Clone, Default)]
pub struct PaymentKeys(Vec<Hmac<Sha256>>);

impl PaymentKeys {
    /// From the secrets' texts.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        // HMAC takes a key of any length.
        Self(secrets.into_iter().filter_map(|secret| Hmac::new_from_slice(secret.as_bytes()).ok()).collect())
    }

    /// Whether the provider signed this body, lately. Compares in constant time.
    pub(crate) fn check(&self, headers: &HeaderMap, body: &[u8], now: Millis) -> Result<(), Failure> {
        let header = headers.get(&SIGNATURE).and_then(|value| value.to_str().ok());
        let header = header.filter(|header| header.len() <= MAX_HEADER_BYTES).ok_or(Failure::BadSignature)?;
        let (mut time, mut signatures) = (None, Vec::new());
        for part in header.split(',') {
            match part.trim().split_once('=') {
                Some(("t", seconds)) if time.is_none() => time = Some(seconds),
                // A time given twice: which one was signed?
                Some(("t", _)) => return Err(Failure::BadSignature),
                Some(("v1", signature)) => signatures.extend(bytes_of(signature)),
                // Another version of signing, beside one that is known here.
                _ => {}
            }
        }
        let time = time.ok_or(Failure::BadSignature)?;
        let at_ms = time.parse::<i64>().ok().and_then(|seconds| seconds.checked_mul(1_000));
        let at_ms = at_ms.ok_or(Failure::BadSignature)?;
        let is_recent = now.0.abs_diff(at_ms) <= TOLERANCE_MS.unsigned_abs();
        let is_signed = self.0.iter().any(|key| {
            let signed = key.clone().chain_update(time).chain_update(b".").chain_update(body);
            signatures.iter().any(|signature| signed.clone().verify_slice(signature).is_ok())
        });
        if is_signed && is_recent { Ok(()) } else { Err(Failure::BadSignature) }
    }
}

impl fmt::Debug for PaymentKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PaymentKeys").finish_non_exhaustive()
    }
}

/// Sixty-four hexadecimal digits.
fn bytes_of(hex: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if hex.len() != 64 || !hex.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}
