//! RSA keys as PEM texts (RFC 7468): read, made, and named by their thumbprints.

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der, PublicKeyX509Der};
use aws_lc_rs::rsa::{KeyPair, KeySize, PublicKey};
use aws_lc_rs::signature::KeyPair as _;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{PrivatePkcs8KeyDer, SubjectPublicKeyInfoDer};
use sha2::{Digest, Sha256};

/// Why there is no key. Never tells what stands in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AccessKeyError {
    /// A text holds none that is read, or one of another strength.
    #[error(
        "must be an RSA key of 2048 to 8192 bits in PEM: BEGIN PRIVATE KEY (PKCS#8) or, where nothing is signed, \
         BEGIN PUBLIC KEY"
    )]
    Unusable,
    /// A new one could not be made.
    #[error("cannot make an RSA key")]
    NotMade,
}

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
            let public = Public::of(signer.public_key())?;
            return Ok(Self { signer: Some(signer), public });
        }
        let key =
            SubjectPublicKeyInfoDer::from_pem_slice(pem.as_bytes()).map_err(|_| AccessKeyError::Unusable)?;
        let key = PublicKey::from_der(&key).map_err(|_| AccessKeyError::Unusable)?;
        Ok(Self { signer: None, public: Public::of(&key)? })
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
    fn of(key: &PublicKey) -> Result<Self, AccessKeyError> {
        let der = key.as_ref();
        let (n, e) = numbers(der).ok_or(AccessKeyError::Unusable)?;
        let bits = n.len() * 8 - n.first().map_or(0, |first| first.leading_zeros() as usize);
        if !(2_048..=8_192).contains(&bits) {
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

/// Modulus and exponent of an `RSAPublicKey`, without leading zeros.
fn numbers(der: &[u8]) -> Option<(&[u8], &[u8])> {
    const INTEGER: u8 = 0x02;
    const SEQUENCE: u8 = 0x30;
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

/// A new key for access tokens.
pub struct AccessKeyPair {
    /// PKCS#8, in PEM: what signs.
    pub private_pem: String,
    /// `SubjectPublicKeyInfo`, in PEM: what checks.
    pub public_pem: String,
    /// The name by which tokens refer to it.
    pub kid: String,
}

impl AccessKeyPair {
    /// A random RSA key of 2 048 bits, the most common size: takes about a tenth of a second.
    pub fn generate() -> Result<Self, AccessKeyError> {
        let key = KeyPair::generate(KeySize::Rsa2048).map_err(|_| AccessKeyError::NotMade)?;
        let private: Pkcs8V1Der<'_> = key.as_der().map_err(|_| AccessKeyError::NotMade)?;
        let public: PublicKeyX509Der<'_> = key.public_key().as_der().map_err(|_| AccessKeyError::NotMade)?;
        Ok(Self {
            private_pem: pem("PRIVATE KEY", private.as_ref()),
            public_pem: pem("PUBLIC KEY", public.as_ref()),
            kid: Public::of(key.public_key())?.thumbprint(),
        })
    }
}

/// RFC 7468: lines of 64 characters.
fn pem(label: &str, der: &[u8]) -> String {
    let mut text = format!("-----BEGIN {label}-----\n");
    for line in der.chunks(48) {
        STANDARD.encode_string(line, &mut text);
        text.push('\n');
    }
    text + "-----END " + label + "-----\n"
}
