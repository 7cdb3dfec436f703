//! What goes wrong.

use std::time::Duration;

use fastrand::Rng;
use support::FaultProxy;

use super::system::System;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// Killed (-9) and restarted with its file.
    RedisKilled,
    /// Killed, and its replica, which has the newest writes or lacks the last ones, promoted.
    RedisFailsOver,
    RedisForgetsScripts,
    RedisCut,
    RedisRepliesCut,
    RedisSlow,
    RedisSilent,
    RedisFull,
    PostgresRestarted,
    PostgresCut,
    PostgresSlow,
    PostgresSilent,
    CallersCut,
    AnswersCut,
}

impl Fault {
    pub(crate) const ALL: [Self; 14] = [
        Self::RedisKilled,
        Self::RedisFailsOver,
        Self::RedisForgetsScripts,
        Self::RedisCut,
        Self::RedisRepliesCut,
        Self::RedisSlow,
        Self::RedisSilent,
        Self::RedisFull,
        Self::PostgresRestarted,
        Self::PostgresCut,
        Self::PostgresSlow,
        Self::PostgresSilent,
        Self::CallersCut,
        Self::AnswersCut,
    ];

    /// From its beginning to its end.
    pub(crate) async fn inject(self, system: &mut System, random: &mut Rng) {
        let lasts = Duration::from_millis(random.u64(200..2_000));
        match self {
            Self::RedisKilled => {
                let primary = system.primary;
                tokio::task::block_in_place(|| system.nodes[primary].kill(0));
                tokio::time::sleep(lasts).await;
                tokio::task::block_in_place(|| system.nodes[primary].start_again(0));
            }
            Self::RedisFailsOver => fail_over(system, random).await,
            Self::RedisForgetsScripts => {
                for _ in 0..random.u32(1..20) {
                    system.tell(system.primary, redis::cmd("SCRIPT").arg("FLUSH")).await;
                }
            }
            Self::RedisFull => {
                let maxmemory = redis::cmd("CONFIG").arg("SET").arg("maxmemory").clone();
                system.tell(system.primary, maxmemory.clone().arg(1)).await;
                tokio::time::sleep(lasts).await;
                system.tell(system.primary, maxmemory.clone().arg(0)).await;
            }
            Self::RedisCut => cut(&system.redis_way, random).await,
            Self::PostgresCut => cut(&system.postgres_way, random).await,
            Self::CallersCut => cut(&system.callers_way, random).await,
            Self::RedisRepliesCut => cut_replies(&system.redis_way, random).await,
            Self::AnswersCut => cut_replies(&system.callers_way, random).await,
            Self::RedisSlow => {
                let delay = Duration::from_millis(random.u64(100..1_000));
                during(&system.redis_way, support::Fault::Delay(delay), lasts).await;
            }
            Self::PostgresSlow => {
                during(&system.postgres_way, support::Fault::Delay(Duration::from_millis(300)), lasts).await;
            }
            Self::RedisSilent => during(&system.redis_way, support::Fault::Freeze, lasts).await,
            Self::PostgresSilent => during(&system.postgres_way, support::Fault::Freeze, lasts).await,
            Self::PostgresRestarted => {
                tokio::task::block_in_place(|| system.postgres.stop());
                tokio::time::sleep(lasts).await;
                tokio::task::block_in_place(|| system.postgres.start_again());
            }
        }
    }
}

async fn during(way: &FaultProxy, fault: support::Fault, lasts: Duration) {
    way.set(fault);
    tokio::time::sleep(lasts).await;
    way.set(support::Fault::Pass);
}

async fn cut(way: &FaultProxy, random: &mut Rng) {
    for _ in 0..random.u32(1..6) {
        way.cut();
        tokio::time::sleep(Duration::from_millis(random.u64(10..200))).await;
    }
}

async fn cut_replies(way: &FaultProxy, random: &mut Rng) {
    for _ in 0..random.u32(3..12) {
        way.cut_reply(random.u64(1..20));
        tokio::time::sleep(Duration::from_millis(random.u64(20..100))).await;
    }
    way.cut_reply(0);
}

async fn fail_over(system: &mut System, random: &mut Rng) {
    let (old, new) = (system.primary, 1 - system.primary);
    system.follow(new).await;
    system.tell(new, redis::cmd("REPLICAOF").arg("NO").arg("ONE")).await;
    // What is written from now on is lost.
    tokio::time::sleep(Duration::from_millis(random.u64(0..300))).await;
    tokio::task::block_in_place(|| system.nodes[old].kill(0));
    system.redis_way.lead_to(system.nodes[new].url());
    system.redis_way.cut();
    system.primary = new;
    tokio::task::block_in_place(|| system.nodes[old].start_again(0));
    system.follow(old).await;
}
