//! Rounds over all lanes: what `group` and `pipelined` have in common.
//!
//! Rule: a round flushes what every lane holds when it begins, waits for all of it, then acknowledges everybody. Who
//! wants one while one runs gets the next. Invariants: whenever bytes are wanted durable and no round runs, one is
//! asked for; what hardens without a round (a full buffer is flushed by who finds it full) is acknowledged then.

use super::{Action, Actions, Event, ProtocolConfig};

pub(super) struct Rounds {
    background: bool,
    /// What the running round waits for: lanes and cursors. `None`: no round runs.
    targets: Option<Vec<(usize, u64)>>,
    /// A round was asked for and has not begun.
    asked: bool,
}

impl Rounds {
    pub(super) fn new(background: bool) -> Rounds {
        Rounds {
            background,
            targets: None,
            asked: false,
        }
    }

    fn ask(&mut self, out: &mut Actions) {
        if !self.asked {
            self.asked = true;
            if self.targets.is_none() {
                out.push(Action::BeginRound {
                    background: self.background,
                });
            }
        }
    }

    fn end_if_reached(&mut self, protocol_config: &ProtocolConfig, out: &mut Actions) {
        if !self.targets.as_ref().is_some_and(Vec::is_empty) {
            return;
        }
        self.targets = None;
        out.push(Action::Acknowledge {
            workers: 0..protocol_config.workers,
        });
        if !self.asked {
            return;
        }
        if self.background {
            out.push(Action::BeginRound { background: true });
        } else {
            // Whoever is idle or next finds bytes worth a flush leads; the leader goes back to its sessions.
            self.asked = false;
            let lanes = 0..protocol_config.lanes();
            out.extend(lanes.map(|lane| Action::WakeWorker { lane }));
        }
    }

    pub(super) fn on(
        &mut self,
        event: Event<'_>,
        protocol_config: &ProtocolConfig,
        out: &mut Actions,
    ) {
        match event {
            Event::Precommitted { lane, .. } => {
                if protocol_config.is_due(&lane) {
                    self.ask(out);
                }
            }
            Event::Idle { lane, .. } => {
                if lane.unflushed_bytes > 0 {
                    self.ask(out);
                }
            }
            Event::Round { lanes } => {
                if self.targets.is_some() {
                    // The one that runs begins the next when it ends.
                    self.asked = true;
                    return;
                }
                self.asked = false;
                let mut targets = Vec::new();
                for (lane, &(hardened, pushed)) in lanes.iter().enumerate() {
                    if pushed > hardened {
                        targets.push((lane, pushed));
                        out.push(Action::Flush { lane, inline: true });
                    }
                }
                self.targets = Some(targets);
                self.end_if_reached(protocol_config, out);
            }
            Event::Hardened { lane, hardened, .. } => match &mut self.targets {
                Some(targets) => {
                    targets.retain(|&(of, end)| of != lane || hardened < end);
                    self.end_if_reached(protocol_config, out);
                }
                // No round has flushed this: somebody found the buffer full. Perhaps none will ever be asked for again.
                None => out.push(Action::Acknowledge {
                    workers: protocol_config.workers_of(lane),
                }),
            },
        }
    }
}
