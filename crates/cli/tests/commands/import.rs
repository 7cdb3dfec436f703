//! `jari event from-gtfs` and `from-csv`.

use std::fs;
use std::process::Output;

use serde_json::{Value, json};

use crate::served::{Folder, complained, jari, said};

const TIMES: [&str; 4] =
    ["--opens-at", "2026-09-01T07:00:00+09:00", "--closes-at", "2026-09-03T13:00:00+09:00"];

/// A feed as a folder: two routes, a week's calendar, exceptions, a train over midnight, one by frequency.
fn feed(folder: &Folder) -> String {
    let files = [
        (
            "agency.txt",
            "agency_id,agency_name,agency_url,agency_timezone\nK,Korail,https://k.example,Asia/Seoul\n",
        ),
        (
            "routes.txt",
            "route_id,agency_id,route_short_name,route_long_name,route_type\nR1,K,KTX,경부선,2\nR2,K,ITX,중앙선,2\n",
        ),
        (
            "stops.txt",
            "stop_id,stop_name,stop_lat,stop_lon\nS,서울,37.5,127\nD,대전,36.3,127.4\nB,부산,35.1,129\n",
        ),
        (
            "calendar.txt",
            "service_id,monday,tuesday,wednesday,thursday,friday,saturday,sunday,start_date,end_date\n\
             thu,0,0,0,1,0,0,0,20260901,20260930\nsat,0,0,0,0,0,1,0,20260901,20260930\nold,1,1,1,1,1,1,1,20250101,20251231\n",
        ),
        ("calendar_dates.txt", "service_id,date,exception_type\nextra,20260924,1\nthu,20260917,2\n"),
        (
            "trips.txt",
            "route_id,service_id,trip_id,trip_short_name\nR1,thu,t101,101\nR1,extra,t103 x,\nR1,sat,t105,105\n\
             R1,old,t107,107\nR2,thu,t201,201\nR1,thu,t109,109\nR1,thu,t111,111\n",
        ),
        (
            "stop_times.txt",
            "trip_id,arrival_time,departure_time,stop_id,stop_sequence\n\
             t101,08:00:00,08:00:00,S,1\nt101,08:58:00,09:00:00,D,2\nt101,10:42:00,10:42:00,B,3\n\
             t103 x,23:10:00,23:10:00,S,1\nt103 x,25:50:00,25:50:00,B,2\n\
             t105,07:00:00,07:00:00,S,1\nt105,09:00:00,09:00:00,B,2\n\
             t107,07:00:00,07:00:00,S,1\nt107,09:00:00,09:00:00,B,2\n\
             t201,07:00:00,07:00:00,S,1\nt201,09:00:00,09:00:00,D,2\n\
             t109,24:30:00,24:30:00,S,1\nt109,27:00:00,27:00:00,B,2\n\
             t111,06:00:00,06:00:00,S,1\nt111,08:00:00,08:00:00,B,2\n",
        ),
        ("frequencies.txt", "trip_id,start_time,end_time,headway_secs\nt111,06:00:00,09:00:00,600\n"),
        ("fare_attributes.txt", "fare_id,price,currency_type,payment_method,transfers\nF,59800,KRW,1,0\n"),
    ];
    fs::create_dir(folder.file("feed")).expect("a folder");
    for (name, text) in files {
        fs::write(folder.file(&format!("feed/{name}")), text).expect("a file of the feed");
    }
    folder.file("feed")
}

/// `jari event from-gtfs` for a route on a day of September 2026.
fn from_gtfs(feed: &str, route: &str, day: u32, more: &[&str]) -> Output {
    let date = format!("2026-09-{day}");
    jari(&[&["event", "from-gtfs", feed, "--route", route, "--date", &date], more].concat())
}

fn definition(output: &Output) -> Value {
    serde_json::from_str(&said(output)).unwrap_or_else(|error| panic!("{error}: {}", complained(output)))
}

/// What was made passes the check of definitions.
fn passes(folder: &Folder, output: &Output) {
    let file = folder.file("made.json");
    fs::write(&file, said(output)).expect("a file");
    let check = jari(&["event", "check", &file]);
    assert_eq!(check.status.code(), Some(0), "{}", said(&check));
}

