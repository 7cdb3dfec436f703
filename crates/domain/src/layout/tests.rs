use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;
use crate::Millis;
use crate::sale::{Admission, Offering, Payment, PaymentMode, PreQueue, SaleSection, SeatBlock};

fn sale(offerings: Vec<Offering>) -> Sale {
    Sale {
        event_id: "e".parse().unwrap(),
        title: "E".to_owned(),
        opens_at: Millis(0),
        closes_at: Millis(1),
        pre_queue: PreQueue::Fifo,
        admission: Admission {
            per_second: 1.0,
            max_active: 1,
            active_seconds: 180,
            claim_seconds: 15,
            compensate_no_shows: false,
            backpressure_seconds: None,
        },
        hold_seconds: 180,
        limit_per_account: 5,
        require_account: false,
        joins_per_address_per_second: 10,
        payment: Payment {
            mode: PaymentMode::None,
            due_at: None,
            due_after_seconds: None,
            currency: "KRW".to_owned(),
        },
        default: None,
        offerings,
    }
}

fn offering(id: &str, sections: Vec<SaleSection>) -> Offering {
    Offering { id: id.parse().unwrap(), date: "2026-09-24".to_owned(), attributes: BTreeMap::new(), sections }
}

fn general(id: &str, capacity: u32) -> SaleSection {
    SaleSection {
        id: id.parse().unwrap(),
        name: id.to_owned(),
        price: 100,
        capacity: Some(capacity),
        seats: None,
    }
}

fn assigned(id: &str, blocks: &[(&str, &str)]) -> SaleSection {
    let block = |&(rows, seats): &(&str, &str)| SeatBlock {
        rows: rows.to_owned(),
        seats: seats.to_owned(),
        prefix: String::new(),
    };
    let seats = Some(blocks.iter().map(block).collect());
    SaleSection { id: id.parse().unwrap(), name: id.to_owned(), price: 100, capacity: None, seats }
}

fn one(sections: Vec<SaleSection>) -> Sale {
    sale(vec![offering("o", sections)])
}

/// The seat map as the store would keep it after these changes.
fn apply(map: &mut Vec<u8>, change: &Change) {
    for span in &change.removed {
        let (first, end) = (span.offset as usize, (span.offset + span.length) as usize);
        assert!(map[first..end].iter().all(|byte| *byte == b'.'), "{span:?} is not a run of free seats");
        map[first..end].fill(b'x');
    }
    map.extend(change.appended.bytes());
}

/// Every seat of the layout by index: its section, its name, whether it is on sale.
fn seats(layout: &Layout) -> BTreeMap<u32, (u32, SeatName, bool)> {
    let mut seats = BTreeMap::new();
    for section in &layout.sections {
        for row in section.rows() {
            for (index, name) in (row.offset..).zip(&row.seats) {
                let taken = seats.insert(index, (section.number, name.clone(), !row.removed));
                assert_eq!(taken, None, "two seats at {index}");
            }
        }
    }
    seats
}

/// What must hold for every layout and the map that belongs to it.
fn assert_sound(layout: &Layout, map: &[u8]) {
    assert_eq!(map.len(), layout.map_length as usize);
    let seats = seats(layout);
    for (index, byte) in (0u32..).zip(map) {
        match seats.get(&index) {
            None => {
                assert_eq!((layout.seat_name(index), *byte), (None, b'/'));
            }
            Some((section, name, live)) => {
                assert_eq!(layout.seat_name(index), Some(name));
                assert_eq!(*byte, if *live { b'.' } else { b'x' });
                let offering = &layout.by_number(*section).unwrap().offering;
                let found = layout.seat(offering, name);
                if *live {
                    assert_eq!(found, Some(SeatPlace { section: *section, index }));
                } else {
                    assert_ne!(found.map(|place| place.index), Some(index));
                }
            }
        }
    }
    assert_eq!(layout.seat_name(layout.map_length), None);
    for section in &layout.sections {
        let covered: Vec<u32> =
            section.spans().iter().flat_map(|span| span.offset..span.offset + span.length).collect();
        let mut covered: Vec<u32> =
            covered.into_iter().filter(|index| map[*index as usize] != b'/').collect();
        covered.sort_unstable();
        let live = seats.iter().filter(|(_, (number, _, live))| *live && *number == section.number);
        assert_eq!(covered, live.map(|(index, _)| *index).collect::<Vec<_>>());
        let found = layout.section(&section.offering, &section.id).map(|found| found.number);
        assert_eq!(found == Some(section.number), !section.removed);
        assert_eq!(
            layout.sections_of(&section.offering).any(|of| of.number == section.number),
            !section.removed
        );
    }
}

