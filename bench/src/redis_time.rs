//! What Redis itself says a command took: `usec_per_call` of its statistics, which network and clients do not touch.

use std::future::Future;

use anyhow::Context;
use redis::aio::MultiplexedConnection;

/// Microseconds that a call of `command` took on the average while `work` ran: lower case, as statistics name it.
pub(crate) async fn micros_a_call(
    connection: &mut MultiplexedConnection,
    command: &str,
    work: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<f64> {
    redis::cmd("CONFIG").arg("RESETSTAT").exec_async(connection).await?;
    work.await?;
    let stats: String = redis::cmd("INFO").arg("commandstats").query_async(connection).await?;
    let (calls, micros) = of(&stats, command).with_context(|| format!("no {command} in {stats}"))?;
    Ok(micros as f64 / calls as f64)
}

/// `cmdstat_zrank:calls=5,usec=9,usec_per_call=1.80,…`
fn of(stats: &str, command: &str) -> Option<(u64, u64)> {
    let line = stats
        .lines()
        .find_map(|line| line.strip_prefix("cmdstat_")?.strip_prefix(command)?.strip_prefix(':'))?;
    let field = |name: &str| line.split(',').find_map(|part| part.strip_prefix(name))?.parse().ok();
    Some((field("calls=")?, field("usec=")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_of_that_command_and_no_longer_name() {
        let stats = "# Commandstats\r\ncmdstat_evalsha_ro:calls=2,usec=9,usec_per_call=4.50\r\n\
                     cmdstat_evalsha:calls=5,usec=40,usec_per_call=8.00,rejected_calls=0\r\n";
        assert_eq!(of(stats, "evalsha"), Some((5, 40)));
        assert_eq!(of(stats, "evalsha_ro"), Some((2, 9)));
        assert_eq!(of(stats, "zrank"), None);
    }
}
