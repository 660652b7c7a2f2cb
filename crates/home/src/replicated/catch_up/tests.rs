mod orders;

use super::super::{OpenPurpose, Opener, ReplicatedHome, ReplicatedOptions, Source, WriteConcern};
use crate::bucket::memory::{MemoryBucket, MemoryOptions};
use crate::{
    Availability, Buffer, Copies, HomeError, HomeStatus, ImmutableObjects, LaneAppends,
    LaneSegments, LogHome, MemoryHome, NamedValues, ObjectHome, ObjectId, ObjectOptions,
    ObjectReader, ObjectRepair, PeerCopies, Position, RoomRequest, SideSegments, SideWriter,
    conformance,
};
use logstead_env::Env;
use logstead_types::{Epoch, LaneId};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

pub(in crate::replicated) const LANES: [LaneId; 2] = [LaneId(0), LaneId(1)];
pub(in crate::replicated) const LANE: LaneId = LANES[0];
const BLOCK: usize = 4096;
const LONG: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::replicated) enum Kind {
    Memory,
    Appendable,
    Plain,
}

pub(in crate::replicated) const KINDS: [Kind; 3] = [Kind::Memory, Kind::Appendable, Kind::Plain];

#[derive(Clone)]
pub(in crate::replicated) struct Place {
    pub(in crate::replicated) memory: MemoryHome,
    bucket: Option<MemoryBucket>,
    /// Another disk, that is there instead.
    pub(in crate::replicated) instead: Arc<Mutex<Option<MemoryHome>>>,
    away: Arc<AtomicBool>,
    /// It replaces objects in one step, and its disk can be told from what is in memory.
    pub(in crate::replicated) disk: Option<Arc<dyn ObjectRepair>>,
    /// It fetches what it lacks from its peers.
    pub(in crate::replicated) peers: Option<Arc<dyn PeerCopies>>,
}

impl Place {
    fn open(&self) -> Result<LogHome, HomeError> {
        if self.away.load(Ordering::SeqCst) {
            let why = std::io::Error::other("asked to be away");
            return Err(HomeError::io("opening it", why));
        }
        let Some(bucket) = &self.bucket else {
            let instead = self.instead.lock().clone();
            let home = LogHome::from(instead.unwrap_or_else(|| self.memory.clone()));
            return Ok(LogHome {
                object_repair: self.disk.clone(),
                peer_copies: self.peers.clone(),
                ..home
            });
        };
        let options = ObjectOptions {
            appends_per_segment_max: 8,
            pause_min: Duration::ZERO,
            pause_max: Duration::from_millis(1),
            ..ObjectOptions::default()
        };
        Ok(ObjectHome::open(Arc::new(bucket.clone()), &Env::real(), options)?.into())
    }
}

pub(in crate::replicated) struct Rig {
    pub(in crate::replicated) places: Vec<Place>,
    /// It is opened by these of them, and by what the register says.
    pub(in crate::replicated) seeds: Option<Vec<usize>>,
    pub(in crate::replicated) options: ReplicatedOptions,
}

/// A home of three in one of its lives, and what it has acknowledged.
pub(in crate::replicated) struct Life {
    pub(in crate::replicated) home: Arc<ReplicatedHome>,
    pub(in crate::replicated) epoch: u64,
}

pub(in crate::replicated) type Told = mpsc::Receiver<Result<(), HomeError>>;

#[derive(Default)]
pub(in crate::replicated) struct Acknowledged(
    pub(in crate::replicated) BTreeMap<(LaneId, Position), u8>,
);

impl Rig {
    pub(in crate::replicated) fn new(kind: Kind, threads: bool) -> Rig {
        let place = |_| Place {
            memory: MemoryHome::new(64 << 10),
            bucket: match kind {
                Kind::Memory => None,
                Kind::Appendable => Some(MemoryBucket::new(MemoryOptions::appendable(10))),
                Kind::Plain => Some(MemoryBucket::new(MemoryOptions::plain())),
            },
            instead: Arc::default(),
            away: Arc::default(),
            disk: None,
            peers: None,
        };
        Rig {
            places: (0..3).map(place).collect(),
            seeds: None,
            options: ReplicatedOptions {
                ack: WriteConcern::Majority,
                purpose: OpenPurpose::Log,
                threads,
                return_pause_min: Duration::ZERO,
                patience: Duration::from_secs(5),
                ..ReplicatedOptions::default()
            },
        }
    }

