//! Who waits for a checkpoint, and the thread that takes it.
//!
//! Taking one blocks, which a worker never does. So a thread takes it; it is started by who asks first and ends when
//! nobody waits any more. Who asks while it is at work waits for the next one, together with all others who do: however
//! many sessions ask, there is one thread.
//!
//! Invariant: a request is answered by a checkpoint that began after it: the thread takes the list of who waits before
//! it begins.

use logstead_engine::{CheckpointError, Engine};
use logstead_env::Env;
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::oneshot;

type Outcome = std::result::Result<(), CheckpointError>;

#[derive(Default)]
struct CheckpointQueue {
    waiting: Vec<oneshot::Sender<Outcome>>,
    /// There is a thread, and it will look at the list again.
    at_work: bool,
}

/// Who waits for a checkpoint.
#[derive(Default)]
pub(crate) struct CheckpointRequests(Mutex<CheckpointQueue>);

/// Answers nobody any more when the thread ends in a panic, so that those who wait are told and the next one who asks
/// starts
/// another.
struct CheckpointerGuard<'a>(&'a CheckpointRequests);

impl Drop for CheckpointerGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            *self.0.0.lock() = CheckpointQueue::default();
        }
    }
}

impl CheckpointRequests {
    /// Asks for a checkpoint from now on.
    pub(crate) fn ask(
        self: &Arc<Self>,
        engine: &Engine,
        env: &Env,
    ) -> std::io::Result<oneshot::Receiver<Outcome>> {
        let (answer, answered) = oneshot::channel();
        let mut state = self.0.lock();
        if !state.at_work {
            let (requests, engine) = (Arc::clone(self), engine.clone());
            env.spawn("checkpoint", None, move || requests.serve(&engine))?;
            state.at_work = true;
        }
        state.waiting.push(answer);
        Ok(answered)
    }

    /// The thread.
    fn serve(&self, engine: &Engine) {
        let _at_work = CheckpointerGuard(self);
        loop {
            let waiting = {
                let mut state = self.0.lock();
                if state.waiting.is_empty() {
                    state.at_work = false;
                    return;
                }
                std::mem::take(&mut state.waiting)
            };
            let outcome = engine.checkpoint().map(drop);
            for answer in waiting {
                let _may_have_given_up = answer.send(outcome.clone());
            }
        }
    }
}
