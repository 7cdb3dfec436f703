use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::{EventId, Millis, Token};
use hmac::{Hmac, KeyInit, Mac};
use proptest::prelude::*;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Sent, TOKEN};
use crate::access::{self, AccessKeyError, AccessKeyPair};
use crate::{AccessClaims, AccessKeys};

const ISSUER: &str = "https://jari.example";
const NOW: Millis = Millis(1_788_213_600_123);

/// The key of RFC 7638.
const EXAMPLE: &str = "-----BEGIN PUBLIC KEY-----\n\
    MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA0vx7agoebGcQSuuPiLJX\n\
    ZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tS\n\
    oc/BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ/2W+5JsGY4Hc5n9yBXArwl93lqt\n\
    7/RN5w6Cf0h4QyQ5v+65YGjQR0/FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0\n\
    zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt+bFTWhAI4vMQFh6WeZu0f\n\
    M4lFd2NcRwr3XPksINHaQ+G/xBniIqbw0Ls1jF44+csFCur+kEgU8awapJzKnqDK\n\
    gwIDAQAB\n\
    -----END PUBLIC KEY-----\n";
/// RSA of 1 024 bits.
const WEAK: &str = "-----BEGIN PRIVATE KEY-----\n\
    MIICeAIBADANBgkqhkiG9w0BAQEFAASCAmIwggJeAgEAAoGBANct295eOlAN3MAm\n\
    rMMPpku2/z/KKUVyi3JTmO7pK1IggL0P4jUAfj7G8WxbErG2NIxLBncHwpWFGe4+\n\
    9bg/xi+9DTzcproHMtpn4FGLkSe+8VFGS+2TPcfPPMIa99Gt2Hb6e+Yn9zXHp1ny\n\
    6+6p6RPidbk05aailfcqWotypA+VAgMBAAECgYAmMDZYNaLluEAYPgTlLW7W+yg7\n\
    uvYuJBEJfjqjE/CjR69xXlNIEslU/Nu13kfoEC0tRNdl4pOvE4sxlCzpwS+7z+M7\n\
    wpp30RhU+KOa2jtis99nXbt1nP8Mnz6EL4BJ7DR0uOPQXhM+QPtQGtB5XzXN9N27\n\
    Kof8nm1kWrjkIZDowQJBAOwcwCYkWST6Wxqrf2ksRMNloFy5osoFM3z019hoW5UC\n\
    5YELQohEvWR3MvV8ZbmI5i0txH5nUHUmxQiK3Kz5iYUCQQDpTbrZ5YZgZs4e3L9X\n\
    XgVbVNvJABI1vQt6VhonWG03T1ocerbRsNWSzjouFl4i3PNM6nTDGhlgV/U6PLPC\n\
    JMLRAkEA0GV/4ypp1A10o9GCn12HQ79LDwx59j0o+L1SVZumWZs43fEGRCgH0ciz\n\
    naCyWFPQdUfUCo09omkZtzR5GeMV0QJBANiRkzXZ3pd2VzhG6keLu6VAbJV1P3Iq\n\
    /pCdhMGpUBjbzGZLc5HLeTZBwbgug0wRlrh7m8/QVmYcwENDPgqmXUECQQDIC+Nd\n\
    sYRR5z9MM6YiJeO/Ljb9EEmhr0TOpkoXN3xy5LDNKypQ076fWlPn/MaLIt9u0S4C\n\
    Gmhu73Td9HEo7q4/\n\
    -----END PRIVATE KEY-----\n";
const WEAK_PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\n\
    MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDXLdveXjpQDdzAJqzDD6ZLtv8/\n\
    yilFcotyU5ju6StSIIC9D+I1AH4+xvFsWxKxtjSMSwZ3B8KVhRnuPvW4P8YvvQ08\n\
    3Ka6BzLaZ+BRi5EnvvFRRkvtkz3HzzzCGvfRrdh2+nvmJ/c1x6dZ8uvuqekT4nW5\n\
    NOWmopX3KlqLcqQPlQIDAQAB\n\
    -----END PUBLIC KEY-----\n";
