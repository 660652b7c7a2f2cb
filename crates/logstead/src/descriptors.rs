//! Who gets the open files that the process may have.
//!
//! The kernel gives a descriptor to whoever asks first. If clients could take all, the log could not open its next
//! segment nor a checkpoint its object, so what these need is taken off first, and clients get the rest: fewer than
//! `max_connections` of them then, and who is beyond hears 53300.
//!
//! Does not: count what sessions open for themselves (sorts that do not fit their memory).

use crate::config::Config;
use tracing::warn;

/// Standard streams, sockets that are listened to, signals, the manifest, directories that are synced, scrapers of
/// metrics.
const OTHERS: u64 = 32;
/// Objects of checkpoints that are kept open, and those being written.
const OBJECTS: u64 = 72;
/// Segments that a lane keeps open, and its ring.
const OF_A_LANE: u64 = 12;
/// Poll, wake-ups and the clock of a worker's runtime.
const OF_A_WORKER: u64 = 4;
/// Connections to a home that is not on this machine.
const REQUESTS: u64 = 64;
/// Clients beyond `max_connections` that are still talked to: to be told so, or to cancel.
const SPARE: u64 = 128;
/// With fewer clients a server is not worth starting.
const CLIENTS_MIN: u64 = 8;

/// How many clients at most, and how many beyond to talk to.
fn clients(limit: u64, workers: u64, is_remote: bool) -> Option<(u64, u64)> {
    let remote = if is_remote { REQUESTS } else { 0 };
    let kept = OTHERS + OBJECTS + remote + workers * (OF_A_LANE + OF_A_WORKER);
    let left = limit.checked_sub(kept)?;
    let spare = (left / 8).min(SPARE);
    let clients = left - spare;
    (clients >= CLIENTS_MIN).then_some((clients, spare))
}

/// Lowers `max_connections` to what the process may have open, and gives how many clients beyond are talked to.
pub(crate) fn share_out(config: &mut Config, limit: std::io::Result<u64>) -> Result<usize, String> {
    let limit = match limit {
        Ok(limit) => limit,
        Err(error) => {
            warn!("cannot raise the limit of open files: {error}");
            return Ok(SPARE as usize);
        }
    };
    let is_remote = config.home.is_some() || config.replica_of.is_some();
    let Some((clients, spare)) = clients(limit, config.workers as u64, is_remote) else {
        return Err(format!(
            "insufficient file descriptors available to start server process: {limit} are allowed, and log and checkpoints need most of them; raise the limit (ulimit -n)"
        ));
    };
    let clients = usize::try_from(clients).unwrap_or(usize::MAX);
    if clients < config.connections_max {
        warn!(
            "only {limit} open files are allowed: max_connections is {clients} instead of {}, so that log and checkpoints have theirs",
            config.connections_max
        );
        config.connections_max = clients;
        let told = clients.to_string();
        config.values.insert("max_connections".to_owned(), told);
    }
    Ok(usize::try_from(spare).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_and_checkpoints_come_first() {
        assert_eq!(clients(256, 2, false), Some((105, 15)));
        assert_eq!(clients(256, 2, true), Some((49, 7)));
        assert_eq!(clients(144, 2, false), None, "a server without clients");
        assert_eq!(clients(100, 2, false), None, "not even the log");
        assert_eq!(
            clients(u64::MAX, 64, true).map(|(_, spare)| spare),
            Some(128)
        );
    }
}
