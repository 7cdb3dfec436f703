use domain::{EventId, Millis, Token};
use proptest::prelude::*;

use super::TOKEN;
use crate::key::KEY_LENGTH;
use crate::{KeyRing, PlaceKey, Window};

fn event() -> EventId {
    "concert-2026".parse().unwrap()
}

fn token() -> Token {
    TOKEN.parse().unwrap()
}

fn ring() -> KeyRing {
    KeyRing::new(b"a master key", None)
}

prop_compose! {
    fn places()(
        epoch in 0..1u64 << 24,
        score in 0..1u64 << 53,
        rank in proptest::option::of(1..1u64 << 40),
        ticket_number in proptest::option::of(1..1u64 << 53),
        ticket_count in proptest::option::of(0..255u32),
        net in 0..1u64 << 48,
        read_at in 0..1i64 << 47,
        earliest_at in 0..1i64 << 47,
        interval_ms in 0..u32::from(u16::MAX),
    ) -> PlaceKey {
        let (read_at, earliest_at) = (Millis(read_at), Millis(earliest_at));
        PlaceKey { epoch, score, rank, ticket_number, ticket_count, net, read_at, earliest_at, interval_ms }
    }
}

proptest! {
    #[test]
    fn a_key_says_what_was_signed(place in places()) {
        let key = ring().sign(&event(), token(), &place);
        prop_assert_eq!(key.len(), KEY_LENGTH);
        prop_assert_eq!(ring().check(&event(), token(), &key), Some(place));
    }

    #[test]
    fn a_forged_key_is_none(place in places(), at in 0..KEY_LENGTH, by in 1..64usize) {
        const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let mut key = ring().sign(&event(), token(), &place).into_bytes();
        let digit = ALPHABET.iter().position(|digit| *digit == key[at]).unwrap();
        key[at] = ALPHABET[(digit + by) % 64];
        let key = String::from_utf8(key).unwrap();
        prop_assert_eq!(ring().check(&event(), token(), &key), None);
    }

    #[test]
    fn a_foreign_key_is_none(place in places(), other_event in "[a-z]{1,20}") {
        let key = ring().sign(&event(), token(), &place);
        prop_assert_eq!(ring().check(&event(), Token::random(), &key), None);
        prop_assert_eq!(ring().check(&other_event.parse().unwrap(), token(), &key), None);
        prop_assert_eq!(KeyRing::new(b"another master key", None).check(&event(), token(), &key), None);
    }

    #[test]
    fn a_cut_or_lengthened_key_is_none(place in places(), at in 0..KEY_LENGTH, more in "[A-Za-z0-9=]{1,8}") {
        let key = ring().sign(&event(), token(), &place);
        prop_assert_eq!(ring().check(&event(), token(), &key[..at]), None);
        prop_assert_eq!(ring().check(&event(), token(), &format!("{key}{more}")), None);
    }

    #[test]
    fn no_text_panics(text in ".{0,120}", exact in "[A-Za-z0-9_-]{80}", wide in "[가-힣]{20}[ -~]{20}") {
        for text in [text, exact, wide] {
            prop_assert_eq!(ring().check(&event(), token(), &text), None);
        }
    }
}

#[test]
fn every_key_is_as_long_as_every_other() {
    let little = PlaceKey {
        epoch: 0,
        score: 0,
        rank: None,
        ticket_number: None,
        ticket_count: Some(0),
        net: 0,
        read_at: Millis(0),
        earliest_at: Millis(0),
        interval_ms: 0,
    };
    let much = PlaceKey {
        epoch: 1 << 23,
        score: 1 << 53,
        rank: Some(1 << 39),
        ticket_number: Some(1 << 53),
        ticket_count: None,
        net: 1 << 47,
        read_at: Millis(1 << 47),
        earliest_at: Millis(1 << 47),
        interval_ms: 10_000,
    };
    for place in [little, much] {
        assert_eq!(ring().sign(&event(), token(), &place).len(), 80);
    }
}

#[test]
fn while_the_master_key_changes_both_are_valid() {
    let place = PlaceKey {
        epoch: 3,
        score: 17,
        rank: Some(5),
        ticket_number: Some(17),
        ticket_count: Some(2),
        net: 12,
        read_at: Millis(1_789_005_601_123),
        earliest_at: Millis(1_789_005_601_623),
        interval_ms: 1_000,
    };
    let (old, new) = (KeyRing::new(b"old", None), KeyRing::new(b"new", Some(b"old")));
    assert_eq!(new.check(&event(), token(), &old.sign(&event(), token(), &place)), Some(place.clone()));
    assert_eq!(new.check(&event(), token(), &new.sign(&event(), token(), &place)), Some(place.clone()));
    assert_eq!(old.check(&event(), token(), &new.sign(&event(), token(), &place)), None);
    assert_eq!(
        KeyRing::new(b"new", None).check(&event(), token(), &old.sign(&event(), token(), &place)),
        None
    );
}

#[test]
fn the_window_is_two_intervals_wide_and_no_patient_caller_is_too_early() {
    let answered_at = Millis(1_000_000);
    let earliest_at = PlaceKey::earliest_after(answered_at, 2_000);
    let place = PlaceKey {
        epoch: 0,
        score: 1,
        rank: Some(1),
        ticket_number: Some(1),
        ticket_count: Some(0),
        net: 0,
        read_at: answered_at,
        earliest_at,
        interval_ms: 2_000,
    };
    // The shortest wait that jitter can ask for.
    assert_eq!(place.window(answered_at.plus(1_600)), Window::Open);
    assert_eq!(place.window(answered_at.plus(400)), Window::TooEarly { wait_ms: 600 });
    assert_eq!(place.window(earliest_at.plus(-1)), Window::TooEarly { wait_ms: 1 });
    assert_eq!(place.window(earliest_at), Window::Open);
    assert_eq!(place.window(earliest_at.plus(4_000)), Window::Open);
    assert_eq!(place.window(earliest_at.plus(4_001)), Window::Over);
    assert_eq!(place.window(Millis(i64::MAX)), Window::Over);
    // Told by a clock that is far ahead.
    assert_eq!(place.window(earliest_at.plus(-1_001)), Window::Over);
    assert_eq!(place.window(Millis(i64::MIN)), Window::Over);
}
