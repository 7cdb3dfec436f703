//! Ways from the journal to PostgreSQL: the relay and the persist handler themselves, with less between them.

use aws_lambda_events::event::sqs::{SqsEvent, SqsMessage};
use domain::EventId;
use domain::fact::Fact;
use domain::reservation::Reservation;
use futures::FutureExt;
use futures::future::BoxFuture;
use outbox::{Message, Outbox, Queue};
use records::{Records, RecordsConfig};
use support::{App, Postgres};

/// All of an app's journal; fails the test on an entry that is no fact.
pub(crate) async fn journal(app: &App) -> Vec<Fact> {
    let page = app.store.journal(&app.event, None, u64::MAX >> 1).await.expect("redis answers");
    assert_eq!((page.unreadable, page.next), (Vec::new(), None));
    page.facts
}

/// A PostgreSQL database with the product's tables.
pub(crate) struct Database {
    pub(crate) url: String,
    pub(crate) records: Records,
}

impl Database {
    pub(crate) async fn fresh() -> Self {
        let url = Postgres::shared().database().await;
        let config = RecordsConfig::new(&url);
        records::migrate(&config).await.expect("the tables are made");
        Self { records: Records::open(&config).expect("a URL of PostgreSQL"), url }
    }

    /// Everything that was sold, by id.
    pub(crate) async fn reservations(&self, event: &EventId) -> Vec<Reservation> {
        reservations(&self.records, event).await
    }

    pub(crate) async fn execute(&self, statement: &str) -> u64 {
        let client = Postgres::shared().connection(&self.url).await;
        client.execute(statement, &[]).await.expect("PostgreSQL does it")
    }

    pub(crate) async fn count_facts(&self) -> i64 {
        let client = Postgres::shared().connection(&self.url).await;
        client.query_one("SELECT count(*) FROM facts", &[]).await.expect("PostgreSQL answers").get(0)
    }
}

/// Everything that was sold, by id.
pub(crate) async fn reservations(records: &Records, event: &EventId) -> Vec<Reservation> {
    let mut all = Vec::new();
    records.each_reservation(event, |row| all.push(row)).await.expect("PostgreSQL answers");
    all.sort_by(|one, other| one.reservation_id.cmp(&other.reservation_id));
    all
}

/// A batch as Lambda hands it over: message id and body.
pub(crate) fn batch(messages: &[(String, String)]) -> SqsEvent {
    let message = |(id, body): &(String, String)| {
        let mut message = SqsMessage::default();
        message.message_id = Some(id.clone());
        message.body = Some(body.clone());
        message
    };
    let mut event = SqsEvent::default();
    event.records = messages.iter().map(message).collect();
    event
}

/// Queues without a queue: what is sent is written before it counts as taken.
pub(crate) struct Straight(pub(crate) Records);

impl Outbox for Straight {
    fn send(&self, _: Queue, messages: Vec<Message>) -> BoxFuture<'_, Vec<bool>> {
        async move {
            let bodies = messages.into_iter().enumerate().map(|(at, message)| (at.to_string(), message.body));
            let bodies: Vec<(String, String)> = bodies.collect();
            let written = persist::persist(&self.0, batch(&bodies)).await.expect("PostgreSQL answers");
            assert!(written.batch_item_failures.is_empty(), "{written:?}");
            vec![true; bodies.len()]
        }
        .boxed()
    }
}

/// The journal goes to PostgreSQL, packed as the relay packs it; only of this event, as others share the Redis.
pub(crate) async fn write_journal(app: &App, records: &Records) {
    let facts = journal(app).await;
    let straight = Straight(records.clone());
    for (queue, messages) in outbox::pack(&facts) {
        straight.send(queue, messages).await;
    }
    let ids: Vec<_> = facts.iter().map(|fact| fact.id).collect();
    app.store.forget(&app.event, &ids).await.expect("redis answers");
}
