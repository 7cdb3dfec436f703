//! A served system on a Redis with a replica and a PostgreSQL, each behind a proxy, and callers behind another one.

use std::time::Duration;

use admin::{AdminState, Command, Reply};
use bootstrap::config::MasterKeys;
use domain::EventId;
use domain::reservation::Reservation;
use records::{Records, RecordsConfig};
use redis::aio::MultiplexedConnection;
use redis::{Cmd, ErrorKind, ServerErrorKind};
use serde_json::json;
use server::Running;
use store::{Recovery, Store, StoreConfig};
use support::{AppendOnly, FaultProxy, Postgres, Redis, Topology};

use crate::serving::{Folder, Process};

/// A sale has recovered by then.
const RECOVERY: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(100);

pub(crate) struct System {
    /// One takes writes, the other one follows it.
    pub(crate) nodes: [Redis; 2],
    /// The one that takes writes.
    pub(crate) primary: usize,
    pub(crate) postgres: Postgres,
    pub(crate) redis_way: FaultProxy,
    pub(crate) postgres_way: FaultProxy,
    pub(crate) callers_way: FaultProxy,
    pub(crate) running: Running,
    pub(crate) event: EventId,
    store: Store,
    process: Process,
    folder: Folder,
}

impl System {
    pub(crate) async fn start() -> Self {
        let redis = || Redis::start_with(Topology::Single, AppendOnly::On);
        let (nodes, postgres) = tokio::task::block_in_place(|| ([redis(), redis()], Postgres::start()));
        let redis_way = FaultProxy::before(nodes[0].url());
        let postgres_way = FaultProxy::before(&postgres.url());
        let folder = Folder::with_sale(|sale| {
            sale["admission"] =
                json!({ "perSecond": 100, "maxActive": 100, "activeSeconds": 40, "claimSeconds": 15 });
            sale["holdSeconds"] = json!(20);
            sale["payment"] = json!({ "mode": "deferred", "dueAfterSeconds": 25, "currency": "KRW" });
            sale["offerings"] = json!([{ "id": "T1", "date": "2027-02-05", "sections": [
                // What everybody wants, and enough of what is left.
                { "id": "A", "name": "일반실", "price": 1000, "seats": [{ "rows": "1-12", "seats": "1-10" }] },
                { "id": "G", "name": "입석", "price": 500, "capacity": 20_000 },
            ] }]);
        });
        let variables = [("SERVE_REDIS_URL", redis_way.url()), ("SERVE_DATABASE_URL", postgres_way.url())];
        let mut process = folder.spawn_with("serve.log", &variables);
        let running = folder.running(&mut process).await;
        let store = Store::new(&StoreConfig::new(redis_way.url(), false)).expect("a URL of Redis");
        Self {
            callers_way: FaultProxy::before(&running.url),
            event: folder.event.clone(),
            primary: 0,
            nodes,
            postgres,
            redis_way,
            postgres_way,
            running,
            store,
            process,
            folder,
        }
    }

    /// A connection to one of the two nodes.
    pub(crate) async fn node(&self, at: usize) -> MultiplexedConnection {
        let client = redis::Client::open(self.nodes[at].url()).expect("a Redis URL");
        let patient = redis::AsyncConnectionConfig::new().set_response_timeout(Some(RECOVERY));
        let connection = client.get_multiplexed_async_connection_with_config(&patient).await;
        connection.expect("Redis takes a connection")
    }

    /// One of the two nodes is told something, once it has loaded what it had, or what its primary sent it.
    pub(crate) async fn tell(&self, at: usize, command: &Cmd) {
        let mut node = self.node(at).await;
        support::wait_until(RECOVERY, "Redis has loaded", async || {
            match command.query_async::<()>(&mut node).await {
                Ok(()) => true,
                Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::BusyLoading) => false,
                Err(error) => panic!("{error}"),
            }
        })
        .await;
    }

    /// This node follows the primary, and has all that it has.
    pub(crate) async fn follow(&self, at: usize) {
        let primary = self.nodes[self.primary].url();
        let port = primary.trim_end_matches('/').rsplit(':').next().expect("a port").to_owned();
        self.tell(at, redis::cmd("REPLICAOF").arg("127.0.0.1").arg(port)).await;
        let mut node = self.node(at).await;
        support::wait_until(RECOVERY, "a replica follows", async || {
            let about: String =
                redis::cmd("INFO").arg("replication").query_async(&mut node).await.expect("Redis answers");
            about.contains("master_link_status:up")
        })
        .await;
    }

    /// Waits until the sale sells again.
    pub(crate) async fn recovers(&mut self) -> Result<(), String> {
        let mut seen = String::new();
        let healthy = async {
            loop {
                let recovery = self.store.recover(&self.event).await;
                if let Ok(Ok(Recovery::Healthy { .. })) = recovery {
                    return;
                }
                seen = format!("{recovery:?}");
                tokio::time::sleep(PAUSE).await;
            }
        };
        let healthy = tokio::time::timeout(RECOVERY, healthy).await;
        if let Some(status) = self.process.exited() {
            return Err(format!("the server ended: {status}"));
        }
        healthy.map_err(|_| format!("not healthy within {RECOVERY:?}: {seen}"))
    }

    pub(crate) fn records(&self) -> Records {
        Records::open(&RecordsConfig::new(self.postgres_way.url())).expect("a URL of PostgreSQL")
    }

    /// Every reservation that PostgreSQL has.
    pub(crate) async fn rows(&self) -> Vec<Reservation> {
        let mut rows = Vec::new();
        let read = self.records().each_reservation(&self.event, |row| rows.push(row)).await;
        read.expect("PostgreSQL answers");
        rows
    }

    /// What an audit finds. While the sale moves it may have to leave things out.
    pub(crate) async fn findings(&self, is_still: bool) -> Vec<String> {
        let master = MasterKeys::new(&self.running.master_key, None).expect("a master key");
        let state = AdminState::new(self.store.clone(), self.records(), master);
        let audit = Command::Audit {
            event: self.event.clone(),
            patience_seconds: 30,
            repair: false,
            by: "tests".to_owned(),
        };
        match admin::admin(&state, audit).await {
            Ok(Reply::Audited(report)) => {
                let left_out = report
                    .left_out
                    .iter()
                    .filter(|_| is_still)
                    .map(|what| format!("the audit left out {what}"));
                report.findings.iter().map(|finding| format!("{finding:?}")).chain(left_out).collect()
            }
            other => vec![format!("no audit: {other:?}")],
        }
    }

    /// Messages that nothing could be made of.
    pub(crate) fn dead_letters(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("data/dead-letters.jsonl")).unwrap_or_default()
    }

    /// The end of what the server logged.
    pub(crate) fn said(&self) -> String {
        let said = self.process.said();
        let lines: Vec<&str> = said.lines().collect();
        lines[lines.len().saturating_sub(60)..].join("\n")
    }
}