#[test]
fn trips_of_a_day_become_offerings_and_the_rest_is_told() {
    let folder = Folder::new("gtfs");
    let feed = feed(&folder);
    let sections = ["--section", "special:특실:83700:120", "--section", "standard:일반실:59800:400"];
    let output = from_gtfs(&feed, "경부선", 24, &[&sections[..], &TIMES].concat());
    let told = complained(&output);
    assert_eq!(output.status.code(), Some(1), "a trip was left out: {told}");
    passes(&folder, &output);
    let sale = definition(&output);
    assert_eq!((&sale["eventId"], &sale["title"]), (&json!("ktx-2026-09-24"), &json!("KTX")));
    let offerings = sale["offerings"].as_array().expect("offerings");
    let ids: Vec<&Value> = offerings.iter().map(|offering| &offering["id"]).collect();
    assert_eq!(
        ids,
        ["101", "t103-x", "109"],
        "by departure; not on Saturdays, not last year, not the other route"
    );
    let first = &offerings[0];
    for (name, text) in [
        ("train", "KTX 101"),
        ("from", "서울"),
        ("via", "대전"),
        ("to", "부산"),
        ("departs", "08:00"),
        ("arrives", "10:42"),
        ("date", "2026-09-24"),
    ] {
        assert_eq!(first[name], text, "{name}");
    }
    assert_eq!(
        first["sections"][1],
        json!({ "id": "standard", "name": "일반실", "price": 59_800, "capacity": 400 })
    );
    assert_eq!((&offerings[1]["departs"], &offerings[1]["arrives"]), (&json!("23:10"), &json!("01:50 +1")));
    assert_eq!((&offerings[2]["date"], &offerings[2]["departs"]), (&json!("2026-09-25"), &json!("00:30")));
    for note in [
        "trip t111 is left out: it runs by frequency",
        "trip t103 x is offering t103-x",
        "times are those of Asia/Seoul",
        "1 fare left out",
        "1 offering with stops on the way",
        "3 offerings written",
    ] {
        assert!(told.contains(note), "{note}\n{told}");
    }
}

#[test]
fn a_part_of_the_way_an_exception_and_a_template_are_followed() {
    let folder = Folder::new("gtfs-part");
    let feed = feed(&folder);
    let template = folder.file("template.json");
    let text = json!({
        "eventId": "holiday", "title": "추석", "anonymous": "accepted",
        "opensAt": "2026-09-01T07:00:00+09:00", "closesAt": "2026-09-03T13:00:00+09:00",
        "admission": { "perSecond": 5, "maxActive": 50 },
        "sections": [{ "id": "A", "name": "일반실", "price": 1, "seats": [{ "rows": "1-3", "seats": "A-D" }] }],
    });
    fs::write(&template, text.to_string()).expect("a template");
    let output = from_gtfs(&feed, "R1", 24, &["--to", "대전", "--template", &template]);
    passes(&folder, &output);
    let sale = definition(&output);
    assert_eq!(sale["offerings"].as_array().map(Vec::len), Some(1), "one stops there");
    assert_eq!((&sale["offerings"][0]["arrives"], &sale["eventId"]), (&json!("08:58"), &json!("holiday")));
    assert_eq!(sale["offerings"][0]["sections"], text["sections"]);
    assert!(complained(&output).contains("trip t109 is left out: it does not stop there"));

    let exception = from_gtfs(&feed, "R1", 17, &["--template", &template]);
    assert_eq!(exception.status.code(), Some(1));
    let told = complained(&exception);
    assert!(
        told.contains("no trip of the route runs on 2026-09-17") && told.contains("nothing was written"),
        "{told}"
    );
    assert_eq!(said(&exception), "");
    let unknown = from_gtfs(&feed, "SRT", 24, &["--template", &template]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(complained(&unknown).contains("no route SRT; it has ITX, KTX"), "{unknown:?}");
}

#[test]
fn a_list_of_seats_becomes_a_sale() {
    let folder = Folder::new("csv");
    let list = folder.file("seats.csv");
    let mut text = "offering,date,section,name,price,row,seat,capacity,venue\n".to_owned();
    for row in ["A", "B"] {
        for seat in 1..=4 {
            text.extend([&format!("C1,2026-10-10,R,R석,165000,{row},{seat},,홀"), "\n"]);
        }
    }
    text += "C1,2026-10-10,G,입석,99000,,,300,홀\n";
    fs::write(&list, &text).expect("a list");
    let what =
        ["event", "from-csv", &list, "--event", "concert-1", "--title", "Concert", "--per-second", "12.5"];
    let output = jari(&[&what[..], &TIMES].concat());
    assert_eq!(output.status.code(), Some(0), "{}", complained(&output));
    passes(&folder, &output);
    let sale = definition(&output);
    assert_eq!(sale["admission"], json!({ "perSecond": 12.5, "maxActive": 2_250 }));
    assert_eq!(sale["requireAccount"], true);
    assert_eq!(sale["offerings"][0]["venue"], "홀");
    assert_eq!(sale["offerings"][0]["sections"][0]["seats"], json!([{ "rows": "A,B", "seats": "1,2,3,4" }]));
    fs::write(&list, text + "C1,2026-10-10,R,R석,1,C,1,,홀\n").expect("a list");
    let output = jari(&[&what[..], &TIMES].concat());
    assert_eq!(output.status.code(), Some(1));
    assert!(complained(&output).contains("line 11 is left out: section R costs 165000"), "{output:?}");
    passes(&folder, &output);
}