    /// Homes in memory, more than the three that it begins with; the register says which of them are members.
    pub(in crate::replicated) fn with_more(places: usize) -> Rig {
        let mut rig = Rig::new(Kind::Memory, false);
        rig.seeds = Some(vec![0, 1, 2]);
        let more = Rig::new(Kind::Memory, false).places;
        rig.places.extend(more.into_iter().take(places - 3));
        rig
    }

    pub(in crate::replicated) fn open(&self) -> Arc<ReplicatedHome> {
        Arc::new(self.try_open().expect("opens"))
    }

    pub(in crate::replicated) fn try_open(&self) -> Result<ReplicatedHome, HomeError> {
        let (env, options) = (Env::real(), self.options.clone());
        let places = self.places.clone();
        let opener = move |number: usize| -> Opener {
            let place = places[number].clone();
            Arc::new(move || place.open())
        };
        let source = |number: usize| Source {
            url: format!("place {number}"),
            open: opener(number),
        };
        match &self.seeds {
            None => {
                let sources = (0..self.places.len()).map(source).collect();
                ReplicatedHome::open(sources, &env, options)
            }
            Some(seeds) => {
                let sources = seeds.iter().copied().map(source).collect();
                let by_url = move |url: &str| {
                    let number = url.trim_start_matches("place ").parse();
                    opener(number.expect("a number"))
                };
                ReplicatedHome::open_members(sources, Arc::new(by_url), &env, options)
            }
        }
    }

    /// Takes the lease, fences, and opens the lanes.
    pub(in crate::replicated) fn start(&self, epoch: u64) -> Life {
        let home = self.open();
        let bytes = epoch.to_le_bytes();
        match home.get("manifest").expect("reads") {
            Some((_, tag)) => home.compare_and_swap("manifest", tag, &bytes),
            None => home.put_if_absent("manifest", &bytes),
        }
        .expect("takes the lease");
        for lane in LANES {
            home.fence(lane, (epoch - 1) << 32, "the test")
                .expect("fences");
        }
        home.copies_completed(Epoch(epoch as u32 - 1))
            .expect("settles");
        for lane in LANES {
            home.open_lane(lane, epoch << 32).expect("opens");
        }
        Life { home, epoch }
    }

    pub(in crate::replicated) fn crash(&self, life: Life) {
        drop(life);
        for place in &self.places {
            place.memory.crash();
        }
    }

    pub(in crate::replicated) fn leave(&self, life: &Life, child: usize) {
        let place = &self.places[child];
        place.away.store(true, Ordering::SeqCst);
        match place.bucket {
            None => place.memory.set_presence(Availability::Refusing),
            Some(_) => {
                let attached = life.home.inner.children[child].home().expect("was opened");
                let why = "it is away".to_owned();
                life.home.inner.leave_out(child, attached.generation, why);
            }
        }
    }

    /// It is away before it is opened.
    pub(in crate::replicated) fn is_away(&self, child: usize) {
        self.places[child].away.store(true, Ordering::SeqCst);
        let memory = &self.places[child].memory;
        memory.set_presence(Availability::Refusing);
    }

    pub(in crate::replicated) fn is_there_again(&self, child: usize) {
        self.places[child].away.store(false, Ordering::SeqCst);
        self.places[child].memory.set_presence(Availability::Up);
    }

    /// Another server's view of one child.
    pub(in crate::replicated) fn look(&self, child: usize) -> LogHome {
        self.places[child].open().expect("opens")
    }
}

impl Life {
    pub(in crate::replicated) fn begin(&self, lane: LaneId, fill: u8) -> (Position, Told) {
        let room = self
            .home
            .ensure_room(lane, BLOCK as u64, &mut RoomRequest::default());
        room.expect("room");
        let at = self.home.place(lane, BLOCK as u64).expect("a place");
        let mut block = Buffer::zeroed(BLOCK);
        block.as_mut_slice().fill(fill);
        let (tell, told) = mpsc::channel();
        let done = Box::new(move |_, result| drop(tell.send(result)));
        self.home.append(lane, at, block, BLOCK, done);
        (at, told)
    }

