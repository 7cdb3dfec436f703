//! Redis killed and restarted, out of memory, without its scripts, cut off or slow: whoever asks is answered rightly or told
//! to come back, a repeated request has one effect, and no instance of a function needs a restart.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use domain::fact::Fact;
use futures::future::join_all;
use redis::Cmd;
use redis::aio::MultiplexedConnection;
use serde_json::{Value, json};
use store::{KeyName, Keys, Load, StoreConfig};
use support::{
    Answer, App, AppendOnly, Call, Fault, FaultProxy, Function, Invoked, Redis, Topology, Verdict, Way,
};

use crate::world::{LONG, World, answered, purchase};

/// A request tries twice, half a second each, and may have to connect; the rest is room for a busy machine.
const IN_TIME: Duration = Duration::from_secs(10);

/// A sale on a Redis of its own, and an instance of the functions that reaches it through a proxy.
struct Behind {
    redis: Redis,
    proxy: FaultProxy,
    /// Reaches Redis as it is.
    app: App,
    instance: App,
}

impl Behind {
    async fn new() -> Self {
        let redis = Redis::start(Topology::Single);
        let app = App::reached_by(&redis.config(), to_be_paid).await;
        let proxy = FaultProxy::before(redis.url());
        let instance = app.instance(&StoreConfig::new(proxy.url(), false));
        Self { redis, proxy, app, instance }
    }

    fn pass(&self, ms: i64) {
        self.app.pass(ms);
        self.instance.at(self.app.now());
    }

    /// A token in a live session.
    async fn active(&self) -> String {
        let token = self.app.active().await;
        self.instance.at(self.app.now());
        token
    }

