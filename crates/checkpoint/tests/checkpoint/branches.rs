//! Branches and restores, with crashes at every single request of either home, while the parent goes on and removes
//! what no record names any more.

use crate::rig;

use logstead_checkpoint::{
    BranchError, CheckpointHead, CheckpointRecord, ChunkWriter, Directory, NewCheckpoint,
    ObjectIdAllocator, ObjectWriter, Pin, Pins, Publisher, RecoveryTarget, RetainedRecord,
    TableInfo, create_branch, drop_branch, fsck, restore_point, served,
};
use logstead_env::{Env, SimClock};
use logstead_home::simulated::MODELS;
use logstead_home::{
    HomeError, LogHome, ObjectId, ObjectReader, SimulatedHome, SimulatedOptions, branch_home,
};
use logstead_types::{Csn, DatabaseId, Epoch, TableId};
use logstead_wal::inspect::manifest_of;
use logstead_wal::manifest::{CheckpointRef, Manifest};
use rig::{Rows, key, read_all, write_whole};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const MANIFEST: &str = "manifest";
const DATABASE: DatabaseId = DatabaseId(0xbead);
const CHUNKS: u64 = 5;

fn simulated(seed: u64) -> (SimulatedHome, LogHome) {
    let clock = Arc::new(SimClock::new());
    let (mut env, _) = Env::simulated(seed);
    env.clock = Arc::clone(&clock) as _;
    let model = MODELS.iter().find(|model| model.name == "s3express");
    let options = SimulatedOptions::new(model.unwrap().clone(), seed);
    let sim = SimulatedHome::in_virtual_time(&options, &env, clock).unwrap();
    (sim.clone(), LogHome::from(sim))
}

/// The manifest of a home, changed by compare and swap.
struct InManifest(LogHome);

impl InManifest {
    fn change(&self, change: impl Fn(&mut Manifest)) -> Result<(), HomeError> {
        let (bytes, tag) = self.0.names.get(MANIFEST)?.unwrap();
        let mut manifest = Manifest::decode(&bytes).unwrap();
        change(&mut manifest);
        let changed = self
            .0
            .names
            .compare_and_swap(MANIFEST, tag, &manifest.encode());
        changed.map(drop)
    }
}

impl CheckpointHead for InManifest {
    fn name(&self, checkpoint: CheckpointRef) -> Result<(), HomeError> {
        self.change(|manifest| manifest.checkpoint = Some(checkpoint.clone()))
    }
}

/// A server of a home, with as much of it as checkpoints need.
struct Server {
    home: LogHome,
    publisher: Publisher<InManifest>,
    directory: Directory,
    rows: Rows,
    csn: Csn,
}

impl Server {
    /// The next life. What it finds is the newest checkpoint.
    fn open(home: &LogHome) -> Server {
        let head = InManifest(home.clone());
        head.change(|manifest| manifest.epoch = Epoch(manifest.epoch.get() + 1))
            .unwrap();
        let manifest = manifest_of(home).unwrap();
        let newest = manifest.checkpoint.as_ref();
        let object_ids = Arc::new(ObjectIdAllocator::new(manifest.epoch));
        let publisher =
            Publisher::open(home.clone(), head, manifest.database, object_ids, newest).unwrap();
        let root = publisher.newest().and_then(|newest| newest.record.root);
        let directory = Directory::open(home.objects.clone(), root);
        Server {
            rows: read_all(home, &directory).unwrap(),
            csn: newest.map_or(Csn(1), |newest| newest.csn),
            home: home.clone(),
            publisher,
            directory,
        }
    }

