//! Which system a command is about: the one that runs from this directory, or one named by its addresses.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use admin::{AdminError, AdminState, Command, LocalDeadLetters, Progress, Refused, Reply};
use anyhow::{Context, anyhow, bail};
use bootstrap::config::MasterKeys;
use domain::EventId;
use records::{Records, RecordsConfig};
use server::{Options, Running};
use store::{Store, StoreConfig};

use crate::arguments::{ServeArguments, SystemArguments};
use crate::function::Function;
use crate::{Ending, output};

const DEFAULT_DATA: &str = ".local";

/// A system to operate.
pub(crate) struct System {
    way: Way,
    /// What to say of it where it cannot be reached.
    name: String,
}

/// How commands get to the admin function's handler: it runs here, or is deployed.
enum Way {
    Here(Box<AdminState>),
    Deployed(Function),
}

impl System {
    /// The system that the arguments name, else the local one.
    pub(crate) fn find(arguments: &SystemArguments) -> anyhow::Result<Self> {
        if let Some(name) = &arguments.function {
            return Ok(Self {
                way: Way::Deployed(Function::new(name)),
                name: format!("the function {name}"),
            });
        }
        if arguments.redis.is_none() && arguments.database.is_none() {
            return Self::local(arguments);
        }
        if arguments.data.is_some() {
            bail!("--data names a system, --redis and --database another one: leave one of them out");
        }
        let Some(redis) = &arguments.redis else {
            bail!("--database alone is half a system: name its Redis with --redis");
        };
        // Only a draw needs the key, and says so if there is none.
        let master = MasterKeys::from_env().ok();
        let store = StoreConfig::new(redis, arguments.redis_cluster);
        let admin = state(&store, arguments.database.as_deref(), master)?;
        Ok(Self { way: Way::Here(Box::new(admin)), name: "the system that was named".to_owned() })
    }

    fn local(arguments: &SystemArguments) -> anyhow::Result<Self> {
        let path = Running::path(data(arguments));
        let running = running(arguments)?;
        let name = format!("the local system (process {}, by {})", running.pid, path.display());
        let master = MasterKeys::new(&running.master_key, None)?;
        let store = StoreConfig::new(&running.redis, running.redis_cluster);
        let admin = state(&store, Some(&running.database), Some(master))?;
        let records = Records::open(&RecordsConfig::new(&running.database))?;
        let letters = LocalDeadLetters::new(server::dead_letters(data(arguments)), records);
        Ok(Self { way: Way::Here(Box::new(admin.with_dead_letters(Box::new(letters)))), name })
    }

    /// Carry out a command. An error says that the system could not.
    pub(crate) async fn ask(&self, command: Command) -> anyhow::Result<Result<Reply, Refused>> {
        self.answered(match &self.way {
            Way::Here(admin) => admin::admin(admin, command).await,
            Way::Deployed(function) => return self.asked(function, &command).await,
        })
    }

    /// Lay out an event anew, and tell how far that has come where it is done here.
    pub(crate) async fn rebuild(
        &self,
        event: &EventId,
        by: &str,
        told: &(dyn Fn(Progress) + Send + Sync),
    ) -> anyhow::Result<Result<Reply, Refused>> {
        self.answered(match &self.way {
            Way::Here(admin) => admin::rebuild(admin, event, by, told).await,
            Way::Deployed(function) => {
                let command = Command::Rebuild { event: event.clone(), by: by.to_owned() };
                return self.asked(function, &command).await;
            }
        })
    }

    async fn asked(&self, function: &Function, command: &Command) -> anyhow::Result<Result<Reply, Refused>> {
        Ok(match function.ask(command).await.with_context(|| self.name.clone())? {
            Reply::Refused(refused) => Err(refused),
            reply => Ok(reply),
        })
    }

    fn answered(&self, reply: Result<Reply, AdminError>) -> anyhow::Result<Result<Reply, Refused>> {
        match reply {
            Ok(Reply::Refused(refused)) => Ok(Err(refused)),
            Ok(reply) => Ok(Ok(reply)),
            Err(error @ AdminError::NoDatabase) => Err(anyhow!("{error}: name it with --database")),
            Err(error @ AdminError::NoDeadLetters) => Err(anyhow!(
                "{error}: run it where the system's data lie, or ask the deployed admin function"
            )),
            Err(error @ AdminError::NoMasterKey) => {
                Err(anyhow!("{error}: put it into the environment as MASTER_KEY"))
            }
            Err(error) => Err(anyhow::Error::from(error).context(self.name.clone())),
        }
    }
}

fn data(arguments: &SystemArguments) -> &Path {
    arguments.data.as_deref().unwrap_or(Path::new(DEFAULT_DATA))
}

/// How the local system describes itself.
pub(crate) fn running(arguments: &SystemArguments) -> anyhow::Result<Running> {
    let path = Running::path(data(arguments));
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => bail!(
            "no system runs from here ({} is not there): start one with `jari serve` or `make run`, or name one \
             with --redis and --database",
            path.display()
        ),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    serde_json::from_str(&text).with_context(|| format!("{} does not read", path.display()))
}

fn state(
    store: &StoreConfig,
    database: Option<&str>,
    master: Option<MasterKeys>,
) -> anyhow::Result<AdminState> {
    Ok(AdminState::of(Store::new(store)?, database.map(RecordsConfig::new), master)?)
}

/// Says why nothing was done.
pub(crate) fn refused(refused: &Refused) -> Ending {
    output::complain(refused);
    Ending::Found
}

/// An answer to something else: a bug, told as one.
pub(crate) fn unexpected(reply: &Reply) -> anyhow::Error {
    anyhow!("the system answered in an unknown form: {reply:?}")
}

/// Serve until Ctrl-C.
pub(crate) async fn serve(system: SystemArguments, serve: ServeArguments) -> anyhow::Result<Ending> {
    let SystemArguments { data, redis, redis_cluster, database, function } = system;
    if function.is_some() {
        bail!("--function names a deployed system, and `jari serve` is one itself: leave it out");
    }
    let data = data.unwrap_or_else(|| PathBuf::from(DEFAULT_DATA));
    bootstrap::start_telemetry();
    let ServeArguments { port, web, sales } = serve;
    server::serve(Options { port, data, redis, redis_cluster, database, web, sales }).await?;
    Ok(Ending::Fine)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(arguments: &SystemArguments) -> String {
        System::find(arguments).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn a_system_is_named_once_and_whole() {
        let named = |data: Option<&str>, redis: Option<&str>, database: Option<&str>| SystemArguments {
            data: data.map(PathBuf::from),
            redis: redis.map(str::to_owned),
            database: database.map(str::to_owned),
            redis_cluster: false,
            function: None,
        };
        let nowhere = named(Some("/nonexistent"), None, None);
        assert!(failure(&nowhere).contains("start one with `jari serve`"), "{}", failure(&nowhere));
        assert!(failure(&named(Some("d"), Some("redis://r/"), None)).contains("leave one of them out"));
        assert!(failure(&named(None, None, Some("postgres://p/"))).contains("--redis"));
        assert!(failure(&named(None, Some("nonsense"), None)).contains("the address of redis"));
        assert_eq!(failure(&named(None, Some("redis://r/"), None)), "");
    }
}
