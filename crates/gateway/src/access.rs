//! Access tokens: who was let in, in a form that any gateway can check without us. A JWT (RFC 7519) signed with
//! RS256, whose public keys are published (RFC 7517).
//!
//! A token is never asked how it wants to be checked: its header must be, byte for byte, the one that a key of
//! ours writes, and nothing else of it is read before that key's signature holds.

use std::borrow::Cow;
use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::{Account, EventId, Millis, Token};
use http::HeaderMap;
use http::header::AUTHORIZATION;
use lambda_http::request::RequestContext;
use lambda_http::{Request, RequestExt};
use ring::rand::SystemRandom;
use ring::rsa::KeyPair;
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, UnparsedPublicKey};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

mod material;
#[cfg(any(test, feature = "generate"))]
mod pair;

pub use material::AccessKeyError;
use material::{Material, Public};
#[cfg(any(test, feature = "generate"))]
pub use pair::AccessKeyPair;

/// The audience of every token of ours, beside its event.
pub const AUDIENCE: &str = "jari";

/// No token of ours comes near: an account has 255 bytes, an RSA signature 1 024 at most.
const MAX_BYTES: usize = 4_096;

/// What an access token says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessClaims {
    /// The sale it is for.
    pub event: EventId,
    /// The place it belongs to.
    pub token: Token,
    /// Who buys, where that was proven.
    pub account: Option<Account>,
    /// When it was signed. Written in whole seconds, rounded down.
    pub issued_at: Millis,
    /// When it ends. Written in whole seconds, rounded up: it never ends before the session, whose own end is
    /// Redis' matter.
    pub expires_at: Millis,
}

/// What signs and checks access tokens: one or two keys whose tokens are good, of which the first signs.
pub struct AccessKeys {
    signer: Option<KeyPair>,
    current: Verifier,
    other: Option<Verifier>,
}

/// A key whose tokens are good.
struct Verifier {
    /// The header of all of its tokens, encoded.
    header: String,
    key: UnparsedPublicKey<Vec<u8>>,
    jwk: Jwk,
}

/// A public key as published (RFC 7517).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Jwk {
    kty: &'static str,
    #[serde(rename = "use")]
    usage: &'static str,
    alg: &'static str,
    /// The key's thumbprint (RFC 7638).
    pub kid: String,
    n: String,
    e: String,
}

/// All keys whose tokens are good: the body of `/.well-known/jwks.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Jwks {
    /// The one that signs stands first.
    pub keys: Vec<Jwk>,
}

#[derive(Serialize)]
struct Header<'a> {
    typ: &'static str,
    alg: &'static str,
    kid: &'a str,
}

#[derive(Serialize, Deserialize)]
struct Payload<'a> {
    #[serde(borrow)]
    iss: Cow<'a, str>,
    #[serde(borrow)]
    aud: (EventId, Cow<'a, str>),
    sub: Token,
    iat: i64,
    exp: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    account: Option<Account>,
}

impl AccessKeys {
    /// Keys from their PEM texts: the current one in PKCS#8, or only its public part where nothing is signed;
    /// another whose tokens are good as well, the one before or the one to come, of which the public part is
    /// enough.
    pub fn new(current_pem: &str, other_pem: Option<&str>) -> Result<Self, AccessKeyError> {
        let Material { signer, public } = Material::read(current_pem)?;
        let current = Verifier::of(&public)?;
        let other = other_pem.map(|pem| Verifier::of(&Material::read(pem)?.public)).transpose()?;
        let other = other.filter(|other| other.jwk.kid != current.jwk.kid);
        Ok(Self { signer, current, other })
    }

    /// Whether the current key has its private part.
    pub fn can_sign(&self) -> bool {
        self.signer.is_some()
    }

