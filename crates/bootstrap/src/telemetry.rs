//! Logs: JSON lines with time and level in Lambda, whose filter needs them; readable lines elsewhere. No line holds
//! a token. Metrics: lines of EMF in Lambda.

use metrics::Emf;
use tracing_subscriber::EnvFilter;

use crate::config;

/// Start logging and telling what is counted, once a process; starting it again changes no log.
pub fn start() {
    let filter = EnvFilter::try_new(config::log_level()).unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // Fails only where a subscriber is installed already: a test or a program around this one.
    let _ = if let Some(function) = config::lambda_function() {
        metrics::tell_by(Emf::new(config::system_name(), function));
        builder.json().flatten_event(true).with_current_span(false).try_init()
    } else {
        builder.compact().try_init()
    };
    metrics::COLD_STARTS.add(1);
}
