//! The protocols as text: events in, actions out.

use super::*;

fn protocol_config(workers: usize, workers_per_lane: usize) -> ProtocolConfig {
    ProtocolConfig {
        workers,
        blocks: WorkerBlocks::new(workers, 1),
        workers_per_lane,
        flush_unit_bytes: 4096,
        flush_timeout_ns: 1_000_000,
        gather_ns: 0,
        ack_group: 2,
        steal_group: 4,
        acknowledging: AckTiming::WhenHardened,
        force_commit: ForceCommit::AtOnce,
    }
}

fn lane(unflushed_bytes: usize) -> LaneView {
    LaneView {
        number: 1,
        unflushed_bytes,
        can_flush: true,
        since_hardened_ns: u64::MAX,
        ..LaneView::default()
    }
}

fn precommitted(worker: usize, unflushed_bytes: usize) -> Event<'static> {
    Event::Precommitted {
        worker,
        lane: lane(unflushed_bytes),
        stealable_bytes: 0,
        dice: 1,
    }
}

fn idle(worker: usize, unflushed_bytes: usize) -> Event<'static> {
    Event::Idle {
        worker,
        lane: lane(unflushed_bytes),
        alone: true,
        average_idle_ns: None,
        dice: 1,
    }
}

fn hardened(of: usize, hardened: u64, unflushed_bytes: usize) -> Event<'static> {
    Event::Hardened {
        lane: of,
        hardened,
        idle_worker: false,
        view: lane(unflushed_bytes),
    }
}