    pub(in crate::replicated) fn append(&self, acknowledged: &mut Acknowledged, count: usize) {
        for number in 0..count {
            for lane in LANES {
                let fill = 1 + (number % 250) as u8;
                let (at, told) = self.begin(lane, fill);
                told.recv_timeout(LONG).expect("told").expect("durable");
                acknowledged.0.insert((lane, at), fill);
            }
        }
    }

    pub(in crate::replicated) fn side(&self, id: u64) -> Box<dyn SideWriter> {
        let mut side = self.home.begin_side_segment(LANE, self.epoch << 32 | id);
        side.append(vec![id as u8; 5000]);
        side
    }

    pub(in crate::replicated) fn put(&self, counter: u32) -> ObjectId {
        let id = ObjectId::new(Epoch(self.epoch as u32), counter);
        self.home
            .put_object(id, &[counter as u8; 3000])
            .expect("puts");
        id
    }

    pub(in crate::replicated) fn state(&self, child: usize) -> String {
        self.reported(child, "state")
    }

    /// Waits until a child has stored whatever it was given.
    pub(in crate::replicated) fn has_followed(&self, child: usize) {
        for _ in 0..2000 {
            if self.reported(child, "bytes behind") == "0" {
                return;
            }
            logstead_env::sleep(Duration::from_millis(5));
        }
        panic!("child {child} does not follow");
    }

    pub(in crate::replicated) fn reported(&self, child: usize, what: &str) -> String {
        let name = format!("replica {child} {what}");
        let report = self.home.report();
        report
            .into_iter()
            .find(|(what, _)| *what == name)
            .expect("reported")
            .1
    }

    /// Steps until a child is given what is new. Before that its earlier home's threads have to be through.
    pub(in crate::replicated) fn begins_to_catch_up(&self, child: usize) {
        for _ in 0..2000 {
            self.home.bring_children_back();
            if self.state(child).starts_with("catching up") {
                return;
            }
            logstead_env::sleep(Duration::from_millis(5));
        }
        panic!("child {child} stays away: {}", self.state(child));
    }

    /// Steps, or waits, until a child is a member again.
    pub(in crate::replicated) fn is_back(&self, child: usize) {
        for _ in 0..2000 {
            if !self.home.inner.options.threads {
                self.home.bring_children_back();
            }
            if self.state(child) == "member" {
                return;
            }
            logstead_env::sleep(Duration::from_millis(5));
        }
        panic!("child {child} is not back: {}", self.state(child));
    }
}

pub(in crate::replicated) fn finish(side: Box<dyn SideWriter>) {
    let (tell, told) = mpsc::channel();
    side.finish(Box::new(move |result| drop(tell.send(result))));
    told.recv_timeout(LONG).expect("told").expect("stores");
}

pub(in crate::replicated) fn read(home: &LogHome, lane: LaneId, at: Position) -> Option<u8> {
    let mut into = Buffer::zeroed(BLOCK);
    let count = home.segments.read(lane, at, &mut into).expect("reads");
    let fill = into.as_slice()[0];
    let whole = count == BLOCK && into.as_slice().iter().all(|&byte| byte == fill);
    (whole && fill != 0).then_some(fill)
}

impl Acknowledged {
    pub(in crate::replicated) fn is_in(&self, home: &LogHome, who: &str) {
        for (&(lane, at), &fill) in &self.0 {
            assert_eq!(
                read(home, lane, at),
                Some(fill),
                "lane {lane} {at} in {who}"
            );
        }
    }
}