/// Offerings `o0` to `o2`, each with sections `s0` to `s2` of rows and `g` with a capacity. A row stands in
/// one section at most, so that its seats may move from one to another between versions.
fn any_sale() -> impl Strategy<Value = Sale> {
    let rows = vec(option::of((0..3usize, 1..5u32)), 6);
    let offering = option::of((rows, option::of(1..50u32)));
    vec(offering, 3).prop_map(|offerings| {
        let offerings = offerings.into_iter().enumerate().filter_map(|(at, offering)| Some((at, offering?)));
        sale(offerings.map(|(at, (rows, capacity))| any_offering(at, &rows, capacity)).collect())
    })
}

fn any_offering(at: usize, rows: &[Option<(usize, u32)>], capacity: Option<u32>) -> Offering {
    let mut blocks: Vec<Vec<SeatBlock>> = vec![Vec::new(); 3];
    for (row, chosen) in rows.iter().enumerate() {
        if let Some((section, count)) = chosen {
            let (rows, seats) = (row.to_string(), format!("1-{count}"));
            blocks[*section].push(SeatBlock { rows, seats, prefix: String::new() });
        }
    }
    let blocks = blocks.into_iter().enumerate().filter(|(_, blocks)| !blocks.is_empty());
    let mut sections: Vec<SaleSection> = blocks
        .map(|(section, blocks)| SaleSection { seats: Some(blocks), ..assigned(&format!("s{section}"), &[]) })
        .collect();
    sections.extend(capacity.map(|capacity| general("g", capacity)));
    offering(&format!("o{at}"), sections)
}

proptest! {
    #[test]
    fn a_seat_keeps_its_index_through_every_version(sales in vec(any_sale(), 1..6)) {
        let mut sales = sales.into_iter();
        let (mut edition, change) = Edition::first(sales.next().unwrap());
        let mut map = Vec::new();
        apply(&mut map, &change);
        assert_sound(&edition.layout, &map);
        let gained: i64 = change.stock.iter().map(|(_, delta)| delta).sum();
        prop_assert_eq!(u64::try_from(gained).unwrap(), edition.layout.capacity());

        for sale in sales {
            let (next, change) = edition.next(sale.clone()).unwrap();
            apply(&mut map, &change);
            assert_sound(&next.layout, &map);
            for (index, (section, name, _)) in seats(&edition.layout) {
                prop_assert_eq!(next.layout.lookup.seat_name(&next.layout.sections, index), Some((section, &name)));
            }
            for (before, after) in edition.layout.sections.iter().zip(&next.layout.sections) {
                prop_assert_eq!((&before.offering, &before.id), (&after.offering, &after.id));
                let delta = change.stock.iter().filter(|(number, _)| *number == before.number).map(|(_, delta)| delta);
                prop_assert_eq!(i64::from(before.capacity()) + delta.sum::<i64>(), i64::from(after.capacity()));
            }
            let gained: i64 = change.stock.iter().map(|(_, delta)| delta).sum();
            prop_assert_eq!(
                next.layout.capacity(),
                edition.layout.capacity().checked_add_signed(gained).unwrap()
            );
            let (_, first) = Edition::first(sale);
            prop_assert_eq!(next.layout.capacity(), first.stock.iter().map(|(_, delta)| delta.unsigned_abs()).sum::<u64>());
            prop_assert_eq!(next.version, edition.version + 1);
            edition = next;
        }
        let read = Edition::from_json(&edition.to_json()).unwrap();
        prop_assert_eq!(&read, &edition);
        assert_sound(&read.layout, &map);
        let (_, nothing) = read.next((*read.sale).clone()).unwrap();
        prop_assert_eq!(nothing, Change::default());
    }
}

#[test]
fn a_first_edition_lays_rows_end_to_end() {
    let (edition, change) =
        Edition::first(one(vec![assigned("R", &[("1-2", "A-C")]), general("standing", 7)]));
    assert_eq!(edition.version, 1);
    assert_eq!(
        change,
        Change { appended: ".../.../".to_owned(), stock: vec![(0, 6), (1, 7)], removed: vec![] }
    );
    assert_eq!(edition.layout.sections[0].spans(), [Span { section: 0, offset: 0, length: 7 }]);
    let offering = "o".parse().unwrap();
    assert_eq!(
        edition.layout.seat(&offering, &"2B".parse().unwrap()),
        Some(SeatPlace { section: 0, index: 5 })
    );
    assert_eq!(edition.layout.seat(&offering, &"2D".parse().unwrap()), None);
    assert_eq!(edition.layout.seat(&"p".parse().unwrap(), &"2B".parse().unwrap()), None);
    assert_eq!(edition.layout.capacity(), 13);
}