    /// Gives some rows new bytes, publishes that, and removes what is not needed any more.
    fn checkpoint(&mut self, byte: u8) {
        let object_ids = Arc::clone(self.publisher.object_ids());
        let writer = ObjectWriter::new(self.home.objects.clone(), object_ids, None);
        let mut writer = writer.with_object_bytes(300);
        let mut chunks = ChunkWriter::new().with_page_bytes(200);
        let csn = Csn(self.csn.0 + 2);
        let changed: BTreeSet<u64> = match self.rows.is_empty() {
            true => (0..CHUNKS).collect(),
            false => BTreeSet::from([csn.0 % CHUNKS, csn.0 * 7 % CHUNKS]),
        };
        let mut changes = Vec::new();
        for chunk in changed {
            for slot in 0..4 {
                self.rows
                    .insert((1, chunk, slot), (self.csn, vec![byte; 40]));
            }
            let chain = write_whole(&self.rows, (1, chunk), csn, &mut chunks, &mut writer);
            changes.push((key(1, chunk), chain.unwrap()));
        }
        let applied = self
            .directory
            .apply(&changes, &BTreeSet::new(), csn, &mut writer)
            .unwrap();
        let new = NewCheckpoint {
            divided: Vec::new(),
            csn,
            taken_at_micros: csn.0 as i64 * 1_000,
            tables: vec![TableInfo {
                table: TableId(1),
                rid_end: CHUNKS * 64,
            }],
            indexes: Vec::new(),
            starts: Vec::new(),
        };
        let stored = writer.finish().unwrap();
        let keep = |_: &RetainedRecord| false;
        self.publisher
            .publish(new, &applied, &[], stored, keep)
            .unwrap();
        self.directory = applied.directory;
        self.csn = csn;
        self.publisher.collect().unwrap();
    }

    fn named(&self) -> BTreeSet<ObjectId> {
        let newest = self.publisher.newest().unwrap();
        let objects = newest.record.objects.iter().map(|used| used.object);
        objects.chain([newest.object]).collect()
    }
}

fn listed(home: &LogHome) -> BTreeSet<ObjectId> {
    let objects = home.objects.list_objects().unwrap();
    objects.into_iter().map(|info| info.id).collect()
}

/// A branch's own home.
type Own = (SimulatedHome, LogHome);

/// A parent with some history, and the homes of its branches by their numbers.
struct World {
    sim: SimulatedHome,
    parent: LogHome,
    branches: RefCell<BTreeMap<String, Own>>,
    env: Env,
    /// By CSN: what the parent has published.
    history: RefCell<BTreeMap<Csn, Rows>>,
}

impl World {
    fn new(seed: u64) -> World {
        let (sim, parent) = simulated(seed);
        let manifest = Manifest::first(DATABASE);
        parent
            .names
            .put_if_absent(MANIFEST, &manifest.encode())
            .unwrap();
        let (env, _) = Env::simulated(seed);
        let world = World {
            sim,
            parent,
            branches: RefCell::default(),
            env,
            history: RefCell::default(),
        };
        let mut server = Server::open(&world.parent);
        (0..4).for_each(|_| world.go_on(&mut server));
        world
    }

    fn go_on(&self, server: &mut Server) {
        server.checkpoint(server.csn.0 as u8);
        self.history
            .borrow_mut()
            .insert(server.csn, server.rows.clone());
    }

    /// The home of a branch, as it is made or found.
    fn own(&self, pin: &Pin) -> Own {
        let place = logstead_checkpoint::directory_of(pin).unwrap();
        let mut branches = self.branches.borrow_mut();
        branches
            .entry(place)
            .or_insert_with(|| simulated(9))
            .clone()
    }

    /// The home that a server of the branch works on.
    fn branch(&self, name: &str) -> LogHome {
        let (pins, _) = Pins::read(self.parent.names.as_ref()).unwrap();
        let (pin, last) = served(&pins, name).unwrap();
        let parent: Arc<dyn ObjectReader> = self.parent.objects.clone();
        branch_home(self.own(&pin).1, parent, last)
    }

    /// The branch begins with what the parent had, and is whole.
    fn assert_begins(&self, name: &str) {
        let home = self.branch(name);
        let manifest = manifest_of(&home).unwrap();
        assert_ne!(manifest.database, DATABASE);
        let newest = manifest.checkpoint.clone().unwrap();
        let record = CheckpointRecord::read(
            home.objects.as_ref(),
            manifest.database,
            newest.object,
            newest.crc,
        )
        .unwrap();
        let directory = Directory::open(home.objects.clone(), record.root);
        let rows = read_all(&home, &directory).unwrap();
        assert!(rows == self.history.borrow()[&newest.csn]);
        let report = fsck(&home, manifest.database, Some(&newest)).unwrap();
        assert!(report.is_clean(), "{:?}", report.damage);
    }

    /// Nothing that only a branch needed is left.
    fn assert_nothing_leaks(&self) {
        let mut server = Server::open(&self.parent);
        self.go_on(&mut server);
        assert_eq!(listed(&self.parent), server.named());
        for (sim, home) in self.branches.borrow().values() {
            assert!(!sim.is_down());
            assert!(listed(home).is_empty());
        }
    }
}