/// What a protocol does, event by event.
fn told(kind: ProtocolKind, protocol_config: ProtocolConfig, events: &[Event<'_>]) -> String {
    let protocol = Protocol::new(kind, &protocol_config);
    let mut lines = Vec::new();
    for event in events {
        let mut actions = Actions::new();
        protocol.on(*event, &protocol_config, &mut actions);
        let actions: Vec<String> = actions
            .iter()
            .map(|action| match action {
                Action::Flush { lane, inline } => {
                    format!("flush {lane} {}", if *inline { "here" } else { "there" })
                }
                Action::Steal { worker } => format!("{worker} steals"),
                Action::Acknowledge { workers } => format!("acknowledge {workers:?}"),
                Action::AcknowledgeLane { lane } => format!("acknowledge lane {lane}"),
                Action::BeginRound { background } => {
                    format!("round {}", if *background { "there" } else { "here" })
                }
                Action::Recheck { after_ns } => format!("again in {after_ns}"),
                Action::WakeWorker { lane } => format!("rouse {lane}"),
            })
            .collect();
        lines.push(actions.join(", "));
    }
    lines.join("\n")
}

#[test]
fn group_flushes_all_lanes_in_rounds_led_by_a_worker() {
    let events = [
        precommitted(0, 100),
        precommitted(0, 5000),
        Event::Round {
            lanes: &[(0, 5000), (0, 0), (0, 70)],
        },
        // Wanted while one runs.
        idle(1, 10),
        idle(1, 10),
        hardened(0, 5000, 0),
        hardened(2, 60, 0),
        hardened(2, 70, 0),
        idle(1, 10),
    ];
    let expected = "\n\
        round here\n\
        flush 0 here, flush 2 here\n\
        \n\
        \n\
        \n\
        \n\
        acknowledge 0..3, rouse 0, rouse 1, rouse 2\n\
        round here";
    assert_eq!(
        told(ProtocolKind::Group, protocol_config(3, 1), &events),
        expected
    );
}

/// Somebody found the buffer full and flushed it. Nobody may ever want a round again.
#[test]
fn what_hardens_without_a_round_is_acknowledged() {
    for kind in [ProtocolKind::Group, ProtocolKind::Pipelined] {
        let events = [precommitted(1, 100), hardened(1, 100, 0)];
        assert_eq!(
            told(kind, protocol_config(4, 2), &events),
            "\nacknowledge 2..4"
        );
    }
}

#[test]
fn pipelined_does_so_in_the_background_and_goes_on_while_wanted() {
    let events = [
        idle(0, 10),
        Event::Round { lanes: &[(0, 10)] },
        idle(0, 20),
        hardened(0, 10, 20),
        Event::Round { lanes: &[(10, 30)] },
        hardened(0, 30, 0),
        // Nothing is there: the round ends at once.
        idle(0, 1),
        Event::Round { lanes: &[(30, 30)] },
    ];
    let expected = "round there\n\
        flush 0 here\n\
        \n\
        acknowledge 0..1, round there\n\
        flush 0 here\n\
        acknowledge 0..1\n\
        round there\n\
        acknowledge 0..1";
    assert_eq!(
        told(ProtocolKind::Pipelined, protocol_config(1, 1), &events),
        expected
    );
}

#[test]
fn autonomous_workers_flush_rob_and_acknowledge_for_themselves() {
    let rich = |worker, own, stealable_bytes, dice| Event::Precommitted {
        worker,
        lane: lane(own),
        stealable_bytes,
        dice,
    };
    let idles = |average_idle_ns, dice| Event::Idle {
        worker: 5,
        lane: lane(9),
        alone: true,
        average_idle_ns: Some(average_idle_ns),
        dice,
    };
    let hardens = |idle_worker| Event::Hardened {
        lane: 2,
        hardened: 10,
        idle_worker,
        view: lane(0),
    };
    let events = [
        rich(5, 4095, 0, 1),
        rich(5, 4096, 0, 1),
        rich(5, 96, 3999, 1),
        rich(5, 96, 4000, 1),
        // log2(8) = 3.
        rich(5, 96, 0, 3),
        // With the probability 20 us / 50 us, if that is wanted.
        idles(20_000, 20_001),
        idles(20_000, 20_000),
        idle(5, 0),
        hardens(false),
        hardens(true),
    ];
    let ours = "\n\
        flush 5 here\n\
        \n\
        5 steals, flush 5 here\n\
        \n\
        flush 5 here, acknowledge 4..6\n\
        flush 5 here, acknowledge 4..6\n\
        acknowledge 4..6\n\
        acknowledge 2..4\n\
        acknowledge 2..4";
    assert_eq!(
        told(ProtocolKind::Autonomous, protocol_config(8, 1), &events),
        ours
    );
    let papers = ProtocolConfig {
        acknowledging: AckTiming::AtRandom,
        force_commit: ForceCommit::IfIdleLong,
        ..protocol_config(8, 1)
    };
    let expected = "\n\
        flush 5 here\n\
        \n\
        5 steals, flush 5 here\n\
        acknowledge 4..6\n\
        acknowledge 4..6, again in 50000\n\
        flush 5 here, acknowledge 4..6\n\
        acknowledge 4..6\n\
        \n\
        acknowledge 2..4";
    assert_eq!(told(ProtocolKind::Autonomous, papers, &events), expected);
}

#[test]
fn grouped_lanes_flush_each_for_itself() {
    let busy = |unflushed_bytes| Event::Precommitted {
        worker: 2,
        lane: LaneView {
            can_flush: false,
            ..lane(unflushed_bytes)
        },
        stealable_bytes: 0,
        dice: 0,
    };
    let timed_out = Event::Precommitted {
        worker: 2,
        lane: LaneView {
            waited_ns: 1_000_000,
            ..lane(1)
        },
        stealable_bytes: 0,
        dice: 0,
    };
    // A block has just completed: the others of its cohort come first.
    let set_free = Event::Hardened {
        lane: 1,
        hardened: 10,
        idle_worker: false,
        view: LaneView {
            waited_ns: 9_000_000,
            since_hardened_ns: 0,
            ..lane(4095)
        },
    };
    let events = [
        set_free,
        precommitted(2, 4095),
        precommitted(2, 4096),
        timed_out,
        // The home takes no more now; when it does, it is told.
        busy(4096),
        hardened(1, 10, 4096),
        hardened(1, 10, 4095),
        hardened(1, 10, 0),
        idle(3, 0),
        idle(3, 1),
    ];
    let expected = "acknowledge lane 1, rouse 1\n\
        \n\
        flush 1 there\n\
        flush 1 there\n\
        \n\
        acknowledge lane 1, flush 1 there\n\
        acknowledge lane 1, rouse 1\n\
        acknowledge lane 1\n\
        \n\
        flush 1 here";
    assert_eq!(
        told(ProtocolKind::GroupedLanes, protocol_config(4, 2), &events),
        expected
    );
}

#[test]
fn grouped_lanes_wait_a_moment_for_those_just_set_free() {
    let protocol_config = ProtocolConfig {
        gather_ns: 400,
        ..protocol_config(4, 2)
    };
    let after = |since_hardened_ns, waited_ns, all_idle| Event::Idle {
        worker: 3,
        lane: LaneView {
            since_hardened_ns,
            waited_ns,
            all_idle,
            ..lane(1)
        },
        alone: true,
        average_idle_ns: None,
        dice: 0,
    };
    let events = [
        after(100, 50, false),
        after(100, 50, true),
        after(390, 500, false),
        after(5000, 400, false),
    ];
    let expected = "again in 350\nflush 1 here\nagain in 10\nflush 1 here";
    assert_eq!(
        told(ProtocolKind::GroupedLanes, protocol_config, &events),
        expected
    );
}

#[test]
fn workers_lanes_and_groups() {
    let protocol_config = protocol_config(5, 2);
    assert_eq!(protocol_config.lanes(), 3);
    assert_eq!(protocol_config.workers_of(2), 4..5);
    assert_eq!(protocol_config.ack_group_of(4), 4..5);
    assert_eq!(protocol_config.steal_lanes_of(1), 0..2);
    assert_eq!(protocol_config.steal_lanes_of(4), 2..3);
    for kind in ProtocolKind::ALL {
        assert_eq!(ProtocolKind::from_name(kind.name()), Some(kind));
    }
}

#[test]
fn instances_share_no_lane_and_no_group() {
    for workers in 1..20 {
        for instances in 1..=workers {
            for workers_per_lane in 1..=workers {
                let blocks = WorkerBlocks::new(workers, instances);
                let divided = ProtocolConfig {
                    blocks,
                    ack_group: 3,
                    steal_group: 4,
                    ..protocol_config(workers, workers_per_lane)
                };
                let mut met = Vec::new();
                for lane in 0..divided.lanes() {
                    let of_lane = divided.workers_of(lane);
                    assert!(!of_lane.is_empty() && of_lane.len() <= workers_per_lane);
                    assert_eq!(blocks.of(of_lane.start), blocks.of(of_lane.end - 1));
                    assert!(
                        of_lane
                            .clone()
                            .all(|worker| divided.lane_of(worker) == lane)
                    );
                    met.extend(of_lane);
                }
                assert_eq!(met, (0..workers).collect::<Vec<_>>());
                for worker in 0..workers {
                    let own = blocks.workers(blocks.of(worker));
                    let within = |group: Range<usize>| {
                        group.contains(&worker) && own.start <= group.start && group.end <= own.end
                    };
                    assert!(within(divided.ack_group_of(worker)));
                    let mut robbed = divided.steal_lanes_of(worker);
                    assert!(robbed.contains(&divided.lane_of(worker)));
                    assert!(
                        robbed
                            .all(|lane| blocks.of(divided.workers_of(lane).start)
                                == blocks.of(worker))
                    );
                }
            }
        }
    }
}
