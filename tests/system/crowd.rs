//! A thousand people through a served system, from the line to rows in PostgreSQL.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use admin::{Command, Reply};
use domain::reservation::{Reservation, ReservationStatus};
use fastrand::Rng;
use serde_json::{Value, json};
use support::{Answer, wait_until};

use crate::deliver::reservations;
use crate::serving::{Folder, Served};

const PEOPLE: u64 = 1_000;
/// From the first join to the last row.
const DEADLINE: Duration = Duration::from_secs(90);

/// What somebody was told of their reservation last.
#[derive(Debug, Clone, PartialEq)]
struct Told {
    status: String,
    seat_count: u64,
    amount: u64,
    seats: Vec<String>,
}

impl Told {
    fn of(reservation: &Value) -> Self {
        let seats = reservation["seats"].as_array().expect("a list");
        Self {
            status: reservation["status"].as_str().expect("a status").to_owned(),
            seat_count: reservation["seatCount"].as_u64().expect("a count"),
            amount: reservation["amount"].as_u64().expect("an amount"),
            seats: seats.iter().map(|seat| seat.as_str().expect("a name").to_owned()).collect(),
        }
    }

    fn of_row(row: &Reservation) -> Self {
        let seats = row.places.iter().flat_map(|places| &places.seats);
        Self {
            status: row.status.as_str().to_owned(),
            seat_count: row.seat_count.into(),
            amount: row.amount,
            seats: seats.map(ToString::to_string).collect(),
        }
    }
}

/// How a visit ended.
#[derive(Debug, Clone, PartialEq)]
enum End {
    Left,
    Abandoned,
    Booked { id: String, told: Told },
}

/// One of the crowd.
struct Person {
    served: Arc<Served>,
    random: Rng,
    token: String,
}

impl Person {
    /// Asks until it is not told to come back later.
    async fn ask(&self, method: &str, target: &str, body: Option<Value>) -> Answer {
        loop {
            let answer = self.served.caller.try_send(method, target, body.as_ref()).await.expect("an answer");
            assert!(answer.status != 500, "{}", answer.text);
            if !matches!(answer.status, 429 | 503) {
                return answer;
            }
            let seconds = answer.header("retry-after").and_then(|seconds| seconds.parse().ok());
            tokio::time::sleep(Duration::from_secs(seconds.expect("told when to come back"))).await;
        }
    }

    async fn visit(mut self, kind: u64) -> End {
        let joined = self.ask("POST", "/api/queue/join", Some(json!({}))).await;
        self.token = joined.data()["token"].as_str().expect("a token").to_owned();
        match kind % 20 {
            0 => {
                // Called by now or not: both can leave.
                let left = self.ask("DELETE", &format!("/api/queue/leave?token={}", self.token), None).await;
                assert_eq!(left.data()["removed"], true);
                return End::Left;
            }
            1 => return End::Abandoned,
            _ => {}
        }
        self.wait(joined.data().clone()).await;
        let booked = self.buy(kind).await;
        let id = booked.data()["reservationId"].as_str().expect("an id").to_owned();
        let mut told = Told::of(booked.data());
        let target = format!("/api/booking/{id}?token={}", self.token);
        if kind % 10 == 3 {
            let cancelled = self.ask("DELETE", &target, None).await;
            told.status = cancelled.data()["status"].as_str().expect("a status").to_owned();
            assert_eq!(told.status, "CANCELLED");
        }
        let read = self.ask("GET", &target, None).await;
        assert_eq!(Told::of(read.data()), told, "read back at once");
        End::Booked { id, told }
    }

    /// Polls as often as told until let in, never falling behind.
    async fn wait(&self, mut told: Value) {
        let mut rank = u64::MAX;
        while told["status"] != "ACTIVE" {
            if let Some(now) = told["rank"].as_u64() {
                assert!(now <= rank, "from rank {rank} to {now}");
                rank = now;
            }
            let (pause, key) =
                (told["nextPollMs"].as_u64().expect("a pause"), told["key"].as_str().expect("a key"));
            tokio::time::sleep(Duration::from_millis(pause)).await;
            let target = format!("/api/status/poll?token={}&key={key}", self.token);
            told = self.ask("GET", &target, None).await.data().clone();
        }
    }

