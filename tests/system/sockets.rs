//! Sockets of a served system, from outside: what they hear, how they end, and that no one harms another.

use std::time::Duration;

use serde_json::{Value, json};
use support::wait_until;
use tokio_tungstenite::tungstenite::{Bytes, Message};

use crate::serving::{Folder, Served};
use crate::socket::Socket;

const SOON: Duration = Duration::from_secs(30);

fn a_sale() -> Folder {
    Folder::with_sale(|_| {})
}

/// Nobody is let in: the one slot is taken.
async fn a_standing_line(served: &Served) -> String {
    let inside = served.active().await;
    let held = json!({ "token": inside, "count": 1 });
    assert_eq!(served.caller.post("/api/seat/select", held).await.status, 200);
    inside
}

async fn connections(served: &Served) -> u64 {
    let key = store::Keys::of(&served.event).name(store::KeyName::Connections);
    redis::cmd("HLEN").arg(key).query_async(&mut served.redis().await).await.expect("a count")
}

async fn wait_for_connections(served: &Served, count: u64) {
    wait_until(SOON, "so many connections", async || connections(served).await == count).await;
}

#[tokio::test]
async fn a_buyer_hears_of_every_step_without_asking() {
    let folder = a_sale();
    let served = folder.serve().await;
    let token = served.join().await;
    let mut socket = Socket::open(served.address()).await;
    let mut other = Socket::open(served.address()).await;
    assert!(["waiting", "ready"].map(Value::from).contains(&socket.follow(&token).await["status"]));
    other.follow(&token).await;
    // Nobody polls: the place is called and told.
    let ready = socket.until("ready").await;
    assert_eq!(ready["nextAction"], "move_to_seat_selection");
    other.until("ready").await;
    let held = json!({ "token": token, "offeringId": "T1", "seats": ["1A", "1B"] });
    assert_eq!(served.caller.post("/api/seat/select", held).await.status, 200);
    assert_eq!(socket.until("seated").await["heldCount"], 2);
    let many = json!({ "token": token, "count": 3 });
    assert_eq!(served.caller.post("/api/seat/select", many).await.code(), "PURCHASE_LIMIT_EXCEEDED");
    assert_eq!(socket.until("error").await["code"], "PURCHASE_LIMIT_EXCEEDED");
    let booked = served.caller.post("/api/booking", json!({ "token": token })).await;
    let told = socket.until("booked").await;
    assert_eq!(told["reservationId"], booked.data()["reservationId"]);
    assert_eq!(told["totalTicketCount"], 2);
    other.until("booked").await;
    served.caller.delete(&format!("{}?token={token}", booked.header("location").expect("a location"))).await;
    assert_eq!(socket.until("booked").await["reservationStatus"], "CANCELLED");
}

#[tokio::test]
async fn closed_and_broken_sockets_are_forgotten_and_others_stay() {
    let folder = Folder::with_sale(|sale| sale["admission"]["maxActive"] = json!(1));
    let served = folder.serve().await;
    a_standing_line(&served).await;
    let token = served.join().await;
    let mut stays = Socket::open(served.address()).await;
    assert_eq!(stays.follow(&token).await["currentRank"], 1);
    let mut closes = Socket::open(served.address()).await;
    closes.follow(&token).await;
    let mut breaks = Socket::open(served.address()).await;
    breaks.follow(&token).await;
    assert_eq!(connections(&served).await, 3);
    closes.0.close(None).await.expect("a farewell");
    assert_eq!(closes.ends().await, 1005, "answered as it was said: without a code");
    drop(breaks);
    wait_for_connections(&served, 1).await;
    served.caller.delete(&format!("/api/queue/leave?token={token}")).await;
    assert_eq!(stays.until("expired").await["nextAction"], "rejoin");
    wait_for_connections(&served, 0).await;
}

