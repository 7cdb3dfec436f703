//! Fairness, measured: a hundred thousand joins from two hundred callers at once, in arrival order and in a draw.
//!
//! Callers call the handlers and not a port: the same work without the local listener, which is no part of a
//! deployment and takes most of the time.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::fact::What;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use store::StoreConfig;
use support::{App, Call, OPENS_AT, Redis, Topology};

/// Parts of what jitter leaves.
const EIGHTHS: usize = 8;

const CALLERS: usize = 200;
const JOINS: usize = 100_000;
/// Of the draw: those who came before the opening, and after it.
const EARLY: usize = 20_000;
const LATE: usize = 2_000;

/// A place as its owner was told of it.
struct Joined {
    token: String,
    number: u64,
    from: Duration,
    until: Duration,
    answer: Value,
}

/// So many joins by all callers at once.
async fn joins(app: &Arc<App>, count: usize, begun: Instant) -> Vec<Joined> {
    let callers = (0..CALLERS).map(|caller| {
        let app = Arc::clone(app);
        // Each from an address of its own.
        let join =
            Call::new("POST", "/api/queue/join").from(&format!("10.0.{}.{}", caller / 250, caller % 250));
        let event = join.json(&json!({})).event();
        tokio::spawn(async move {
            let mut joined = Vec::with_capacity(count / CALLERS);
            for _ in 0..count / CALLERS {
                let from = begun.elapsed();
                let answer = app.send_event(event.clone()).await;
                let until = begun.elapsed();
                let data = answer.data();
                let token = data["token"].as_str().expect("a token").to_owned();
                let number = data["ticketNumber"].as_u64().expect("a number");
                joined.push(Joined { token, number, from, until, answer: data.clone() });
            }
            joined
        })
    });
    let joined = futures::future::join_all(callers).await;
    joined.into_iter().flat_map(|caller| caller.expect("no caller failed")).collect()
}

/// Lets everybody in; the tokens in the order in which they were called, as the journal tells it.
async fn admitted(app: &App, count: usize) -> Vec<String> {
    let mut called = 0;
    for _ in 0..count {
        app.pass(1_000);
        // A tick has many turns, as it would be called again at once.
        loop {
            let tick = app.tick().await;
            called += usize::try_from(tick.admitted).expect("a count");
            if tick.admitted == 0 {
                break;
            }
        }
        if called >= count {
            break;
        }
    }
    assert_eq!(called, count);
    let (mut tokens, mut from) = (Vec::with_capacity(count), None);
    loop {
        let page = app.store.journal(&app.event, from, u64::MAX >> 1).await.expect("redis answers");
        assert!(page.unreadable.is_empty());
        for fact in page.facts {
            if let What::UserAdmitted { places } = fact.what {
                tokens.extend(places.iter().map(|place| place.token.to_string()));
            }
        }
        from = page.next;
        if from.is_none() {
            return tokens;
        }
    }
}

/// Nothing is to be asked twice because the machine is busy.
async fn patient(change: impl FnOnce(&mut Value)) -> Arc<App> {
    let redis = Redis::shared(Topology::chosen());
    let config = StoreConfig { answer_timeout: Duration::from_mins(1), ..redis.config() };
    Arc::new(App::reaching(redis, &config, change).await)
}

fn for_many(sale: &mut Value) {
    sale["admission"] =
        json!({ "perSecond": 10_000, "maxActive": 1_000_000, "activeSeconds": 3_600, "claimSeconds": 600 });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_comes_first_is_let_in_first() {
    let app = patient(for_many).await;
    let mut joined = joins(&app, JOINS, Instant::now()).await;
    joined.sort_by_key(|place| place.number);
    let numbers: Vec<u64> = joined.iter().map(|place| place.number).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "a number came twice");
    assert_eq!((numbers.first(), numbers.last()), (Some(&1), Some(&(JOINS as u64))));
    // Who had an answer before somebody else asked has the smaller number.
    let mut asked_after = Duration::ZERO;
    for place in &joined {
        asked_after = asked_after.max(place.from);
        assert!(place.until >= asked_after, "number {} was overtaken", place.number);
    }
    let tokens: Vec<&str> = joined.iter().map(|place| place.token.as_str()).collect();
    assert!(admitted(&app, JOINS).await == tokens, "the order of admission is that of the numbers");
}