#[test]
fn names_and_prices_change_freely() {
    let (edition, _) = Edition::first(one(vec![assigned("R", &[("1", "A-C")])]));
    let mut sale = (*edition.sale).clone();
    sale.offerings[0].sections[0].price = 250;
    sale.offerings[0].sections[0].name = "R석".to_owned();
    sale.offerings[0].attributes.insert("hall".to_owned(), "KSPO".to_owned());
    let (next, change) = edition.next(sale).unwrap();
    assert_eq!(change, Change::default());
    assert_eq!(next.layout.sections[0].price, 250);
}

#[test]
fn a_changed_row_is_taken_off_sale_and_laid_anew() {
    let (edition, _) = Edition::first(one(vec![assigned("R", &[("1-3", "A-C")])]));
    let (next, change) =
        edition.next(one(vec![assigned("R", &[("1", "A-C"), ("2", "A-D"), ("3", "A-C")])])).unwrap();
    assert_eq!(change.appended, "..../");
    assert_eq!(change.stock, [(0, 1)]);
    assert_eq!(change.removed, [Span { section: 0, offset: 4, length: 3 }]);
    let span = |offset, length| Span { section: 0, offset, length };
    assert_eq!(next.layout.sections[0].spans(), [span(0, 3), span(12, 4), span(8, 3)]);
    assert_eq!(next.layout.seat(&"o".parse().unwrap(), &"2A".parse().unwrap()).unwrap().index, 12);
    assert_eq!(next.layout.seat_name(4).unwrap().as_str(), "2A");
}

#[test]
fn a_section_that_left_and_comes_back_has_a_new_number() {
    let (edition, _) = Edition::first(one(vec![assigned("R", &[("1", "A-C")]), general("g", 5)]));
    let (without, change) = edition.next(one(vec![assigned("S", &[("1", "A-C")])])).unwrap();
    assert_eq!(change.stock, [(0, -3), (1, -5), (2, 3)]);
    assert_eq!(without.layout.by_number(0).map(Section::capacity), Some(0));
    assert_eq!(
        without.layout.by_number(1).map(|section| (section.removed, section.capacity())),
        Some((true, 0))
    );
    let (again, change) = without.next(one(vec![general("g", 5), assigned("S", &[("1", "A-C")])])).unwrap();
    assert_eq!(change.stock, [(3, 5)]);
    assert_eq!(again.layout.section(&"o".parse().unwrap(), &"g".parse().unwrap()).unwrap().number, 3);
}

#[test]
fn another_kind_of_section_and_another_event_are_refused() {
    let (edition, _) = Edition::first(one(vec![general("x", 9), assigned("R", &[("1", "A-C")])]));
    let mut other = one(vec![assigned("x", &[("2", "A")]), general("R", 3)]);
    other.event_id = "f".parse().unwrap();
    let problems = edition.next(other).unwrap_err();
    let paths: Vec<&str> = problems.iter().map(|problem| problem.path.as_str()).collect();
    assert_eq!(paths, ["$.eventId", "$.offerings[0].sections[0]", "$.offerings[0].sections[1]"]);
}

#[test]
fn a_layout_that_outgrows_its_bounds_is_refused() {
    let full: Vec<SaleSection> = (0..500).map(|at| general(&format!("g{at}"), 1)).collect();
    let (edition, _) = Edition::first(one(full));
    let problems = edition.next(one(vec![general("another", 1)])).unwrap_err();
    assert!(problems[0].reason.contains("501, at most 500"), "{}", problems[0]);

    let problems = edition.next(one(vec![general("g0", 200_001)])).unwrap_err();
    assert!(problems[0].reason.contains("places: 200001, at most 200000"), "{}", problems[0]);

    let problems =
        edition.next(one(vec![assigned("R", &[("1-1000", "A"), ("1001-2001", "A")])])).unwrap_err();
    assert!(
        problems.iter().any(|problem| problem.reason.contains("seats of o R: 2001, at most 2000")),
        "{problems:?}"
    );

    // A hundred sections of 1 700 seats fill most of the map; each version that renames all rows adds another.
    let rows = |first: u32| {
        let block = format!("{first}-{}", first + 1);
        (0..100).map(move |at| SaleSection {
            seats: Some(vec![SeatBlock {
                rows: block.clone(),
                seats: "1-850".to_owned(),
                prefix: format!("{at}-"),
            }]),
            ..assigned(&format!("s{at}"), &[])
        })
    };
    let (edition, _) = Edition::first(one(rows(1).collect()));
    let problems = edition.next(one(rows(3).collect())).unwrap_err();
    assert!(problems[0].reason.contains("at most 250000"), "{problems:?}");
    assert_eq!(problems[0].path, "$.offerings");
}

