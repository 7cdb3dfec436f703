//! `serve DATA [SALE…]`: serves on any free port until SIGINT or SIGTERM, or at once when standard input closes, so
//! that it never outlives the test that started it.

use server::{Options, SaleFile};
use tokio::io::AsyncReadExt;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    bootstrap::start_telemetry();
    let mut arguments = std::env::args().skip(1);
    let data = arguments.next().ok_or_else(|| anyhow::anyhow!("usage: serve DATA [SALE…]"))?;
    let sales = arguments.map(|sale| sale.parse::<SaleFile>().map_err(anyhow::Error::msg));
    let options = Options {
        port: 0,
        data: data.into(),
        redis: None,
        redis_cluster: false,
        database: None,
        sales: sales.collect::<Result<_, _>>()?,
    };
    tokio::select! {
        served = server::serve(options) => served,
        () = standard_input_closes() => std::process::exit(1),
    }
}

async fn standard_input_closes() {
    let mut bytes = [0; 16];
    while tokio::io::stdin().read(&mut bytes).await.is_ok_and(|read| read > 0) {}
}
