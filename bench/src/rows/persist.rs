//! From the journal to PostgreSQL: the relay reads, packs and forgets, persist writes, and both work at once as they do
//! deployed; what lies between is a short queue in this process. Beside it COPY of the very rows that came of it.

use std::time::Instant;

use anyhow::Context;
use aws_lambda_events::event::sqs::{SqsEvent, SqsMessage};
use domain::Token;
use domain::command::{Book, Purchase};
use futures::future::BoxFuture;
use futures::{FutureExt, SinkExt, StreamExt, TryStreamExt};
use outbox::{Message, Outbox, Queue};
use records::{Records, RecordsConfig};
use support::{Postgres, Redis, Topology};
use tokio::sync::{Mutex, mpsc};
use tokio_postgres::Client;

use crate::Bench;
use crate::figure::{Figure, Target};
use crate::rounds::beside;
use crate::world::{AT_ONCE, Sale, patient};

pub(crate) const FIGURES: &[&str] = &["persist_line", "persist_bookings"];

/// Facts a round.
const LINE: usize = 100_000;
const BOOKINGS: usize = 20_000;
/// Batches between relay and persist.
const BETWEEN: usize = 4;
/// Runs of persist at once.
const WRITERS: usize = 2;

pub(crate) async fn run(bench: &Bench) -> anyhow::Result<Vec<Figure>> {
    let (redis, postgres) = (Redis::start(Topology::Single), Postgres::start());
    let url = postgres.database().await;
    let config = RecordsConfig::new(&url);
    records::migrate(&config).await?;
    let stage = Stage { records: Records::open(&config)?, client: postgres.connection(&url).await };
    let (mut line, mut bookings) = (Vec::new(), Vec::new());
    for _ in 0..bench.rounds.min(5) {
        let sale = Sale::open(&patient(&redis), |sale| {
            sale["admission"]["perSecond"] = 1_000.into();
        })
        .await?;
        // The sale's own first facts are no part of it.
        sale.drain().await?;
        let joins = futures::stream::iter((0..LINE).map(|_| sale.join(None)));
        let tokens: Vec<Token> = joins.buffered(AT_ONCE).try_collect().await?;
        line.push(stage.pass(&sale, LINE, &["facts"]).await?);
        let buyers = sale.seat(&tokens, BOOKINGS).await?;
        sale.drain().await?;
        book(&sale, &buyers).await?;
        bookings.push(stage.pass(&sale, BOOKINGS, &["facts", "reservations", "reservation_places"]).await?);
    }
    let figure =
        |name, least, pairs: &[(f64, f64)]| Figure::beside(name, "/s", Target::AtLeast(least), beside(pairs));
    Ok(vec![figure(FIGURES[0], 20_000.0, &line), figure(FIGURES[1], 5_000.0, &bookings)])
}

async fn book(sale: &Sale, buyers: &[Token]) -> anyhow::Result<()> {
    let bookings = buyers.iter().map(|token| async move {
        let purchase = Purchase::Plain { seat_count: 2, offering: None, section: None };
        let book = Book { event: sale.event.clone(), token: *token, purchase, repeatable: None };
        let booked = sale.store.book(&book).await?;
        booked.map(drop).map_err(|refusal| anyhow::anyhow!("{refusal:?}"))
    });
    futures::stream::iter(bookings).buffer_unordered(AT_ONCE).try_collect().await
}

struct Stage {
    records: Records,
    client: Client,
}

impl Stage {
    /// Facts a second from the journal into empty tables, and by COPY into tables of the same shape.
    async fn pass(&self, sale: &Sale, facts: usize, tables: &[&str]) -> anyhow::Result<(f64, f64)> {
        self.client.batch_execute("truncate facts, reservations, reservation_places, events").await?;
        let started = Instant::now();
        deliver(&self.records, |queue| async move {
            while relay::relay(&sale.store, &queue, 0).await? > 0 {}
            Ok(())
        })
        .await?;
        let delivered = facts as f64 / started.elapsed().as_secs_f64();
        let written: i64 = self.client.query_one("select count(*) from facts", &[]).await?.get(0);
        anyhow::ensure!(usize::try_from(written)? == facts, "{written} of {facts} facts were written");
        Ok((delivered, facts as f64 / self.copy(tables).await?))
    }

    /// Seconds that COPY of all rows of these tables takes.
    async fn copy(&self, tables: &[&str]) -> anyhow::Result<f64> {
        let mut seconds = 0.0;
        for table in tables {
            // What the database derives by itself is no part of a COPY.
            let columns: String = self
                .client
                .query_one(
                    "select string_agg(column_name, ', ' order by ordinal_position) from information_schema.columns \
                     where table_name = $1 and is_generated = 'NEVER'",
                    &[table],
                )
                .await?
                .get(0);
            let rows = self.client.copy_out(&format!("copy {table} ({columns}) to stdout")).await?;
            let rows: Vec<_> = rows.try_collect().await.context("the rows")?;
            self.client
                .batch_execute(&format!(
                    "drop table if exists copied; create table copied (like {table} including all)"
                ))
                .await?;
            let started = Instant::now();
            let sink = self.client.copy_in(&format!("copy copied ({columns}) from stdin")).await?;
            let mut sink = std::pin::pin!(sink);
            for rows in rows {
                sink.send(rows).await?;
            }
            sink.finish().await?;
            seconds += started.elapsed().as_secs_f64();
        }
        Ok(seconds)
    }
}

/// Persist at work on what a relay hands to its queue, until the relay is through.
pub(crate) async fn deliver<R: Future<Output = anyhow::Result<()>>>(
    records: &Records,
    relay: impl FnOnce(Between) -> R,
) -> anyhow::Result<()> {
    let (batches, waiting) = mpsc::channel(BETWEEN);
    let waiting = Mutex::new(waiting);
    let writers = futures::future::try_join_all((0..WRITERS).map(|_| async {
        loop {
            let Some(batch) = waiting.lock().await.recv().await else { return anyhow::Ok(()) };
            let response = persist::persist(records, batch).await?;
            anyhow::ensure!(response.batch_item_failures.is_empty(), "a fact was refused");
        }
    }));
    futures::try_join!(relay(Between { batches }), writers)?;
    Ok(())
}

/// Between relay and persist, as SQS lies: batches as they are taken are batches as they are delivered.
pub(crate) struct Between {
    batches: mpsc::Sender<SqsEvent>,
}

impl Outbox for Between {
    fn send(&self, _: Queue, messages: Vec<Message>) -> BoxFuture<'_, Vec<bool>> {
        async move {
            let taken = messages.len();
            let mut event = SqsEvent::default();
            event.records =
                messages.into_iter().enumerate().map(|(at, message)| delivered(at, message)).collect();
            let sent = self.batches.send(event).await.is_ok();
            vec![sent; taken]
        }
        .boxed()
    }
}

fn delivered(at: usize, message: Message) -> SqsMessage {
    let mut delivered = SqsMessage::default();
    delivered.message_id = Some(at.to_string());
    delivered.body = Some(message.body);
    delivered
}