#[test]
fn a_child_that_was_away_gets_what_it_missed_and_counts_again() {
    for kind in KINDS {
        for threads in [false, true] {
            let what = format!("{kind:?}, threads {threads}");
            let rig = Rig::new(kind, threads);
            let mut acknowledged = Acknowledged::default();
            let life = rig.start(1);
            life.append(&mut acknowledged, 20);
            finish(life.side(7));
            finish(life.side(8));
            let (old, kept) = (life.put(1), life.put(2));
            rig.crash(life);

            let life = rig.start(2);
            life.append(&mut acknowledged, 5);
            rig.leave(&life, 2);
            life.append(&mut acknowledged, 30);
            assert!(life.state(2).starts_with("left out"), "{what}");
            finish(life.side(9));
            let missed = life.put(3);
            life.home.remove_object(old).expect("removes");
            life.home
                .remove_side_segment(LANE, 1 << 32 | 7)
                .expect("removes");
            life.home.trim(LANE, 1 << 32).expect("removes");
            acknowledged
                .0
                .retain(|&(lane, at), _| (lane, at.segment) != (LANE, 1 << 32));
            rig.is_there_again(2);
            life.is_back(2);
            life.has_followed(2);
            let child = rig.look(2);
            acknowledged.is_in(&child, &what);
            let objects = child.objects.list_objects().expect("lists");
            let objects: Vec<ObjectId> = objects.iter().map(|info| info.id).collect();
            assert_eq!(objects, [kept, missed], "{what}");
            let sides = child.sides.list_side_segments(LANE).expect("lists");
            assert_eq!(sides, [1 << 32 | 8, 2 << 32 | 9], "{what}");
            let segments = child.segments.list_segments(LANE).expect("lists");
            assert!(
                segments.iter().all(|info| info.segment != 1 << 32),
                "{what}"
            );
            drop(child);

            // From here on it is one of the two that there are.
            life.append(&mut acknowledged, 20);
            rig.leave(&life, 0);
            life.append(&mut acknowledged, 20);
            let last = life.put(4);
            finish(life.side(10));
            rig.crash(life);
            let life = rig.start(3);
            assert!(
                life.home.copies_behind().is_empty(),
                "{what}: 0 is away, others complete"
            );
            let home = LogHome::from(Arc::clone(&life.home));
            acknowledged.is_in(&home, &what);
            let mut into = vec![0; 3000];
            for id in [kept, missed, last] {
                assert_eq!(
                    life.home.read_object(id, 0, &mut into).expect("reads"),
                    3000
                );
            }
            let sides = life.home.list_side_segments(LANE).expect("lists");
            assert_eq!(sides, [1 << 32 | 8, 2 << 32 | 9, 2 << 32 | 10], "{what}");
        }
    }
}

/// Where nothing is appended meanwhile, too: the segment that was made ahead is made anew.
#[test]
fn a_child_comes_back_to_lanes_in_which_nothing_happens() {
    for kind in KINDS {
        let rig = Rig::new(kind, false);
        let mut acknowledged = Acknowledged::default();
        let life = rig.start(1);
        for round in 0..20 {
            life.append(&mut acknowledged, round % 4);
            rig.leave(&life, 2);
            life.home.inner.children[2]
                .up()
                .into_iter()
                .for_each(|home| {
                    life.home
                        .inner
                        .leave_out(2, home.generation, "it is away".to_owned())
                });
            rig.is_there_again(2);
            life.is_back(2);
        }
        life.append(&mut acknowledged, 20);
        life.has_followed(2);
        acknowledged.is_in(&rig.look(2), "the one that went");
    }
}

