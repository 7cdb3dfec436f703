//! Migrations against a real server.

use crate::server::{Database, connect};
use records::{MigrateError, RecordsConfig, RecordsError, migrate};

#[tokio::test]
async fn each_migration_is_applied_once_even_by_two_at_a_time() {
    let config = RecordsConfig::new(Database::empty().await);
    let (one, other) = tokio::join!(migrate(&config), migrate(&config));
    let mut applied = [one.unwrap(), other.unwrap()];
    applied.sort();
    assert_eq!(applied, [vec![], vec![1, 2, 3]]);
    assert!(migrate(&config).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_migration_changed_after_it_was_applied_is_refused() {
    let database = Database::fresh().await;
    let client = database.client().await;
    client.execute("update schema_migrations set checksum = 'another'", &[]).await.unwrap();
    let refused = migrate(&RecordsConfig::new(&database.url)).await;
    assert!(matches!(refused, Err(MigrateError::Changed { version: 1 })), "{refused:?}");
}

#[tokio::test]
async fn a_migration_that_fails_leaves_nothing_behind() {
    let url = Database::empty().await;
    let client = connect(&url).await;
    client.batch_execute("create table reservations (other integer)").await.unwrap();
    let failed = migrate(&RecordsConfig::new(&url)).await;
    assert!(matches!(failed, Err(MigrateError::Failed { version: 1, .. })), "{failed:?}");
    let left =
        client.query("select tablename::text from pg_tables where schemaname = 'public'", &[]).await.unwrap();
    let left: Vec<String> = left.iter().map(|row| row.get(0)).collect();
    assert_eq!(left, ["reservations"]);
}

#[tokio::test]
async fn a_url_that_is_none_is_refused_and_a_secret_is_not_shown() {
    let secret = RecordsConfig::new("postgres://jari:secret@localhost/jari");
    assert!(!format!("{secret:?}").contains("secret"));
    let none = migrate(&RecordsConfig::new("postgres//")).await;
    assert!(matches!(none, Err(MigrateError::Records(RecordsError::Url(_)))), "{none:?}");
}
