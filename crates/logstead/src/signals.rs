//! The signals that stop a server, or have it read its certificate again.

use crate::EXIT_FAILURE;
use crate::open::Failure;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What the system asks of the server. A signal that comes while nobody listens is told to whoever listens next.
pub(crate) struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl StopSignals {
    /// Listens from now on. Needs the runtime.
    pub(crate) fn new() -> Result<StopSignals, Failure> {
        let listen = |kind| signal(kind).map_err(|error| (EXIT_FAILURE, error.to_string()));
        Ok(StopSignals {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }

    /// The next one: true if it says to stop.
    pub(crate) async fn next(&mut self) -> bool {
        tokio::select! {
            _ = self.terminate.recv() => true,
            _ = self.interrupt.recv() => true,
            _ = self.hangup.recv() => false,
        }
    }

    /// Waits until it says to stop.
    pub(crate) async fn stop(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
