//! Logs: JSON lines with time and level in Lambda, whose filter needs them; readable lines elsewhere. No line holds
//! a token. Metrics: lines of EMF in Lambda.

use metrics::Emf;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::config;

/// Start logging and telling what is counted, once a process; starting it again changes no log.
pub fn start() {
    // Levels by module alone: EnvFilter would bring an engine of regular expressions into every function.
    let filter =
        config::log_level().parse().unwrap_or_else(|_| Targets::new().with_default(LevelFilter::INFO));
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let registry = tracing_subscriber::registry().with(filter);
    // Fails only where a subscriber is installed already: a test or a program around this one.
    let _ = if let Some(function) = config::lambda_function() {
        metrics::tell_by(Emf::new(config::system_name(), function));
        registry.with(lines.json().flatten_event(true).with_current_span(false)).try_init()
    } else {
        registry.with(lines.compact()).try_init()
    };
    metrics::COLD_STARTS.add(1);
}
