//! The simulated home: the conformance suite in both ways of time, every fault, and what crashes leave.

use logstead_env::{Buffer, Clock, Env, SimClock};
use logstead_home::simulated::{
    ByteStorage, Fault, FaultRates, MODELS, Model, ServiceKind, SimulatedOptions, SimulatedReader,
};
use logstead_home::{
    HomeError, HomeStatus, HomeUsage, LaneAppends, LaneSegments, LogHome, NamedValues, NoRoom,
    Position, PriceList, RoomRequest, SideSegments, SimulatedHome, Usage, conformance,
};
use logstead_types::LaneId;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};

const LANE: LaneId = LaneId(0);

/// With segments that fill up soon.
fn small(mut model: Model) -> Model {
    model.appends_per_segment = model.appends_per_segment.min(10);
    model.segment_size_bytes = model.segment_size_bytes.min(64 << 10);
    model
}

fn model(name: &str) -> Model {
    small(Model::named(name).unwrap())
}

struct World {
    home: SimulatedHome,
    clock: Arc<SimClock>,
}

fn world(options: &SimulatedOptions) -> World {
    let clock = Arc::new(SimClock::new());
    let (env, _) = Env::simulated(options.seed);
    let env = Env {
        clock: Arc::clone(&clock) as Arc<dyn Clock>,
        ..env
    };
    let home = SimulatedHome::in_virtual_time(options, &env, Arc::clone(&clock)).unwrap();
    World { home, clock }
}

type Answers = mpsc::Receiver<Result<(), HomeError>>;

impl World {
    fn new(name: &str, seed: u64) -> World {
        world(&SimulatedOptions::new(model(name), seed))
    }

    /// A block that is recognized.
    fn block(&self, number: u8) -> (Buffer, usize) {
        let len = match self.home.model().kind {
            ServiceKind::Objects => 100 + usize::from(number),
            ServiceKind::Blocks => 4096 * (1 + usize::from(number) % 2),
        };
        let mut block = Buffer::zeroed(len);
        for (at, byte) in block.as_mut_slice().iter_mut().enumerate() {
            *byte = number ^ at as u8 | 1;
        }
        (block, len)
    }

    fn begin(&self, lane: LaneId, number: u8) -> (Position, Answers) {
        let (block, len) = self.block(number);
        self.home
            .ensure_room(lane, len as u64, &mut RoomRequest::default())
            .unwrap();
        let at = self.home.place(lane, len as u64).unwrap();
        let (tell, told) = mpsc::channel();
        let done = Box::new(move |_, result| tell.send(result).unwrap());
        self.home.append(lane, at, block, len, done);
        (at, told)
    }

    fn append(&self, lane: LaneId, number: u8) -> (Position, Result<(), HomeError>) {
        let (at, told) = self.begin(lane, number);
        while self.home.step() {}
        (at, told.try_recv().expect("told"))
    }

    fn stored(&self, at: Position, number: u8) -> bool {
        let (block, len) = self.block(number);
        let mut into = Buffer::zeroed(len);
        let count = self.home.read(LANE, at, &mut into).unwrap();
        count == len && into.as_slice() == block.as_slice()
    }

    fn len(&self) -> u64 {
        let segments = self.home.list_segments(LANE).unwrap();
        segments.iter().map(|info| info.size_bytes).sum()
    }
}

#[test]
fn conforms_in_virtual_time() {
    for every in MODELS {
        for seed in 0..20 {
            let mut options = SimulatedOptions::new(small(every.clone()), seed);
            if every.kind == ServiceKind::Objects && seed > 0 {
                options.faults = transient_faults(0.04);
            }
            let mut world = world(&options);
            world.home = world.home.with_inline_writes();
            let stepping = world.home.clone();
            let home = LogHome::from(world.home);
            conformance::check_stepping(&home, &|| stepping.step());
        }
    }
}

#[test]
fn conforms_in_real_time() {
    for every in MODELS {
        let mut options = SimulatedOptions::new(small(every), 1);
        options.scale = 0.001;
        let home = SimulatedHome::in_real_time(&options, &Env::real()).unwrap();
        let home = LogHome::from(home);
        conformance::check(&home);
    }
}