#[test]
fn items_are_told_in_names_also_of_what_is_off_sale() {
    let (edition, _) = Edition::first(one(vec![assigned("R", &[("1", "A-C")]), general("g", 5)]));
    let (next, _) = edition.next(one(vec![assigned("S", &[("1", "A-C")])])).unwrap();
    for edition in [&edition, &next] {
        let places = reserved_places(&edition.layout, &"0@120=2,0;1@30*2".parse().unwrap()).unwrap();
        assert_eq!(places[0].seats.iter().map(SeatName::as_str).collect::<Vec<_>>(), ["1C", "1A"]);
        assert_eq!((places[0].section_id.as_str(), places[0].price, places[0].count), ("R", 120, 2));
        assert_eq!((places[1].section_id.as_str(), places[1].price, places[1].count), ("g", 30, 2));
        assert_eq!((places[1].offering_id.as_str(), places[1].seats.len()), ("o", 0));
    }
    for (items, expected) in [
        ("9@1*1", UnknownPlace::Section(9)),
        ("0@1*1", UnknownPlace::Section(0)),
        ("0@1=3", UnknownPlace::Seat { section: 0, index: 3 }),
        ("1@1=0", UnknownPlace::Seat { section: 1, index: 0 }),
        ("2@1=0", UnknownPlace::Seat { section: 2, index: 0 }),
    ] {
        assert_eq!(reserved_places(&next.layout, &items.parse().unwrap()), Err(expected), "{items}");
    }
}

#[test]
fn a_damaged_layout_is_refused_when_read() {
    let (edition, _) = Edition::first(one(vec![assigned("R", &[("1-2", "A-C"), ("4", "A-B")])]));
    let json = edition.to_json();
    for (from, to) in [
        (r#""number":0"#, r#""number":1"#),
        (r#""offset":8"#, r#""offset":7"#),
        (r#""map_length":11"#, r#""map_length":10"#),
        (r#""seats":["4A","4B"]"#, r#""seats":[]"#),
        (r#""seats":["A","B","C"]"#, r#""seats":["A","B","*"]"#),
        (r#"["1",2]"#, r#"["1",3]"#),
        (r#"["1",2]"#, r#"["1",4294967295]"#),
        (r#"["1",2]"#, r#"["R",2]"#),
        (r#""from":"#, r#""for":"#),
    ] {
        assert!(json.contains(from), "{json}");
        assert!(Edition::from_json(&json.replacen(from, to, 1)).is_err(), "{from} → {to}");
    }
}

#[test]
fn rows_that_are_alike_are_stored_once_and_those_that_are_not_by_name() {
    let rows = |blocks| {
        let (edition, _) = Edition::first(one(vec![assigned("R", blocks)]));
        let json = edition.to_json();
        assert_eq!(Edition::from_json(&json).unwrap(), edition, "{json}");
        let stored: serde_json::Value = serde_json::from_str(&json).unwrap();
        let rows = stored["layout"]["sections"][0]["places"]["Assigned"]["rows"].clone();
        let name =
            |row: &serde_json::Value| row["name"].as_str().or(row["from"][0].as_str()).unwrap().to_owned();
        let row = |row: &serde_json::Value| (name(row), row["from"][1].as_u64());
        rows.as_array().unwrap().iter().map(row).collect::<Vec<_>>()
    };
    let row = |name: &str, count| (name.to_owned(), count);
    assert_eq!(rows(&[("1-500", "A-D")]), [row("1", Some(500))]);
    assert_eq!(rows(&[("9-10", "A-D"), ("11-12", "A-C")]), [row("9", Some(2)), row("11", Some(2))]);
    assert_eq!(rows(&[("1", "A"), ("3", "A"), ("4", "A")]), [row("1", None), row("3", Some(2))]);
    assert_eq!(rows(&[("2", "A"), ("1", "A")]), [row("2", None), row("1", None)]);
}

#[test]
fn a_row_taken_off_sale_is_stored_apart_from_those_beside_it() {
    let (first, _) = Edition::first(one(vec![assigned("R", &[("1-5", "A-C")])]));
    let (next, _) = first.next(one(vec![assigned("R", &[("1-2", "A-C"), ("4-5", "A-C")])])).unwrap();
    assert_eq!(Edition::from_json(&next.to_json()).unwrap(), next);
}

#[test]
fn rows_are_read_as_they_were_stored_one_by_one() {
    let (edition, _) = Edition::first(one(vec![assigned("R", &[("1-2", "A-B")])]));
    let json = edition.to_json();
    let run = r#"{"from":["1",2],"offset":0,"seats":["A","B"],"removed":false}"#;
    let one_by_one = r#"{"name":"1","offset":0,"seats":["1A","1B"],"removed":false},{"name":"2","offset":3,"seats":["2A","2B"],"removed":false}"#;
    assert!(json.contains(run), "{json}");
    assert_eq!(Edition::from_json(&json.replacen(run, one_by_one, 1)).unwrap(), edition);
}
