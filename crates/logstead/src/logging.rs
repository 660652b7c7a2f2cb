//! Where the program's own messages go: to standard error, as text or as lines of JSON.
//!
//! Does not: know the log of the database (`log_command` reads that offline).

/// Once per process: what comes later changes nothing.
pub(crate) fn start_logging(level: &str, json: bool) {
    let filter = level
        .parse()
        .unwrap_or(tracing_subscriber::filter::LevelFilter::INFO);
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false);
    let _only_once_per_process = match json {
        true => subscriber.json().flatten_event(true).try_init(),
        false => subscriber.try_init(),
    };
}
