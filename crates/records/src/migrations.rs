//! The tables, by numbered files that never change once they are applied somewhere.

use domain::shuffle::hex;
use sha2::{Digest, Sha256};
use tokio_postgres::{Client, Transaction};

use crate::{RecordsConfig, RecordsError};

struct Migration {
    version: i32,
    name: &'static str,
    sql: &'static str,
}

/// In order. A later one only adds, so that the version before it still runs beside it.
const MIGRATIONS: &[Migration] = &[
    Migration {
        version: 1,
        name: "facts_and_reservations",
        sql: include_str!("../../../infra/migrations/0001_facts_and_reservations.sql"),
    },
    Migration {
        version: 2,
        name: "payments",
        sql: include_str!("../../../infra/migrations/0002_payments.sql"),
    },
    Migration {
        version: 3,
        name: "changed_reservations",
        sql: include_str!("../../../infra/migrations/0003_changed_reservations.sql"),
    },
];

/// Two callers at once: the second waits here, then finds nothing to do. Tables are locked no longer than a
/// deployment may wait.
const BEGIN: &str = "\
    set local lock_timeout = '60s'; \
    set local statement_timeout = '600s'; \
    select pg_advisory_xact_lock(7236841052190331); \
    create table if not exists schema_migrations ( \
        version integer primary key, \
        name text not null, \
        checksum text not null, \
        applied_at timestamptz not null default now() \
    )";

/// Why the tables were left as they were: all migrations of a call are applied, or none.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// The database cannot be reached, or refused a statement.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// A migration is not what was applied under its number.
    #[error("migration {version} was changed after it was applied")]
    Changed {
        /// Its number.
        version: i32,
    },
    /// A migration failed.
    #[error("migration {version} failed: {reason}")]
    Failed {
        /// Its number.
        version: i32,
        /// What the server said.
        reason: String,
    },
}

impl From<tokio_postgres::Error> for MigrateError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Records(RecordsError::Statement(error))
    }
}

/// Brings the tables up to date, in one transaction, and answers the numbers of the migrations it applied.
/// Whoever calls must own the tables; those who only write facts need not.
pub async fn migrate(config: &RecordsConfig) -> Result<Vec<i32>, MigrateError> {
    let (server, tls) = config.parse()?;
    let (mut client, connection) = server.connect(tls.connector()?).await?;
    // It ends by itself when the client goes.
    let connection = tokio::spawn(connection);
    let applied = apply(&mut client, MIGRATIONS).await;
    drop(client);
    if let Ok(Err(error)) = connection.await {
        tracing::warn!(%error, "the connection for migrations ended badly");
    }
    applied
}

async fn apply(client: &mut Client, migrations: &[Migration]) -> Result<Vec<i32>, MigrateError> {
    let transaction = client.transaction().await?;
    transaction.batch_execute(BEGIN).await?;
    let mut applied = Vec::new();
    for migration in migrations {
        if apply_one(&transaction, migration).await? {
            applied.push(migration.version);
        }
    }
    transaction.commit().await?;
    Ok(applied)
}

async fn apply_one(transaction: &Transaction<'_>, migration: &Migration) -> Result<bool, MigrateError> {
    let Migration { version, name, sql } = *migration;
    let checksum = hex(&Sha256::digest(sql));
    let select = "select checksum from schema_migrations where version = $1";
    if let Some(row) = transaction.query_opt(select, &[&version]).await? {
        let recorded: String = row.try_get(0)?;
        return if recorded == checksum { Ok(false) } else { Err(MigrateError::Changed { version }) };
    }
    let failed = |error| MigrateError::Failed { version, reason: crate::describe(&error) };
    transaction.batch_execute(sql).await.map_err(failed)?;
    let insert = "insert into schema_migrations (version, name, checksum) values ($1, $2, $3)";
    transaction.execute(insert, &[&version, &name, &checksum]).await?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_a_migration_and_numbers_have_no_gap() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../infra/migrations");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        let expected: Vec<String> = (1..)
            .zip(MIGRATIONS)
            .map(|(number, migration)| {
                assert_eq!(migration.version, number);
                format!("{number:04}_{}.sql", migration.name)
            })
            .collect();
        assert_eq!(files, expected);
    }
}
