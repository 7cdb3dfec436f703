//! How fast facts become rows, beside `COPY` of the same rows: prints, and holds the floor that persisting
//! must keep. Run with `cargo test -p records --test postgres -- --ignored --nocapture`.

use std::fmt::Write as _;
use std::time::Instant;

use domain::fact::Fact;
use futures::SinkExt;
use records::WriteResult;
use tokio_postgres::Client;

use crate::facts::{booked, entered, event, general, named, reservation};
use crate::server::Database;

/// What SQS gives a function at once: ten messages of as many facts as fit 240 kB.
const MESSAGES: usize = 10;

fn rate(label: &str, facts: usize, started: Instant) -> f64 {
    let facts_a_second = facts as f64 / started.elapsed().as_secs_f64();
    println!("{label}: {facts_a_second:.0} facts/s");
    facts_a_second
}

/// Writes batch after batch, `writers` at once.
async fn write(database: &Database, batches: Vec<Vec<Vec<Fact>>>, writers: usize) {
    let records = &database.records;
    let write = async |batch: Vec<Vec<Fact>>| {
        let results = records.write(&batch).await.unwrap();
        assert!(results.iter().all(WriteResult::is_written));
    };
    futures::StreamExt::for_each_concurrent(futures::stream::iter(batches), writers, write).await;
}

fn batches(facts: &[Fact], facts_a_message: usize) -> Vec<Vec<Vec<Fact>>> {
    let messages: Vec<Vec<Fact>> = facts.chunks(facts_a_message).map(<[Fact]>::to_vec).collect();
    messages.chunks(MESSAGES).map(<[Vec<Fact>]>::to_vec).collect()
}

/// `COPY` of the facts' rows into a table of the same shape.
async fn copy(client: &Client, facts: &[Fact]) {
    client
        .batch_execute("drop table if exists copied; create table copied (like facts including all)")
        .await
        .unwrap();
    let sql =
        "copy copied (event_id, epoch, stream_ms, stream_sequence, at_ms, body) from stdin (format csv)";
    let mut sink = Box::pin(client.copy_in::<_, std::io::Cursor<Vec<u8>>>(sql).await.unwrap());
    for facts in facts.chunks(1000) {
        let mut lines = String::new();
        for fact in facts {
            let body = serde_json::to_string(&fact.what).unwrap().replace('"', "\"\"");
            let (event, ms, sequence) = (&fact.event, fact.id.ms, fact.id.sequence);
            writeln!(lines, "{event},{},{ms},{sequence},{},\"{body}\"", fact.epoch, fact.at).unwrap();
        }
        sink.send(std::io::Cursor::new(lines.into_bytes())).await.unwrap();
    }
    sink.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures: wants the machine for itself"]
async fn facts_become_rows_fast_enough() {
    let database = Database::fresh().await;
    let client = database.client().await;
    let line: Vec<Fact> = (0..200_000).map(entered).collect();
    let bookings: Vec<Fact> = (0..50_000)
        .map(|at| {
            let seats = [format!("{at}A"), format!("{at}B")];
            let seats = [seats[0].as_str(), seats[1].as_str()];
            let places =
                vec![named("KTX-101", "standard", 59_800, &seats), general("KTX-101", "standing", 8_400, 1)];
            booked(1_000_000 + at, &reservation(at.cast_signed(), places))
        })
        .collect();

    let (mut best_line, mut best_bookings) = (0.0_f64, 0.0_f64);
    for round in 0..3 {
        println!("round {round}");
        client.batch_execute("truncate facts, reservations, reservation_places").await.unwrap();
        let started = Instant::now();
        copy(&client, &line).await;
        rate("line, COPY", line.len(), started);
        let started = Instant::now();
        write(&database, batches(&line, 1200), 2).await;
        best_line = best_line.max(rate("line, two writers", line.len(), started));
        let started = Instant::now();
        write(&database, batches(&line, 1200), 1).await;
        rate("line, delivered again", line.len(), started);

        let started = Instant::now();
        copy(&client, &bookings).await;
        rate("bookings, COPY of their facts alone", bookings.len(), started);
        let started = Instant::now();
        write(&database, batches(&bookings[..30_000], 450), 2).await;
        best_bookings = best_bookings.max(rate("bookings, two writers", 30_000, started));
        let started = Instant::now();
        write(&database, batches(&bookings[30_000..], 1), 4).await;
        rate("bookings, a message each, four writers", 20_000, started);
        let started = Instant::now();
        write(&database, batches(&bookings, 450), 1).await;
        rate("bookings, delivered again", bookings.len(), started);
    }
    read(&database, line.len(), bookings.len()).await;
    // A busy machine is slow now and then, not in every round.
    assert!(best_line >= 20_000.0 && best_bookings >= 5_000.0, "{best_line} and {best_bookings} facts/s");
}

async fn read(database: &Database, line: usize, bookings: usize) {
    let records = &database.records;
    let started = Instant::now();
    let (mut last, mut read) = (None, 0);
    loop {
        let page = records.facts(&event(), "USER_ENTER_QUEUE", last.as_ref(), 10_000).await.unwrap();
        read += page.len();
        last = page.into_iter().next_back();
        if last.is_none() {
            break;
        }
    }
    assert_eq!(read, line);
    rate("reading the line", read, started);
    let started = Instant::now();
    let (mut last, mut read) = (None, 0);
    loop {
        let page = records.reservations(&event(), last.as_ref(), 1_000).await.unwrap();
        read += page.len();
        last = page.into_iter().next_back();
        if last.is_none() {
            break;
        }
    }
    assert_eq!(read, bookings);
    rate("reading reservations", read, started);
    let started = Instant::now();
    records.section_counts(&event()).await.unwrap();
    records.status_counts(&event()).await.unwrap();
    rate("counting reservations", bookings, started);
}