fn transient_faults(rate: f64) -> FaultRates {
    FaultRates::default()
        .with(Fault::LostReply, rate)
        .with(Fault::Delay, rate)
        .with(Fault::Duplicate, rate)
        .with(Fault::Transient, rate)
        .with(Fault::Stall, rate)
        .with(Fault::Outage, rate / 4.0)
}

#[test]
fn a_seed_gives_one_run() {
    let run = |seed| {
        let mut options = SimulatedOptions::new(model("s3express"), seed);
        options.faults = transient_faults(0.05);
        let world = world(&options);
        world.home.open_lane(LANE, 0).unwrap();
        let times = (0..50).map(|number| {
            world.append(LANE, number).1.unwrap();
            world.clock.monotonic()
        });
        (times.collect::<Vec<_>>(), world.home.usage())
    };
    assert_eq!(run(5), run(5));
    assert_ne!(run(5), run(6));
}

#[test]
fn what_goes_wrong_for_a_moment_is_repeated_and_settled() {
    for (fault, appends, settled) in [
        (Fault::LostReply, 1, 1),
        (Fault::Duplicate, 1, 0),
        (Fault::Transient, 2, 0),
        (Fault::Stall, 1, 0),
    ] {
        let world = World::new("s3express", 1);
        world.home.open_lane(LANE, 0).unwrap();
        world.home.fail_at(world.home.requests(), fault);
        let (at, result) = world.append(LANE, 1);
        result.unwrap();
        assert!(world.stored(at, 1), "{fault:?}");
        assert_eq!(world.len(), world.block(1).1 as u64, "once: {fault:?}");
        let usage = world.home.usage();
        assert_eq!(
            (usage.appends, usage.settled),
            (appends, settled),
            "{fault:?}"
        );
        let (at, result) = world.append(LANE, 2);
        result.unwrap();
        assert!(world.stored(at, 2), "{fault:?}");
    }
}

/// What the view and the reports show is what was asked for, request by request, byte by byte, cent by cent.
#[test]
fn requests_bytes_and_money_are_exact() {
    for (name, dollars) in [
        // 1.13 a million appends and puts, 0.03 reads, 1.13 lists; 0.0032 and 0.0006 per 10^9 bytes up and down.
        (
            "s3express",
            8.0 * 1.13e-6 + 3.0 * 0.03e-6 + 1.13e-6 + 620.0 * 0.0032e-9 + 105.0 * 0.0006e-9,
        ),
        ("s3standard", 8.0 * 5e-6 + 3.0 * 0.4e-6 + 5e-6),
    ] {
        let world = World::new(name, 1);
        let home = &world.home;
        // One write; then appends of 101, 102, 103, 104 and 105 bytes, of which one is sent twice and one is asked
        // after.
        home.open_lane(LANE, 0).unwrap();
        let mut last = Position::default();
        for number in 1..=5 {
            match number {
                2 => home.fail_at(home.requests(), Fault::Transient),
                4 => home.fail_at(home.requests(), Fault::LostReply),
                _ => {}
            }
            let (at, result) = world.append(LANE, number);
            result.unwrap();
            last = at;
        }
        // A read of 105 bytes, a named thing of 3 bytes made and looked at, a listing, and a removal.
        let mut into = Buffer::zeroed(105);
        assert_eq!(home.read(LANE, last, &mut into).unwrap(), 105);
        home.put_if_absent("n", b"abc").unwrap();
        home.get("n").unwrap().unwrap();
        assert_eq!(world.len(), 515);
        home.remove_side_segment(LANE, 7).unwrap();
        let usage = HomeStatus::usage(home);
        let [
            HomeUsage {
                usage, provider, ..
            },
        ] = usage.as_slice()
        else {
            panic!("one home: {usage:?}");
        };
        assert_eq!(provider, name);
        let expected = Usage {
            appends: 6,
            append_bytes: 101 + 102 + 102 + 103 + 104 + 105,
            writes: 2,
            write_bytes: 3,
            reads: 3,
            read_bytes: 105,
            lists: 1,
            deletes: 1,
            retries: 1,
            settled: 1,
            stored_bytes: Some(518),
            ..Usage::default()
        };
        assert_eq!(*usage, expected);
        let price = PriceList::built_in().of(name).unwrap().price;
        assert!((usage.dollars(&price) - dollars).abs() < 1e-15, "{name}");
    }
}