/// Which home stops, when.
fn crashes(mut run: impl FnMut(bool, u64) -> bool) {
    for of_parent in [true, false] {
        let mut stopped = 0;
        for at in 0.. {
            let down =
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(of_parent, at)));
            match down {
                Ok(true) => stopped += 1,
                Ok(false) => break,
                Err(panic) => {
                    eprintln!("the parent's home: {of_parent}, stopped at request {at}");
                    std::panic::resume_unwind(panic);
                }
            }
        }
        assert!(stopped > 1, "{stopped}");
    }
}

#[test]
fn t8_a_branch_that_is_cut_short_anywhere_is_made_again_and_whole() {
    crashes(|of_parent, at| {
        let world = World::new(at);
        if of_parent {
            world.sim.crash_at(world.sim.requests() + at);
        }
        let open = |pin: &Pin| {
            let (sim, home) = world.own(pin);
            if !of_parent {
                sim.crash_at(sim.requests() + at);
            }
            Ok(home)
        };
        let made = create_branch(
            &world.parent,
            "b",
            &RecoveryTarget::Newest,
            &world.env,
            open,
        );
        let stopped = made.is_err();
        if stopped {
            assert!(world.sim.is_down() == of_parent);
            if of_parent {
                world.sim.reboot();
            }
        } else {
            world.sim.crash_at(u64::MAX);
        }
        for (sim, _) in world.branches.borrow().values() {
            sim.crash_at(u64::MAX);
            if sim.is_down() {
                sim.reboot();
            }
        }
        // The parent's next life goes on, and removes what is not needed any more.
        let mut server = Server::open(&world.parent);
        (0..3).for_each(|_| world.go_on(&mut server));
        let open = |pin: &Pin| Ok(world.own(pin).1);
        match create_branch(
            &world.parent,
            "b",
            &RecoveryTarget::Newest,
            &world.env,
            open,
        ) {
            Ok(_) => {}
            Err(BranchError::Exists(_)) => {}
            Err(error) => panic!("{error}"),
        }
        (0..6).for_each(|_| world.go_on(&mut server));
        world.assert_begins("b");
        let report = fsck(
            &world.parent,
            DATABASE,
            manifest_of(&world.parent).unwrap().checkpoint.as_ref(),
        )
        .unwrap();
        assert!(report.is_clean(), "{:?}", report.damage);
        drop(server);
        drop_branch(&world.parent, "b", &world.env, open).unwrap();
        world.assert_nothing_leaks();
        stopped
    });
}