    /// What the journal tells, by kind.
    async fn told(&self) -> BTreeMap<&'static str, usize> {
        let mut told = BTreeMap::new();
        for fact in journal(&self.app).await {
            *told.entry(fact.what.kind()).or_default() += 1;
        }
        told
    }

    /// Runs `act`, after which the journal tells these kinds once more each, and nothing else.
    async fn tells<T>(&self, kinds: &[&'static str], act: impl AsyncFnOnce() -> T) -> T {
        let mut expected = self.told().await;
        let answer = act().await;
        for kind in kinds {
            *expected.entry(*kind).or_default() += 1;
        }
        assert_eq!(self.told().await, expected);
        answer
    }

    /// Runs `act`, of whose replies from Redis this one is cut in its middle: its command is sent once more.
    async fn cut<T>(&self, reply: u64, kinds: &[&'static str], act: impl AsyncFnOnce() -> T) -> T {
        let mut answer = None;
        self.proxy.cut_reply(reply);
        let counted = self.redis.count_commands(async || answer = Some(self.tells(kinds, act).await)).await;
        let steps = counted.iter().filter(|(command, _)| command.starts_with("eval")).map(|(_, count)| count);
        assert!(steps.sum::<u64>() > reply, "nothing was cut: {counted:?}");
        answer.expect("an answer")
    }

    /// Runs `act` while no reply with these bytes arrives, which is told to come back, and once more when they do.
    async fn repeated(&self, bytes: &[u8], kinds: &[&'static str], act: impl AsyncFn() -> Answer) -> Answer {
        self.tells(kinds, async || {
            self.proxy.on(Way::Reply, bytes, || Verdict::Cut);
            is_told_to_come_back(&act().await);
            self.proxy.forget_hooks();
            act().await
        })
        .await
    }
}

fn to_be_paid(sale: &mut Value) {
    sale["payment"] = json!({ "mode": "deferred", "dueAfterSeconds": 3600, "currency": "KRW" });
}

async fn journal(app: &App) -> Vec<Fact> {
    let page = app.store.journal(&app.event, None, u64::MAX >> 1).await.expect("redis answers");
    assert_eq!((page.unreadable, page.next), (Vec::new(), None));
    page.facts
}

fn is_told_to_come_back(answer: &Answer) {
    assert_eq!((answer.status, answer.code()), (503, "UNAVAILABLE"), "{}", answer.text);
    assert!(answer.header("retry-after").is_some(), "{:?}", answer.headers);
}

/// Waits as long as a busy machine may need.
async fn connected(url: &str) -> MultiplexedConnection {
    let client = redis::Client::open(url).expect("a Redis URL");
    let patient = redis::AsyncConnectionConfig::new().set_response_timeout(Some(LONG));
    let connection = client.get_multiplexed_async_connection_with_config(&patient).await;
    connection.expect("Redis takes a connection")
}

async fn ask<T: redis::FromRedisValue>(connection: &mut MultiplexedConnection, command: &Cmd) -> T {
    command.query_async(connection).await.expect("Redis answers")
}

async fn set(connection: &mut MultiplexedConnection, name: &str, value: u64) {
    let () = ask(connection, redis::cmd("CONFIG").arg("SET").arg(name).arg(value)).await;
}

async fn hold(app: &App, token: &str, seat: &str) -> Answer {
    app.hold(token, json!({ "offeringId": "T1", "seats": [seat] })).await
}

async fn pay(app: &App, reservation: &Value) -> Answer {
    let (id, amount) = (&reservation["reservationId"], &reservation["amount"]);
    let payment = json!({
        "paymentId": format!("p-{id}"), "reservationId": id, "status": "PAID", "amount": amount, "currency": "KRW",
    });
    app.send(App::webhook(&payment)).await
}

async fn cancel(app: &App, token: &str, reservation: &Value) -> Answer {
    let id = reservation["reservationId"].as_str().expect("an id");
    app.send(Call::new("DELETE", &format!("/api/booking/{id}")).query("token", token)).await
}

/// Without faults, so that the instance is connected and Redis has every script.
async fn warm_up(behind: &Behind) {
    let instance = &behind.instance;
    let token = instance.join().await;
    behind.pass(1_000);
    instance.tick().await;
    assert_eq!(instance.poll(&token).await.data()["status"], "ACTIVE");
    hold(instance, &token, "4D").await.data();
    let booked = instance.book(&token, json!({})).await;
    pay(instance, booked.data()).await.data();
    cancel(instance, &token, booked.data()).await.data();
    let other = instance.join().await;
    instance.leave(&other).await.data();
}

#[tokio::test]
async fn a_step_whose_reply_was_cut_is_repeated_and_has_one_effect() {
    let behind = Behind::new().await;
    let instance = &behind.instance;
    warm_up(&behind).await;
    let free = behind.app.remaining().await;

    let leaving = behind.cut(1, &["USER_ENTER_QUEUE"], async || instance.join().await).await;
    let left = behind.cut(1, &["USER_LEFT_QUEUE"], async || instance.leave(&leaving).await).await;
    assert_eq!(left.status, 200, "{}", left.text);
    let token = behind.cut(1, &["USER_ENTER_QUEUE"], async || instance.join().await).await;
    behind.pass(1_000);
    behind.cut(1, &["USER_ADMITTED"], async || instance.tick().await).await;
    // It is read where the token stands, then claimed.
    let polled = behind.cut(2, &["TOKEN_ISSUED"], async || instance.poll(&token).await).await;
    assert_eq!(polled.data()["status"], "ACTIVE");
    let held = behind.cut(1, &["SEATS_HELD"], async || hold(instance, &token, "1A").await).await;
    assert_eq!(held.data()["seats"], json!(["1A"]));
    assert_eq!(behind.app.remaining().await, free - 1);
    let booked = behind.cut(1, &["BOOKED"], async || instance.book(&token, json!({})).await).await;
    assert_eq!((booked.status, &booked.data()["seats"]), (201, &json!(["1A"])));
    let paid = behind.cut(1, &["PAID"], async || pay(instance, booked.data()).await).await;
    assert_eq!(paid.data()["status"], "PAID");
    let both = ["BOOKING_CANCELLED", "REFUND_DUE"];
    let cancelled = behind.cut(1, &both, async || cancel(instance, &token, booked.data()).await).await;
    assert_eq!(cancelled.data()["status"], "CANCELLED");
    assert_eq!(behind.app.remaining().await, free);
}

#[tokio::test]
async fn a_request_that_never_heard_of_its_step_is_repeated_and_has_one_effect() {
    let behind = Behind::new().await;
    let instance = &behind.instance;
    warm_up(&behind).await;
    let (token, free) = (behind.active().await, behind.app.remaining().await);

    let held = behind.repeated(b"HELD", &["SEATS_HELD"], async || hold(instance, &token, "1A").await).await;
    assert_eq!(held.data()["seats"], json!(["1A"]));
    let booked =
        behind.repeated(b"BOOKED", &["BOOKED"], async || instance.book(&token, json!({})).await).await;
    assert_eq!((booked.status, &booked.data()["seats"]), (201, &json!(["1A"])));
    assert_eq!(behind.app.remaining().await, free - 1);
    let paid = behind.repeated(b"PAID", &["PAID"], async || pay(instance, booked.data()).await).await;
    assert_eq!(paid.data()["status"], "PAID");
    let both = ["BOOKING_CANCELLED", "REFUND_DUE"];
    let cancelled =
        behind.repeated(b"CANCELLED", &both, async || cancel(instance, &token, booked.data()).await).await;
    assert_eq!(cancelled.data()["status"], "CANCELLED");
    assert_eq!(behind.app.remaining().await, free);
}

#[tokio::test]
async fn a_reply_that_comes_too_late_is_told_in_time_and_never_given_to_somebody_else() {
    let behind = Behind::new().await;
    let instance = &behind.instance;
    warm_up(&behind).await;
    let buyer = behind.active().await;
    let mut waiting = Vec::new();
    for _ in 0..10 {
        waiting.push(instance.join().await);
    }

    behind.proxy.set(Fault::Delay(Duration::from_millis(1_500)));
    let started = Instant::now();
    let polls = join_all(waiting.iter().map(|token| instance.poll(token)));
    let (polls, bought) = futures::join!(polls, instance.book(&buyer, json!({ "seatCount": 1 })));
    assert!(started.elapsed() < IN_TIME, "{:?}", started.elapsed());
    for answer in polls.iter().chain([&bought]) {
        is_told_to_come_back(answer);
    }
    // While late replies still arrive.
    behind.proxy.set(Fault::Pass);
    for _ in 0..3 {
        let polls = join_all(waiting.iter().map(|token| instance.poll(token))).await;
        for (at, answer) in polls.iter().enumerate() {
            assert_eq!(answer.data()["rank"], at + 1);
        }
    }
    assert_eq!(instance.book(&buyer, json!({ "seatCount": 1 })).await.status, 201);
    assert_eq!(behind.told().await["BOOKED"], 1 + 1, "the warm-up's and this one");
}

#[tokio::test]
async fn scripts_that_are_forgotten_under_load_cost_nobody_an_answer() {
    let behind = Behind::new().await;
    let instance = &behind.instance;
    let mut tokens = Vec::new();
    for _ in 0..4 {
        tokens.push(behind.active().await);
    }
    let mut connection = behind.redis.connection().await;
    let flushes = AtomicU32::new(0);
    let flush = async {
        for _ in 0..1_000_000 {
            let () = ask(&mut connection, redis::cmd("SCRIPT").arg("FLUSH")).await;
            flushes.fetch_add(1, Ordering::Relaxed);
        }
    };
    let load = join_all(tokens.iter().enumerate().map(async |(at, token)| {
        for time in 0..40 {
            let joined = instance.join().await;
            assert_eq!(instance.poll(&joined).await.data()["status"], "WAITING");
            let seat = format!("{}A", at + 1);
            assert_eq!(hold(instance, token, &seat).await.data()["seats"], json!([seat]));
            let release = json!({ "token": token, "offeringId": "T1", "seats": [seat] });
            assert_eq!(instance.post("/api/seat/cancel", release).await.data()["released"], 1);
            // Leaving has a limit of its own for each address.
            let leave = Call::new("DELETE", "/api/queue/leave").query("token", &joined);
            let left = instance.send(leave.from(&format!("203.0.{at}.{time}"))).await;
            assert_eq!(left.data()["removed"], true);
        }
        assert_eq!(instance.book(token, json!({ "seatCount": 1 })).await.status, 201);
    }));
    tokio::select! {
        () = flush => panic!("the load does not end"),
        _ = load => {}
    }
    assert!(flushes.load(Ordering::Relaxed) > 20, "{flushes:?}");
    let told = behind.told().await;
    let counts = ["USER_LEFT_QUEUE", "SEATS_HELD", "SEATS_RELEASED", "BOOKED"].map(|kind| told[kind]);
    assert_eq!(counts, [160, 160, 160, 4]);
    assert_eq!(behind.app.remaining().await, 28 - 4);
}

/// All that Redis keeps, as one word.
async fn digest(connection: &mut MultiplexedConnection) -> String {
    ask(connection, redis::cmd("DEBUG").arg("DIGEST")).await
}

#[tokio::test]
async fn a_full_redis_refuses_whole_steps_and_goes_on_when_there_is_memory() {
    let behind = Behind::new().await;
    let instance = &behind.instance;
    warm_up(&behind).await;
    let [buyer, holder, looker] = [behind.active().await, behind.active().await, behind.active().await];
    let booked = instance.book(&buyer, json!({ "seatCount": 2 })).await;
    hold(instance, &holder, "1A").await.data();
    let waiting = instance.join().await;
    let reservation = booked.data();
    let mut connection = behind.redis.connection().await;
    // Counts of calls by address end with their second.
    tokio::time::sleep(Duration::from_millis(1_500)).await;

    set(&mut connection, "maxmemory", 1).await;
    let mut refusals = 0;
    for asked in 0..6 {
        let before = digest(&mut connection).await;
        let answer = match asked {
            0 => instance.post("/api/queue/join", json!({})).await,
            1 => hold(instance, &looker, "1B").await,
            2 => instance.book(&looker, json!({ "seatCount": 1 })).await,
            // Whose first write frees memory may come through: then all of it has.
            3 => pay(instance, reservation).await,
            4 => instance.rejoin(&domain::Token::random().to_string()).await,
            // Likewise.
            _ => instance.book(&holder, json!({})).await,
        };
        if answer.status == 503 {
            is_told_to_come_back(&answer);
            assert_eq!(digest(&mut connection).await, before, "half applied: {asked}");
            refusals += 1;
        } else {
            assert!([3, 5].contains(&asked) && answer.status < 300, "{asked}: {}", answer.text);
        }
    }
    assert!(refusals >= 4);
    let before = digest(&mut connection).await;
    // What only reads is answered.
    let id = reservation["reservationId"].as_str().expect("an id");
    let read = Call::new("GET", &format!("/api/booking/{id}")).query("token", &buyer);
    assert_eq!(instance.send(read).await.status, 200);
    let search = Call::new("GET", "/trains/search").query("token", &looker);
    assert_eq!(instance.send(search).await.status, 200);
    let free = behind.app.remaining().await;
    let cancelled = cancel(instance, &buyer, reservation).await;
    if cancelled.status == 503 {
        assert_eq!((behind.app.remaining().await, digest(&mut connection).await), (free, before));
    } else {
        assert_eq!(cancelled.data()["status"], "CANCELLED");
        assert_eq!(behind.app.remaining().await, free + 2);
    }

    set(&mut connection, "maxmemory", 0).await;
    assert_eq!(cancel(instance, &buyer, reservation).await.data()["status"], "CANCELLED");
    assert_eq!(behind.app.remaining().await, free + 2);
    assert_eq!(hold(instance, &looker, "1B").await.status, 200);
    assert_eq!(instance.book(&holder, json!({})).await.data()["seats"], json!(["1A"]));
    assert_eq!(instance.book(&looker, json!({})).await.data()["seats"], json!(["1B"]));
    assert_eq!(instance.poll(&waiting).await.data()["rank"], 1);
    let told = behind.told().await;
    assert_eq!((told["BOOKED"], told["BOOKING_CANCELLED"]), (1 + 3, 1 + 1));
}

#[tokio::test]
async fn memory_that_ends_under_load_gives_places_to_those_who_were_told_so() {
    let behind = Behind::new().await;
    warm_up(&behind).await;
    let mut connection = behind.redis.connection().await;
    let about: String = ask(&mut connection, redis::cmd("INFO").arg("memory")).await;
    let used = about.lines().find_map(|line| line.strip_prefix("used_memory:")?.trim().parse::<u64>().ok());
    set(&mut connection, "maxmemory", used.expect("what is used") + 200_000).await;
    let (mut given, mut refused) = (0, 0);
    // Far more than fit.
    for _ in 0..200 {
        let join = || behind.instance.post("/api/queue/join", json!({}));
        for answer in join_all((0..50).map(|_| join())).await {
            if answer.status == 200 {
                given += 1;
            } else {
                is_told_to_come_back(&answer);
                refused += 1;
            }
        }
        if refused > 0 {
            break;
        }
    }
    assert!(given > 0 && refused > 0, "{given} given, {refused} refused");
    let waiting = Keys::of(&behind.app.event).name(KeyName::Waiting);
    let places: u64 = ask(&mut connection, redis::cmd("ZCARD").arg(waiting)).await;
    assert_eq!(places, given);
    assert_eq!(behind.told().await["USER_ENTER_QUEUE"], usize::try_from(given).expect("few") + 2);
    set(&mut connection, "maxmemory", 0).await;
    behind.instance.join().await;
}

/// What the relay does once all that was answered is written: here it stands in Redis already.
async fn goes_on(app: &App) {
    app.pass(1_000);
    let epoch = AtomicU64::new(0);
    support::wait_until(LONG, "a loss is noticed", async || {
        let Ok(Ok(tick)) = app.store.admit(&app.event, Load::default()).await else { return false };
        epoch.store(tick.epoch, Ordering::Relaxed);
        tick.recovering
    })
    .await;
    let epoch = epoch.into_inner();
    support::wait_until(LONG, "the recovery ends", async || {
        matches!(app.store.recovered(&app.event, epoch).await, Ok(Ok(true)))
    })
    .await;
}

/// The same instance, asked until it is answered: a place of before is there, a new one is given, and places are sold again
/// once the sale goes on.
async fn serves_again(instance: &App, active: &str, waiting: &str) {
    support::wait_until(Duration::from_secs(30), "an answer", async || {
        let polled = instance.poll(waiting).await;
        if polled.status == 503 {
            is_told_to_come_back(&polled);
            return false;
        }
        assert_eq!(polled.data()["status"], "WAITING");
        true
    })
    .await;
    is_told_to_come_back(&instance.book(active, json!({ "seatCount": 1 })).await);
    goes_on(instance).await;
    support::wait_until(LONG, "a place is sold", async || {
        let booked = instance.book(active, json!({ "seatCount": 1 })).await;
        assert!([201, 503].contains(&booked.status), "{}", booked.text);
        booked.status == 201
    })
    .await;
    instance.join().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_outlives_the_death_of_its_redis_alone_or_as_a_cluster() {
    for topology in [Topology::Single, Topology::Cluster] {
        let mut redis = Redis::start_with(topology, AppendOnly::On);
        // What was answered is on the disk: another test loses it.
        let always = redis::cmd("CONFIG").arg("SET").arg("appendfsync").arg("always").clone();
        let () = ask(&mut redis.connection().await, &always).await;
        let instance = App::reached_by(&redis.config(), |_| {}).await;
        let (active, waiting) = (instance.active().await, instance.join().await);
        tokio::task::block_in_place(|| redis.kill(0));
        let started = Instant::now();
        is_told_to_come_back(&instance.poll(&waiting).await);
        is_told_to_come_back(&instance.book(&active, json!({ "seatCount": 1 })).await);
        assert!(started.elapsed() < 2 * IN_TIME, "{topology:?}: {:?}", started.elapsed());
        tokio::task::block_in_place(|| redis.start_again(0));
        serves_again(&instance, &active, &waiting).await;
    }
}

/// The replica has all that was written so far. Redis waits for the writes of this connection, and what came before them.
async fn followed(primary: &mut MultiplexedConnection) {
    let () = ask(primary, redis::cmd("SET").arg("tests:written").arg(1)).await;
    let replicas: u64 = ask(primary, redis::cmd("WAIT").arg(1).arg(5_000)).await;
    assert_eq!(replicas, 1);
}

/// What becomes of a primary whose replica is promoted.
#[derive(Debug, Clone, Copy)]
enum Primary {
    Dies,
    /// It holds its connections and says nothing.
    FallsSilent,
    /// It holds its connections and follows the new one.
    Follows,
}

/// A replica is promoted, to where the address leads from then on.
async fn promoted(primary: Primary) {
    let mut redis = Redis::start(Topology::Replica);
    let proxy = FaultProxy::before(redis.url());
    let instance = App::reached_by(&StoreConfig::new(proxy.url(), false), |_| {}).await;
    let (active, waiting) = (instance.active().await, instance.join().await);
    let mut old = connected(redis.url()).await;
    followed(&mut old).await;
    let replica = redis.read_url().expect("a replica").to_owned();
    let mut new = connected(&replica).await;
    match primary {
        Primary::Dies => tokio::task::block_in_place(|| redis.kill(0)),
        Primary::FallsSilent => redis.freeze(0).await,
        Primary::Follows => {}
    }
    let () = ask(&mut new, redis::cmd("REPLICAOF").arg("NO").arg("ONE")).await;
    if let Primary::Follows = primary {
        let port = replica.trim_end_matches('/').rsplit(':').next().expect("a port");
        let () = ask(&mut old, redis::cmd("REPLICAOF").arg("127.0.0.1").arg(port)).await;
    }
    proxy.lead_to(&replica);
    serves_again(&instance, &active, &waiting).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_finds_the_promoted_replica_of_a_primary_that_died() {
    promoted(Primary::Dies).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_finds_the_promoted_replica_of_a_primary_that_fell_silent() {
    promoted(Primary::FallsSilent).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_finds_the_promoted_replica_of_a_primary_that_follows_it() {
    promoted(Primary::Follows).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_finds_the_promoted_replica_in_a_cluster() {
    for silent in [false, true] {
        let mut redis = Redis::start_cluster_pair();
        // The address of a cluster leads to whichever node lives.
        let proxy = FaultProxy::before(redis.url());
        let instance = App::reached_by(&StoreConfig::new(proxy.url(), true), |_| {}).await;
        let (active, waiting) = (instance.active().await, instance.join().await);
        followed(&mut connected(redis.url()).await).await;
        let replica = redis.node_urls()[1].to_owned();
        if silent {
            redis.freeze(0).await;
        } else {
            tokio::task::block_in_place(|| redis.kill(0));
        }
        let takeover = redis::cmd("CLUSTER").arg("FAILOVER").arg("TAKEOVER").clone();
        let () = ask(&mut connected(&replica).await, &takeover).await;
        proxy.lead_to(&replica);
        proxy.cut();
        serves_again(&instance, &active, &waiting).await;
    }
}

/// Bookings under way when Redis dies (-9) at the reply to the third.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_under_load_and_restarted_with_its_file_it_has_sold_what_was_answered() {
    let server = Redis::start_with(Topology::Single, AppendOnly::On);
    let killer = server.killer(0).await;
    let mut world = World::around(server, true, |_| {}).await;
    let mut buyers: Vec<(Function, String)> = Vec::new();
    for _ in 0..3 {
        buyers.push((world.book().await, world.active().await));
        buyers.push((world.book().await, world.active().await));
    }
    let replies = Arc::new(AtomicU32::new(0));
    world.redis.on(Way::Reply, b"BOOKED", move || {
        if replies.fetch_add(1, Ordering::SeqCst) < 2 {
            return Verdict::Forward;
        }
        killer();
        Verdict::Cut
    });
    let bought = join_all(buyers.iter().map(async |(book, token)| book.invoke(&purchase(token)).await)).await;
    let statuses: Vec<u64> = bought.iter().map(|invoked| answered(invoked.clone()).0).collect();
    assert!(statuses.iter().all(|status| [201, 503].contains(status)), "{statuses:?}");
    assert!(statuses.contains(&201) && statuses.contains(&503), "{statuses:?}");
    world.redis.forget_hooks();
    tokio::task::block_in_place(|| world.server.start_again(0));

    // The same instances, told to come back until the sale goes on.
    let mut sold = BTreeMap::new();
    world
        .run_until("everybody has what they wanted", async || {
            for (book, token) in &buyers {
                let (status, body) = answered(book.invoke(&purchase(token)).await);
                assert!([201, 503].contains(&status), "{status}: {body}");
                if status == 201 {
                    sold.insert(token.clone(), body["data"]["reservationId"].clone());
                }
            }
            sold.len() == buyers.len()
        })
        .await;
    for ((_, token), before) in buyers.iter().zip(&bought) {
        if let (201, body) = answered(before.clone()) {
            assert_eq!(body["data"]["reservationId"], sold[token]);
        }
    }
    assert_eq!(world.sold().await.len(), buyers.len());
    world.settles().await;
    assert!(bought.iter().all(|invoked| *invoked != Invoked::Died));
}
