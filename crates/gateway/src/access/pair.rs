//! Making keys for access tokens: by AWS-LC, for the TLS provider that functions link only uses them.

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der, PublicKeyX509Der};
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::KeyPair as _;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::AccessKeyError;
use super::material::Public;

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
            kid: Public::of(key.public_key().as_ref())?.thumbprint(),
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
