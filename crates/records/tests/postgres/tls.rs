//! Encrypted connections to a real server.

use std::fs;

use domain::EventId;
use records::{MigrateError, Records, RecordsConfig, RecordsError, migrate};

use crate::server::{Database, certificate, connect};

fn asking_for_tls(url: &str, ca: Option<String>) -> RecordsConfig {
    RecordsConfig { ca, ..RecordsConfig::new(format!("{url}?sslmode=require")) }
}

fn event() -> EventId {
    "none".parse().unwrap()
}

/// How many of a database's connections are encrypted, and how many are not, but for the one that asks.
async fn connections(url: &str) -> (i64, i64) {
    let ours = "pid in (select pid from pg_stat_activity where datname = current_database()) \
                and pid <> pg_backend_pid()";
    let count = format!(
        "select count(*) filter (where ssl), count(*) filter (where not ssl) from pg_stat_ssl where {ours}"
    );
    let row = connect(url).await.query_one(&count, &[]).await.unwrap();
    (row.get(0), row.get(1))
}

#[tokio::test]
async fn a_connection_is_encrypted_where_the_url_asks_for_it() {
    let url = Database::empty().await;
    let ca = fs::read_to_string(certificate("ca.pem")).unwrap();
    let config = asking_for_tls(&url, Some(ca));
    migrate(&config).await.unwrap();
    let records = Records::open(&config).unwrap();
    records.definition(&event()).await.unwrap();
    assert_eq!(connections(&url).await, (1, 0));
    let plain = Records::open(&RecordsConfig::new(&url)).unwrap();
    plain.definition(&event()).await.unwrap();
    assert_eq!(connections(&url).await, (1, 1));
}

#[tokio::test]
async fn a_server_that_nobody_vouches_for_is_refused() {
    let url = Database::empty().await;
    // The system's certificates do not know it.
    let stranger = migrate(&asking_for_tls(&url, None)).await;
    assert!(matches!(stranger, Err(MigrateError::Records(_))), "{stranger:?}");
    let unreadable = Records::open(&asking_for_tls(&url, Some("no certificate".to_owned())));
    assert!(matches!(unreadable, Err(RecordsError::Certificates(_))), "{unreadable:?}");
    // The certificate must name the host that was asked for.
    let ca = fs::read_to_string(certificate("ca.pem")).unwrap();
    let mut elsewhere = asking_for_tls(&url.replace("@127.0.0.1", "@postgres.example"), Some(ca));
    elsewhere.url.push_str("&hostaddr=127.0.0.1");
    assert!(migrate(&elsewhere).await.is_err());
    elsewhere.url = elsewhere.url.replace("@postgres.example", "@localhost");
    migrate(&elsewhere).await.unwrap();
}