/// T14: an own append that was late looks like another writer's.
#[test]
fn a_delayed_append_is_recognized_as_ours() {
    let (mut repeated, mut before) = (0, 0);
    for seed in 0..200 {
        let world = World::new("s3express", seed);
        world.home.open_lane(LANE, 0).unwrap();
        world.home.fail_at(world.home.requests(), Fault::Delay);
        let (at, result) = world.append(LANE, 1);
        result.unwrap();
        assert!(world.stored(at, 1), "seed {seed}");
        assert_eq!(world.len(), world.block(1).1 as u64, "once: seed {seed}");
        let usage = world.home.usage();
        repeated += usage.appends - 1;
        before += usage.settled;
        world.append(LANE, 2).1.unwrap();
    }
    assert!(repeated > 20, "late ones are sent again: {repeated}");
    assert!(before > 20, "late ones arrive first: {before}");
}

#[test]
fn another_writer_fences() {
    let world = World::new("s3express", 1);
    world.home.open_lane(LANE, 0).unwrap();
    world.append(LANE, 1).1.unwrap();
    world.home.intrude(LANE).unwrap();
    let (_, result) = world.append(LANE, 2);
    assert!(matches!(result, Err(HomeError::Fenced(_))), "{result:?}");
    // Also when the reply that would tell it is lost.
    let world = World::new("s3express", 1);
    world.home.open_lane(LANE, 0).unwrap();
    world.home.intrude(LANE).unwrap();
    world.home.fail_at(world.home.requests(), Fault::LostReply);
    let (_, result) = world.append(LANE, 1);
    assert!(matches!(result, Err(HomeError::Fenced(_))), "{result:?}");
}

#[test]
fn an_outage_is_waited_out() {
    for name in ["s3express", "gp3"] {
        let world = World::new(name, 1);
        world.home.open_lane(LANE, 0).unwrap();
        let time = std::time::Duration::from_secs(30);
        let end = world.clock.monotonic() + time;
        world.home.begin_outage(time);
        let (at, result) = world.append(LANE, 1);
        result.unwrap();
        assert!(world.clock.monotonic() >= end, "{name}");
        assert!(world.stored(at, 1), "{name}");
        assert_eq!(world.home.usage().retries > 0, name == "s3express");
    }
}

#[test]
fn a_device_error_is_final_and_says_nothing_about_the_bytes() {
    for (fault, there) in [(Fault::Transient, false), (Fault::LostReply, true)] {
        let world = World::new("gp3", 1);
        world.home.open_lane(LANE, 0).unwrap();
        world.home.fail_at(world.home.requests(), fault);
        let (at, result) = world.append(LANE, 1);
        assert!(matches!(result, Err(HomeError::Io { .. })));
        assert_eq!(world.stored(at, 1), there);
        assert_eq!(world.home.usage().appends, 1);
    }
}

#[test]
fn a_bit_flips_and_one_only() {
    let world = World::new("gp3", 1);
    world.home.open_lane(LANE, 0).unwrap();
    world.home.fail_at(world.home.requests(), Fault::BitFlip);
    let (at, result) = world.append(LANE, 1);
    result.unwrap();
    let (block, len) = world.block(1);
    let mut into = Buffer::zeroed(len);
    world.home.read(LANE, at, &mut into).unwrap();
    let pairs = block.as_slice().iter().zip(into.as_slice());
    let flipped: u32 = pairs.map(|(a, b)| (a ^ b).count_ones()).sum();
    assert_eq!(flipped, 1);
}

