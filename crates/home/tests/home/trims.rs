//! The log is truncated while a server runs, over several lives: on every home that can be opened again.

use logstead_env::{Access, Buffer, CrashLoss, Env, Files, OpenMode, SimClock};
use logstead_home::bucket::memory::{MemoryBucket, MemoryOptions};
use logstead_home::conformance::{AppendedBlock, check_trimmed_life};
use logstead_home::simulated::{MODELS, Model, ServiceKind, SimulatedOptions};
use logstead_home::{
    HomeBackend, HomeStatus, IoMethod, LaneAppends, LaneSegments, LocalHome, LocalOptions, LogHome,
    MemoryHome, ObjectHome, ObjectOptions, Position, ReplicatedHome, ReplicatedOptions,
    RoomRequest, SimulatedHome, Source, WriteConcern,
};
use logstead_types::LaneId;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

const LIVES: u8 = 4;

fn no_step() -> bool {
    false
}

/// So many lives of a home that `open` opens again.
fn lives<H: HomeBackend>(open: impl Fn(u8) -> H) {
    let mut kept: Vec<AppendedBlock> = Vec::new();
    for life in 0..LIVES {
        let home = open(life);
        kept = check_trimmed_life(&LogHome::from(home), &no_step, life, &kept);
    }
}

#[test]
fn memory() {
    let home = MemoryHome::new(64 << 10);
    lives(|_| {
        home.crash();
        home.clone()
    });
}

#[test]
fn directories_and_devices() {
    for place in ["/data", "/device"] {
        for threads in [false, true] {
            let (env, files) = Env::simulated(1);
            files.set_loss(CrashLoss::All);
            let device = Path::new("/device");
            let file = files.open(device, OpenMode::buffered(Access::CreateNew));
            let file = file.unwrap();
            file.fill_with_zeros(0, 8 << 20, 1 << 20, &mut || {})
                .unwrap();
            file.sync().unwrap();
            files.sync_dir(Path::new("/")).unwrap();
            let options = LocalOptions {
                segment_size_bytes: 64 << 10,
                first_segment_size_bytes: 32 << 10,
                segment_size_bytes_min: 32 << 10,
                threads,
                way: IoMethod::Auto,
                ..LocalOptions::default()
            };
            lives(|_| {
                files.reboot();
                LocalHome::open(place, &env, options.clone()).unwrap()
            });
        }
    }
}

#[test]
fn a_real_disk_in_every_way() {
    for way in IoMethod::ALL {
        let dir = tempfile::tempdir().unwrap();
        let options = LocalOptions {
            segment_size_bytes: 64 << 10,
            first_segment_size_bytes: 32 << 10,
            segment_size_bytes_min: 32 << 10,
            threads: true,
            way,
            ..LocalOptions::default()
        };
        if way == IoMethod::Uring && logstead_env::Ring::<()>::new(1, None).is_err() {
            eprintln!("skipped: no io_uring here");
            continue;
        }
        lives(|_| LocalHome::open(dir.path(), &Env::real(), options.clone()).unwrap());
    }
}

/// With segments that fill up soon.
fn small(mut model: Model) -> Model {
    model.appends_per_segment = model.appends_per_segment.min(10);
    model.segment_size_bytes = model.segment_size_bytes.min(64 << 10);
    model
}

#[test]
fn every_simulated_service() {
    for model in MODELS {
        for seed in 0..5 {
            let options = SimulatedOptions::new(small(model.clone()), seed);
            let (env, _) = Env::simulated(seed);
            let clock = Arc::new(SimClock::new());
            let home = SimulatedHome::in_virtual_time(&options, &env, clock).unwrap();
            let mut kept = Vec::new();
            for life in 0..LIVES {
                kept =
                    check_trimmed_life(&LogHome::from(home.clone()), &|| home.step(), life, &kept);
                home.crash();
                home.reboot();
            }
        }
    }
}

fn in_bucket(bucket: &MemoryBucket) -> ObjectHome {
    let options = ObjectOptions {
        appends_per_segment_max: 8,
        pause_min: Duration::ZERO,
        pause_max: Duration::ZERO,
        ..ObjectOptions::default()
    };
    ObjectHome::open(Arc::new(bucket.clone()), &Env::real(), options).unwrap()
}

#[test]
fn buckets() {
    let two_steps = MemoryOptions {
        creates_in_two_steps: true,
        ..MemoryOptions::appendable(10)
    };
    for options in [
        MemoryOptions::appendable(10),
        two_steps,
        MemoryOptions::plain(),
    ] {
        let bucket = MemoryBucket::new(options);
        lives(|life| in_bucket(&bucket.handle(u32::from(life))));
        // What is left is the last life's present segment, and what keeps dead servers out.
        let left = bucket.objects();
        let blocks = left.iter().filter(|(_, len)| *len > 64).count();
        assert!(blocks <= 8, "{left:?}");
    }
}

