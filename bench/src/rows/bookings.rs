//! Bookings through handlers: a general section that too many want at once, and fifty thousand seats, by fours.

use std::collections::HashSet;
use std::time::Instant;

use anyhow::{Context, ensure};
use domain::{EventId, Token};
use futures::{StreamExt, TryStreamExt};
use serde_json::{Value, json};
use store::StoreConfig;
use support::{AppendOnly, Redis, Topology};
use tokio::sync::{mpsc, oneshot};

use crate::Bench;
use crate::figure::{Figure, Target};
use crate::handlers::{Instance, Template, read};
use crate::rounds::beside;
use crate::world::{GENERAL, NAMED, ROWS, Sale, patient, remaining, row_of_four};

pub(crate) const FIGURES: &[&str] = &["bookings_general", "bookings_seats"];

/// Instances, each with a connection of its own; and baselines over as many.
const INSTANCES: usize = 4;
/// Requests under way at once on each.
const AT_ONCE: usize = 32;
/// Parts that a sale is measured in, each beside its baseline.
const PARTS: usize = 5;

pub(crate) async fn run(bench: &Bench) -> anyhow::Result<Vec<Figure>> {
    Ok(vec![general(bench).await?, seats(bench).await?])
}

/// A sale with an append-only file, and the functions before it.
struct Hall {
    sale: Sale,
    lanes: Vec<Lane>,
    _redis: Redis,
}

/// What one person sends: the events of its requests, of which each is sent where the one before has succeeded.
type Requests = Vec<Vec<u8>>;
/// What it is answered: as many, but where one was refused.
type Answers = Vec<Vec<u8>>;

enum Job {
    Requests(Vec<Requests>),
    /// So many empty steps.
    Empty(usize),
}

/// An instance of the functions on a thread of its own, as Lambda runs it. It ends with the hall.
struct Lane(mpsc::UnboundedSender<(Job, Told)>);

type Told = oneshot::Sender<anyhow::Result<Vec<Answers>>>;

impl Lane {
    fn open(config: StoreConfig, event: EventId, url: String) -> Self {
        let (jobs, mut waiting) = mpsc::unbounded_channel::<(Job, Told)>();
        let work = async move {
            let instance = Instance::of(&config, &event)?;
            let mut connection =
                redis::Client::open(url.as_str())?.get_multiplexed_async_connection().await?;
            let load = redis::cmd("SCRIPT").arg("LOAD").arg("return 1").clone();
            let empty: String = load.query_async(&mut connection).await?;
            while let Some((job, told)) = waiting.recv().await {
                let done = match job {
                    Job::Requests(people) => {
                        let people = people.into_iter().map(|requests| send(&instance, requests));
                        futures::stream::iter(people).buffered(AT_ONCE).try_collect().await
                    }
                    Job::Empty(count) => empty_steps(&connection, &empty, count).await.map(|()| Vec::new()),
                };
                // Nobody listens where another lane has failed.
                let _: Result<_, _> = told.send(done);
            }
            anyhow::Ok(())
        };
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(work)
        });
        Self(jobs)
    }
}

async fn send(instance: &Instance, requests: Requests) -> anyhow::Result<Answers> {
    let mut answers = Vec::with_capacity(requests.len());
    for request in requests {
        let answer = instance.answer(&request).await?;
        let succeeded = support::has_succeeded(&answer);
        answers.push(answer);
        if !succeeded {
            break;
        }
    }
    Ok(answers)
}

async fn empty_steps(
    connection: &redis::aio::MultiplexedConnection,
    empty: &str,
    count: usize,
) -> anyhow::Result<()> {
    let mut command = redis::cmd("EVALSHA");
    command.arg(empty).arg(0);
    let command = &command;
    let steps = (0..count).map(|_| {
        let mut connection = connection.clone();
        async move { command.exec_async(&mut connection).await }
    });
    Ok(futures::stream::iter(steps).buffer_unordered(AT_ONCE).try_collect().await?)
}

impl Hall {
    async fn open() -> anyhow::Result<Self> {
        let redis = Redis::start_with(Topology::Single, AppendOnly::On);
        let sale = Sale::open(&patient(&redis), |sale| {
            sale["admission"]["perSecond"] = json!(1_000);
            sale["limitPerAccount"] = json!(4);
        })
        .await?;
        let lane = |_| Lane::open(patient(&redis), sale.event.clone(), redis.url().to_owned());
        Ok(Self { lanes: (0..INSTANCES).map(lane).collect(), sale, _redis: redis })
    }

    /// So many people in live sessions.
    async fn filled(&self, people: usize) -> anyhow::Result<Vec<Token>> {
        let joined = self.sale.join_many(people, |_| None).await?;
        let live = self.sale.seat(&joined, people).await?;
        self.sale.drain().await?;
        Ok(live)
    }