/// What a place key says before it is signed: the fields of a place stand at these bytes.
fn place_in(key: &Value) -> Vec<u8> {
    let bytes = URL_SAFE_NO_PAD.decode(key.as_str().expect("a key")).expect("base64url");
    assert_eq!(bytes.len(), 60);
    // Five bytes of what is no place, then the score in seven and the rank in five.
    bytes[5..17].to_vec()
}

/// The score that anybody can compute of a token once the seed is public.
fn score(seed: &[u8], token: &str) -> u64 {
    let mac = Hmac::<Sha256>::new_from_slice(seed).expect("a key of any length");
    let mac = mac.chain_update(Sha256::digest(token)).finalize().into_bytes();
    u64::from_be_bytes(mac[..8].try_into().expect("eight bytes")) >> 12
}

fn bytes_of(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex")).collect()
}

async fn progress(app: &App) -> Value {
    app.send(Call::new("GET", "/api/status/progress")).await.data().clone()
}

/// How far counts are from equal ones: chi-square. `observed` has as many cells as freedom and one.
fn chi_square(observed: &[f64], expected: f64) -> f64 {
    observed.iter().map(|count| (count - expected).powi(2) / expected).sum()
}

/// Everything of an answer that all early places have in common; the rest is their names and an arrival order that
/// they know anyway.
fn common(answer: &Value) -> Value {
    let mut common = answer.clone();
    let fields = common.as_object_mut().expect("an object");
    for own in ["token", "key", "ticketNumber", "joinedAt", "nextPollMs", "totalWaiting"] {
        fields.remove(own);
    }
    common
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_draw_is_uniform_checkable_and_unknown_before_the_opening() {
    let app = patient(|sale| {
        for_many(sale);
        sale["preQueue"] = json!("shuffle");
    })
    .await;
    app.at(OPENS_AT - 60_000);
    let begun = Instant::now();
    let early = joins(&app, EARLY, begun).await;
    let before = progress(&app).await;
    assert_eq!((&before["headScore"], &before["shuffleSeed"]), (&json!(0), &Value::Null));
    let polled: Vec<Value> = futures::future::join_all(
        early.iter().step_by(20).map(async |place| app.poll(&place.token).await.data().clone()),
    )
    .await;
    app.at(OPENS_AT + 1);
    let opened = progress(&app).await;
    let seed = bytes_of(opened["shuffleSeed"].as_str().expect("a seed"));
    assert_eq!(before["shuffleCommitment"], domain::shuffle::hex(&Sha256::digest(&seed)));
    let mut late = joins(&app, LATE, begun).await;
    late.sort_by_key(|place| place.number);

    // The whole order, from what is public: the seed and the tokens.
    let mut drawn: Vec<&Joined> = early.iter().collect();
    drawn.sort_by_key(|place| score(&seed, &place.token));
    let order: Vec<&str> =
        drawn.iter().chain(&late.iter().collect::<Vec<_>>()).map(|place| place.token.as_str()).collect();
    assert!(
        admitted(&app, EARLY + LATE).await == order,
        "the order of admission is that of the draw, then of arrival"
    );

    is_uniform(&drawn);
    tells_nothing(&drawn, &polled);
}

/// A tenth of those who came in any tenth of the time stands in each tenth of the line.
fn is_uniform(drawn: &[&Joined]) {
    const TENTHS: usize = 10;
    let mut cells = [0.0; TENTHS * TENTHS];
    for (rank, place) in drawn.iter().enumerate() {
        let arrived = usize::try_from(place.number - 1).expect("a small number");
        cells[arrived * TENTHS / EARLY * TENTHS + rank * TENTHS / EARLY] += 1.0;
    }
    // 81 degrees of freedom; tokens are new in each run: 200 is exceeded once in 10^11 of them.
    let chi = chi_square(&cells, EARLY as f64 / cells.len() as f64);
    assert!(chi < 200.0, "the draw prefers some: chi-square is {chi}");
}

/// Answers before the opening are the same for those who stand first and those who stand last.
fn tells_nothing(drawn: &[&Joined], polled: &[Value]) {
    let answers = drawn.iter().map(|place| &place.answer);
    let shapes: BTreeSet<String> = answers.clone().map(|answer| common(answer).to_string()).collect();
    assert_eq!(shapes.len(), 1, "{shapes:?}");
    let shapes: BTreeSet<String> = polled.iter().map(|answer| common(answer).to_string()).collect();
    assert_eq!(shapes.len(), 1, "{shapes:?}");
    for answer in answers.clone().chain(polled) {
        assert_eq!(
            (&answer["rank"], &answer["ahead"], &answer["score"]),
            (&Value::Null, &Value::Null, &Value::Null)
        );
        assert_eq!(place_in(&answer["key"]), [0; 12], "score and rank of a key");
    }
    // Intervals of the first and of the last half are spread alike over what jitter leaves: 2 s ± 20 %, in eighths.
    let mut cells: HashMap<(bool, usize), f64> = HashMap::new();
    let pauses: Vec<u64> = answers.map(|answer| answer["nextPollMs"].as_u64().expect("a pause")).collect();
    let (least, most) = (pauses.iter().min().expect("some"), pauses.iter().max().expect("some"));
    for (rank, pause) in pauses.iter().enumerate() {
        let eighth =
            usize::try_from((pause - least) * EIGHTHS as u64 / (most - least + 1)).expect("a small number");
        *cells.entry((rank * 2 < pauses.len(), eighth)).or_default() += 1.0;
    }
    let halves = |eighth| [true, false].map(|first| cells.get(&(first, eighth)).copied().unwrap_or_default());
    let chi: f64 = (0..EIGHTHS)
        .map(halves)
        .map(|[first, last]| if first + last > 0.0 { (first - last).powi(2) / (first + last) } else { 0.0 })
        .sum();
    // 7 degrees of freedom: 65 is exceeded once in 10^11 runs.
    assert!(chi < 65.0, "intervals tell the place: chi-square is {chi}");
}

/// The same with seeds and tokens that never change, so that the bound can be a tight one.
#[test]
fn fixed_draws_are_uniform() {
    const PLACES: usize = 5_000;
    const TENTHS: usize = 10;
    let mut random = fastrand::Rng::with_seed(20_260_915);
    for sale in 0..20 {
        let event = format!("sale-{sale}").parse().expect("an event id");
        let seed = domain::shuffle::Seed::of(b"a master key that never changes", &event);
        let mut drawn: Vec<(u64, usize)> = (0..PLACES)
            .map(|arrived| {
                let digest: [u8; 32] = Sha256::digest(random.u128(..).to_be_bytes()).into();
                (seed.score_of_digest(&digest), arrived)
            })
            .collect();
        drawn.sort_unstable();
        let mut cells = [0.0; TENTHS * TENTHS];
        for (rank, (_, arrived)) in drawn.iter().enumerate() {
            cells[arrived * TENTHS / PLACES * TENTHS + rank * TENTHS / PLACES] += 1.0;
        }
        let chi = chi_square(&cells, PLACES as f64 / cells.len() as f64);
        // 81 degrees of freedom: between these lie 999 of 1 000.
        assert!((45.0..130.0).contains(&chi), "sale-{sale}: chi-square is {chi}");
    }
}
