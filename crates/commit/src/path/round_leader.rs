//! Rounds over all lanes, for `group` and `pipelined`: one thread at a time leads them.
//!
//! Invariant: a round that is asked for is led, by who asked or by who leads already.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;

use logstead_env::abort_on_panic;

use super::CommitPath;
use crate::atomic_facade::AtomicWord;
use crate::protocol::{Event, ProtocolKind};

/// Who leads, and whether somebody shall.
struct RoundLeadership<W = AtomicU64> {
    wanted: W,
    leading: W,
}

impl<W: AtomicWord> RoundLeadership<W> {
    fn new() -> RoundLeadership<W> {
        RoundLeadership {
            wanted: W::new(0),
            leading: W::new(0),
        }
    }

    fn want(&self) {
        self.wanted.store(1);
    }

    fn is_wanted(&self) -> bool {
        self.wanted.load() == 1
    }

    /// Leads rounds while they are wanted, if nobody does, or one: a worker has sessions of its own. Who leads looks
    /// again before it is done: true if it hands on, and somebody must be found.
    fn lead(&self, one: bool, round: impl Fn()) -> bool {
        while self.is_wanted() {
            if !self.leading.swap_if(0, 1) {
                // Inside a round, this very thread leads.
                return false;
            }
            if self.wanted.swap_if(1, 0) {
                round();
            }
            self.leading.store(0);
            if one {
                return self.is_wanted();
            }
        }
        false
    }
}

/// The thread that leads rounds in the background, and who asks for them.
pub(super) struct Committer {
    lead: RoundLeadership,
    stop: Arc<AtomicBool>,
    thread: OnceLock<Thread>,
}

impl Default for Committer {
    fn default() -> Committer {
        Committer {
            lead: RoundLeadership::new(),
            stop: Arc::default(),
            thread: OnceLock::new(),
        }
    }
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
        self.committer.lead.want();
        if !background {
            self.lead(true);
        } else if let Some(thread) = self.committer.thread.get() {
            thread.unpark();
        }
    }

    /// Leads the round that is wanted, if there is one and nobody does: what the background thread does, for who drives
    /// a path without threads.
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
        self.committer.lead.is_wanted()
    }

    /// See [`RoundLeadership::lead`].
    fn lead(&self, one: bool) {
        let hands_on = self.committer.lead.lead(one, || {
            let lanes: Vec<(u64, u64)> = self
                .lanes
                .iter()
                .map(|lane| (lane.hardened().0, lane.pushed().0))
                .collect();
            self.on(Event::Round { lanes: &lanes });
        });
        if hands_on {
            (0..self.lanes.len()).for_each(|lane| self.wake_worker_of(lane));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shuttle::sync::atomic::AtomicU64 as ShuttleU64;

    /// A round that is asked for begins after that, whoever leads.
    #[test]
    fn who_asks_for_a_round_gets_one() {
        let explored = || {
            // What there is, what rounds have seen of it, and how many lead.
            let all = Arc::new((ShuttleU64::new(0), ShuttleU64::new(0), ShuttleU64::new(0)));
            let lead: Arc<RoundLeadership<ShuttleU64>> = Arc::new(RoundLeadership::new());
            type All = (ShuttleU64, ShuttleU64, ShuttleU64);
            let ask = |all: &All, lead: &RoundLeadership<ShuttleU64>, one: bool| {
                AtomicWord::fetch_add(&all.0, 1);
                lead.want();
                let round = || {
                    assert_eq!(AtomicWord::fetch_add(&all.2, 1), 0, "one leads at a time");
                    AtomicWord::store(&all.1, AtomicWord::load(&all.0));
                    AtomicWord::store(&all.2, 0);
                };
                // Who is found takes one look.
                if lead.lead(one, round) {
                    lead.lead(false, round);
                }
            };
            let other = {
                let (all, lead) = (all.clone(), lead.clone());
                shuttle::thread::spawn(move || ask(&all, &lead, true))
            };
            // As the background thread does.
            ask(&all, &lead, false);
            other.join().expect("ends");
            assert_eq!(AtomicWord::load(&all.1), 2);
        };
        shuttle::check_dfs(explored, None);
    }
}
