//! Dead letters of the deployed queues: looked at without a trace, moved back without a loss.

use ::outbox::{DeadLetterQueue, Queue, SqsDeadLetters};
use admin::{AdminState, Command, DeadLetterReport, Reply, admin};
use bootstrap::config::MasterKeys;
use support::{FaultProxy, MASTER_KEY, Sqs, Verdict, Way, wait_until};

use crate::world::{LONG, World, answered, purchase};

const POISON: &str = r#"{"facts":[{"event":"a","epoch":1,"id":"1-1","at":1,"kind":"USER_FLEW"}]}"#;

/// The admin function, which reaches SQS through a proxy.
fn operator(world: &World, sqs: &FaultProxy) -> AdminState {
    let queues = vec![
        DeadLetterQueue {
            queue: Queue::Bookings,
            url: world.dead_letters_url.clone(),
            queue_url: world.bookings_url.clone(),
        },
        DeadLetterQueue {
            queue: Queue::Line,
            url: world.line_dead_letters_url.clone(),
            queue_url: world.line_url.clone(),
        },
    ];
    let letters = SqsDeadLetters::with_client(queues, Sqs::client_at(sqs.url()));
    let master = MasterKeys::new(MASTER_KEY, None).expect("a master key");
    let state = AdminState::new(world.app.store.clone(), world.records.clone(), master);
    state.with_dead_letters(Box::new(letters))
}

async fn list(state: &AdminState) -> Vec<DeadLetterReport> {
    match admin(state, Command::DlqList).await.expect("SQS answers") {
        Reply::DeadLetters { letters } => letters,
        other => panic!("{other:?}"),
    }
}

async fn replay(state: &AdminState, ids: &[String]) -> (Vec<String>, Vec<String>) {
    match admin(state, Command::DlqReplay { ids: ids.to_vec() }).await.expect("SQS answers") {
        Reply::Replayed { replayed, kept } => (replayed, kept),
        other => panic!("{other:?}"),
    }
}

/// A booking and a poisoned message among the dead letters: as after an outage of PostgreSQL that lasted too long.
async fn two_letters() -> World {
    let world = World::new().await;
    let token = world.active().await;
    assert_eq!(answered(world.book().await.invoke(&purchase(&token)).await).0, 201);
    world.send(POISON).await;
    let receive = || {
        let receive = world.client.receive_message().queue_url(&world.bookings_url);
        receive.max_number_of_messages(10).visibility_timeout(0).send()
    };
    // Received again and again by somebody who never takes them off.
    wait_until(LONG, "two dead letters", async || {
        receive().await.expect("SQS answers");
        world.messages(&world.dead_letters_url).await == 2
    })
    .await;
    assert_eq!(world.messages(&world.bookings_url).await, 0);
    world
}

#[tokio::test]
async fn they_are_told_with_their_reasons_and_moved_back_one_by_one_or_all() {
    let world = two_letters().await;
    let state = operator(&world, &world.sqs);
    let letters = list(&state).await;
    assert_eq!(list(&state).await, letters, "looking hides nothing");
    let (poisoned, sound): (Vec<_>, Vec<_>) = letters.iter().partition(|letter| letter.fact_count == 0);
    let ([poisoned], [sound]) = (poisoned.as_slice(), sound.as_slice()) else { panic!("{letters:?}") };
    assert!(poisoned.reason.as_deref().is_some_and(|reason| reason.contains("USER_FLEW")), "{poisoned:?}");
    assert_eq!(
        (&sound.reason, sound.facts[0].kind.as_str()),
        (&None, "BOOKED"),
        "nothing is wrong with it any more"
    );
    assert!(
        letters.iter().all(|letter| letter.since.is_some() && letter.queue.as_deref() == Some("bookings"))
    );
    assert_eq!(world.recorded().await, [], "looking writes nothing");

    assert_eq!(replay(&state, std::slice::from_ref(&sound.id)).await, (vec![sound.id.clone()], Vec::new()));
    let persist = world.persist().await;
    world.deliver_all(&persist).await;
    assert_eq!(world.recorded().await, world.sold().await);
    let left = list(&state).await;
    assert_eq!(left.iter().map(|letter| &letter.id).collect::<Vec<_>>(), [&poisoned.id]);

    // The poison is refused again, and comes back.
    assert_eq!(replay(&state, &[]).await.0.len(), 1);
    wait_until(LONG, "a dead letter", async || {
        let _ = world.deliver(&persist).await;
        world.messages(&world.dead_letters_url).await == 1
    })
    .await;
    let unknown = admin(&state, Command::DlqReplay { ids: vec!["unknown".to_owned()] }).await;
    assert!(matches!(unknown, Ok(Reply::Refused(_))), "{unknown:?}");
}

#[tokio::test]
async fn none_is_lost_between_its_sending_and_its_deletion() {
    let world = two_letters().await;
    let proxy = FaultProxy::before(Sqs::shared().endpoint());
    let state = operator(&world, &proxy);
    let sound = list(&state).await.into_iter().find(|letter| letter.fact_count > 0).expect("the booking");
    proxy.on(Way::Request, b"AmazonSQS.DeleteMessage", || Verdict::Cut);
    let broken = admin(&state, Command::DlqReplay { ids: vec![sound.id.clone()] }).await;
    assert!(broken.is_err(), "{broken:?}");
    proxy.forget_hooks();
    assert_eq!(world.messages(&world.dead_letters_url).await, 2, "it is still there");
    assert_eq!(replay(&state, &[sound.id]).await.0.len(), 1);
    assert_eq!(world.messages(&world.dead_letters_url).await, 1);
    assert!(world.messages(&world.bookings_url).await >= 2, "sent twice");
    world.deliver_all(&world.persist().await).await;
    assert_eq!(world.recorded().await, world.sold().await);
}
