//! Rounds over all lanes, for `group` and `pipelined`: one thread at a time leads them.
//!
//! Invariant: a round that is asked for is led, by who asked or by who leads already.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;

use logstead_env::abort_on_panic;

use super::CommitPath;
use crate::protocol::{Event, ProtocolKind};

/// The thread that leads rounds in the background, and who asks for them.
#[derive(Default)]
pub(super) struct Committer {
    wanted: AtomicBool,
    leading: AtomicBool,
    stop: Arc<AtomicBool>,
    thread: OnceLock<Thread>,
}

impl Drop for Committer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }
}

impl CommitPath {
    pub(super) fn start_committer(&self) -> std::io::Result<()> {
        if self.options.protocol != ProtocolKind::Pipelined || !self.options.threads {
            return Ok(());
        }
        let (weak, stop) = (self.this.clone(), self.committer.stop.clone());
        let handle = self.env.spawn("committer", None, move || {
            // Nobody would be acknowledged any more.
            let _watch = abort_on_panic("leading rounds of commits");
            while !stop.load(Ordering::SeqCst) {
                match weak.upgrade() {
                    Some(path) => path.lead(false),
                    None => return,
                }
                // An unpark between the two has left its token.
                std::thread::park();
            }
        })?;
        let _set_once = self.committer.thread.set(handle.thread().clone());
        Ok(())
    }

    /// A round is wanted: led here, or by the background thread.
    pub(super) fn begin_round(&self, background: bool) {
        self.committer.wanted.store(true, Ordering::SeqCst);
        if !background {
            self.lead(true);
        } else if let Some(thread) = self.committer.thread.get() {
            thread.unpark();
        }
    }

    /// Leads the round that is wanted, if there is one and nobody does: what the background thread does, for who drives a path
    /// without threads.
    pub fn background_round(&self) {
        self.lead(false);
    }

    /// For a worker that passes by: leads a round that nobody could take on when it was asked for.
    #[inline]
    pub(super) fn lead_if_wanted(&self) {
        if self.options.protocol == ProtocolKind::Group && self.wants_round() {
            self.lead(true);
        }
    }

    /// A round is wanted that nobody leads.
    pub fn wants_round(&self) -> bool {
        self.committer.wanted.load(Ordering::SeqCst)
    }

    /// Leads rounds while they are wanted, or one: a worker has sessions of its own, and hands on to who passes by next.
    fn lead(&self, one: bool) {
        let committer = &self.committer;
        while committer.wanted.load(Ordering::SeqCst) {
            if committer.leading.swap(true, Ordering::SeqCst) {
                // Who leads looks again before it is done; inside a round, this very thread does.
                return;
            }
            if committer.wanted.swap(false, Ordering::SeqCst) {
                let lanes: Vec<(u64, u64)> = self
                    .lanes
                    .iter()
                    .map(|lane| (lane.hardened().0, lane.pushed().0))
                    .collect();
                self.on(Event::Round { lanes: &lanes });
            }
            committer.leading.store(false, Ordering::SeqCst);
            if one {
                if self.wants_round() {
                    (0..self.lanes.len()).for_each(|lane| self.rouse(lane));
                }
                return;
            }
        }
    }
}
