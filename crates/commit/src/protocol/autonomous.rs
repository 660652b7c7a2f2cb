//! Autonomous commit (papers/autonomous-commit.txt §3): every worker flushes its own log and acknowledges its group.
//!
//! Rule: at the end of a transaction a worker whose lane holds a flush unit writes it itself; one whose lane holds less, but
//! a unit together with the lanes of its steal group, robs them and writes it all. On average once in log2(workers)
//! transactions it acknowledges its group. A worker that expects to be idle commits by force, with the probability average idle
//! time / 50 us; one that waits for others does so at once. Why it is right: stolen bytes stay unhardened for their owner until the
//! thief's write and all earlier claims are durable (T14), and every hardening is followed by an acknowledgment of the
//! group concerned, so nobody is forgotten when the dice never fall.

use super::{Action, Actions, Event, Shape};

/// An idle time that always forces a commit.
const IDLE_NS_MAX: u32 = 50_000;

pub(crate) struct Autonomous {
    /// One transaction in so many acknowledges.
    ack_every: u32,
}

impl Autonomous {
    pub(crate) fn new(shape: &Shape) -> Autonomous {
        Autonomous {
            ack_every: shape.workers.max(2).ilog2(),
        }
    }

    pub(crate) fn on(&self, event: Event<'_>, shape: &Shape, out: &mut Actions) {
        let acknowledge = |worker| Action::Acknowledge {
            workers: shape.ack_group_of(worker),
        };
        match event {
            Event::Precommitted {
                worker,
                lane,
                stealable_bytes,
                dice,
            } => {
                let due = shape.is_due(&lane);
                let robs = !due
                    && lane.can_flush
                    && stealable_bytes > 0
                    && lane.unflushed_bytes + stealable_bytes >= shape.flush_unit_bytes;
                if due || robs {
                    if robs {
                        out.push(Action::Steal { worker });
                    }
                    out.push(Action::Flush {
                        lane: shape.lane_of(worker),
                        inline: true,
                    });
                }
                if dice.is_multiple_of(self.ack_every) {
                    out.push(acknowledge(worker));
                }
            }
            Event::Idle {
                worker,
                lane,
                average_idle_ns,
                dice,
                ..
            } => {
                let forced =
                    average_idle_ns.is_none_or(|average| average >= u64::from(dice % IDLE_NS_MAX));
                if !forced {
                    return;
                }
                if lane.unflushed_bytes > 0 {
                    out.push(Action::Flush {
                        lane: shape.lane_of(worker),
                        inline: true,
                    });
                }
                out.push(acknowledge(worker));
            }
            Event::Hardened { lane, .. } => {
                let workers = shape.workers_of(lane);
                out.push(Action::Acknowledge {
                    workers: shape.ack_group_of(workers.start).start
                        ..shape.ack_group_of(workers.end - 1).end,
                });
            }
            Event::Round { .. } => {}
        }
    }
}