#[test]
fn whatever_fails_for_a_moment_every_append_is_stored_once() {
    for seed in 0..10 {
        let mut options = SimulatedOptions::new(model("s3express"), seed);
        options.faults = transient_faults(0.08);
        let world = world(&options);
        world.home.open_lane(LANE, 0).unwrap();
        let mut places = Vec::new();
        for number in 0..200 {
            let (at, result) = world.append(LANE, number);
            result.unwrap_or_else(|error| panic!("seed {seed}, append {number}: {error}"));
            places.push(at);
        }
        world.home.set_faults(FaultRates::default());
        for (number, at) in places.into_iter().enumerate() {
            assert!(
                world.stored(at, number as u8),
                "seed {seed}, append {number}"
            );
        }
        let len: usize = (0..200).map(|number| world.block(number).1).sum();
        assert_eq!(world.len(), len as u64, "seed {seed}: nothing twice");
    }
}

/// Appends of several lanes and of one lane complete out of order, but those of an object do not overlap.
#[test]
fn appends_overlap_as_the_service_allows() {
    let world = World::new("gp3", 3);
    world.home.open_lane(LANE, 0).unwrap();
    world.home.fail_at(world.home.requests(), Fault::Stall);
    let order = Rc::new(RefCell::new(Vec::new()));
    let answers: Vec<_> = (0..8).map(|number| world.begin(LANE, number).1).collect();
    let (block, len) = world.block(8);
    let at = world.home.place(LANE, len as u64).unwrap();
    let (tell, told) = mpsc::channel();
    let done = Box::new(move |_, result: Result<(), _>| tell.send(result).unwrap());
    world.home.append(LANE, at, block, len, done);
    let refused = told.try_recv().expect("told at once");
    assert!(matches!(refused, Err(HomeError::Misuse { .. })), "too many");
    while world.home.step() {
        for (number, answer) in answers.iter().enumerate() {
            if answer.try_recv().is_ok() {
                order.borrow_mut().push(number);
            }
        }
    }
    assert_eq!(order.borrow().len(), 8);
    assert_eq!(order.borrow().last(), Some(&0), "{order:?}");
    let world = World::new("s3express", 3);
    world.home.open_lane(LANE, 0).unwrap();
    let (_, first) = world.begin(LANE, 0);
    let (_, second) = world.begin(LANE, 1);
    assert!(matches!(
        second.try_recv(),
        Ok(Err(HomeError::Misuse { .. }))
    ));
    while world.home.step() {}
    first.try_recv().unwrap().unwrap();
}

#[test]
fn a_dead_lane_is_dead_alone() {
    let world = World::new("s3express", 1);
    let other = LaneId(1);
    world.home.open_lane(LANE, 0).unwrap();
    world.home.open_lane(other, 0).unwrap();
    world.home.kill_lane(other);
    let (_, never) = world.begin(other, 1);
    for number in 0..20 {
        world.append(LANE, number).1.unwrap();
    }
    assert!(never.try_recv().is_err());
    assert_eq!(world.home.next_event(), None);
}

#[test]
fn crashes_at_every_request_keep_what_was_told() {
    let (mut whole, mut torn, mut nothing) = (0, 0, 0);
    for name in ["s3express", "gp3"] {
        for seed in 0..60 {
            let world = World::new(name, seed);
            world.home.open_lane(LANE, 0).unwrap();
            world.home.crash_at(world.home.requests() + seed % 6);
            let mut told = Vec::new();
            let mut lost = None;
            for number in 0..10 {
                let (at, answer) = world.begin(LANE, number);
                while world.home.step() {}
                match answer.try_recv() {
                    Ok(result) => {
                        result.unwrap();
                        told.push((at, number));
                    }
                    Err(_) => {
                        lost = Some((at, number));
                        break;
                    }
                }
            }
            assert_eq!(told.len() as u64, seed % 6);
            assert!(world.home.is_down());
            assert!(
                world.home.list_lanes().is_err(),
                "a stopped machine does nothing"
            );
            assert!(matches!(
                world.home.ensure_room(LANE, 1, &mut RoomRequest::default()),
                Err(NoRoom::Failed(_))
            ));
            world.home.reboot();
            for &(at, number) in &told {
                assert!(world.stored(at, number), "{name}, seed {seed}: {at}");
            }
            let (at, number) = lost.expect("the crash met an append");
            let (block, len) = world.block(number);
            let mut into = Buffer::zeroed(len);
            let count = world.home.read(LANE, at, &mut into).unwrap();
            let zeros = into.as_slice()[..count].iter().all(|byte| *byte == 0);
            if into.as_slice() == block.as_slice() {
                whole += 1;
            } else if zeros {
                nothing += 1;
            } else {
                assert_eq!(name, "gp3", "objects do not tear");
                torn += 1;
            }
        }
    }
    assert!(
        whole > 10 && torn > 10 && nothing > 10,
        "{whole} {torn} {nothing}"
    );
}

