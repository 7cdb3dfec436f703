//! What can be typed.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use domain::EventId;
use server::SaleFile;

use crate::crowd::CrowdArguments;
use crate::import::{CsvArguments, GtfsArguments};
use crate::opening::Opening;
use crate::plan::PlanArguments;
use crate::watch::WatchArguments;

/// Sells scarce seats to far more people than there are seats.
#[derive(Debug, Parser)]
#[command(name = "jari", version, max_term_width = 80)]
#[command(after_help = "Exit codes: 0 all is well; 1 findings or a refusal; 2 the command makes no sense, \
                        or what it needs cannot be reached.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) system: SystemArguments,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Which system a command is about.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "System")]
pub(crate) struct SystemArguments {
    /// Folder of a local system's data [default: .local]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// A Redis to use instead of the local system's
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) redis: Option<String>,
    /// The Redis named by --redis is a cluster
    #[arg(long, global = true, requires = "redis")]
    pub(crate) redis_cluster: bool,
    /// A PostgreSQL to use instead of the local system's
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) database: Option<String>,
    /// The admin function of a deployed system, by name or ARN; region and credentials are found as the AWS SDK finds
    /// them: environment, profile, role
    #[arg(long, global = true, value_name = "NAME", conflicts_with_all = ["data", "redis", "database"])]
    pub(crate) function: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the whole system in this process, until Ctrl-C
    ///
    /// It serves every endpoint on 127.0.0.1, ticks, and delivers what happens to PostgreSQL. Without --redis and
    /// --database it starts its own redis-server and postgres under --data, and stops them when it ends.
    Serve(ServeArguments),
    /// Operate sales
    Event {
        #[command(subcommand)]
        command: EventCommand,
    },
    /// Look for what must never happen: Redis against PostgreSQL, and both against the rules
    ///
    /// A running sale moves while it is read, and facts are on their way to PostgreSQL. What differs is read again
    /// until it has vanished or --patience is over; only what was found each time is a finding.
    ///
    /// With --repair, what has exactly one right answer is put right, and all is read again. What has none, such as a
    /// seat that was sold twice, is only told: each finding says what would mend it.
    Audit(AuditArguments),
    /// Messages that could not be written to PostgreSQL
    Dlq {
        #[command(subcommand)]
        command: DlqCommand,
    },
    /// Lay out an event anew that Redis has lost, from what PostgreSQL knows
    ///
    /// Seats, reservations, limits, payments due and the line come back, in their order; whoever was inside is called
    /// anew, and what was held is free. Nobody finds the event until all of it is there. An event that Redis knows is
    /// never touched. May be killed and run again.
    Rebuild(RebuildArguments),
    /// Watch a sale as it goes: who waits, who is let in, what is taken, with curves
    ///
    /// What functions count (joins, polls, refusals) is told by the local system alone; a deployed one tells it to
    /// `CloudWatch`.
    Watch(WatchArguments),
    /// Send a crowd through a sale: simulated people over HTTP, behaving as the page does
    ///
    /// They come when the curve says so, however slow the answers are; latency counts from when a call was to be
    /// made. At the end the answers are held against what must never happen and, where the system is found, against
    /// an audit of it. Any violation is exit code 1.
    Crowd(CrowdArguments),
    /// Plan a sale on paper: waits, load, quotas, what it costs
    ///
    /// Three ways to follow a place stand side by side: polls alone, the line's progress from the edge's cache, and
    /// push near the front, which is what the page does. Nothing is asked of any system.
    Plan(PlanArguments),
    /// Write reservations to standard output, as PostgreSQL has them
    Export(ExportArguments),
    /// Is a deployment ready for its opening?
    ///
    /// Every function is called behind its alias with what changes nothing, which wakes those that nobody has called
    /// for weeks. Keys must be published, sales must have been ticked and relayed within two minutes, which shows that
    /// both schedules run, and PostgreSQL must answer. Instances and quotas are held against what the sale asks for
    /// (`jari plan` tells it). AWS' own variables and files name account and region.
    ///
    /// What is missing is a finding. What could not be asked, as for want of a permission, hides nothing else; where
    /// nothing is missing, it is exit code 2.
    ///
    /// Example: jari preflight --stack jari --instances 3000 --requests-per-second 20000
    Preflight(PreflightArguments),
    /// Start scheduled functions and empty queues, where functions are hosted without that
    ///
    /// `sam local start-lambda` hosts functions that somebody has to call: this command starts Admit and Relay by
    /// their schedule and delivers messages to Persist, Push and Socket, until Ctrl-C. What a function hands back
    /// stays in its queue.
    ///
    /// Example: jari pump --lambda-endpoint <http://127.0.0.1:3001>
    Pump(PumpArguments),
    /// Make a deployment's secrets: a master key, and an RSA key for access tokens
    ///
    /// They are printed as variables, a line each, or written to files that only their owner can read. How to change
    /// them without turning anybody away: docs/keys.md.
    ///
    /// A new key for access tokens is first published beside the old one (the new public key as
    /// `PREVIOUS_ACCESS_TOKEN_KEY`), signs two hours later (the two change places) and is alone once the longest
    /// session is over. A new master key draws anew: keep the old one while a drawn line stands.
    Keygen(KeygenArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// Port on 127.0.0.1; 0: any free one
    #[arg(long, default_value_t = 3000)]
    pub(crate) port: u16,
    /// Folder with the waiting-room page to serve instead of the built-in one
    #[arg(long, value_name = "DIR")]
    pub(crate) web: Option<PathBuf>,
    /// Sales to load: FILE opens when the file says, FILE@now at once, FILE@+2m two minutes after the start. An
    /// event that is there already keeps its opening
    #[arg(long = "sale", value_name = "FILE", num_args = 1..)]
    pub(crate) sales: Vec<SaleFile>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum EventCommand {
    /// Create an event from a definition, or bring it to one
    ///
    /// What is held or sold stays as it is: a definition that takes it off sale is refused.
    Apply(ApplyArguments),
    /// Validate a definition: every mistake, with its line and path
    Check {
        /// Definitions
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Make a definition of a GTFS feed: the trips of a route on a day
    ///
    /// The definition goes to standard output, what was not taken over to standard error. A trip that was left out
    /// is exit code 1.
    FromGtfs(GtfsArguments),
    /// Make a definition of a list of seats
    ///
    /// A line a seat: offering, date, section, name, price, row, seat and, where rows are named alike, prefix; or
    /// with capacity instead of row and seat a section without named seats. Every other column whose name is of
    /// letters is an attribute of the offering. The definition goes to standard output; a line that was left out is
    /// told on standard error, and exit code 1.
    FromCsv(CsvArguments),
    /// Show an event: its state, its rules, its sections
    Show {
        /// The event's id
        event: EventId,
        /// Print JSON, the definition included
        #[arg(long)]
        json: bool,
    },
    /// List all events
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Let people in: after a pause or a close; before its opening, open the sale now
    Open {
        /// The event's id
        event: EventId,
    },
    /// Admit nobody; everything else works
    Pause {
        /// The event's id
        event: EventId,
    },
    /// End the sale: no join, hold or booking; reading, cancelling and paying go on
    Close {
        /// The event's id
        event: EventId,
    },
    /// Set how many people are let in a second
    Pace {
        /// The event's id
        event: EventId,
        /// People a second
        #[arg(value_name = "N", allow_negative_numbers = true)]
        per_second: f64,
    },
    /// Tell everybody who waits something, at most 500 characters
    Message {
        /// The event's id
        event: EventId,
        /// What to tell
        #[arg(required_unless_present = "clear")]
        text: Option<String>,
        /// Take the message away
        #[arg(long, conflicts_with = "text")]
        clear: bool,
    },
    /// Refuse holds and bookings for a while, or take them again
    Maintenance {
        /// The event's id
        event: EventId,
        /// Whether they are refused
        switch: Switch,
    },
    /// Forget an event that is over, or was never opened and has nobody waiting
    ///
    /// It leaves Redis once the queues have taken all of its journal. What PostgreSQL has of it stays, and its id is not
    /// to be had again.
    Delete {
        /// The event's id
        event: EventId,
        /// How long to wait for the queues, in seconds
        #[arg(long, value_name = "SECONDS", default_value_t = admin::DEFAULT_PATIENCE_SECONDS)]
        patience: u32,
    },
    /// Recompute the draw of the line before the opening
    ///
    /// Each recorded place is compared with the score that the seed gives it, and the order in which people were
    /// called with those scores. The seed comes from the master key: that of the local system or, with --redis, the
    /// one in the environment as `MASTER_KEY`.
    VerifyShuffle(VerifyArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ApplyArguments {
    /// The definition
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Open the sale then: now, +2m, +1h30m or 2026-09-01T07:00:00+09:00; its close and a fixed payment date move
    /// along
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true)]
    pub(crate) opens_at: Option<Opening>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArguments {
    /// The event's id
    pub(crate) event: EventId,
    /// Write what is published at the opening: SHA-256 of each token in the draw, one a line, sorted
    #[arg(long, value_name = "FILE")]
    pub(crate) list: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AuditArguments {
    /// The event's id
    pub(crate) event: EventId,
    /// How long to wait for differences to vanish, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = admin::DEFAULT_PATIENCE_SECONDS)]
    pub(crate) patience: u32,
    /// Put right what has exactly one right answer
    #[arg(long)]
    pub(crate) repair: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RebuildArguments {
    /// The event's id
    pub(crate) event: EventId,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DlqCommand {
    /// List them: what they say and why they are refused; exit code 1 if there are any
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Move them back to their queue; safe to repeat, and none is lost on the way
    ///
    /// Mend first what `jari dlq list` names. A local system has no queue: there they are written at once, and those
    /// that are refused once more stay where they are.
    ///
    /// Example: jari dlq replay --all
    Replay {
        /// Their ids, as `jari dlq list` tells them
        #[arg(value_name = "ID", required_unless_present = "all")]
        ids: Vec<String>,
        /// Every one
        #[arg(long, conflicts_with = "ids")]
        all: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ExportArguments {
    /// The event's id
    pub(crate) event: EventId,
    /// The form
    #[arg(long, value_enum)]
    pub(crate) format: ExportFormat,
    /// Write tokens too: whoever has one acts as its owner
    #[arg(long)]
    pub(crate) with_tokens: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PreflightArguments {
    /// The stack of template.yaml
    #[arg(long, value_name = "NAME")]
    pub(crate) stack: String,
    /// Instances of all functions at once
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub(crate) instances: u32,
    /// Instances that Join, Poll, `HoldSeat` and Book each have ready, as `WarmInstances` says
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) warm_instances: u32,
    /// Requests a second
    #[arg(long, value_name = "N", default_value_t = 8_000)]
    pub(crate) requests_per_second: u32,
    /// Sockets opened a second
    #[arg(long, value_name = "N", default_value_t = 500)]
    pub(crate) connects_per_second: u32,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PumpArguments {
    /// Where functions are invoked
    #[arg(long, value_name = "URL")]
    pub(crate) lambda_endpoint: String,
    /// Where the queues are
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:9324")]
    pub(crate) queue_endpoint: String,
    /// The queues are PREFIX-Bookings, PREFIX-Line, PREFIX-Pushes and PREFIX-Gone
    #[arg(long, value_name = "PREFIX", default_value = "jari")]
    pub(crate) queue_prefix: String,
    /// Seconds between two starts of a scheduled function
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) every: u64,
    /// End after so many seconds
    #[arg(long, value_name = "SECONDS")]
    pub(crate) seconds: Option<u64>,
    /// Print JSON at the end
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct KeygenArguments {
    /// What to make [default: both]
    #[arg(value_enum, value_name = "SECRET")]
    pub(crate) secrets: Vec<Secret>,
    /// Write files there instead; one that is there already is not written over
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Secret {
    /// What signs places and draws shuffles
    Master,
    /// What signs access tokens
    AccessToken,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// A line a reservation, times in UTC
    Csv,
    /// One array, times in Unix milliseconds
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    On,
    Off,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_arguments_contradict_nothing_and_every_help_fits_80_columns() {
        let mut jari = Arguments::command();
        jari.build();
        jari.clone().debug_assert();
        check(&mut jari);
    }

    fn check(command: &mut clap::Command) {
        for line in command.render_long_help().to_string().lines() {
            assert!(line.chars().count() <= 80, "{}: {line}", command.get_name());
        }
        command.get_subcommands_mut().for_each(check);
    }

    #[test]
    fn a_system_can_be_named_behind_every_command() {
        let read = |line: &str| Arguments::try_parse_from(line.split(' '));
        let arguments = read("jari event list --redis redis://r --redis-cluster").unwrap();
        assert_eq!(arguments.system.redis.as_deref(), Some("redis://r"));
        assert!(arguments.system.redis_cluster);
        assert!(read("jari --data d audit e").is_ok());
        assert!(read("jari audit e --redis-cluster").is_err());
        assert!(read("jari dlq replay").is_err(), "nothing is moved that nobody named");
        assert!(read("jari dlq replay --all a").is_err());
        assert!(read("jari dlq replay a b").is_ok() && read("jari dlq replay --all").is_ok());
        for line in
            ["jari", "jari event show A", "jari event pace e x", "jari event message e", "jari export e"]
        {
            assert!(read(line).is_err(), "{line}");
        }
        assert!(read("jari event pace e -1").is_ok(), "the system tells what is wrong with it");
        assert!(read("jari event message e --clear").is_ok());
        let Ok(Arguments { command: Command::Serve(serve), .. }) =
            read("jari serve --port 0 --sale a.json@now b.json --sale c.json@+2m")
        else {
            panic!("serve")
        };
        assert_eq!((serve.port, serve.sales.len()), (0, 3));
    }
}
