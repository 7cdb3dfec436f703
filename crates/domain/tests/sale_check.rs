//! Every kind of mistake in a definition, with its path and its line; and the JSON Schema says the same.

use std::sync::OnceLock;

use domain::Millis;
use domain::layout::Edition;
use domain::sale::{PaymentMode, PreQueue, Problem, check};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;

/// A definition without a mistake. Lines matter: the cases below name them.
const GOOD: &str = r#"{
  "$schema": "./sale.schema.json",
  "eventId": "small",
  "title": "작은 공연",
  "opensAt": "2026-09-01T07:00:00+09:00",
  "closesAt": 1788300000000,
  "preQueue": "shuffle",
  "admission": {
    "perSecond": 5,
    "maxActive": 100,
    "activeSeconds": 60,
    "claimSeconds": 20
  },
  "holdSeconds": 60,
  "limitPerAccount": 4,
  "requireAccount": false,
  "anonymous": "accepted",
  "joinsPerAddressPerSecond": 20,
  "payment": { "mode": "deferred",
    "dueAfterSeconds": 300,
    "currency": "KRW" },
  "default": { "offeringId": "SHOW-1", "sectionId": "floor" },
  "offerings": [
    { "id": "SHOW-1",
      "date": "2026-09-24",
      "hall": "큰 방",
      "sections": [
        { "id": "R", "name": "R석", "price": 1000,
          "seats": [
            { "rows": "1-2", "seats": "A-C" },
            { "rows": "3", "seats": "1,2", "prefix": "x-" }
          ] },
        { "id": "floor", "name": "스탠딩", "price": 0,
          "capacity": 10 } ] },
    { "id": "SHOW-2",
      "date": "2026-09-25",
      "sections": [
        { "id": "floor", "name": "스탠딩", "price": 500,
          "capacity": 10 } ] }
  ]
}
"#;

/// One mistake.
struct Case {
    /// The part of [`GOOD`] that is replaced (once), and by what.
    from: &'static str,
    to: &'static str,
    path: &'static str,
    line: u32,
    /// A part of the reason.
    reason: &'static str,
    /// Whether a JSON Schema can say it.
    in_schema: bool,
}

const fn case(
    from: &'static str,
    to: &'static str,
    path: &'static str,
    line: u32,
    reason: &'static str,
    in_schema: bool,
) -> Case {
    Case { from, to, path, line, reason, in_schema }
}

const SCHEMA: bool = true;
const CHECK_ONLY: bool = false;

