//! What operators ask of a system: create and change sales, look at them, check them, read what they sold. No
//! route leads here: whoever may invoke this function may do all of it.

mod audit;
mod command;
mod dead_letters;
mod delete;
mod draw;
mod export;
mod finding;
mod held;
mod letter_file;
mod publish;
mod rebuild;
mod reply;
mod show;

pub use audit::{AuditReport, Checked, Mended};
pub use command::{Command, DEFAULT_PATIENCE_SECONDS, Definition, ExportCursor, ListCursor};
pub use dead_letters::{DeadFact, DeadLetterReport};
pub use draw::DrawReport;
pub use export::{ExportedReservation, MAX_EXPORT_PAGE};
pub use finding::{Fault, Finding, MAX_FINDINGS};
pub use letter_file::{LetterFile, LocalDeadLetters};
pub use rebuild::rebuild;
pub use reply::{Mistake, Refused, Reply};
pub use show::{Draw, EventDetail, EventSummary, SectionState};

pub use recovery::{Conflict, Progress, RebuildReport, RepairReport};

use std::collections::BTreeMap;
use std::sync::Arc;

use audit::Asked;
use bootstrap::config::{self, MasterKeys};
use domain::EventId;
use domain::shuffle::Seed;
use held::HeldReadings;
use outbox::{DeadLetters, DeadLettersError};
use records::{MigrateError, Records, RecordsConfig, RecordsError};
use store::{StatusChange, Store, StoreError};

/// Why a command came to nothing: infrastructure, or a bug. What an operator may not do is a [`Reply`].
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// Redis.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// PostgreSQL.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// Either, while a sale was put back.
    #[error(transparent)]
    Recovery(#[from] recovery::RecoveryError),
    /// The tables could not be made.
    #[error(transparent)]
    Migrate(#[from] MigrateError),
    /// The queues of dead letters.
    #[error(transparent)]
    DeadLetters(#[from] DeadLettersError),
    /// The command needs the dead letters, and nobody said where they lie.
    #[error("this needs the queues of dead letters, and none are named")]
    NoDeadLetters,
    /// The command needs PostgreSQL, and nobody said where it is.
    #[error("this needs the database, and none is named")]
    NoDatabase,
    /// The command needs the seed of a draw, which comes from the master key.
    #[error("this needs the master key, and none is given")]
    NoMasterKey,
}

/// What commands work on.
pub struct AdminState {
    store: Store,
    records: Option<Records>,
    migrations: Option<RecordsConfig>,
    master: Option<MasterKeys>,
    dead_letters: Option<Box<dyn DeadLetters>>,
    held: HeldReadings,
}

impl AdminState {
    /// State of a system whose tables somebody else makes.
    pub fn new(store: Store, records: Records, master: MasterKeys) -> Self {
        Self {
            store,
            records: Some(records),
            migrations: None,
            master: Some(master),
            dead_letters: None,
            held: HeldReadings::default(),
        }
    }

    /// State from what is known of a system: a command that needs what is missing says so.
    pub fn of(
        store: Store,
        database: Option<RecordsConfig>,
        master: Option<MasterKeys>,
    ) -> Result<Self, RecordsError> {
        let records = database.as_ref().map(Records::open).transpose()?;
        let held = HeldReadings::default();
        Ok(Self { store, records, migrations: database, master, dead_letters: None, held })
    }

    /// The same that knows where dead letters lie.
    #[must_use]
    pub fn with_dead_letters(mut self, dead_letters: Box<dyn DeadLetters>) -> Self {
        self.dead_letters = Some(dead_letters);
        self
    }

    /// State as the environment says, logs started. Connects to nothing yet.
    pub fn from_env() -> anyhow::Result<Self> {
        bootstrap::start_telemetry();
        let database =
            RecordsConfig { ca: config::database_ca(), ..RecordsConfig::new(config::database_url()?) };
        let state = Self::of(Store::new(&config::store()?)?, Some(database), Some(MasterKeys::from_env()?))?;
        Ok(match config::dead_letters()? {
            Some(dead_letters) => state.with_dead_letters(Box::new(dead_letters)),
            None => state,
        })
    }

    /// Redis.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Held places by the section's number.
    async fn held(&self, event: &EventId) -> Result<Arc<BTreeMap<u32, u64>>, StoreError> {
        self.held.read(&self.store, event).await
    }

    fn records(&self) -> Result<&Records, AdminError> {
        self.records.as_ref().ok_or(AdminError::NoDatabase)
    }

    fn dead_letters(&self) -> Result<&dyn DeadLetters, AdminError> {
        self.dead_letters.as_deref().ok_or(AdminError::NoDeadLetters)
    }

    fn seed(&self, event: &EventId) -> Result<Seed, AdminError> {
        let master = self.master.as_ref().ok_or(AdminError::NoMasterKey)?;
        Ok(Seed::of(&master.current, event))
    }
}

/// Carries out a command.
pub async fn admin(state: &AdminState, command: Command) -> Result<Reply, AdminError> {
    let store = &state.store;
    match command {
        Command::Apply { definition, opens_at, by } => {
            publish::apply(state, &definition, opens_at, &by).await
        }
        Command::List => show::list(store).await,
        Command::Show { event } => show::show(state, &event).await,
        Command::Open { event, by } => publish::open(store, &event, &by).await,
        Command::Pause { event, by } => publish::change(store, &event, &by, &StatusChange::Pause).await,
        Command::Close { event, by } => publish::change(store, &event, &by, &StatusChange::Close).await,
        Command::Pace { event, per_second, by } => publish::pace(store, &event, per_second, &by).await,
        Command::Message { event, text, by } => publish::message(store, &event, &text, &by).await,
        Command::Maintenance { event, on, by } => {
            publish::change(store, &event, &by, &StatusChange::Maintenance(on)).await
        }
        Command::Delete { event, by, patience_seconds } => {
            delete::delete(store, &event, &by, patience_seconds).await
        }
        Command::VerifyShuffle { event } => draw::verify(state, &event).await,
        Command::ShuffleList { event, after } => draw::list(state, &event, after).await,
        Command::Audit { event, patience_seconds, repair, by } => {
            let repair_by = repair.then_some(by.as_str());
            audit::audit(state, &event, Asked { patience_seconds, repair_by }).await
        }
        Command::Rebuild { event, by } => rebuild::rebuild(state, &event, &by, &|_| {}).await,
        Command::Export { event, after, limit, with_tokens } => {
            export::export(state, &event, after.as_ref(), limit, with_tokens).await
        }
        Command::DlqList => dead_letters::list(state).await,
        Command::DlqReplay { ids } => dead_letters::replay(state, ids).await,
        Command::Migrate => {
            let config = state.migrations.as_ref().ok_or(AdminError::NoDatabase)?;
            Ok(Reply::Migrated { applied: records::migrate(config).await? })
        }
    }
}