/// T2: what it gets behind its cut is no reason to acknowledge anything while it lacks what comes before.
#[test]
fn t2_a_child_that_comes_back_counts_when_it_has_everything() {
    let rig = Rig::new(Kind::Memory, false);
    let mut acknowledged = Acknowledged::default();
    let life = rig.start(1);
    life.append(&mut acknowledged, 3);
    rig.leave(&life, 2);
    life.append(&mut acknowledged, 3);
    let memories: Vec<MemoryHome> = rig
        .places
        .iter()
        .map(|place| place.memory.clone())
        .collect();
    // Nobody has it.
    memories[0].set_paused(true);
    memories[1].set_paused(true);
    let (before, told_before) = life.begin(LANE, 77);
    rig.is_there_again(2);
    for _ in 0..5 {
        assert!(life.home.bring_children_back());
    }
    assert!(
        life.state(2).starts_with("catching up"),
        "{}",
        life.state(2)
    );
    let (behind, told_behind) = life.begin(LANE, 78);
    assert_eq!(behind, Position::start_of(before.segment + 1), "the cut");
    // It has the second one, and lacks the first.
    let second = LogHome::from(memories[2].clone());
    assert_eq!(read(&second, LANE, behind), Some(78));
    assert_eq!(read(&second, LANE, before), None);
    // So does the first, the other way about.
    assert!(memories[0].complete_at(1));
    life.home.bring_children_back();
    assert!(told_before.try_recv().is_err() && told_behind.try_recv().is_err());
    assert!(
        life.state(2).starts_with("catching up"),
        "nobody has it all"
    );
    assert!(memories[0].complete());
    assert!(told_before.try_recv().is_err() && told_behind.try_recv().is_err());
    // The first one has all, and is copied from; then both are durable.
    life.is_back(2);
    assert!(told_before.try_recv().expect("told").is_ok());
    assert!(told_behind.try_recv().expect("told").is_ok());
    assert_eq!(read(&second, LANE, before), Some(77));
}

/// T7: what it holds and has not answered is written again, and what it has answered is not.
#[test]
fn t7_what_it_had_not_answered_is_written_again() {
    let rig = Rig::new(Kind::Memory, false);
    let mut acknowledged = Acknowledged::default();
    let life = rig.start(1);
    // More than a segment has room for.
    life.append(&mut acknowledged, 20);
    let memory = rig.places[2].memory.clone();
    memory.set_paused(true);
    let (at, told) = life.begin(LANE, 99);
    assert!(told.try_recv().expect("told").is_ok(), "by the others");
    acknowledged.0.insert((LANE, at), 99);
    rig.leave(&life, 2);
    memory.set_paused(false);
    life.append(&mut acknowledged, 1);
    // It is stored late, and nobody hears of it.
    assert!(life.state(2).starts_with("left out"), "{}", life.state(2));
    assert!(memory.complete());
    rig.is_there_again(2);
    let written = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&written);
    memory.before_rewrite(move || {
        counts.fetch_add(1, Ordering::SeqCst);
    });
    life.is_back(2);
    // In each lane: the last segment's bytes that it has, and those that it lacks. Nothing of the segment before.
    assert_eq!(written.load(Ordering::SeqCst), 2 * LANES.len());
    life.has_followed(2);
    acknowledged.is_in(&rig.look(2), "the one that went");
}

/// The register says that it is incomplete until it is not.
#[test]
fn a_crash_in_the_midst_leaves_it_to_the_next_start() {
    for kind in KINDS {
        let rig = Rig::new(kind, false);
        let mut acknowledged = Acknowledged::default();
        let life = rig.start(1);
        life.append(&mut acknowledged, 3);
        let side = life.side(7);
        rig.leave(&life, 2);
        life.append(&mut acknowledged, 3);
        rig.is_there_again(2);
        life.begins_to_catch_up(2);
        for _ in 0..5 {
            life.home.bring_children_back();
            life.append(&mut acknowledged, 1);
            assert!(
                life.state(2).starts_with("catching up"),
                "{}",
                life.state(2)
            );
        }
        drop(side);
        rig.crash(life);
        let life = rig.open();
        assert_eq!(life.copies_behind(), [2], "{kind:?}");
    }
}