/// Not RSA: P-256.
const CURVE: &str = "-----BEGIN PRIVATE KEY-----\n\
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgVP4bP01q+me3abLS\n\
    dl+FdfDqZibvDQy4bNMyHZXVfrKhRANCAASuxsGZBxaDL/rZY5kTq2JaLi5l4pMk\n\
    BMbgtZezOquprNJ8jQVUzdyHgQH+JUWEDxM9PSFRw9kljyP6PowykI2U\n\
    -----END PRIVATE KEY-----\n";

static OURS: LazyLock<AccessKeyPair> = LazyLock::new(|| AccessKeyPair::generate().unwrap());
static THEIRS: LazyLock<AccessKeyPair> = LazyLock::new(|| AccessKeyPair::generate().unwrap());

fn keys(current: &AccessKeyPair, other: Option<&AccessKeyPair>) -> AccessKeys {
    AccessKeys::new(&current.private_pem, other.map(|other| other.public_pem.as_str())).unwrap()
}

fn ours() -> &'static AccessKeys {
    static KEYS: LazyLock<AccessKeys> = LazyLock::new(|| keys(&OURS, None));
    &KEYS
}

fn theirs() -> &'static AccessKeys {
    static KEYS: LazyLock<AccessKeys> = LazyLock::new(|| keys(&THEIRS, None));
    &KEYS
}

fn claims() -> AccessClaims {
    AccessClaims {
        event: "concert-2026".parse().unwrap(),
        token: TOKEN.parse().unwrap(),
        account: None,
        issued_at: NOW,
        expires_at: NOW.plus(180_000),
    }
}

fn signed() -> String {
    ours().sign(ISSUER, &claims()).unwrap()
}

/// Header, payload and signature of a token.
fn parts(token: &str) -> [&str; 3] {
    token.split('.').collect::<Vec<_>>().try_into().unwrap()
}