fn memories() -> Vec<MemoryHome> {
    (0..3).map(|_| MemoryHome::new(64 << 10)).collect()
}

fn replicated(children: &[MemoryHome], ack: WriteConcern, threads: bool) -> ReplicatedHome {
    let sources = children
        .iter()
        .map(|home| Source::of(LogHome::from(home.clone())));
    let options = ReplicatedOptions {
        ack,
        threads,
        ..ReplicatedOptions::default()
    };
    ReplicatedHome::open(sources.collect(), &Env::real(), options).unwrap()
}

#[test]
fn homes_of_several_homes() {
    for ack in [WriteConcern::All, WriteConcern::Majority] {
        for threads in [false, true] {
            let children = memories();
            lives(|_| {
                children.iter().for_each(MemoryHome::crash);
                replicated(&children, ack, threads)
            });
        }
    }
}

#[test]
fn different_services_as_one_home() {
    for seed in 0..5 {
        let clock = Arc::new(SimClock::new());
        let (env, _) = Env::simulated(seed);
        let simulated = |name: &str| {
            let options = SimulatedOptions::new(small(Model::named(name).unwrap()), seed);
            SimulatedHome::in_virtual_time(&options, &env, Arc::clone(&clock)).unwrap()
        };
        let children = ["s3express", "gp3", "s3express"].map(simulated);
        let mut kept = Vec::new();
        for life in 0..LIVES {
            let sources = children
                .iter()
                .map(|home| Source::of(LogHome::from(home.clone())));
            let options = ReplicatedOptions {
                ack: WriteConcern::Majority,
                threads: false,
                ..ReplicatedOptions::default()
            };
            let home = ReplicatedHome::open(sources.collect(), &env, options).unwrap();
            let step = || {
                let due = |home: &&SimulatedHome| home.next_event();
                let next = children.iter().filter(|home| due(home).is_some());
                next.min_by_key(due).is_some_and(SimulatedHome::step)
            };
            kept = check_trimmed_life(&LogHome::from(home), &step, life, &kept);
            for child in &children {
                child.crash();
                child.reboot();
            }
        }
        assert!(
            children
                .iter()
                .any(|home| home.model().kind == ServiceKind::Blocks)
        );
    }
}

/// The majority is through with a segment, and one child has not begun: it keeps its segment until it has.
#[test]
fn a_slow_copy_keeps_a_segment_until_its_last_append_is_done() {
    const LANE: LaneId = LaneId(0);
    for threads in [false, true] {
        let children = memories();
        let home = replicated(&children, WriteConcern::Majority, threads);
        home.open_lane(LANE, 0).unwrap();
        children[2].set_paused(true);
        let mut places = Vec::new();
        // One segment has sixteen of them.
        for fill in 1..=40u8 {
            home.ensure_room(LANE, 4096, &mut RoomRequest::default())
                .unwrap();
            let at = home.place(LANE, 4096).unwrap();
            let mut block = Buffer::zeroed(4096);
            block.as_mut_slice().fill(fill);
            let (tell, told) = mpsc::channel();
            let done = move |_, result| tell.send(result).unwrap();
            home.append(LANE, at, block, 4096, Box::new(done));
            told.recv().unwrap().expect("two of three have it");
            places.push((at, fill));
        }
        let present = places[39].0.segment;
        assert_eq!(present, 2);
        home.trim(LANE, 0).unwrap();
        home.trim(LANE, 1).unwrap();
        let of = |child: &MemoryHome| {
            let infos = child.list_segments(LANE).unwrap();
            infos.iter().map(|info| info.segment).collect::<Vec<_>>()
        };
        assert_eq!(of(&children[0]), [2]);
        assert_eq!(of(&children[1]), [2]);
        assert!(of(&children[2]).contains(&0), "its appends are under way");
        let mut completed = 0;
        while children[2].complete() {
            completed += 1;
            assert!(of(&children[2]).contains(&0) || completed >= 16);
            assert!(of(&children[2]).contains(&1) || !(16..32).contains(&completed));
        }
        assert_eq!(completed, 40);
        // Removed by a thread of its own.
        while of(&children[2]) != [2] {
            assert!(threads);
            std::thread::yield_now();
        }
        let report = home.report();
        let out = report.iter().find(|(_, value)| value.contains("left out"));
        assert_eq!(out, None);
        for (at, fill) in places.into_iter().skip(32) {
            let mut into = Buffer::zeroed(4096);
            assert_eq!(children[2].read(LANE, at, &mut into).unwrap(), 4096);
            assert_eq!(into.as_slice()[0], fill);
        }
        let gone = Position::start_of(0);
        assert_eq!(home.read(LANE, gone, &mut Buffer::zeroed(4096)).unwrap(), 0);
    }
}