/// What begins after the cut it is given at once, what began before it gets when that is over, and it fails alone.
#[test]
fn what_begins_and_ends_while_it_catches_up() {
    for kind in KINDS {
        let rig = Rig::new(kind, false);
        let mut acknowledged = Acknowledged::default();
        let life = rig.start(1);
        life.append(&mut acknowledged, 3);
        let gone = life.put(1);
        rig.leave(&life, 2);
        life.append(&mut acknowledged, 10);
        let old = life.side(7);
        rig.is_there_again(2);
        for round in 0..3 {
            life.begins_to_catch_up(2);
            for _ in 0..5 {
                life.home.bring_children_back();
                life.append(&mut acknowledged, 1);
            }
            assert!(
                life.state(2).starts_with("catching up"),
                "{}",
                life.state(2)
            );
            if round < 2 {
                rig.leave(&life, 2);
                life.append(&mut acknowledged, 1);
                assert!(life.state(2).starts_with("left out"), "{}", life.state(2));
                rig.is_there_again(2);
            }
        }
        let new = life.side(8);
        let put = life.put(2);
        life.has_followed(2);
        let child = rig.look(2);
        let objects = child.objects.list_objects().expect("lists");
        assert!(objects.iter().any(|info| info.id == put), "{kind:?}");
        life.home.remove_object(gone).expect("removes");
        finish(new);
        finish(old);
        life.is_back(2);
        life.has_followed(2);
        let child = rig.look(2);
        acknowledged.is_in(&child, "the one that went");
        let sides = child.sides.list_side_segments(LANE).expect("lists");
        assert_eq!(sides, [1 << 32 | 7, 1 << 32 | 8], "{kind:?}");
        let objects = child.objects.list_objects().expect("lists");
        assert_eq!(objects.len(), 1, "{kind:?}");
        assert_eq!(objects[0].id, put, "{kind:?}");
    }
}

/// A source that could not remove something still lists it. The child does not keep it for that.
#[test]
fn what_is_removed_while_it_catches_up_goes_there_too() {
    let rig = Rig::new(Kind::Memory, false);
    let mut acknowledged = Acknowledged::default();
    let life = rig.start(1);
    life.append(&mut acknowledged, 3);
    let (lacked, had) = (life.side(7), life.put(1));
    rig.leave(&life, 2);
    finish(lacked);
    let lacked = life.put(2);
    let open = life.side(8);
    rig.is_there_again(2);
    life.begins_to_catch_up(2);
    rig.places[1].memory.set_presence(Availability::Refusing);
    for id in [had, lacked] {
        life.home.remove_object(id).expect("removes");
    }
    life.home
        .remove_side_segment(LANE, 1 << 32 | 7)
        .expect("removes");
    rig.places[1].memory.set_presence(Availability::Up);
    finish(open);
    life.is_back(2);
    assert_eq!(life.state(1), "member");
    assert_eq!(rig.look(1).objects.list_objects().expect("lists").len(), 2);
    let child = rig.look(2);
    assert_eq!(child.objects.list_objects().expect("lists").len(), 0);
    let sides = child.sides.list_side_segments(LANE).expect("lists");
    assert_eq!(sides, [1 << 32 | 8]);
}

/// T3: a server of before still reaches the child that was away when the others were fenced.
#[test]
fn t3_a_child_that_comes_back_is_fenced_first() {
    for kind in [Kind::Appendable, Kind::Plain] {
        let rig = Rig::new(kind, false);
        let mut acknowledged = Acknowledged::default();
        let old = rig.start(1);
        old.append(&mut acknowledged, 3);
        rig.places[2].away.store(true, Ordering::SeqCst);
        let life = rig.start(2);
        assert!(life.state(2).starts_with("left out"), "{}", life.state(2));
        // What the old one appends comes as far as the one that nobody has fenced.
        let at_child = old.home.inner.children[2].up().expect("is there");
        rig.is_there_again(2);
        life.is_back(2);
        let (tell, told) = mpsc::channel();
        let at = at_child.appends.place(LANE, BLOCK as u64).expect("a place");
        let done = Box::new(move |_, result| drop(tell.send(result)));
        at_child
            .appends
            .append(LANE, at, Buffer::zeroed(BLOCK), BLOCK, done);
        let answer = told.recv_timeout(LONG).expect("told");
        assert!(
            matches!(answer, Err(HomeError::Fenced(_))),
            "{kind:?}: {answer:?}"
        );
    }
}

#[test]
fn who_has_lost_the_lease_brings_nobody_back() {
    let rig = Rig::new(Kind::Memory, false);
    let mut acknowledged = Acknowledged::default();
    let life = rig.start(1);
    rig.leave(&life, 2);
    life.append(&mut acknowledged, 3);
    let other = rig.open();
    let (_, tag) = other.get("manifest").expect("reads").expect("is there");
    other
        .compare_and_swap("manifest", tag, b"other")
        .expect("takes it");
    rig.is_there_again(2);
    for _ in 0..10 {
        life.home.bring_children_back();
    }
    assert!(life.state(2).contains("took over"), "{}", life.state(2));
    let (&(lane, at), _) = acknowledged.0.last_key_value().expect("some");
    let untouched = read(&rig.look(2), lane, at);
    assert_eq!(untouched, None, "it is the other server's now");
}