    /// A token of these claims. `issuer` is the address below which the keys are published.
    pub fn sign(&self, issuer: &str, claims: &AccessClaims) -> Result<String, Failure> {
        let Some(signer) = &self.signer else {
            return Err(Failure::internal(&"an access token is to be signed with a public key"));
        };
        let payload = serde_json::to_vec(&Payload {
            iss: issuer.into(),
            aud: (claims.event.clone(), AUDIENCE.into()),
            sub: claims.token,
            iat: claims.issued_at.0.div_euclid(1_000),
            exp: claims.expires_at.0.saturating_add(999).div_euclid(1_000),
            account: claims.account.clone(),
        });
        let payload = payload.map_err(|error| Failure::internal(&error))?;
        let mut token = format!("{}.{}", self.current.header, URL_SAFE_NO_PAD.encode(payload));
        let mut signature = vec![0; signer.public().modulus_len()];
        let done = signer.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), token.as_bytes(), &mut signature);
        done.map_err(|error| Failure::internal(&error))?;
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(signature, &mut token);
        Ok(token)
    }

    /// What a token says, if it is one of ours and `now`, by the functions' clock, is before its end.
    pub fn check(&self, token: &str, now: Millis) -> Option<AccessClaims> {
        self.check_expired_too(token).filter(|claims| now < claims.expires_at)
    }

    /// The same, also after its end: enough to read a reservation and to give it back.
    pub fn check_expired_too(&self, token: &str) -> Option<AccessClaims> {
        if token.len() > MAX_BYTES {
            return None;
        }
        let (message, signature) = token.rsplit_once('.')?;
        let (header, payload) = message.split_once('.')?;
        let mut keys = std::iter::once(&self.current).chain(&self.other);
        let signer = keys.find(|key| key.header == header)?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        signer.key.verify(message.as_bytes(), &signature).ok()?;
        let payload = URL_SAFE_NO_PAD.decode(payload).ok()?;
        let payload: Payload = serde_json::from_slice(&payload).ok()?;
        let (event, audience) = payload.aud;
        (audience == AUDIENCE).then_some(AccessClaims {
            event,
            token: payload.sub,
            account: payload.account,
            issued_at: Millis(payload.iat.checked_mul(1_000)?),
            expires_at: Millis(payload.exp.checked_mul(1_000)?),
        })
    }

    /// What is published, so that others can check our tokens.
    pub fn jwks(&self) -> Jwks {
        let keys = std::iter::once(&self.current).chain(&self.other);
        Jwks { keys: keys.map(|key| key.jwk.clone()).collect() }
    }
}

impl fmt::Debug for AccessKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("AccessKeys");
        shown.field("current", &self.current.jwk.kid);
        shown.field("other", &self.other.as_ref().map(|other| &other.jwk.kid));
        shown.finish_non_exhaustive()
    }
}

impl Verifier {
    fn of(public: &Public) -> Result<Self, AccessKeyError> {
        let key = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, public.der.clone());
        let kid = public.thumbprint();
        let header = serde_json::to_vec(&Header { typ: "JWT", alg: "RS256", kid: &kid });
        let header = URL_SAFE_NO_PAD.encode(header.map_err(|_| AccessKeyError::Unusable)?);
        let (n, e) = (public.n.clone(), public.e.clone());
        Ok(Self { header, key, jwk: Jwk { kty: "RSA", usage: "sig", alg: "RS256", kid, n, e } })
    }
}

/// The token of an `Authorization: Bearer` header.
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    bearer_of(headers.get(AUTHORIZATION)?.to_str().ok()?)
}

/// The token of such a header's value.
pub fn bearer_of(authorization: &str) -> Option<&str> {
    let (scheme, token) = authorization.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Who signs for this request: the deployment's public address or, without one, the domain it came to.
pub fn issuer<'a>(public_url: Option<&'a str>, request: &Request) -> Cow<'a, str> {
    if let Some(url) = public_url {
        return url.into();
    }
    let domain = match request.request_context_ref() {
        Some(RequestContext::ApiGatewayV2(context)) => context.domain_name.as_deref(),
        _ => None,
    };
    // API Gateway always tells it, and not by what the caller says.
    format!("https://{}", domain.unwrap_or_default()).into()
}