    /// Tries what it came for, and takes general places where that is gone.
    async fn buy(&mut self, kind: u64) -> Answer {
        let token = json!(self.token);
        let choice = match kind % 4 {
            // All want the same few rows.
            0 => {
                let (row, seat) = (self.random.u32(1..=20), self.random.u32(1..=9));
                let seats = [format!("{row}-{seat}"), format!("{row}-{}", seat + 1)];
                json!({ "token": token, "offeringId": "T1", "seats": seats })
            }
            1 => json!({ "token": token, "offeringId": "T1", "sectionId": "A", "best": 3 }),
            2 => json!({ "token": token, "offeringId": "T1", "sectionId": "A", "count": 2 }),
            _ => {
                return self
                    .ask("POST", "/api/booking", Some(json!({ "token": token, "seatCount": 2 })))
                    .await;
            }
        };
        let held = self.ask("POST", "/api/seat/select", Some(choice)).await;
        if held.status != 200 {
            let lost = ["SEAT_TAKEN", "SOLD_OUT", "NO_ADJACENT_SEATS"];
            assert!(lost.contains(&held.code()), "{}", held.text);
            let general =
                self.ask("POST", "/api/seat/select", Some(json!({ "token": token, "count": 1 }))).await;
            assert_eq!(general.status, 200, "{}", general.text);
        }
        self.ask("POST", "/api/booking", Some(json!({ "token": token }))).await
    }
}

fn a_large_sale() -> Folder {
    Folder::with_sale(|sale| {
        sale["admission"] = json!({ "perSecond": 250, "maxActive": 600 });
        // Too few named seats for all who want one, general places for everybody.
        sale["offerings"] = json!([{ "id": "T1", "date": "2027-02-05", "sections": [
            { "id": "A", "name": "일반실", "price": 1000, "seats": [{ "rows": "1-60", "seats": "1-10" }] },
            { "id": "G", "name": "입석", "price": 500, "capacity": 2_000 },
        ] }]);
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_people_get_what_they_were_told_and_nothing_else() {
    let folder = a_large_sale();
    let served = Arc::new(folder.serve().await);
    let begun = Instant::now();
    let visits = (0..PEOPLE).map(|at| {
        let person = Person { served: Arc::clone(&served), random: Rng::with_seed(at), token: String::new() };
        // Kinds are spread over the line.
        tokio::spawn(person.visit(at * 7 % PEOPLE))
    });
    let visits = futures::future::join_all(visits);
    let ends = tokio::time::timeout(DEADLINE, visits).await.expect("all visits end in time");
    let ends: Vec<End> = ends.into_iter().map(|end| end.expect("no visit failed")).collect();
    let booked: BTreeMap<String, Told> = ends
        .iter()
        .filter_map(|end| match end {
            End::Booked { id, told } => Some((id.clone(), told.clone())),
            _ => None,
        })
        .collect();
    assert_eq!(ends.iter().filter(|end| **end == End::Left).count(), 50);
    assert_eq!(ends.iter().filter(|end| **end == End::Abandoned).count(), 50);
    assert_eq!(booked.len(), 900, "two people were told one reservation");

    // Every answered booking is a row in its last state, and there is no other row.
    let records = served.records();
    let mut rows = Vec::new();
    let mut written = BTreeMap::new();
    wait_until(Duration::from_secs(30), "all rows in their last state", async || {
        rows = reservations(&records, &folder.event).await;
        written = rows.iter().map(|row| (row.reservation_id.to_string(), Told::of_row(row))).collect();
        written == booked
    })
    .await;
    assert_eq!(rows.len(), booked.len());
    println!("{PEOPLE} people from the line to rows in {:.1?}", begun.elapsed());
    check_sections(&served, &rows).await;
    let report = served.audit().await;
    assert_eq!((&report.findings, report.more, report.checked.rows), (&Vec::new(), 0, 900), "{report:?}");
    assert!(report.checked.admitted >= 900, "{report:?}");
}

/// Sold and free are all there is, section by section.
async fn check_sections(served: &Served, rows: &[Reservation]) {
    let Reply::Shown(detail) = served.ask(Command::Show { event: served.event.clone() }).await else {
        panic!("the event is known");
    };
    let kept =
        rows.iter().filter(|row| row.status != ReservationStatus::Cancelled).flat_map(|row| &row.places);
    let mut sold: BTreeMap<&str, i64> = BTreeMap::new();
    for places in kept {
        *sold.entry(places.section_id.as_str()).or_default() += i64::from(places.count);
    }
    for section in &detail.sections {
        let sold = sold.get(section.section_id.as_str()).copied().unwrap_or_default();
        assert!(sold > 0, "nothing was sold of {section:?}");
        assert_eq!(sold + section.remaining, i64::from(section.capacity), "{section:?}, {sold} sold");
    }
    let free: i64 = detail.sections.iter().map(|section| section.remaining).sum();
    assert_eq!(detail.summary.remaining, u64::try_from(free).expect("not negative"));
}