#[test]
fn t8_a_drop_that_is_cut_short_anywhere_is_done_again_and_leaves_nothing() {
    crashes(|of_parent, at| {
        let world = World::new(at);
        let open = |pin: &Pin| Ok(world.own(pin).1);
        let create = || {
            create_branch(
                &world.parent,
                "b",
                &RecoveryTarget::Newest,
                &world.env,
                open,
            )
        };
        let pin = create().unwrap();
        // Both go their ways.
        let mut server = Server::open(&world.parent);
        (0..3).for_each(|_| world.go_on(&mut server));
        let own = world.branch("b");
        let mut of_branch = Server::open(&own);
        (0..3).for_each(|_| of_branch.checkpoint(0xbb));
        assert!(of_branch.rows != server.rows);
        drop(of_branch);
        let (sim, _) = world.own(&pin);
        let stops = if of_parent { &world.sim } else { &sim };
        stops.crash_at(stops.requests() + at);
        let dropped = drop_branch(&world.parent, "b", &world.env, open);
        let stopped = dropped.is_err();
        stops.crash_at(u64::MAX);
        if stopped {
            stops.reboot();
            (0..2).for_each(|_| world.go_on(&mut Server::open(&world.parent)));
            match drop_branch(&world.parent, "b", &world.env, open) {
                // The pin was the last to go.
                Ok(()) | Err(BranchError::Missing(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
        world.assert_nothing_leaks();
        let (pins, _) = Pins::read(world.parent.names.as_ref()).unwrap();
        assert!(matches!(served(&pins, "b"), Err(BranchError::Missing(_))));
        // The name is free, and nothing of the old branch is found under it.
        create().unwrap();
        world.assert_begins("b");
        stopped
    });
}

#[test]
fn a_restore_that_is_cut_short_anywhere_goes_on() {
    let mut stopped = 0;
    for at in 0.. {
        let world = World::new(3);
        let (sim, to) = simulated(at);
        sim.crash_at(sim.requests() + at);
        let restore = || {
            restore_point(
                &world.parent,
                &RecoveryTarget::At(i64::MAX),
                &to,
                &world.env,
            )
        };
        let first = restore();
        sim.crash_at(u64::MAX);
        let is_stopped = first.is_err();
        if is_stopped {
            sim.reboot();
            stopped += 1;
        }
        let restored = restore().unwrap();
        let manifest = manifest_of(&to).unwrap();
        assert_eq!(manifest.database, restored.database);
        assert_ne!(manifest.database, DATABASE);
        let report = fsck(&to, manifest.database, manifest.checkpoint.as_ref()).unwrap();
        assert!(report.is_clean(), "{:?}", report.damage);
        assert_eq!(report.unneeded_objects, 0);
        let server = Server::open(&to);
        let csn = manifest.checkpoint.unwrap().csn;
        assert!(server.rows == world.history.borrow()[&csn]);
        // Once somebody has served it, it is not overwritten.
        assert!(matches!(restore(), Err(BranchError::Occupied(_))));
        if !is_stopped {
            break;
        }
    }
    assert!(stopped > 4, "{stopped}");
}

#[test]
fn a_branch_goes_its_own_way_and_has_branches_of_its_own() {
    let world = World::new(1);
    let open = |pin: &Pin| Ok(world.own(pin).1);
    let of = |parent: &LogHome, name: &str| {
        create_branch(parent, name, &RecoveryTarget::Newest, &world.env, open)
    };
    of(&world.parent, "a").unwrap();
    assert!(matches!(
        of(&world.parent, "a"),
        Err(BranchError::Exists(_))
    ));
    let a = world.branch("a");
    let mut in_a = Server::open(&a);
    in_a.checkpoint(0xaa);
    // Ids of the branch's own objects and of those that the parent makes meanwhile are the same, and mean different
    // things.
    let mut server = Server::open(&world.parent);
    let pin = of(&a, "b").unwrap();
    let of_parent: Arc<dyn ObjectReader> = a.objects.clone();
    let last = pin.record.object.epoch();
    let b: LogHome = branch_home(world.own(&pin).1, of_parent, last);
    let mut in_b = Server::open(&b);
    assert!(in_b.rows == in_a.rows);
    for _ in 0..6 {
        world.go_on(&mut server);
        in_a.checkpoint(0xa1);
        in_b.checkpoint(0xb1);
    }
    for (home, server) in [(&world.parent, &server), (&a, &in_a), (&b, &in_b)] {
        let rows = read_all(
            home,
            &Directory::open(home.objects.clone(), server.directory.root()),
        );
        assert!(rows.unwrap() == server.rows);
        let manifest = manifest_of(home).unwrap();
        let report = fsck(home, manifest.database, manifest.checkpoint.as_ref()).unwrap();
        assert!(report.is_clean(), "{:?}", report.damage);
    }
    drop((in_a, in_b, server));
    match drop_branch(&world.parent, "a", &world.env, open) {
        Err(BranchError::HasBranches(name)) => assert_eq!(name, "a"),
        other => panic!("{other:?}"),
    }
    drop_branch(&a, "b", &world.env, open).unwrap();
    drop_branch(&world.parent, "a", &world.env, open).unwrap();
    world.assert_nothing_leaks();
}

#[test]
fn what_is_not_there_is_said_with_what_is() {
    let world = World::new(1);
    let open = |pin: &Pin| Ok(world.own(pin).1);
    let create = |name: &str, which| create_branch(&world.parent, name, &which, &world.env, open);
    let error = create("b", RecoveryTarget::At(0)).unwrap_err().to_string();
    assert!(
        error.contains("at or before 2000-01-01 00:00:00.000000 UTC: the oldest was taken at 2000-01-01 00:00:00.0"),
        "{error}"
    );
    let error = create("b", RecoveryTarget::Named("x".into())).unwrap_err();
    assert!(error.to_string().contains("no restore point \"x\""));
    assert!(matches!(
        create("No good", RecoveryTarget::Newest),
        Err(BranchError::Name(_))
    ));
    assert!(matches!(
        drop_branch(&world.parent, "b", &world.env, open),
        Err(BranchError::Missing(_))
    ));
    let (pins, _) = Pins::read(world.parent.names.as_ref()).unwrap();
    assert_eq!(pins.iter().count(), 0);
}