fn json_of(part: &str) -> Value {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

fn encoded(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

/// Nobody, now or later.
fn is_nobody(token: &str) -> bool {
    ours().check(token, NOW).is_none() && ours().check_expired_too(token).is_none()
}

#[test]
fn a_token_is_what_gateways_know() {
    let claims = AccessClaims { account: Some("kim@example.com".parse().unwrap()), ..claims() };
    let token = ours().sign(ISSUER, &claims).unwrap();
    let [header, payload, _] = parts(&token);
    assert_eq!(json_of(header), json!({ "typ": "JWT", "alg": "RS256", "kid": OURS.kid }));
    assert_eq!(
        json_of(payload),
        json!({
            "iss": ISSUER,
            "aud": ["concert-2026", "jari"],
            "sub": TOKEN,
            "iat": 1_788_213_600,
            "exp": 1_788_213_781,
            "account": "kim@example.com",
        })
    );
}

#[test]
fn a_token_is_good_until_the_second_in_which_its_session_ends() {
    let token = signed();
    let end = Millis(1_788_213_781_000);
    assert!(end >= claims().expires_at);
    for now in [Millis(0), NOW, claims().expires_at, end.plus(-1)] {
        assert!(ours().check(&token, now).is_some(), "{now}");
    }
    for now in [end, end.plus(1), Millis(i64::MAX)] {
        assert!(ours().check(&token, now).is_none(), "{now}");
    }
    assert_eq!(ours().check_expired_too(&token).unwrap().token, claims().token);
}

#[test]
fn a_header_that_is_not_ours_to_the_byte_is_nobody() {
    let token = signed();
    let [header, payload, signature] = parts(&token);
    let changes = [
        json!({ "typ": "JWT", "alg": "none", "kid": OURS.kid }),
        json!({ "typ": "JWT", "alg": "None", "kid": OURS.kid }),
        json!({ "typ": "JWT", "alg": "RS384", "kid": OURS.kid }),
        json!({ "typ": "JWT", "alg": "RS256" }),
        json!({ "typ": "JWT", "alg": "RS256", "kid": THEIRS.kid }),
        json!({ "typ": "JWT", "alg": "RS256", "kid": "" }),
        json!({ "typ": "JWT", "alg": "RS256", "kid": OURS.kid, "jku": "https://evil.example/jwks.json" }),
        json!({ "typ": "JWT", "alg": "RS256", "kid": OURS.kid, "jwk": theirs().jwks().keys[0] }),
        json!({ "typ": "JWT", "alg": "RS256", "kid": OURS.kid, "crit": ["exp"] }),
        json!([]),
        json!(null),
    ];
    for change in changes {
        let forged = encoded(&change);
        assert!(is_nobody(&format!("{forged}.{payload}.{signature}")), "{change}");
        assert!(is_nobody(&format!("{forged}.{payload}.")), "{change} unsigned");
        assert!(is_nobody(&format!("{forged}.{payload}")), "{change} without a signature");
    }
    assert!(is_nobody(&format!("{header}.{payload}.")));
    assert!(is_nobody(&format!("{header}.{payload}")));
}

#[test]
fn the_public_key_is_no_secret_to_sign_with() {
    let token = signed();
    let [header, payload, _] = parts(&token);
    let hs256 = encoded(&json!({ "typ": "JWT", "alg": "HS256", "kid": OURS.kid }));
    let n = ours().jwks();
    let jwk = serde_json::to_value(&n.keys[0]).unwrap();
    let modulus = URL_SAFE_NO_PAD.decode(jwk["n"].as_str().unwrap()).unwrap();
    for secret in [OURS.public_pem.as_bytes(), OURS.public_pem.trim().as_bytes(), &modulus, b""] {
        for header in [&hs256, header] {
            let message = format!("{header}.{payload}");
            let mac = Hmac::<Sha256>::new_from_slice(secret).unwrap().chain_update(&message).finalize();
            let forged = format!("{message}.{}", URL_SAFE_NO_PAD.encode(mac.into_bytes()));
            assert!(is_nobody(&forged), "{forged}");
        }
    }
}

#[test]
fn anothers_signature_is_nobodys_even_under_our_name() {
    assert!(is_nobody(&theirs().sign(ISSUER, &claims()).unwrap()));
    let (ours, theirs) = (signed(), theirs().sign(ISSUER, &claims()).unwrap());
    let ([header, payload, _], [their_header, _, their_signature]) = (parts(&ours), parts(&theirs));
    assert!(is_nobody(&format!("{header}.{payload}.{their_signature}")));
    assert!(is_nobody(&format!("{their_header}.{payload}.{their_signature}")));
}

#[test]
fn a_signature_holds_for_nothing_else_that_the_key_signed() {
    let other = AccessClaims { event: "ktx-2026-chuseok".parse().unwrap(), ..claims() };
    let (one, other) = (signed(), ours().sign(ISSUER, &other).unwrap());
    let ([header, payload, signature], [_, other_payload, other_signature]) = (parts(&one), parts(&other));
    assert!(is_nobody(&format!("{header}.{other_payload}.{signature}")));
    assert!(is_nobody(&format!("{header}.{payload}.{other_signature}")));
}

#[test]
fn a_token_has_one_spelling() {
    let token = signed();
    let [header, payload, signature] = parts(&token);
    for spelling in [
        format!("{token}="),
        format!("{token}=="),
        format!(" {token}"),
        format!("{token} "),
        format!("{token}\n"),
        format!(".{token}"),
        format!("{token}."),
        format!("{header}..{payload}.{signature}"),
        format!("{header}.{payload}..{signature}"),
        format!("{header}.{payload}.{signature}.{signature}"),
        format!("{header}.{payload}=.{signature}"),
        token.replace('.', ":"),
        token.to_uppercase(),
    ] {
        assert!(is_nobody(&spelling), "{spelling:?}");
    }
}

#[test]
fn what_is_long_is_not_looked_at() {
    let token = signed();
    let [header, payload, signature] = parts(&token);
    for long in [
        "a".repeat(1 << 24),
        ".".repeat(1 << 20),
        format!("{header}.{}.{signature}", payload.repeat(10_000)),
        format!("{header}.{payload}.{}", signature.repeat(10_000)),
    ] {
        assert!(is_nobody(&long));
    }
}

#[test]
fn two_keys_are_good_at_once_and_one_signs() {
    let before = keys(&OURS, Some(&THEIRS));
    let after = keys(&THEIRS, Some(&OURS));
    let (early, late) = (before.sign(ISSUER, &claims()).unwrap(), after.sign(ISSUER, &claims()).unwrap());
    for keys in [&before, &after] {
        assert!(keys.check(&early, NOW).is_some());
        assert!(keys.check(&late, NOW).is_some());
    }
    assert!(keys(&THEIRS, None).check(&early, NOW).is_none());
    let kids = |keys: &AccessKeys| keys.jwks().keys.into_iter().map(|key| key.kid).collect::<Vec<_>>();
    assert_eq!(kids(&before), [OURS.kid.clone(), THEIRS.kid.clone()]);
    assert_eq!(kids(&after), [THEIRS.kid.clone(), OURS.kid.clone()]);
    assert_eq!(kids(&keys(&OURS, Some(&OURS))).as_slice(), std::slice::from_ref(&OURS.kid));
}

#[test]
fn a_public_key_checks_and_does_not_sign() {
    let public = AccessKeys::new(&OURS.public_pem, Some(&THEIRS.private_pem)).unwrap();
    assert!(!public.can_sign());
    assert!(public.check(&signed(), NOW).is_some());
    assert!(public.check(&theirs().sign(ISSUER, &claims()).unwrap(), NOW).is_some());
    assert_eq!(public.sign(ISSUER, &claims()), Err(crate::Failure::Internal));
    assert_eq!(public.jwks().keys[..1], ours().jwks().keys[..]);
}

#[test]
fn a_kid_is_the_thumbprint_of_its_key() {
    let keys = AccessKeys::new(EXAMPLE, None).unwrap();
    assert_eq!(keys.jwks().keys[0].kid, "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
    let jwk = serde_json::to_value(&keys.jwks().keys[0]).unwrap();
    assert_eq!((&jwk["kty"], &jwk["use"], &jwk["alg"]), (&json!("RSA"), &json!("sig"), &json!("RS256")));
    assert_eq!(jwk["e"], "AQAB");
    let n = jwk["n"].as_str().unwrap();
    assert!(n.starts_with("0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78Lh"), "{n}");
    let members = json!({ "e": jwk["e"], "kty": "RSA", "n": n }).to_string();
    assert_eq!(URL_SAFE_NO_PAD.encode(Sha256::digest(members)), keys.jwks().keys[0].kid);
}

#[test]
fn what_is_no_usable_key_is_refused() {
    let cut = &OURS.private_pem[..OURS.private_pem.len() / 2];
    let renamed = OURS.public_pem.replace("PUBLIC", "PRIVATE");
    for text in ["", "a key", cut, &renamed, WEAK, WEAK_PUBLIC, CURVE] {
        assert_eq!(AccessKeys::new(text, None).err(), Some(AccessKeyError::Unusable), "{text}");
        let other = AccessKeys::new(&OURS.private_pem, Some(text));
        assert_eq!(other.err(), Some(AccessKeyError::Unusable), "{text}");
    }
}

#[test]
fn keys_do_not_show_themselves() {
    let shown = format!("{:?}", keys(&OURS, Some(&THEIRS)));
    assert_eq!(shown, format!("AccessKeys {{ current: {:?}, other: Some({:?}), .. }}", OURS.kid, THEIRS.kid));
}

#[test]
fn a_bearer_is_read_in_any_case_and_nothing_else_is() {
    let bearer = |value: &str| {
        let request = Sent::to("GET /api/offerings").header("authorization", value).request();
        access::bearer(request.headers()).map(str::to_owned)
    };
    for value in ["Bearer a.b.c", "bearer a.b.c", "BEARER   a.b.c "] {
        assert_eq!(bearer(value).as_deref(), Some("a.b.c"), "{value:?}");
    }
    for value in ["", "Bearer", "Basic a.b.c", "a.b.c", "Bearera.b.c x"] {
        assert_eq!(bearer(value), None, "{value:?}");
    }
}

#[test]
fn the_issuer_is_the_public_address_or_the_domain_that_was_called() {
    let request = Sent::to("GET /api/status/poll").request();
    assert_eq!(access::issuer(Some(ISSUER), &request), ISSUER);
    let domain = "a1b2c3d4e5.execute-api.ap-northeast-2.amazonaws.com";
    assert_eq!(access::issuer(None, &request), format!("https://{domain}"));
    let lying = Sent::to("GET /api/status/poll").header("host", "evil.example").request();
    assert_eq!(access::issuer(None, &lying), format!("https://{domain}"));
}

prop_compose! {
    fn all_claims()(
        event in "[a-z0-9][a-z0-9-]{0,62}",
        account in proptest::option::of("[^\\p{C}]{1,60}"),
        issued_at in 0..1i64 << 47,
        lasts_ms in 0..1i64 << 40,
    ) -> AccessClaims {
        let event: EventId = event.parse().unwrap();
        let token = Token::random();
        let account = account.and_then(|account| account.parse().ok());
        let issued_at = Millis(issued_at);
        AccessClaims { event, token, account, issued_at, expires_at: issued_at.plus(lasts_ms) }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_token_says_what_was_signed_in_whole_seconds(claims in all_claims()) {
        let token = ours().sign(ISSUER, &claims).unwrap();
        prop_assert!(token.len() < 4_096);
        let read = ours().check_expired_too(&token).unwrap();
        prop_assert_eq!(ours().check(&token, claims.expires_at.plus(-1)), Some(read.clone()));
        prop_assert_eq!(
            (&read.event, read.token, &read.account),
            (&claims.event, claims.token, &claims.account)
        );
        prop_assert!((0..1_000).contains(&(claims.issued_at.0 - read.issued_at.0)));
        prop_assert!((0..1_000).contains(&(read.expires_at.0 - claims.expires_at.0)));
    }

    #[test]
    fn a_changed_payload_is_nobody(claims in all_claims(), name in "iss|aud|sub|iat|exp|account|admin") {
        let token = ours().sign(ISSUER, &claims).unwrap();
        let [header, payload, signature] = parts(&token);
        let mut changed = json_of(payload);
        changed[name] = json!("another");
        let forged = format!("{header}.{}.{signature}", encoded(&changed));
        prop_assert!(is_nobody(&forged));
    }
}

proptest! {
    #[test]
    fn another_letter_anywhere_is_nobody(at in 0..600usize, letter in "[A-Za-z0-9_.=-]") {
        let mut token = signed();
        prop_assume!(at < token.len() && token[at..=at] != letter);
        token.replace_range(at..=at, &letter);
        prop_assert!(is_nobody(&token), "{token}");
    }

    #[test]
    fn a_part_of_a_token_is_nobody(from in 0..600usize, to in 0..600usize) {
        let token = signed();
        let (from, to) = (from.min(token.len()), to.min(token.len()));
        prop_assume!(from <= to && to - from < token.len());
        prop_assert!(is_nobody(&token[from..to]));
    }

    #[test]
    fn any_text_is_nobody(text in "\\PC{0,300}", dots in "[A-Za-z0-9_-]{0,80}(\\.[A-Za-z0-9_-]{0,80}){0,4}") {
        let signed = signed();
        let [header, ..] = parts(&signed);
        for rest in [text, dots] {
            let under_our_name = format!("{header}.{rest}");
            prop_assert!(is_nobody(&rest));
            prop_assert!(is_nobody(&under_our_name));
        }
    }

    #[test]
    fn no_text_is_a_key_that_panics(text in "\\PC{0,300}", at in 0..1_600usize, letter in "[A-Za-z0-9+/=]") {
        prop_assert!(AccessKeys::new(&text, None).is_err());
        let mut pem = OURS.public_pem.clone();
        let at = at % pem.len();
        pem.replace_range(at..=at, &letter);
        // Another modulus is another key: what must not happen is a panic.
        let _ = AccessKeys::new(&pem, None).map(|keys| keys.jwks());
    }
}