/// T3: a request of the life before arrives when the next one has begun.
#[test]
fn a_request_outlives_the_machine_that_sent_it() {
    let world = World::new("s3express", 1);
    world.home.open_lane(LANE, 0).unwrap();
    world.home.fail_at(world.home.requests(), Fault::Delay);
    let (at, answer) = world.begin(LANE, 1);
    world.home.crash();
    world.home.reboot();
    assert!(!world.stored(at, 1));
    assert!(world.home.step());
    assert!(world.stored(at, 1), "it arrives late");
    assert!(answer.try_recv().is_err(), "and nobody hears of it");
    // Unless the place was closed to it.
    let world = World::new("s3express", 1);
    world.home.open_lane(LANE, 0).unwrap();
    world.home.fail_at(world.home.requests(), Fault::Delay);
    let (at, _) = world.begin(LANE, 1);
    world.home.crash();
    world.home.reboot();
    world.home.seal(LANE, at).unwrap();
    while world.home.step() {}
    assert!(!world.stored(at, 1));
}

#[test]
fn named_things_change_at_once_or_not_at_all() {
    let (mut old, mut new) = (0, 0);
    for seed in 0..40 {
        let world = World::new("s3express", seed);
        let tag = world.home.put_if_absent("thing", b"old").unwrap();
        world.home.crash_at(world.home.requests());
        assert!(world.home.compare_and_swap("thing", tag, b"new").is_err());
        world.home.reboot();
        match world.home.get("thing").unwrap().unwrap().0.as_slice() {
            b"old" => old += 1,
            b"new" => new += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(old > 5 && new > 5, "{old} {new}");
}

#[test]
fn a_side_segment_has_its_name_only_when_it_is_complete() {
    let world = World::new("s3express", 1);
    let mut side = world.home.begin_side_segment(LANE, 7);
    // The second piece arrives late, later than the end of the segment would.
    world.home.fail_at(world.home.requests() + 1, Fault::Stall);
    side.append(vec![1; 1_000_000]);
    side.append(vec![2; 1_000_000]);
    assert_eq!(side.backlog_bytes(), 2_000_000);
    assert!(world.home.step());
    assert_eq!(side.backlog_bytes(), 1_000_000);
    let (tell, told) = mpsc::channel();
    side.finish(Box::new(move |result| tell.send(result).unwrap()));
    world.home.step();
    assert!(told.try_recv().is_err());
    world.home.step();
    told.try_recv().unwrap().unwrap();
    assert_eq!(world.home.list_side_segments(LANE).unwrap(), [7]);
    let mut unheard = world.home.begin_side_segment(LANE, 8);
    unheard.append(vec![1; 100]);
    world.home.crash();
    world.home.reboot();
    unheard.append(vec![1; 100]);
    unheard.finish(Box::new(|_| panic!("told after a crash")));
    while world.home.step() {}
    assert_eq!(world.home.list_side_segments(LANE).unwrap(), [7]);
}

#[test]
fn a_directory_outlives_the_process() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = SimulatedOptions::new(model("s3express"), 1);
    options.keep = ByteStorage::Directory(dir.path().join("data"));
    options.scale = 0.001;
    let env = Env::real();
    let home = SimulatedHome::in_real_time(&options, &env).unwrap();
    assert!(matches!(
        SimulatedHome::in_real_time(&options, &env),
        Err(HomeError::InUse(_))
    ));
    let home = LogHome::from(home);
    conformance::check(&home);
    let mut side = home.sides.begin_side_segment(LaneId(3), 0x1_0000_0002);
    side.append(b"records".to_vec());
    let (tell, told) = mpsc::channel();
    side.finish(Box::new(move |result| tell.send(result).unwrap()));
    told.recv().unwrap().unwrap();
    let state = |home: &LogHome| {
        let lanes = home.segments.list_lanes().unwrap();
        let segments: Vec<_> = lanes
            .iter()
            .map(|&lane| home.segments.list_segments(lane).unwrap())
            .collect();
        let mut bytes = Buffer::zeroed(4096);
        let last = segments[0].last().unwrap().segment;
        let count = home
            .segments
            .read(lanes[0], Position::start_of(last), &mut bytes)
            .unwrap();
        let thing = home.names.get("thing").unwrap().unwrap().0;
        let mut side = [0; 7];
        home.sides
            .get_side_segment(LaneId(3), 0x1_0000_0002, 0, &mut side)
            .unwrap();
        (
            lanes,
            segments,
            bytes.as_slice()[..count].to_vec(),
            thing,
            side,
        )
    };
    let before = state(&home);
    drop(home);
    let home = SimulatedHome::in_real_time(&options, &env).unwrap();
    assert_eq!(state(&LogHome::from(home.clone())), before);
    assert_eq!(before.4, *b"records");
}

#[test]
fn bytes_may_be_counted_and_dropped() {
    let mut options = SimulatedOptions::new(model("s3express"), 1);
    options.keep = ByteStorage::Nothing;
    options.faults = transient_faults(0.05);
    let world = world(&options);
    world.home.open_lane(LANE, 0).unwrap();
    let mut len = 0;
    for number in 0..50 {
        world.append(LANE, number).1.unwrap();
        len += world.block(number).1 as u64;
    }
    assert_eq!(world.len(), len);
    assert!(world.home.usage().append_bytes >= len);
    assert!(world.home.dollars() > 0.0);
    let report = world.home.report();
    let appends = world.home.usage().appends.to_string();
    assert!(
        report.contains(&("appends".to_owned(), appends)),
        "{report:?}"
    );
}

#[test]
fn a_reader_beside_sees_what_is_under_way_and_no_crash_stops_it() {
    let asked = Arc::new(AtomicU64::new(0));
    for name in ["s3express", "gp3"] {
        let mut early = 0;
        for seed in 0..20 {
            let world = World::new(name, seed);
            world.home.open_lane(LANE, 0).unwrap();
            let (block, len) = world.block(1);
            let counted = Arc::clone(&asked);
            let count = move || {
                counted.fetch_add(1, Ordering::Relaxed);
            };
            let reader_beside = world.home.reader_beside(Some(seed), true, count);
            assert!(reader_beside.capabilities().leased && !world.home.capabilities().leased);
            let sees = |reader_beside: &SimulatedReader, at: Position| {
                let mut into = Buffer::zeroed(len);
                let count = reader_beside.read(LANE, at, &mut into).unwrap();
                count == len && into.as_slice() == block.as_slice()
            };
            let (at, told) = world.begin(LANE, 1);
            early += u64::from((0..4).any(|_| sees(&reader_beside, at)));
            assert!(told.try_recv().is_err(), "nobody has been told");
            while world.home.step() {}
            told.try_recv().expect("told once").unwrap();
            assert!(sees(&reader_beside, at) && told.try_recv().is_err());
            // Its requests are not the machine's, and another machine's end is not its own.
            let requests = world.home.requests();
            world.home.crash();
            assert!(
                sees(&reader_beside, at) && reader_beside.list_segments(LANE).unwrap().len() == 1
            );
            assert_eq!(world.home.requests(), requests);
            assert!(reader_beside.trim(LANE, 0).is_err(), "it only reads");
        }
        assert!((1..20).contains(&early), "{name}: {early}");
    }
    assert!(asked.load(Ordering::Relaxed) > 0);
}
