//! Pushes on their way through real queues: from a look to the push function, and back the names of the gone.

use std::collections::BTreeMap;
use std::sync::Mutex;

use domain::ConnectionId;
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use outbox::{Posted, Sockets, SqsQueue};
use serde_json::{Value, json};
use support::{App, Sqs};

use crate::deliver::batch;
use crate::sqs::take;

/// Every tenth is gone; what the others are told.
#[derive(Default)]
struct NineInTen(Mutex<BTreeMap<String, Value>>);

impl Sockets for NineInTen {
    fn post<'a>(&'a self, connection: &'a ConnectionId, body: &'a str) -> BoxFuture<'a, Posted> {
        let posted = if connection.as_str().ends_with('0') {
            Posted::Gone
        } else {
            let told = serde_json::from_str(body).expect("JSON");
            self.0.lock().expect("no panic").insert(connection.to_string(), told);
            Posted::Sent
        };
        futures::future::ready(posted).boxed()
    }
}

async fn follow(app: &App, connection: String, token: String) {
    let event = json!({
        "requestContext": { "eventType": "MESSAGE", "connectionId": connection },
        "body": json!({ "type": "connect", "token": token }).to_string(),
    });
    let event = serde_json::from_value(event).expect("an event");
    let answer = serde_json::to_string(&socket::handle(app.state(), event).await).expect("JSON");
    assert!(answer.contains("waiting"), "{answer}");
}

#[tokio::test]
async fn three_hundred_called_hear_through_the_queue_and_the_gone_come_back_through_another() {
    let sqs = Sqs::shared();
    let (pushes_url, gone_url, client) = (sqs.queue("pushes").await, sqs.queue("gone").await, sqs.client());
    let pushes = SqsQueue::with_client(pushes_url.clone(), client.clone());
    let departures = SqsQueue::with_client(gone_url.clone(), client.clone());
    let app = App::with(|sale| sale["admission"] = json!({ "perSecond": 300, "maxActive": 1_000 })).await;
    let tokens = join_all((0..300).map(|_| app.join())).await;
    let follows = tokens.into_iter().enumerate().map(|(at, token)| follow(&app, format!("c{at}"), token));
    join_all(follows).await;
    app.pass(1_000);
    assert_eq!(app.tick().await.admitted, 300);

    assert_eq!(admit::push_event(&app.store, &pushes, &app.event).await, 300);
    let messages = take(&client, &pushes_url).await;
    // Looks of 250 and 50, a hundred sockets a message.
    assert_eq!(messages.len(), 4);
    let told = NineInTen::default();
    push::push(&told, &departures, batch(&messages)).await;
    let told = told.0.into_inner().expect("no panic");
    assert_eq!(told.len(), 270);
    assert!(told.values().all(|told| told["status"] == "ready"), "{told:?}");

    let gone = take(&client, &gone_url).await;
    let event = serde_json::to_value(batch(&gone)).expect("JSON");
    let event = serde_json::from_value(event).expect("an event");
    let answer = serde_json::to_value(socket::handle(app.state(), event).await).expect("JSON");
    assert_eq!(answer, json!({ "batchItemFailures": [] }));
    app.pass(5_000);
    assert_eq!(admit::push_event(&app.store, &pushes, &app.event).await, 270);
    let again: usize = take(&client, &pushes_url)
        .await
        .iter()
        .map(|(_, body)| outbox::unpack_pushes(body).expect("pushes").len())
        .sum();
    assert_eq!(again, 270, "nobody who is gone is pushed to again");
}