#[tokio::test]
async fn hostile_sockets_are_refused_or_closed_and_harm_nobody() {
    let folder = a_sale();
    let served = folder.serve().await;
    let token = served.join().await;
    let mut kept = Socket::open(served.address()).await;
    kept.follow(&token).await;

    // No handshake at all, or half of one.
    let mut plain = served.caller.connect().await;
    for target in ["GET /socket", "POST /socket"] {
        plain
            .write(format!("{target} HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n").as_bytes())
            .await
            .expect("read");
        let answer = plain.read(true).await.expect("an answer");
        assert_eq!((answer.status, answer.header("upgrade")), (426, Some("websocket")), "{target}");
    }
    for (version, key) in [("12", "dGhlIHNhbXBsZSBub25jZQ=="), ("13", "")] {
        let mut half = served.caller.connect().await;
        let key = if key.is_empty() { String::new() } else { format!("sec-websocket-key: {key}\r\n") };
        let request = format!(
            "GET /socket HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: {version}\r\n{key}\r\n"
        );
        half.write(request.as_bytes()).await.expect("the server reads");
        assert_eq!(half.read(true).await.expect("an answer").status, 426);
    }

    // Texts of any kind are answered, each by an error.
    let mut odd = Socket::open(served.address()).await;
    for message in [
        Message::text(""),
        Message::text("null"),
        Message::text("\u{FFFE}\u{0}"),
        Message::text("{\"type\":\"".to_owned() + &"x".repeat(20_000)),
        Message::binary(vec![0xFF; 64]),
        Message::binary(Vec::new()),
    ] {
        odd.say(message).await;
        assert_eq!(odd.next().await.expect("an answer")["status"], "error");
    }
    odd.say(Message::Ping(Bytes::from_static(b"are you there"))).await;
    assert_eq!(odd.follow(&token).await["status"], kept_status(&mut kept, &token).await, "as good as before");

    // Too large at once: 1009.
    let mut large = Socket::open(served.address()).await;
    let _ = futures::SinkExt::send(&mut large.0, Message::text("x".repeat(100_000))).await;
    assert!([1009, 1006].contains(&large.ends().await));
    // A frame without a mask, a reserved bit, an unknown kind, one that is too long.
    let long_ping = [&b"\x89\xFE\0\x7E\0\0\0\0"[..], &[0; 126]].concat();
    let endless = b"\x81\xFF\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF\0\0\0\0";
    for frame in [&b"\x81\x02hi"[..], b"\xF1\x80\0\0\0\0", b"\x83\x80\0\0\0\0", &long_ping, endless] {
        let mut raw = Socket::open(served.address()).await;
        tokio::io::AsyncWriteExt::write_all(raw.0.get_mut(), frame).await.expect("the server reads");
        raw.ends().await;
    }
    assert!(!kept.follow(&token).await["status"].is_null());
    assert_eq!(served.caller.get("/health").await.status, 200);
}

async fn kept_status(kept: &mut Socket, token: &str) -> Value {
    kept.follow(token).await["status"].clone()
}

#[tokio::test]
async fn a_reader_that_does_not_read_is_closed_and_holds_up_nobody() {
    let folder = Folder::with_sale(|sale| sale["admission"]["maxActive"] = json!(1));
    let served = folder.serve().await;
    a_standing_line(&served).await;
    let (stuck, token) = (served.join().await, served.join().await);
    let mut slow = Socket::narrow(served.address()).await;
    slow.follow(&stuck).await;
    // Asks for far more than the way to it holds, and reads none of it.
    let flood = tokio::spawn(async move {
        for _ in 0..1_000_000 {
            if futures::SinkExt::send(&mut slow.0, Message::text("{}")).await.is_err() {
                return;
            }
        }
        panic!("a million answers went into a narrow socket");
    });
    let mut other = Socket::open(served.address()).await;
    assert_eq!(other.follow(&token).await["currentRank"], 2);
    served.caller.delete(&format!("/api/queue/leave?token={stuck}")).await;
    let told = other.until("waiting").await;
    assert_eq!(told["currentRank"], 1, "while the slow one is stuck");
    wait_for_connections(&served, 1).await;
    flood.await.expect("the slow one was closed");
    assert_eq!(other.follow(&token).await["currentRank"], 1);
}

#[tokio::test]
async fn an_end_says_farewell_and_a_restart_prunes_what_a_kill_left() {
    let folder = Folder::with_sale(|sale| {
        sale["admission"] = json!({ "perSecond": 10, "maxActive": 1, "claimSeconds": 15 });
    });
    let mut served = folder.serve().await;
    let inside = a_standing_line(&served).await;
    let token = served.join().await;
    let mut socket = Socket::open(served.address()).await;
    socket.follow(&token).await;
    let services = served.services;
    served.process.signal("KILL");
    served.process.ends().await;
    services.end().await;
    assert_eq!(socket.ends().await, 1006);

    let served = folder.serve().await;
    assert_eq!(connections(&served).await, 1, "what the killed one left");
    // The place is called: the push finds the old socket gone, and the new one there.
    let mut again = Socket::open(served.address()).await;
    assert_eq!(again.follow(&token).await["currentRank"], 1, "a reconnect keeps the place");
    assert_eq!(connections(&served).await, 2);
    served.caller.delete(&format!("/api/queue/leave?token={inside}")).await;
    again.until("ready").await;
    wait_for_connections(&served, 1).await;
    served.interrupt().await;
    assert_eq!(again.ends().await, 1001);
}