#[test]
fn another_place_does_not_take_a_members() {
    let mut rig = Rig::new(Kind::Memory, false);
    let place = rig.places[2].memory.clone();
    let inside = Arc::new(parking_lot::Mutex::new(place));
    let mut acknowledged = Acknowledged::default();
    let source = |number: usize, inside: Option<Arc<parking_lot::Mutex<MemoryHome>>>| {
        let memory = rig.places[number].memory.clone();
        Source {
            url: format!("place {number}"),
            open: Arc::new(move || {
                let memory = inside
                    .as_ref()
                    .map_or(memory.clone(), |inside| inside.lock().clone());
                Ok(LogHome::from(memory))
            }),
        }
    };
    let sources = vec![
        source(0, None),
        source(1, None),
        source(2, Some(Arc::clone(&inside))),
    ];
    let home = ReplicatedHome::open(sources, &Env::real(), rig.options.clone()).expect("opens");
    home.put_if_absent("manifest", b"1")
        .expect("takes the lease");
    home.copies_completed(Epoch(0)).expect("settles");
    for lane in LANES {
        home.open_lane(lane, 1 << 32).expect("opens");
    }
    let life = Life {
        home: Arc::new(home),
        epoch: 1,
    };
    rig.leave(&life, 2);
    life.append(&mut acknowledged, 3);
    let other = Rig::new(Kind::Memory, false);
    drop(other.start(1));
    *inside.lock() = other.places[0].memory.clone();
    life.home.bring_children_back();
    assert!(life.state(2).contains("another place"), "{}", life.state(2));
    *inside.lock() = rig.places[2].memory.clone();
    rig.is_there_again(2);
    life.is_back(2);
    rig.places.clear();
}

/// Children leave and come back all the time, one after the other, while appends go on: with every pair of them all is
/// there afterwards.
#[test]
fn all_of_them_leave_and_return_under_appends() {
    for kind in KINDS {
        let rig = Rig::new(kind, true);
        let mut acknowledged = Acknowledged::default();
        let life = rig.start(1);
        for round in 0..12 {
            let child = round % 3;
            life.append(&mut acknowledged, round % 5);
            rig.leave(&life, child);
            life.append(&mut acknowledged, 1 + round % 7);
            rig.is_there_again(child);
            life.append(&mut acknowledged, round % 3);
            life.is_back(child);
        }
        rig.crash(life);
        for away in 0..3 {
            rig.places[away].away.store(true, Ordering::SeqCst);
            let home = LogHome::from(rig.open());
            acknowledged.is_in(&home, &format!("{kind:?} without {away}"));
            rig.is_there_again(away);
        }
    }
}

#[test]
fn conforms_while_a_child_leaves_and_returns() {
    for _ in 0..5 {
        let rig = Rig::new(Kind::Memory, true);
        let home = rig.open();
        home.put_if_absent("lease", b"1").expect("puts");
        home.copies_completed(Epoch(0)).expect("settles");
        let over = Arc::new(AtomicBool::new(false));
        let (ends, flapping) = (Arc::clone(&over), Arc::clone(&home));
        // What refuses a removal would keep what the suite wants to see removed; so nothing is refused.
        let flaps = Env::real().spawn("flaps", None, move || {
            while !ends.load(Ordering::SeqCst) {
                let attached = flapping.inner.children[2].home().expect("was opened");
                let (generation, why) = (attached.generation, "it is away".to_owned());
                drop(attached);
                flapping.inner.leave_out(2, generation, why);
                logstead_env::sleep(Duration::from_millis(5));
            }
        });
        conformance::check(&LogHome::from(Arc::clone(&home)));
        over.store(true, Ordering::SeqCst);
        flaps.expect("starts").join().expect("ends");
        let life = Life { home, epoch: 0 };
        life.is_back(2);
    }
}
