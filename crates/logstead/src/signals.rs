//! The signals that stop a server, or have it read its certificate again.

use crate::EXIT_FAILURE;
use crate::open::Failure;
use std::io::Write;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What the system asks of the server. A signal that comes while nobody listens is told to whoever listens next.
pub(crate) struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    user_defined: Signal,
}

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignalRequest {
    /// To stop (SIGTERM, SIGINT).
    Stop,
    /// To read the certificate again (SIGHUP).
    Reload,
    /// To be replaced by the program that is now where this one's file was (SIGUSR2).
    Replace,
}

/// From now on this process survives the signals that ask a server to do something, also while it does not listen to
/// them yet. Needs the runtime.
pub(crate) fn survive_reload() -> Result<(), Failure> {
    for kind in [SignalKind::hangup(), SignalKind::user_defined2()] {
        // Whoever has listened once has changed what the signal does.
        let _not_listened_to = signal(kind).map_err(|error| (EXIT_FAILURE, error.to_string()))?;
    }
    Ok(())
}

impl StopSignals {
    /// Listens from now on. Needs the runtime.
    pub(crate) fn new() -> Result<StopSignals, Failure> {
        let listen = |kind| signal(kind).map_err(|error| (EXIT_FAILURE, error.to_string()));
        Ok(StopSignals {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hangup: listen(SignalKind::hangup())?,
            user_defined: listen(SignalKind::user_defined2())?,
        })
    }

    /// What the next one asks for.
    pub(crate) async fn next(&mut self) -> SignalRequest {
        tokio::select! {
            _ = self.terminate.recv() => SignalRequest::Stop,
            _ = self.interrupt.recv() => SignalRequest::Stop,
            _ = self.hangup.recv() => SignalRequest::Reload,
            _ = self.user_defined.recv() => SignalRequest::Replace,
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

/// Says `text` on standard output, and waits for a signal to end.
pub(crate) fn say_and_wait(text: &str) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut out = std::io::stdout();
        let _nobody_may_be_reading = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        Ok(())
    })
}
