//! Facts into messages, messages into batches.

use std::borrow::Borrow;

use domain::EventId;
use domain::fact::{Fact, StreamId};

use crate::Queue;

/// The most bytes of a body that holds more than one fact.
pub const MAX_BODY_BYTES: usize = 240_000;
/// SQS takes at most this many messages at once.
pub const MAX_BATCH_MESSAGES: usize = 10;
/// The most bytes of all bodies of a batch. SQS takes 1 MiB; the rest is room for what it counts besides.
pub const MAX_BATCH_BYTES: usize = 1_000_000;

const OPENING: &str = r#"{"facts":["#;
const CLOSING: &str = "]}";

/// Facts of one queue in one body, `{"facts":[…]}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// What the queue carries, JSON.
    pub body: String,
    /// Which journal entries that are: once the queue took the message, exactly these may be deleted.
    pub carries: Vec<Carried>,
}

/// Journal entries of one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carried {
    /// The event whose journal they are in.
    pub event: EventId,
    /// Their ids, in the order in which they were packed.
    pub ids: Vec<StreamId>,
}

/// Packs facts into as few messages as their order allows, for each queue that has any, bookings first.
/// A fact that alone is longer than [`MAX_BODY_BYTES`] travels alone and is logged as an error.
pub fn pack<F: Borrow<Fact>>(facts: impl IntoIterator<Item = F>) -> Vec<(Queue, Vec<Message>)> {
    let (mut bookings, mut line) = (Packer::default(), Packer::default());
    for fact in facts {
        let fact = fact.borrow();
        if fact.what.is_booking() { bookings.add(fact) } else { line.add(fact) }
    }
    let packed = [(Queue::Bookings, bookings.finish()), (Queue::Line, line.finish())];
    packed.into_iter().filter(|(_, messages)| !messages.is_empty()).collect()
}

/// Groups messages, in their order, into batches that SQS takes at once.
pub fn batches(messages: Vec<Message>) -> Vec<Vec<Message>> {
    let mut batches: Vec<Vec<Message>> = Vec::new();
    let mut bytes = 0;
    for message in messages {
        match batches.last_mut() {
            Some(batch)
                if batch.len() < MAX_BATCH_MESSAGES && bytes + message.body.len() <= MAX_BATCH_BYTES =>
            {
                bytes += message.body.len();
                batch.push(message);
            }
            _ => {
                bytes = message.body.len();
                batches.push(vec![message]);
            }
        }
    }
    batches
}

#[derive(Default)]
struct Packer {
    messages: Vec<Message>,
}

impl Packer {
    fn add(&mut self, fact: &Fact) {
        let text = match serde_json::to_string(fact) {
            Ok(text) => for_sqs(text),
            Err(error) => {
                // It stays in the journal, where it can be looked at; sending nothing in its place loses nothing.
                tracing::error!(event = %fact.event, id = %fact.id, %error, "a fact cannot be written as JSON");
                return;
            }
        };
        let alone = OPENING.len() + text.len() + CLOSING.len();
        if alone > MAX_BODY_BYTES {
            let kind = fact.what.kind();
            tracing::error!(event = %fact.event, id = %fact.id, kind, bytes = alone, "a fact is too long to share a message");
        }
        match self.messages.last_mut() {
            Some(last) if last.body.len() + 1 + text.len() + CLOSING.len() <= MAX_BODY_BYTES => {
                last.body.push(',');
                last.body.push_str(&text);
                last.carry(fact);
            }
            _ => self.messages.push(Message::starting_with(fact, &text)),
        }
    }

    fn finish(mut self) -> Vec<Message> {
        for message in &mut self.messages {
            message.body.push_str(CLOSING);
        }
        self.messages
    }
}

impl Message {
    fn starting_with(fact: &Fact, text: &str) -> Self {
        let carries = vec![Carried { event: fact.event.clone(), ids: vec![fact.id] }];
        Self { body: [OPENING, text].concat(), carries }
    }

    fn carry(&mut self, fact: &Fact) {
        match self.carries.last_mut() {
            Some(last) if last.event == fact.event => last.ids.push(fact.id),
            _ => self.carries.push(Carried { event: fact.event.clone(), ids: vec![fact.id] }),
        }
    }
}