#[rustfmt::skip]
const THE_SALE: &[Case] = &[
    case(r#""./sale.schema.json""#, "1", "$.$schema", 2, "must be text", SCHEMA),
    case(r#""eventId": "small","#, "", "$.eventId", 1, "is missing", SCHEMA),
    case(r#""small""#, r#""Small""#, "$.eventId", 3, "1 to 63", SCHEMA),
    case(r#""small""#, r#""jari""#, "$.eventId", 3, "not jari", SCHEMA),
    case(r#""small""#, "7", "$.eventId", 3, "must be text", SCHEMA),
    case(r#""title": "작은 공연","#, "", "$.title", 1, "is missing", SCHEMA),
    case(r#""작은 공연""#, r#""  ""#, "$.title", 4, "1 to 200 characters", SCHEMA),
    case(r#""작은 공연""#, r#""작은\n공연""#, "$.title", 4, "control characters", SCHEMA),
    case(r#""opensAt": "2026-09-01T07:00:00+09:00","#, "", "$.opensAt", 1, "is missing", SCHEMA),
    case(r#""2026-09-01T07:00:00+09:00""#, r#""2026-09-01 07:00""#, "$.opensAt", 5, "Unix milliseconds or", SCHEMA),
    case(r#""2026-09-01T07:00:00+09:00""#, r#""2026-09-31T07:00:00Z""#, "$.opensAt", 5, "Unix milliseconds or", CHECK_ONLY),
    case(r#""2026-09-01T07:00:00+09:00""#, r#""2026-09-01 07:00:00+09:00""#, "$.opensAt", 5, "Unix milliseconds or", SCHEMA),
    case(r#""2026-09-01T07:00:00+09:00""#, r#""2026-09-01T07:00:00""#, "$.opensAt", 5, "Unix milliseconds or", SCHEMA),
    case(r#""2026-09-01T07:00:00+09:00""#, "1788213600", "$.opensAt", 5, "milliseconds here", SCHEMA),
    case(r#""2026-09-01T07:00:00+09:00""#, "true", "$.opensAt", 5, "Unix milliseconds or", SCHEMA),
    case("1788300000000", "9999999999999", "$.closesAt", 6, "after 2099", SCHEMA),
    case("1788300000000", "1788213600000", "$.closesAt", 6, "after opensAt", CHECK_ONLY),
    case("1788300000000", "1796000000000", "$.closesAt", 6, "90 days", CHECK_ONLY),
    case(r#""shuffle""#, r#""shufle""#, "$.preQueue", 7, "did you mean shuffle?", SCHEMA),
    case(r#""shuffle""#, r#""lottery""#, "$.preQueue", 7, "closed or fifo or shuffle", SCHEMA),
    case(r#""holdSeconds": 60"#, r#""holdSeconds": 0"#, "$.holdSeconds", 14, "from 1 to 86400", SCHEMA),
    case(r#""holdSeconds": 60"#, r#""holdSeconds": 1.5"#, "$.holdSeconds", 14, "whole number", SCHEMA),
    case(r#""holdSeconds""#, r#""holdSecond""#, "$.holdSecond", 14, "did you mean holdSeconds?", SCHEMA),
    case(r#""holdSeconds""#, r#""hold_seconds""#, "$.hold_seconds", 14, "did you mean holdSeconds?", SCHEMA),
    case(r#""holdSeconds""#, r#""colour of it""#, r#"$["colour of it"]"#, 14, "not a known field: $schema", SCHEMA),
    case(r#""holdSeconds": 60"#, r#""limitPerAccount": 3"#, "$.limitPerAccount", 15, "second time", CHECK_ONLY),
    case(r#""limitPerAccount": 4"#, r#""limitPerAccount": 101"#, "$.limitPerAccount", 15, "from 1 to 100", SCHEMA),
    case(r#""limitPerAccount": 4"#, r#""limitPerAccount": null"#, "$.limitPerAccount", 15, "from 1 to 100", SCHEMA),
    case(r#""requireAccount": false"#, r#""requireAccount": "no""#, "$.requireAccount", 16, "true or false", SCHEMA),
    case(r#""anonymous": "accepted","#, "", "$.requireAccount", 16, "one person can be many tokens", SCHEMA),
    case(r#""accepted""#, r#""yes""#, "$.anonymous", 17, "must be accepted", SCHEMA),
    case("Second\": 20", "Second\": 100001", "$.joinsPerAddressPerSecond", 18, "from 1 to 100000", SCHEMA),
    case(r#""SHOW-1", "sectionId": "floor" }"#, r#""SHOW-1" }"#, "$.default.sectionId", 22, "is missing", SCHEMA),
    case(r#""SHOW-1", "sectionId""#, r#""SHOW 1", "sectionId""#, "$.default.offeringId", 22, "1 to 32", SCHEMA),
    case(r#""SHOW-1", "sectionId": "floor" }"#, r#""SHOW-2", "sectionId": "R" }"#, "$.default", 22, "no section R in an offering SHOW-2", CHECK_ONLY),
];

#[rustfmt::skip]
const ADMISSION: &[Case] = &[
    case(r#""perSecond": 5,"#, "", "$.admission", 8, "either perSecond, or databaseTps", SCHEMA),
    case(r#""perSecond": 5"#, r#""perSecond": 0"#, "$.admission.perSecond", 9, "from 0.001 to 10000", SCHEMA),
    case(r#""perSecond": 5"#, r#""perSecond": "5""#, "$.admission.perSecond", 9, "must be a number", SCHEMA),
    case(r#""perSecond": 5"#, r#""perSecond": 5, "databaseTps": 5"#, "$.admission", 8, "either perSecond", SCHEMA),
    case(r#""perSecond": 5"#, r#""databaseTps": 5"#, "$.admission", 8, "either perSecond", SCHEMA),
    case(r#""perSecond": 5"#, r#""databaseTps": 5, "safetyRatio": 1.5"#, "$.admission.safetyRatio", 9, "to 1", SCHEMA),
    case(r#""perSecond": 5"#, r#""databaseTps": 100000, "safetyRatio": 0.5"#, "$.admission", 8, "is 50000", CHECK_ONLY),
    case(r#""maxActive": 100,"#, "", "$.admission.maxActive", 8, "is missing", SCHEMA),
    case(r#""maxActive": 100"#, r#""maxActive": -1"#, "$.admission.maxActive", 10, "from 1 to 1000000", SCHEMA),
    case(r#""activeSeconds": 60"#, r#""activeSeconds": 9"#, "$.admission.activeSeconds", 11, "from 10", SCHEMA),
    case(r#""activeSeconds": 60"#, r#""activeSeconds": 19"#, "$.admission.claimSeconds", 12, "more than activeSeconds (19)", CHECK_ONLY),
    case(r#""claimSeconds": 20"#, r#""claimSeconds": 14"#, "$.admission.claimSeconds", 12, "from 15", SCHEMA),
    case(r#""claimSeconds": 20"#, r#""compensateNoShows": 1"#, "$.admission.compensateNoShows", 12, "true or false", SCHEMA),
    case(r#""claimSeconds": 20"#, r#""backpressureSeconds": 0"#, "$.admission.backpressureSeconds", 12, "from 1 to 3600", SCHEMA),
    case(r#""claimSeconds": 20"#, r#""backpresureSeconds": 10"#, "$.admission.backpresureSeconds", 12, "did you mean backpressureSeconds?", SCHEMA),
    case(r#""claimSeconds""#, r#""claimSecond""#, "$.admission.claimSecond", 12, "did you mean claimSeconds?", SCHEMA),
];

#[rustfmt::skip]
const PAYMENT: &[Case] = &[
    case(r#""deferred""#, r#""later""#, "$.payment.mode", 19, "none or deferred", SCHEMA),
    case(r#""deferred""#, r#""none""#, "$.payment.dueAfterSeconds", 20, "only for mode deferred", SCHEMA),
    case(r#""dueAfterSeconds": 300,"#, "", "$.payment", 19, "exactly one of dueAt and dueAfterSeconds", SCHEMA),
    case(r#""dueAfterSeconds": 300,"#, r#""dueAfterSeconds": 300, "dueAt": 1788300000000,"#, "$.payment", 19, "exactly one", SCHEMA),
    case(r#""dueAfterSeconds": 300"#, r#""dueAt": "2026-09-01T06:59:59+09:00""#, "$.payment.dueAt", 20, "before opensAt", CHECK_ONLY),
    case(r#""dueAfterSeconds": 300"#, r#""dueAfterSeconds": 0"#, "$.payment.dueAfterSeconds", 20, "from 1 to 7776000", SCHEMA),
    case(r#""KRW""#, r#""won""#, "$.payment.currency", 21, "ISO 4217", SCHEMA),
    case(r#""currency""#, r#""curency""#, "$.payment.curency", 21, "did you mean currency?", SCHEMA),
];

#[rustfmt::skip]
const OFFERINGS: &[Case] = &[
    case(r#""id": "SHOW-2""#, r#""id": "SHOW-1""#, "$.offerings[1].id", 35, "already the id at $.offerings[0].id", CHECK_ONLY),
    case(r#""id": "SHOW-2""#, r#""id": "쇼""#, "$.offerings[1].id", 35, "1 to 32", SCHEMA),
    case(r#""id": "SHOW-2","#, "", "$.offerings[1].id", 35, "is missing", SCHEMA),
    case("2026-09-25", "2026-02-29", "$.offerings[1].date", 36, "YYYY-MM-DD", CHECK_ONLY),
    case("2026-09-25", "2026-9-25", "$.offerings[1].date", 36, "YYYY-MM-DD", SCHEMA),
    case(r#""hall": "큰 방""#, r#""hall": """#, "$.offerings[0].hall", 26, "1 to 100", SCHEMA),
    case(r#""hall": "큰 방""#, r#""hall": 7"#, "$.offerings[0].hall", 26, "an attribute must be text", SCHEMA),
    case(r#""hall""#, r#""Hall""#, "$.offerings[0].Hall", 26, "cannot be an attribute's name", SCHEMA),
    case(r#""hall""#, r#""offeringId""#, "$.offerings[0].offeringId", 26, "cannot be an attribute's name", SCHEMA),
    case("\"hall\": \"큰 방\",\n      \"sections\"", "\"hall\": \"큰 방\",\n      \"section\"", "$.offerings[0].section", 27, "did you mean sections?", SCHEMA),
    case(r#""id": "R", "#, "", "$.offerings[0].sections[0].id", 28, "is missing", SCHEMA),
    case(r#""id": "R""#, r#""id": "floor""#, "$.offerings[0].sections[1].id", 33, "already the id at $.offerings[0].sections[0].id", CHECK_ONLY),
    case(r#""price": 1000"#, r#""price": 1000000001"#, "$.offerings[0].sections[0].price", 28, "from 0 to 1000000000", SCHEMA),
    case(r#""price": 1000,"#, r#""price": "1,000","#, "$.offerings[0].sections[0].price", 28, "whole number", SCHEMA),
    case(r#""name": "R석", "#, "", "$.offerings[0].sections[0].name", 28, "is missing", SCHEMA),
    case(r#""price": 1000,"#, r#""price": 1000, "capacity": 3,"#, "$.offerings[0].sections[0]", 28, "exactly one of capacity and seats", SCHEMA),
    case("500,\n          \"capacity\": 10", "500", "$.offerings[1].sections[0]", 38, "exactly one of capacity and seats", SCHEMA),
    case("500,\n          \"capacity\": 10", "500,\n          \"capacity\": 0", "$.offerings[1].sections[0].capacity", 39, "from 1 to 200000", SCHEMA),
    case("500,\n          \"capacity\": 10", "500,\n          \"capacity\": 199990", "$.offerings", 23, "has 200008 places, at most 200000", CHECK_ONLY),
];

#[rustfmt::skip]
const SEATS: &[Case] = &[
    case(r#""rows": "1-2", "#, "", "$.offerings[0].sections[0].seats[0].rows", 30, "is missing", SCHEMA),
    case(r#""rows": "1-2""#, r#""rows": 12"#, "$.offerings[0].sections[0].seats[0].rows", 30, "must be text", SCHEMA),
    case(r#""rows": "1-2""#, r#""rows": "1;2""#, "$.offerings[0].sections[0].seats[0].rows", 30, "nor a range", SCHEMA),
    case(r#""rows": "1-2""#, r#""rows": "2-1""#, "$.offerings[0].sections[0].seats[0].rows", 30, "runs backwards", CHECK_ONLY),
    case(r#""rows": "1-2""#, r#""row": "1-2""#, "$.offerings[0].sections[0].seats[0].row", 30, "did you mean rows?", SCHEMA),
    case(r#""seats": "A-C""#, r#""seats": "A-C,B""#, "$.offerings[0].sections[0].seats[0].seats", 30, "names B twice", CHECK_ONLY),
    case(r#""prefix": "x-""#, r#""prefix": "x_""#, "$.offerings[0].sections[0].seats[1].prefix", 31, "must be of", SCHEMA),
    case(r#""rows": "3", "seats": "1,2", "prefix": "x-""#, r#""rows": "2", "seats": "D""#, "$.offerings[0].sections[0].seats[1]", 31, "names row 2 of this section again", CHECK_ONLY),
    case(r#""rows": "1-2""#, r#""rows": "1-900""#, "$.offerings[0].sections[0].seats[0].rows", 30, "more than 2000 seats", CHECK_ONLY),
    case(r#""seats": "1,2""#, r#""seats": "1-1995""#, "$.offerings[0].sections[0].seats", 29, "names 2001 seats", CHECK_ONLY),
    case(r#""capacity": 10 } ] },"#, r#""seats": [{ "rows": "2-9", "seats": "C" }] } ] },"#, "$.offerings[0].sections[1].seats[0]", 34, "seats of this offering again: 2C", CHECK_ONLY),
    case(r#""capacity": 10 } ] },"#, r#""seats": [] } ] },"#, "$.offerings[0].sections[1].seats", 34, "must not be empty", SCHEMA),
];

fn all_cases() -> impl Iterator<Item = &'static Case> {
    [THE_SALE, ADMISSION, PAYMENT, OFFERINGS, SEATS].into_iter().flatten()
}

fn with(case: &Case) -> String {
    assert!(GOOD.contains(case.from), "{:?} is not in the good file", case.from);
    GOOD.replacen(case.from, case.to, 1)
}

#[allow(clippy::unwrap_used, reason = "only tests call it")]
fn schema() -> &'static jsonschema::Validator {
    static SCHEMA: OnceLock<jsonschema::Validator> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let text = include_str!("../../../infra/sales/sale.schema.json");
        jsonschema::validator_for(&serde_json::from_str(text).unwrap()).unwrap()
    })
}

#[test]
fn each_mistake_is_named_with_its_path_and_line() {
    for case in all_cases() {
        let problems = check(&with(case)).unwrap_err();
        let named = |problem: &Problem| {
            problem.path == case.path
                && problem.line == Some(case.line)
                && problem.reason.contains(case.reason)
        };
        assert!(
            problems.iter().any(named),
            "{} → {}: expected line {}: {}: …{}…, got {problems:#?}",
            case.from,
            case.to,
            case.line,
            case.path,
            case.reason
        );
    }
}

#[test]
fn the_schema_and_the_check_agree() {
    let schema = schema();
    let valid = |text: &str| schema.is_valid(&serde_json::from_str::<Value>(text).unwrap());
    assert!(valid(GOOD));
    for case in all_cases() {
        assert_eq!(valid(&with(case)), !case.in_schema, "{} → {}", case.from, case.to);
    }
}

#[test]
fn a_good_file_is_read_with_its_values_and_defaults() {
    let sale = check(GOOD).unwrap();
    assert_eq!(sale.opens_at, Millis(1_788_213_600_000));
    assert_eq!(sale.pre_queue, PreQueue::Shuffle);
    assert_eq!((sale.payment.mode, sale.payment.due_after_seconds), (PaymentMode::Deferred, Some(300)));
    assert_eq!(sale.offerings[0].attributes["hall"], "큰 방");
    assert_eq!(Edition::first(sale).0.layout.capacity(), 28);

    let least = r#"{"eventId":"e","title":"t","opensAt":1788213600000.0,"closesAt":1788213600001,"requireAccount":true,
        "admission":{"databaseTps":100,"safetyRatio":0.7,"maxActive":1},
        "offerings":[{"id":"o","date":"2028-02-29","sections":[{"id":"s","name":"n","price":0,"capacity":1}]}]}"#;
    assert!(schema().is_valid(&serde_json::from_str(least).unwrap()));
    let sale = check(least).unwrap();
    assert_eq!(sale.pre_queue, PreQueue::Fifo);
    assert!((sale.admission.per_second - 70.0).abs() < 1e-9);
    assert_eq!((sale.admission.active_seconds, sale.admission.claim_seconds), (180, 15));
    assert!(!sale.admission.compensate_no_shows);
    assert_eq!(sale.admission.backpressure_seconds, None);
    assert_eq!((sale.hold_seconds, sale.limit_per_account, sale.joins_per_address_per_second), (180, 5, 10));
    assert_eq!((sale.payment.mode, sale.payment.currency.as_str()), (PaymentMode::None, "KRW"));
    assert_eq!(sale.default, None);
}

#[test]
fn every_mistake_of_a_file_is_told_at_once_in_the_files_order() {
    let text = GOOD
        .replace(r#""title": "작은 공연""#, r#""titel": "작은 공연""#)
        .replace(r#""perSecond": 5"#, r#""perSecond": -5"#)
        .replace(r#""price": 1000"#, r#""price": -1"#)
        .replace("2026-09-25", "tomorrow");
    let told: Vec<String> = check(&text).unwrap_err().iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "line 1: $.title: is missing",
            "line 4: $.titel: is not a known field: did you mean title?",
            "line 9: $.admission.perSecond: must be a number from 0.001 to 10000",
            "line 28: $.offerings[0].sections[0].price: must be a whole number from 0 to 1000000000",
            "line 36: $.offerings[1].date: must be a day as YYYY-MM-DD, such as 2026-09-24",
        ]
    );
}

#[test]
fn what_is_no_json_is_one_problem_with_its_line() {
    let deep = format!("{{\n\"offerings\": {}1{}}}", "[".repeat(100), "]".repeat(100));
    for (text, line, reason) in [
        ("", 1, "not JSON"),
        ("{\n  \"eventId\": \"a\",\n}", 3, "not JSON"),
        ("{\n  \"eventId\": \"a\"\n} x", 3, "trailing characters"),
        ("{\n  \"a\": 1e999\n}", 2, "number out of range"),
        ("{\n  \"a\":\n \"\\ud800\"\n}", 3, "not JSON"),
        (deep.as_str(), 2, "nests deeper"),
        ("[]", 1, "must be an object"),
    ] {
        let problems = check(text).unwrap_err();
        assert_eq!(problems.len(), 1, "{text}: {problems:?}");
        assert_eq!((problems[0].path.as_str(), problems[0].line), ("$", Some(line)), "{text}: {problems:?}");
        assert!(problems[0].reason.contains(reason), "{text}: {problems:?}");
    }
    let huge = format!("{}{}", GOOD, " ".repeat(1 << 20));
    assert!(check(&huge).unwrap_err()[0].reason.contains("larger"));
}

#[test]
fn a_sale_moved_to_another_opening_keeps_its_distances() {
    let text = GOOD.replace(r#""dueAfterSeconds": 300"#, r#""dueAt": 1788400000000"#);
    let sale = check(&text).unwrap();
    let moved = sale.clone().opening_at(Millis(1_000));
    assert_eq!(moved.opens_at, Millis(1_000));
    assert_eq!(moved.closes_at.0 - 1_000, sale.closes_at.0 - sale.opens_at.0);
    assert_eq!(moved.payment.due_at.unwrap().0 - 1_000, 1_788_400_000_000 - sale.opens_at.0);
    assert_eq!(moved.opening_at(sale.opens_at), sale);
}

/// What a slip of the hand puts in place of something else.
const SLIPS: [&str; 22] = [
    "", "0", "-1", "1", "1.0", "1e3", "9", "a", "Z", "-", " ", "\\t", "t", "\"", ",", ":", "[]", "{}",
    "null", "\"\"", "true", "석",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// No slip makes the check panic, refuse without a reason, or accept what the schema refuses.
    #[test]
    fn a_slip_anywhere_is_told_or_harmless(at in 0..GOOD.len(), length in 0..6_usize, slip in select(SLIPS.to_vec())) {
        let start = GOOD.floor_char_boundary(at);
        let end = GOOD.floor_char_boundary((at + length).min(GOOD.len())).max(start);
        let text = format!("{}{slip}{}", &GOOD[..start], &GOOD[end..]);
        match check(&text) {
            Ok(sale) => {
                prop_assert!(schema().is_valid(&serde_json::from_str(&text).unwrap()), "{text}");
                prop_assert!(Edition::first(sale).0.layout.capacity() > 0);
            }
            Err(problems) => {
                prop_assert!(!problems.is_empty(), "{text}");
                prop_assert!(problems.iter().all(|problem| problem.line.is_some()), "{problems:?}");
            }
        }
    }
}

mod shipped {
    use super::*;

    const KTX: &str = include_str!("../../../infra/sales/ktx-2026-chuseok.json");
    const CONCERT: &str = include_str!("../../../infra/sales/concert-2026.json");

    #[test]
    fn both_sales_pass_the_check_and_the_schema() {
        let schema = schema();
        for text in [KTX, CONCERT] {
            check(text).unwrap_or_else(|problems| panic!("{problems:#?}"));
            let value: Value = serde_json::from_str(text).unwrap();
            let errors: Vec<String> = schema
                .iter_errors(&value)
                .map(|error| format!("{}: {error}", error.instance_path()))
                .collect();
            assert_eq!(errors, Vec::<String>::new());
        }
    }

    #[test]
    fn the_trains_are_twenty_thousand_places_over_three_days() {
        let sale = check(KTX).unwrap();
        assert_eq!(sale.event_id.as_str(), "ktx-2026-chuseok");
        assert!((sale.admission.per_second - 70.0).abs() < 1e-9);
        let mut days: Vec<&str> = sale.offerings.iter().map(|offering| offering.date.as_str()).collect();
        days.dedup();
        assert_eq!(days, ["2026-09-24", "2026-09-25", "2026-09-26"]);
        assert_eq!(sale.offerings.len(), 21);
        let default = sale.default.clone().unwrap();
        let (edition, _) = Edition::first(sale);
        let places = edition.layout.capacity();
        assert!((19_000..=22_000).contains(&places), "{places}");
        assert!(edition.layout.section(&default.offering_id, &default.section_id).unwrap().is_general());
        let (offering, seat) = ("KTX-101-0924".parse().unwrap(), "5-1A".parse().unwrap());
        let found = edition.layout.seat(&offering, &seat).unwrap();
        assert_eq!(edition.layout.by_number(found.section).unwrap().id.as_str(), "standard");
    }

    #[test]
    fn the_concert_draws_and_asks_for_its_payment_in_minutes() {
        let sale = check(CONCERT).unwrap();
        assert_eq!((sale.pre_queue, sale.hold_seconds, sale.limit_per_account), (PreQueue::Shuffle, 300, 4));
        assert_eq!((sale.payment.mode, sale.payment.due_after_seconds), (PaymentMode::Deferred, Some(300)));
        assert!(sale.default.is_some());
        for offering in &sale.offerings {
            let ids: Vec<&str> = offering.sections.iter().map(|section| section.id.as_str()).collect();
            assert_eq!(ids, ["R", "S", "standing"]);
        }
    }
}
