//! Grouped lanes (Milliscale §4.2): every lane is flushed for itself, and its workers acknowledged after that.
//!
//! The only one whose workers may change lanes: it asks nothing about which workers a lane has (see `lane_mapping`).
//!
//! Rule: a lane is flushed when it holds a flush unit or its oldest entry has waited for the timeout, and when its
//! workers have nothing else to do. The flush after a completed one waits a moment for the workers that it has just set
//! free, as long as one of them is at work: two workers that share a lane would otherwise take turns, each waiting for
//! the other's append and its own. Why it is right: whoever is told to ask again does, and a completed flush rouses the
//! lane when bytes are left; so bytes never lie in a lane whose workers all sleep.

use super::{Action, Actions, Event, LaneView, ProtocolConfig};

pub(crate) struct GroupedLanes;

impl GroupedLanes {
    /// For how long the lane still waits for its other workers.
    fn gathers_ns(lane: &LaneView, protocol_config: &ProtocolConfig) -> u64 {
        if lane.all_idle {
            0
        } else {
            let since = lane.since_hardened_ns.min(lane.waited_ns);
            protocol_config.gather_ns.saturating_sub(since)
        }
    }

    pub(crate) fn on(event: Event<'_>, protocol_config: &ProtocolConfig, out: &mut Actions) {
        match event {
            Event::Precommitted { lane, .. } => {
                if protocol_config.is_due(&lane) && lane.can_flush {
                    out.push(Action::Flush {
                        lane: lane.number,
                        inline: false,
                    });
                }
            }
            Event::Idle { lane, alone, .. } => {
                // What cannot be flushed now is looked at again when a block completes.
                if lane.unflushed_bytes == 0 || !lane.can_flush {
                    return;
                }
                match GroupedLanes::gathers_ns(&lane, protocol_config) {
                    0 => out.push(Action::Flush {
                        lane: lane.number,
                        inline: alone,
                    }),
                    after_ns => out.push(Action::Recheck { after_ns }),
                }
            }
            Event::Hardened { lane, view, .. } => {
                out.push(Action::AcknowledgeLane { lane });
                if view.unflushed_bytes > 0 {
                    out.push(if protocol_config.is_due(&view) {
                        Action::Flush {
                            lane,
                            inline: false,
                        }
                    } else {
                        Action::WakeWorker { lane }
                    });
                }
            }
            Event::Round { .. } => {}
        }
    }
}