/// SQS refuses these two characters, which JSON allows. Outside ASCII, JSON has only the insides of strings, so
/// that an escape may stand for them wherever they are.
fn for_sqs(text: String) -> String {
    if text.contains(['\u{FFFE}', '\u{FFFF}']) {
        text.replace('\u{FFFE}', r"\ufffe").replace('\u{FFFF}', r"\uffff")
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use domain::fact::What;
    use domain::reservation::{Reservation, ReservationStatus};
    use domain::{Millis, ReservationId, Token};
    use proptest::prelude::*;

    use super::*;
    use crate::unpack;

    fn fact(event: &str, sequence: u64, what: What) -> Fact {
        let id = StreamId { ms: 1_700_000_000_000, sequence };
        Fact { event: event.parse().unwrap(), epoch: 1, id, at: Millis(1_700_000_000_000), what }
    }

    fn changed(event: &str, sequence: u64, by: &str) -> Fact {
        let (by, change) = (by.to_owned(), "message".to_owned());
        fact(event, sequence, What::EventChanged { by, change, value: None, version: 1, definition: None })
    }

    fn booked(event: &str, sequence: u64, currency: &str) -> Fact {
        let token = Token::random();
        let reservation = Reservation {
            reservation_id: ReservationId::of(event.parse().unwrap(), token),
            token,
            account: None,
            status: ReservationStatus::Confirmed,
            version: 1,
            places: Vec::new(),
            seat_count: 1,
            amount: 1,
            currency: currency.to_owned(),
            created_at: Millis(1),
            updated_at: Millis(1),
            payment_due_at: None,
            payment_id: None,
        };
        fact(event, sequence, What::Booked { reservation })
    }

    fn ids(messages: &[Message]) -> Vec<(String, StreamId)> {
        let of = |carried: &Carried| {
            let event = carried.event.to_string();
            carried.ids.iter().map(move |id| (event.clone(), *id)).collect::<Vec<_>>()
        };
        messages.iter().flat_map(|message| &message.carries).flat_map(of).collect()
    }

    proptest! {
        #[test]
        fn every_fact_is_packed_once_in_order_and_within_bounds(
            // Long texts stand for long facts; the largest is longer than a message may be.
            kinds in prop::collection::vec((any::<bool>(), any::<bool>(), prop_oneof![
                8 => 0..200usize, 2 => 50_000..130_000usize, 1 => 239_000..260_000usize,
            ]), 0..80)
        ) {
            let facts: Vec<Fact> = kinds.iter().enumerate().map(|(at, (booking, other, length))| {
                let (event, sequence) = (if *other { "b" } else { "a" }, at as u64);
                let text = "가".repeat(length / 3);
                if *booking { booked(event, sequence, &text) } else { changed(event, sequence, &text) }
            }).collect();
            let packed = pack(&facts);
            for queue in [Queue::Bookings, Queue::Line] {
                let sent: Vec<&Fact> =
                    facts.iter().filter(|fact| fact.what.is_booking() == (queue == Queue::Bookings)).collect();
                let messages: Vec<Message> = packed.iter().filter(|(of, _)| *of == queue)
                    .flat_map(|(_, messages)| messages.clone()).collect();
                let expected: Vec<_> = sent.iter().map(|fact| (fact.event.to_string(), fact.id)).collect();
                prop_assert_eq!(ids(&messages), expected);
                let mut read = Vec::new();
                for message in &messages {
                    let unpacked = unpack(&message.body).unwrap();
                    prop_assert!(unpacked.bad.is_empty());
                    prop_assert!(message.body.len() <= MAX_BODY_BYTES || unpacked.facts.len() == 1);
                    read.extend(unpacked.facts);
                }
                prop_assert!(read.iter().eq(sent.iter().copied()));
                let batches = batches(messages.clone());
                prop_assert!(batches.concat() == messages);
                for batch in batches {
                    let bytes: usize = batch.iter().map(|message| message.body.len()).sum();
                    prop_assert!(batch.len() <= MAX_BATCH_MESSAGES && bytes <= MAX_BATCH_BYTES);
                }
            }
        }
    }

    #[test]
    fn nothing_to_pack_is_no_message() {
        assert!(pack(Vec::<Fact>::new()).is_empty());
        assert!(batches(Vec::new()).is_empty());
    }

    #[test]
    fn small_facts_of_several_events_share_a_message_that_tells_them_apart() {
        let facts = [changed("a", 1, "x"), changed("a", 2, "x"), changed("b", 1, "x"), changed("a", 3, "x")];
        let packed = pack(&facts);
        let [(Queue::Line, messages)] = packed.as_slice() else { panic!("{packed:?}") };
        let [message] = messages.as_slice() else { panic!("{messages:?}") };
        let events: Vec<_> = message.carries.iter().map(|of| (of.event.as_str(), of.ids.len())).collect();
        assert_eq!(events, [("a", 2), ("b", 1), ("a", 1)]);
    }

    #[test]
    fn a_batch_holds_ten_messages() {
        let message = Message { body: "x".to_owned(), carries: Vec::new() };
        let sizes: Vec<_> = batches(vec![message; 23]).iter().map(Vec::len).collect();
        assert_eq!(sizes, [10, 10, 3]);
    }

    #[test]
    fn characters_that_sqs_refuses_arrive_all_the_same() {
        let sent = changed("a", 1, "x\u{FFFE}y\u{FFFF}z\u{1}\n");
        let packed = pack([&sent]);
        let body = &packed[0].1[0].body;
        let taken = |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{FFFD}' | '\u{10000}'..);
        assert!(body.chars().all(taken), "{body}");
        assert_eq!(unpack(body).unwrap().facts, [sent]);
    }
}
