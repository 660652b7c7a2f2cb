//! Autonomous commit (Autonomous Commit §3): every worker flushes its own log and acknowledges its group.
//!
//! Rule: at the end of a transaction a worker whose lane holds a flush unit writes it itself; one whose lane holds
//! less, but a unit together with the lanes of its steal group, robs them and writes it all. Two things are done in one
//! of two ways, the paper's and ours, which is the default because it was measured to be the better one
//! (docs/benchmarks.md):
//!
//! | | ours | the paper's |
//! |---|---|---|
//! | [`AckTiming`] | the group concerned, whenever a block has hardened | at the end of one transaction in log2(workers), by chance; and whoever is idle |
//! | [`ForceCommit`] | an idle worker flushes and acknowledges at once | with the probability average idle time / 50 us; refused, it asks again |
//!
//! Why it is right: stolen bytes stay unhardened for their owner until the thief's write and all earlier claims are
//! durable (T14). Nobody is forgotten when the dice never fall: a worker that becomes idle says so first and then looks
//! at what has hardened, and who hardens something says so first and then looks who is idle; so one of the two
//! acknowledges. A worker that is refused to commit by force is not asleep: it asks again after the longest idle time
//! that is a matter of chance, and what has passed by then counts.

use super::{AckTiming, Action, Actions, Event, ForceCommit, ProtocolConfig};

/// An idle time that always forces a commit.
const IDLE_NS_MAX: u32 = 50_000;

pub(crate) struct Autonomous {
    /// One transaction in so many acknowledges.
    ack_every: u32,
}

impl Autonomous {
    pub(crate) fn new(protocol_config: &ProtocolConfig) -> Autonomous {
        Autonomous {
            ack_every: protocol_config.workers.max(2).ilog2(),
        }
    }

    pub(crate) fn on(&self, event: Event<'_>, protocol_config: &ProtocolConfig, out: &mut Actions) {
        let acknowledge = |worker| Action::Acknowledge {
            workers: protocol_config.ack_group_of(worker),
        };
        match event {
            Event::Precommitted {
                worker,
                lane,
                stealable_bytes,
                dice,
            } => {
                let due = protocol_config.is_due(&lane);
                let robs = !due
                    && lane.can_flush
                    && stealable_bytes > 0
                    && lane.unflushed_bytes + stealable_bytes >= protocol_config.flush_unit_bytes;
                if due || robs {
                    if robs {
                        out.push(Action::Steal { worker });
                    }
                    out.push(Action::Flush {
                        lane: protocol_config.lane_of(worker),
                        inline: true,
                    });
                }
                if protocol_config.acknowledging == AckTiming::AtRandom
                    && dice.is_multiple_of(self.ack_every)
                {
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
                let expected = protocol_config.force_commit == ForceCommit::IfIdleLong;
                let forced = !expected
                    || average_idle_ns
                        .is_none_or(|average| average >= u64::from(dice % IDLE_NS_MAX));
                if forced && lane.unflushed_bytes > 0 {
                    out.push(Action::Flush {
                        lane: protocol_config.lane_of(worker),
                        inline: true,
                    });
                }
                // Whoever is idle acknowledges, whatever the dice say of a flush: it has nothing better to do.
                out.push(acknowledge(worker));
                if !forced && lane.unflushed_bytes > 0 {
                    out.push(Action::Recheck {
                        after_ns: u64::from(IDLE_NS_MAX),
                    });
                }
            }
            Event::Hardened {
                lane, idle_worker, ..
            } => {
                if protocol_config.acknowledging == AckTiming::WhenHardened || idle_worker {
                    let workers = protocol_config.workers_of(lane);
                    out.push(Action::Acknowledge {
                        workers: protocol_config.ack_group_of(workers.start).start
                            ..protocol_config.ack_group_of(workers.end - 1).end,
                    });
                }
            }
            Event::Round { .. } => {}
        }
    }
}
