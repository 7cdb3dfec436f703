//! `serve DATA [SALE…]`: serves on any free port until SIGINT or SIGTERM, or at once when standard input closes, so
//! that it never outlives the test that started it. `SERVE_REDIS_URL` and `SERVE_DATABASE_URL` name what to use instead of own
//! ones.

use std::io;
use std::process::exit;
use std::thread;

use server::{Options, SaleFile};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    bootstrap::start_telemetry();
    thread::spawn(end_with_the_test);
    let mut arguments = std::env::args().skip(1);
    let data = arguments.next().ok_or_else(|| anyhow::anyhow!("usage: serve DATA [SALE…]"))?;
    let sales = arguments.map(|sale| sale.parse::<SaleFile>().map_err(anyhow::Error::msg));
    let options = Options {
        port: 0,
        data: data.into(),
        redis: std::env::var("SERVE_REDIS_URL").ok(),
        redis_cluster: false,
        database: std::env::var("SERVE_DATABASE_URL").ok(),
        web: None,
        sales: sales.collect::<Result<_, _>>()?,
    };
    server::serve(options).await
}

/// On a thread of its own: the runtime would wait for a read that it began.
fn end_with_the_test() {
    let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
    exit(1);
}
