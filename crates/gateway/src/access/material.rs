//! RSA keys as PEM texts (RFC 7468): read, made, and named by their thumbprints.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rsa::KeyPair;
use ring::signature::KeyPair as _;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{PrivatePkcs8KeyDer, SubjectPublicKeyInfoDer};
use sha2::{Digest, Sha256};

/// Why there is no key. Never tells what stands in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AccessKeyError {
    /// A text holds none that is read, or one of another strength.
    #[error(
        "must be an RSA key of 2048 to 4096 bits in PEM: BEGIN PRIVATE KEY (PKCS#8) or, where nothing is signed, \
         BEGIN PUBLIC KEY"
    )]
    Unusable,
    /// A new one could not be made.
    #[error("cannot make an RSA key")]
    NotMade,
}

/// A tag of DER.
const SEQUENCE: u8 = 0x30;

/// What a PEM text holds.
pub(super) struct Material {
    /// Where it was a private key.
    pub(super) signer: Option<KeyPair>,
    pub(super) public: Public,
}

impl Material {
    pub(super) fn read(pem: &str) -> Result<Self, AccessKeyError> {
        if let Ok(key) = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes()) {
            let signer = KeyPair::from_pkcs8(key.secret_pkcs8_der()).map_err(|_| AccessKeyError::Unusable)?;
            let public = Public::of(signer.public_key().as_ref())?;
            return Ok(Self { signer: Some(signer), public });
        }
        let key =
            SubjectPublicKeyInfoDer::from_pem_slice(pem.as_bytes()).map_err(|_| AccessKeyError::Unusable)?;
        let key = subject_key(&key).ok_or(AccessKeyError::Unusable)?;
        Ok(Self { signer: None, public: Public::of(key)? })
    }
}

/// A public key.
pub(super) struct Public {
    /// `RSAPublicKey` (RFC 8017).
    pub(super) der: Vec<u8>,
    /// The modulus, as a JWK has it.
    pub(super) n: String,
    /// The exponent, as a JWK has it.
    pub(super) e: String,
}

impl Public {
    pub(super) fn of(der: &[u8]) -> Result<Self, AccessKeyError> {
        let (n, e) = numbers(der).ok_or(AccessKeyError::Unusable)?;
        let bits = n.len() * 8 - n.first().map_or(0, |first| first.leading_zeros() as usize);
        let is_odd = |number: &[u8]| number.last().is_some_and(|last| last % 2 == 1);
        if !(2_048..=4_096).contains(&bits) || !is_odd(n) || !is_odd(e) || e == [1] || e.len() > 4 {
            return Err(AccessKeyError::Unusable);
        }
        Ok(Self { der: der.to_vec(), n: URL_SAFE_NO_PAD.encode(n), e: URL_SAFE_NO_PAD.encode(e) })
    }

    /// RFC 7638: what the key must have, in this order and without spaces, hashed.
    pub(super) fn thumbprint(&self) -> String {
        let members = format!(r#"{{"e":"{}","kty":"RSA","n":"{}"}}"#, self.e, self.n);
        URL_SAFE_NO_PAD.encode(Sha256::digest(members))
    }
}

/// The `RSAPublicKey` in a `SubjectPublicKeyInfo` (RFC 5280), where it is one.
fn subject_key(der: &[u8]) -> Option<&[u8]> {
    const BIT_STRING: u8 = 0x03;
    const OBJECT_IDENTIFIER: u8 = 0x06;
    /// 1.2.840.113549.1.1.1
    const RSA_ENCRYPTION: [u8; 9] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
    let (info, _) = element(SEQUENCE, der)?;
    let (algorithm, rest) = element(SEQUENCE, info)?;
    let (identifier, _) = element(OBJECT_IDENTIFIER, algorithm)?;
    let (bits, _) = element(BIT_STRING, rest)?;
    // The first byte counts the bits that are not used.
    if identifier == RSA_ENCRYPTION { bits.strip_prefix(&[0]) } else { None }
}

/// Modulus and exponent of an `RSAPublicKey`, without leading zeros.
fn numbers(der: &[u8]) -> Option<(&[u8], &[u8])> {
    const INTEGER: u8 = 0x02;
    let (mut sequence, _) = element(SEQUENCE, der)?;
    let mut number = || {
        let (number, rest) = element(INTEGER, sequence)?;
        sequence = rest;
        let zeros = number.iter().take_while(|byte| **byte == 0).count();
        number.get(zeros..)
    };
    Some((number()?, number()?))
}

/// The first element of a DER text, which must have this tag, and what follows it.
fn element(tag: u8, der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&[found, length], rest) = der.split_first_chunk()?;
    let (length, rest) = match length {
        0..=0x7f => (length.into(), rest),
        0x81 => rest.split_first().map(|(length, rest)| (usize::from(*length), rest))?,
        0x82 => rest.split_first_chunk().map(|(length, rest)| (u16::from_be_bytes(*length).into(), rest))?,
        _ => return None,
    };
    if found == tag { rest.split_at_checked(length) } else { None }
}