    /// Hand each lane its job at once: what all of them were answered, and the seconds that they took.
    async fn together(&self, jobs: Vec<Job>) -> anyhow::Result<(Vec<Answers>, f64)> {
        let started = Instant::now();
        let told = self.lanes.iter().zip(jobs).map(|(lane, job)| {
            let (tell, told) = oneshot::channel();
            // A lane that ended has dropped what would tell.
            let _: Result<_, _> = lane.0.send((job, tell));
            async move { told.await.context("an instance ended")? }
        });
        let answers = futures::future::try_join_all(told.collect::<Vec<_>>()).await?;
        Ok((answers.into_iter().flatten().collect(), started.elapsed().as_secs_f64()))
    }

    /// All these people at once. What is not one of the product's matters, events made and answers read, is before and
    /// behind the time that is taken.
    async fn requests(&self, people: Vec<Requests>) -> anyhow::Result<(Vec<Answers>, f64)> {
        let mut jobs: Vec<Vec<Requests>> = (0..INSTANCES).map(|_| Vec::new()).collect();
        for (at, requests) in people.into_iter().enumerate() {
            jobs[at % INSTANCES].push(requests);
        }
        self.together(jobs.into_iter().map(Job::Requests).collect()).await
    }

    /// Empty steps a second over as many connections.
    async fn empty_rate(&self, count: usize) -> anyhow::Result<f64> {
        let (_, seconds) = self.together((0..INSTANCES).map(|_| Job::Empty(count)).collect()).await?;
        Ok((INSTANCES * count) as f64 / seconds)
    }
}

/// A fifth more people than the section has places for, two places each.
async fn general(bench: &Bench) -> anyhow::Result<Figure> {
    let hall = Hall::open().await?;
    let before = remaining(&hall.sale.store, &hall.sale.event).await?;
    let people = hall.filled(GENERAL as usize / 2 / 5 * 6).await?;
    let (template, mut sold) = (Template::book()?, 0);
    let mut pairs = Vec::new();
    for people in people.chunks(people.len().div_ceil(PARTS * bench.rounds)) {
        let events =
            people.iter().map(|token| vec![template.saying(&json!({ "token": token, "seatCount": 2 }))]);
        let (answers, seconds) = hall.requests(events.collect()).await?;
        let empty = hall.empty_rate(people.len()).await?;
        let mut booked = 0;
        for answer in answers.iter().flatten() {
            match read(answer)? {
                (201, body) => booked += body["data"]["seatCount"].as_u64().context("a count")?,
                (_, body) => ensure!(body["error"]["code"] == "SOLD_OUT", "{body}"),
            }
        }
        sold += booked;
        // What is sold out is refused: no rate of bookings.
        if booked == 2 * people.len() as u64 {
            pairs.push((people.len() as f64 / seconds, empty));
        }
    }
    let left = remaining(&hall.sale.store, &hall.sale.event).await?;
    let exact = sold == u64::from(GENERAL) && before - left == sold;
    let figure = Figure::beside(FIGURES[0], "/s", Target::AtLeast(20_000.0), beside(&pairs));
    Ok(figure.only_if(exact).noting(format!("{sold} places of {GENERAL} sold, {} wanted", 2 * people.len())))
}

/// Every row of every section is held by one and then bought; a fifth comes too late for its row.
async fn seats(bench: &Bench) -> anyhow::Result<Figure> {
    let hall = Hall::open().await?;
    let rows = NAMED * ROWS;
    let people = hall.filled(rows / 5 * 6).await?;
    let (holds, books) = (Template::hold()?, Template::book()?);
    let mut bought: Vec<String> = Vec::new();
    let mut pairs = Vec::new();
    let part = people.len().div_ceil(PARTS * bench.rounds);
    for (number, people) in people.chunks(part).enumerate() {
        let events = people.iter().enumerate().map(|(at, token)| {
            let (section, seats) = row_of_four((number * part + at) % rows);
            let hold = json!({ "token": token, "sectionId": section, "seats": seats });
            vec![holds.saying(&hold), books.saying(&json!({ "token": token }))]
        });
        let (answers, seconds) = hall.requests(events.collect()).await?;
        let empty = hall.empty_rate(people.len()).await?;
        for answers in &answers {
            let (status, body) = read(answers.last().context("an answer")?)?;
            if answers.len() == 1 {
                ensure!(body["error"]["code"] == "SEAT_TAKEN", "{body}");
                continue;
            }
            ensure!(status == 201, "{body}");
            let seats = body["data"]["seats"].as_array().with_context(|| format!("no seats in {body}"))?;
            bought.extend(seats.iter().map(Value::to_string));
        }
        if (number + 1) * part <= rows {
            pairs.push((people.len() as f64 / seconds, empty));
        }
    }
    let left = remaining(&hall.sale.store, &hall.sale.event).await?;
    let once: HashSet<&String> = bought.iter().collect();
    let exact = once.len() == bought.len() && bought.len() == 4 * rows && left == u64::from(GENERAL);
    let figure = Figure::beside(FIGURES[1], "/s", Target::AtLeast(5_000.0), beside(&pairs));
    Ok(figure.only_if(exact).noting(format!("{} seats of {} sold, no seat twice", bought.len(), 4 * rows)))
}
