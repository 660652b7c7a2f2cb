//! SIGUSR2: the server starts the program that is now where its own was, to be replaced by it.

use logstead_env::{Env, Program};
use tracing::{info, warn};

/// How this process was started.
pub(crate) struct Spawner(Option<Program>);

impl Spawner {
    /// Looks it up; to be called before anything can have changed.
    pub(crate) fn new() -> Spawner {
        Spawner(match Program::own() {
            Ok(program) => Some(program),
            Err(error) => {
                warn!("this program's file is not known, so SIGUSR2 does nothing: {error}");
                None
            }
        })
    }

    /// Starts the program with what this one was started with, and `--replace`.
    pub(crate) fn spawn(&self, env: &Env) {
        let Some(program) = &self.0 else {
            warn!("no successor is started: this program's file is not known");
            return;
        };
        let program = program.with_argument("--replace");
        let shown = program.path().display().to_string();
        info!("starting {shown} to replace this process");
        // Whoever starts a process waits for its end. If that comes first, this one goes on.
        let started = env.spawn("successor", None, move || match program.run() {
            Ok(status) => warn!("the successor has ended ({status}), this process goes on"),
            Err(error) => warn!("{} cannot be started: {error}", program.path().display()),
        });
        if let Err(error) = started {
            warn!("cannot start the thread that starts {shown}: {error}");
        }
    }
}
