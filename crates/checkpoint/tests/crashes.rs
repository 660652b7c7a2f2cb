//! Crashes at every single request of checkpoints, publications and collections, on the simulated home, with publications of which nobody knows
//! whether they succeeded, checkpoints given up half way, kept records, restore points, branches that come and go, and compaction. Afterwards the newest checkpoint or the one that was under way is there, whole; what it
//! keeps is there, whole; and after one more checkpoint nothing is left that none of them names.

mod rig;

use logstead_checkpoint::{
    BranchState, Chain, CheckpointError, ChunkWriter, Directory, Extent, Head, IndexInfo,
    KeptRecord, LeafWriter, Ledger, Limits, NewCheckpoint, ObjectWriter, PageKey, Pin, PinKind,
    Pins, PinsError, Publisher, Record, TableInfo, Which, fsck, move_pages, pin_point,
};
use logstead_env::{Env, SimClock, SimRandom};
use logstead_home::simulated::MODELS;
use logstead_home::{
    HomeError, LogHome, MemoryHome, ObjectId, SimulatedHome, SimulatedOptions, Tag,
};
use logstead_types::{Csn, DatabaseId, Epoch, IndexId, TableId};
use logstead_wal::manifest::{Checkpoint, Manifest};
use parking_lot::Mutex;
use rig::{Entries, Rows, key, read_all, read_index, tile, write_tile, write_whole};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const DATABASE: DatabaseId = DatabaseId(0xfeed);
const HEAD: &str = "head";
const CHUNKS: u64 = 12;
const SLOTS: u64 = 6;
const INDEX: IndexInfo = IndexInfo {
    table: TableId(1),
    index: IndexId(2),
    keys: 3,
};

/// The index's entries: what a row begins with, its length, and where it is.
fn entries_of(rows: &Rows) -> Entries {
    rows.iter()
        .map(|((_, chunk, slot), (_, bytes))| {
            let len = bytes.len() as u16;
            let mut entry = vec![bytes[0] / 8, (len >> 8) as u8, len as u8];
            entry.extend([*chunk as u8, *slot as u8]);
            entry
        })
        .collect()
}

/// Names the newest checkpoint in a small thing, as the manifest does.
struct TestHead {
    home: Arc<dyn LogHome>,
    tag: Mutex<Option<Tag>>,
    random: Arc<SimRandom>,
}

fn head(home: &dyn LogHome) -> Result<Option<(Checkpoint, Tag)>, HomeError> {
    let Some((bytes, tag)) = home.get(HEAD)? else {
        return Ok(None);
    };
    let text = String::from_utf8(bytes).unwrap();
    let numbers: Vec<u64> = text.split(' ').map(|word| word.parse().unwrap()).collect();
    let checkpoint = Checkpoint {
        object: ObjectId(numbers[0]),
        crc: numbers[1] as u32,
        csn: Csn(numbers[2]),
        epoch: Epoch(numbers[3] as u32),
        starts: Vec::new(),
    };
    Ok(Some((checkpoint, tag)))
}

impl TestHead {
    fn store(&self, text: &str) -> Result<(), HomeError> {
        let mut tag = self.tag.lock();
        let stored = match *tag {
            None => self.home.put_if_absent(HEAD, text.as_bytes()),
            Some(tag) => self.home.compare_and_swap(HEAD, tag, text.as_bytes()),
        };
        match stored {
            Ok(stored) => {
                *tag = Some(stored);
                Ok(())
            }
            // As the manifest's keeper tells it where there is a lease.
            Err(HomeError::Conflict(what)) => Err(HomeError::Fenced(what)),
            Err(error) => Err(error),
        }
    }
}

impl Head for TestHead {
    fn name(&self, checkpoint: Checkpoint) -> Result<(), HomeError> {
        let Checkpoint {
            object,
            crc,
            csn,
            epoch,
            ..
        } = checkpoint;
        let text = format!("{} {crc} {csn} {epoch}", object.0);
        let doubtful = HomeError::io("naming", std::io::Error::other("no answer"));
        match self.random.below(8) {
            0 => Err(doubtful),
            1 => self.store(&text).and(Err(doubtful)),
            _ => self.store(&text),
        }
    }
}

/// The manifest that says the same.
fn manifest(home: &dyn LogHome) -> Result<Manifest, CheckpointError> {
    let checkpoint = head(home)?.map(|(checkpoint, _)| checkpoint);
    Ok(Manifest {
        epoch: Epoch(u32::MAX),
        checkpoint,
        ..Manifest::first(DATABASE)
    })
}

/// A branch of that name, as far as `state`.
fn branch(name: &str, state: BranchState, record: KeptRecord) -> Pin {
    let database = DatabaseId(1);
    Pin {
        kind: PinKind::Branch { state, database },
        name: name.to_owned(),
        record,
    }
}

/// Makes a branch as who makes one does. `manifest` reads the manifest.
fn make_branch(
    home: &dyn LogHome,
    name: &str,
    which: &Which,
    manifest: impl Fn() -> Result<Manifest, CheckpointError>,
    chosen: impl Fn(),
) -> Result<Option<KeptRecord>, CheckpointError> {
    let making = |_: &Pins, record| {
        chosen();
        Ok(branch(name, BranchState::Making, record))
    };
    let Some(pin) = pin_point(home, which, making, manifest)? else {
        return Ok(None);
    };
    Pins::change(home, |pins| {
        pins.put(branch(name, BranchState::Made, pin.record));
        Ok::<_, PinsError>(())
    })?;
    Ok(Some(pin.record))
}

/// What the outside knows over all lives.
struct World {
    sim: SimulatedHome,
    home: Arc<dyn LogHome>,
    random: Arc<SimRandom>,
    epoch: u32,
    /// By CSN: every state of which a checkpoint was tried.
    history: BTreeMap<Csn, Rows>,
    published: Csn,
    tried: BTreeSet<Csn>,
}

struct Server {
    publisher: Publisher<TestHead>,
    directory: Directory,
    rows: Rows,
    csn: Csn,
    chunks: ChunkWriter,
}

impl World {
    fn new(seed: u64) -> World {
        let clock = Arc::new(SimClock::new());
        let (mut env, _) = Env::simulated(seed);
        env.clock = Arc::clone(&clock) as _;
        let model = MODELS.iter().find(|model| model.name == "s3express");
        let options = SimulatedOptions::new(model.unwrap().clone(), seed);
        let sim = SimulatedHome::in_virtual_time(&options, &env, clock).unwrap();
        World {
            home: Arc::new(sim.clone()),
            sim,
            random: Arc::new(SimRandom::new(seed)),
            epoch: 0,
            history: BTreeMap::from([(Csn::ZERO, Rows::new())]),
            published: Csn::ZERO,
            tried: BTreeSet::new(),
        }
    }

    /// A start: finds the newest checkpoint, which must be the last that was published or one that was tried since, and reads it.
    fn open(&mut self) -> Result<Server, CheckpointError> {
        self.epoch += 1;
        let found = head(&*self.home)?;
        let csn = found
            .as_ref()
            .map_or(Csn::ZERO, |(checkpoint, _)| checkpoint.csn);
        assert!(
            csn == self.published || self.tried.contains(&csn),
            "found {csn}, published {}, tried {:?}",
            self.published,
            self.tried
        );
        self.published = csn;
        self.tried.clear();
        let publisher = Publisher::open(
            Arc::clone(&self.home),
            TestHead {
                home: Arc::clone(&self.home),
                tag: Mutex::new(found.as_ref().map(|(_, tag)| *tag)),
                random: Arc::clone(&self.random),
            },
            DATABASE,
            Arc::new(Ledger::new(Epoch(self.epoch))),
            found.as_ref().map(|(checkpoint, _)| checkpoint),
        )?;
        let root = publisher.newest().and_then(|newest| newest.record.root);
        let directory = Directory::open(Arc::clone(&self.home), root);
        let rows = read_all(&self.home, &directory)?;
        assert_eq!(rows, self.history[&csn], "what is read at {csn}");
        let entries = read_index(&self.home, &directory, (1, 2))?;
        assert_eq!(entries, entries_of(&rows), "the index at {csn}");
        Ok(Server {
            publisher,
            directory,
            rows,
            csn,
            chunks: ChunkWriter::new().with_page_bytes(200),
        })
    }

    /// Everything that the newest record and what it keeps name is there and whole; nothing is missing, nothing is wrong.
    fn check(&self, server: &Server) -> Result<BTreeSet<ObjectId>, CheckpointError> {
        let found = head(&*self.home)?;
        let report = fsck(&self.home, DATABASE, found.as_ref().map(|(head, _)| head))?;
        assert!(report.is_clean(), "{report}: {:#?}", report.damage);
        let mut named = BTreeSet::new();
        for pin in Pins::read(&*self.home)?.0.iter() {
            let KeptRecord {
                object, crc, csn, ..
            } = pin.record;
            let in_making = matches!(
                pin.kind,
                PinKind::Branch {
                    state: BranchState::Making,
                    ..
                }
            );
            match Record::read(&*self.home, DATABASE, object, crc) {
                Ok(record) => {
                    let directory = Directory::open(Arc::clone(&self.home), record.root);
                    match read_all(&self.home, &directory) {
                        Ok(rows) => {
                            assert_eq!(rows, self.history[&csn]);
                            let entries = read_index(&self.home, &directory, (1, 2))?;
                            assert_eq!(entries, entries_of(&rows));
                        }
                        Err(error) => assert!(in_making && !self.sim.is_down(), "{pin:?}: {error}"),
                    }
                    named.insert(object);
                    named.extend(record.objects.iter().map(|used| used.object));
                }
                // It was pinned too late, and whoever did that was not told that it succeeded.
                Err(CheckpointError::Damaged(_)) if in_making => {}
                Err(error) => return Err(error),
            }
        }
        let Some(newest) = server.publisher.newest() else {
            return Ok(named);
        };
        named.insert(newest.object);
        named.extend(newest.record.objects.iter().map(|used| used.object));
        for kept in &newest.record.kept {
            let record = Record::read(&*self.home, DATABASE, kept.object, kept.crc)?;
            let directory = Directory::open(Arc::clone(&self.home), record.root);
            let rows = read_all(&self.home, &directory)?;
            assert_eq!(rows, self.history[&kept.csn]);
            let entries = read_index(&self.home, &directory, (1, 2))?;
            assert_eq!(entries, entries_of(&rows));
            named.insert(kept.object);
            named.extend(record.objects.iter().map(|used| used.object));
        }
        Ok(named)
    }

    /// Some transactions, and a checkpoint of what they left.
    fn checkpoint(&mut self, server: &mut Server, given_up: bool) -> Result<(), CheckpointError> {
        let before = server.rows.clone();
        let mut touched = BTreeSet::new();
        for _ in 0..1 + self.random.below(5) {
            let place = (
                1,
                self.random.below(CHUNKS),
                self.random.below(SLOTS) as u16,
            );
            touched.insert(place.1);
            // The CSN counter never goes back, whatever was lost.
            server.csn = Csn(server.csn.0.max(u64::from(self.epoch) * 1_000_000) + 1);
            if self.random.below(4) == 0 {
                server.rows.remove(&place);
            } else {
                let len = [10, 30, 450][self.random.below(3) as usize];
                let bytes = vec![self.random.below(256) as u8; len];
                server.rows.insert(place, (server.csn, bytes));
            }
        }
        let csn = server.csn.next();
        server.csn = csn;
        let limits = Limits {
            moved_bytes_max: 3_000,
            small_objects: 4,
            ..Limits::default()
        };
        let result = self.write(server, &before, &touched, csn, &limits, given_up);
        if result.is_err() {
            // What was not stored is written again with the next one: here all that differs from the newest checkpoint.
            server.rows = before;
        }
        result
    }

    fn write(
        &mut self,
        server: &mut Server,
        before: &Rows,
        touched: &BTreeSet<u64>,
        csn: Csn,
        limits: &Limits,
        given_up: bool,
    ) -> Result<(), CheckpointError> {
        let Server {
            publisher,
            directory,
            rows,
            chunks,
            ..
        } = server;
        let ledger = Arc::clone(publisher.ledger());
        let rewrites = publisher.to_rewrite(directory, limits)?;
        let mut writer =
            ObjectWriter::new(Arc::clone(&self.home), ledger, None).with_object_bytes(1_500);
        let mut changes: BTreeMap<_, Option<Chain>> = BTreeMap::new();
        let whole = (0..CHUNKS).filter(|chunk| rewrites.keys.contains(&key(1, *chunk)));
        for chunk in touched.iter().copied().chain(whole) {
            let old = directory.get(&key(1, chunk))?;
            let is_rewritten = rewrites.keys.contains(&key(1, chunk));
            let chain = match old {
                Some(mut chain) if !is_rewritten && !chain.is_due_for_merge(100, 0) => {
                    chunks.begin(key(1, chunk), Extent::Delta, csn);
                    for slot in 0..SLOTS as u16 {
                        let place = (1, chunk, slot);
                        match (before.get(&place), rows.get(&place)) {
                            (old, Some(row)) if old != Some(row) => {
                                chunks.row(slot, row.0, &row.1, &mut writer)?;
                            }
                            (Some(_), None) => chunks.gone(slot)?,
                            _ => {}
                        }
                    }
                    chain.push(chunks.finish(&mut writer)?);
                    Some(chain)
                }
                _ => write_whole(rows, (1, chunk), csn, chunks, &mut writer)?,
            };
            changes.insert(key(1, chunk), chain);
        }
        let mut changes: Vec<_> = changes.into_iter().collect();
        let entries = (entries_of(before), entries_of(rows));
        let tiles = self.random.as_ref();
        retile(tiles, directory, entries, csn, &mut writer, &mut changes)?;
        // What is not written anew leaves the objects as it is.
        let new: BTreeSet<PageKey> = changes.iter().map(|(key, _)| key.clone()).collect();
        for moved in rewrites.keys.iter().filter(|key| !new.contains(key)) {
            if let Some(chain) = directory.get(moved)? {
                let chain = move_pages(&chain, &rewrites.objects, &mut writer)?;
                changes.push((moved.clone(), Some(chain)));
            }
        }
        changes.sort_by(|(a, _), (b, _)| a.cmp(b));
        let applied = directory.apply(&changes, &rewrites.objects, csn, &mut writer)?;
        let stored = writer.finish()?;
        if given_up {
            return Ok(());
        }
        self.history.insert(csn, rows.clone());
        self.tried.insert(csn);
        let table = TableInfo {
            table: TableId(1),
            rid_end: CHUNKS * 64,
        };
        let new = NewCheckpoint {
            csn,
            taken_at_micros: csn.0 as i64,
            tables: vec![table],
            indexes: vec![INDEX],
            starts: Vec::new(),
        };
        let keep_every = 1 + self.random.below(3);
        let keep = |kept: &KeptRecord| kept.csn.0 % keep_every == 1 && csn.0 - kept.csn.0 < 20;
        publisher.publish(new, &applied, stored, keep)?;
        *directory = applied.directory;
        self.published = csn;
        self.tried.clear();
        Ok(())
    }

    /// Now and then a branch or a restore point is made, or dropped.
    fn pin_or_unpin(&mut self) -> Result<(), CheckpointError> {
        let name = format!("p{}", self.random.below(3));
        match self.random.below(5) {
            0 => {
                let which = match self.random.below(2) {
                    0 => Which::Newest,
                    _ => Which::At(self.random.below(2_000_000) as i64),
                };
                make_branch(&*self.home, &name, &which, || manifest(&*self.home), || {})?;
            }
            1 => {
                let point = |_: &Pins, record| {
                    Ok::<_, CheckpointError>(Pin {
                        kind: PinKind::Point,
                        name: name.clone(),
                        record,
                    })
                };
                pin_point(&*self.home, &Which::Newest, point, || manifest(&*self.home))?;
            }
            2 => {
                Pins::change(&*self.home, |pins| {
                    pins.remove_branch(&name);
                    pins.remove_point(&name);
                    Ok::<_, PinsError>(())
                })?;
            }
            _ => {}
        }
        Ok(())
    }

    /// One life: some checkpoints; everything is checked after each of them if `is_checked`. Ends with the first error of a machine that has stopped.
    fn live(&mut self, checkpoints: u64, is_checked: bool) -> Result<(), CheckpointError> {
        let mut server = self.open()?;
        for _ in 0..checkpoints {
            let given_up = self.random.below(8) == 0;
            let before = server.rows.clone();
            match self.checkpoint(&mut server, given_up) {
                Ok(()) => {}
                Err(error) if self.sim.is_down() => return Err(error),
                // A publication in doubt: the server goes on.
                Err(_) => {
                    let (found, tag) = match head(&*self.home)? {
                        Some((found, tag)) => (Some(found), Some(tag)),
                        None => (None, None),
                    };
                    server.publisher.collect()?;
                    if is_checked {
                        let report = fsck(&self.home, DATABASE, found.as_ref())?;
                        assert!(report.is_clean(), "in doubt: {:#?}", report.damage);
                    }
                    server.publisher = self.settled(server.publisher, tag);
                    continue;
                }
            }
            if given_up {
                server.rows = before;
            }
            self.pin_or_unpin()?;
            server.publisher.collect()?;
            self.pin_or_unpin()?;
            if is_checked {
                self.check(&server)?;
            }
        }
        Ok(())
    }

    /// The manifest's keeper settles a doubt before the next change; here the tag is read again.
    fn settled(&self, publisher: Publisher<TestHead>, tag: Option<Tag>) -> Publisher<TestHead> {
        *publisher.head().tag.lock() = tag;
        publisher
    }

    /// After a crash: what was published or tried is whole, and one more checkpoint leaves nothing that is not needed.
    fn verify(&mut self) {
        let mut server = self.open().unwrap();
        self.check(&server).unwrap();
        let published = loop {
            match self.checkpoint(&mut server, false) {
                Ok(()) => break true,
                Err(CheckpointError::Home(HomeError::Io { .. })) => {
                    let tag = head(&*self.home).unwrap().map(|(_, tag)| tag);
                    server.publisher = self.settled(server.publisher, tag);
                }
                Err(error) => panic!("{error}"),
            }
        };
        assert!(published);
        let collected = server.publisher.collect().unwrap();
        assert_eq!(collected.left, 0);
        let named = self.check(&server).unwrap();
        let there = self.home.objects().unwrap();
        let there: BTreeSet<_> = there.into_iter().map(|info| info.id).collect();
        assert_eq!(there, named, "needed and there");
        // Nothing leaks for ever: without its branches and restore points, what only they needed goes.
        unpin_all(&*self.home);
        server.publisher.collect().unwrap();
        let named = self.check(&server).unwrap();
        let there = self.home.objects().unwrap();
        let there: BTreeSet<_> = there.into_iter().map(|info| info.id).collect();
        assert_eq!(there, named, "needed and there without pins");
    }
}

/// New tiles for what differs, with fences of their own: tiles are joined, cut, and left as they are.
fn retile(
    random: &SimRandom,
    directory: &Directory,
    (before, after): (Entries, Entries),
    csn: Csn,
    writer: &mut ObjectWriter<'_>,
    changes: &mut Vec<(PageKey, Option<Chain>)>,
) -> Result<(), CheckpointError> {
    let old: Result<Vec<_>, _> = directory
        .tiles(INDEX.table, INDEX.index, Vec::new())
        .collect();
    let old: Vec<Vec<u8>> = old?.into_iter().map(|(low, _)| low).collect();
    let is_new = old.is_empty();
    let lows = if is_new { vec![Vec::new()] } else { old };
    let differ: Entries = before.symmetric_difference(&after).cloned().collect();
    let mut leaves = LeafWriter::new().with_page_bytes(90);
    let mut at = 0;
    while at < lows.len() {
        let low = lows[at].clone();
        at += 1;
        if random.below(4) == 0 && at < lows.len() {
            at += 1;
        }
        let high = lows.get(at).cloned();
        let within = |entry: &&Vec<u8>| high.as_ref().is_none_or(|high| *entry < high);
        let is_dirty = differ.range(low.clone()..).take_while(within).count() > 0;
        if !is_dirty && !is_new && random.below(8) > 0 {
            continue;
        }
        let entries: Vec<Vec<u8>> = after
            .range(low.clone()..)
            .take_while(within)
            .cloned()
            .collect();
        let cut = (entries.len() > 12).then(|| entries[entries.len() / 2].clone());
        let cut = cut.filter(|cut| *cut > low);
        let mut lows = vec![low];
        lows.extend(cut);
        for (index, low) in lows.iter().enumerate() {
            let high = lows.get(index + 1).or(high.as_ref());
            let own: Entries = entries
                .iter()
                .filter(|entry| *entry >= low && high.is_none_or(|high| *entry < high))
                .cloned()
                .collect();
            let key = tile(1, 2, low);
            let high = high.map(|high| &high[..]);
            let chain = write_tile(&own, key.clone(), high, csn, &mut leaves, writer)?;
            directory.replace_tile(key, high, chain, changes)?;
        }
    }
    Ok(())
}

/// Drops every pin.
fn unpin_all(home: &dyn LogHome) {
    Pins::change(home, |pins| {
        *pins = Pins::default();
        Ok::<_, PinsError>(())
    })
    .unwrap();
}

fn requests_of_a_life(seed: u64, checkpoints: u64) -> u64 {
    let mut world = World::new(seed);
    world.live(checkpoints, false).unwrap();
    let requests = world.sim.requests();
    world.verify();
    requests
}

#[test]
fn a_crash_at_any_request_leaves_a_whole_checkpoint_and_nothing_else_for_long() {
    for seed in 0..12 {
        let checkpoints = 12;
        let requests = requests_of_a_life(seed, checkpoints);
        assert!(requests > 30, "{requests}");
        for crash_at in 0..requests {
            let run = || {
                let mut world = World::new(seed);
                world.sim.crash_at(crash_at);
                let _stopped = world.live(checkpoints, false);
                assert!(world.sim.is_down());
                world.sim.reboot();
                // A second life is cut off as well, some time.
                let second = world.sim.requests() + world.random.below(60);
                world.sim.crash_at(second);
                let _cut_off = world.live(2, false);
                world.sim.reboot();
                world.verify();
            };
            if let Err(panic) = std::panic::catch_unwind(run) {
                eprintln!("seed {seed}, crash at request {crash_at}");
                std::panic::resume_unwind(panic);
            }
        }
    }
}

/// A long life: the number of objects and the bytes in them stay in proportion to what is needed.
#[test]
fn many_checkpoints_take_space_for_few() {
    let mut world = World::new(77);
    world.live(300, true).unwrap();
    let mut server = world.open().unwrap();
    let report = {
        world.checkpoint(&mut server, false).ok();
        server.publisher.collect().unwrap();
        let found = head(&*world.home).unwrap().unwrap().0;
        fsck(&world.home, DATABASE, Some(&found)).unwrap()
    };
    assert!(report.is_clean(), "{:#?}", report.damage);
    let (live, size) = server.publisher.newest().unwrap().record.bytes();
    assert!(
        size < live * 3,
        "{size} bytes in objects, {live} of them needed"
    );
    let objects = server.publisher.newest().unwrap().record.objects.len();
    assert!(objects < 40, "{objects} objects");
}

/// T8: objects of this and later epochs are never orphans, whatever names them; those of earlier epochs are.
#[test]
fn t8_orphans_are_of_earlier_epochs_only() {
    let mut world = World::new(5);
    world.epoch = 3;
    let ids = [(2, 7), (3, 0), (4, 900), (5, 0)];
    let ids = ids.map(|(epoch, counter)| ObjectId::new(Epoch(epoch), counter));
    for id in ids {
        world.home.put_object(id, b"left by somebody").unwrap();
    }
    // It has epoch 4.
    let mut server = world.open().unwrap();
    server.publisher.collect().unwrap();
    let left: Vec<_> = world
        .home
        .objects()
        .unwrap()
        .into_iter()
        .map(|info| info.id)
        .collect();
    assert_eq!(left, ids[2..]);
}

/// T8: while a branch is made, the server publishes, and removes what no record names any more, at any moment in between. The branch is made of a record that is there, and
/// stays there until the branch is dropped.
#[test]
fn t8_a_branch_is_made_while_its_parent_goes_on() {
    for seed in 0..40 {
        for moment in 0..5 {
            let world = std::cell::RefCell::new(World::new(seed));
            let home = Arc::clone(&world.borrow().home);
            let server = std::cell::RefCell::new(world.borrow_mut().open().unwrap());
            let go_on = || {
                let (mut world, mut server) = (world.borrow_mut(), server.borrow_mut());
                while world.checkpoint(&mut server, false).is_err() {
                    let tag = head(&*home).unwrap().map(|(_, tag)| tag);
                    let Server { publisher, .. } = &mut *server;
                    *publisher.head().tag.lock() = tag;
                }
                server.publisher.collect().unwrap();
            };
            (0..6).for_each(|_| go_on());
            let reads = std::cell::Cell::new(0);
            let read = || {
                let number = reads.replace(reads.get() + 1);
                // Before the first look, behind it, before the second look, behind it.
                if moment == number * 2 {
                    (0..3).for_each(|_| go_on());
                }
                let found = manifest(&*home);
                if moment == number * 2 + 1 {
                    (0..3).for_each(|_| go_on());
                }
                found
            };
            // When it has chosen, and before it has pinned.
            let once = std::cell::Cell::new(moment == 4);
            let chosen = || {
                if once.replace(false) {
                    (0..3).for_each(|_| go_on());
                }
            };
            let made = make_branch(&*home, "b", &Which::Newest, read, chosen).unwrap();
            let made = made.expect("there is a checkpoint");
            let whole = || {
                let record = Record::read(&*home, DATABASE, made.object, made.crc).unwrap();
                let directory = Directory::open(Arc::clone(&home), record.root);
                read_all(&home, &directory).unwrap() == world.borrow().history[&made.csn]
            };
            for _ in 0..6 {
                assert!(whole(), "seed {seed}, moment {moment}");
                go_on();
            }
            // Also in later lives, which know of it only by its pin.
            let later = world.borrow_mut().open().unwrap();
            *server.borrow_mut() = later;
            go_on();
            assert!(whole());
            unpin_all(&*home);
            go_on();
            let gone = Record::read(&*home, DATABASE, made.object, made.crc);
            let kept = world.borrow().check(&server.borrow()).unwrap();
            assert!(gone.is_err() || kept.contains(&made.object), "it leaks");
        }
    }
}

/// T8: while a record that is pinned cannot be read, or the pins cannot, nothing is removed at all.
#[test]
fn t8_nothing_is_removed_while_it_is_not_known_what_stays() {
    let mut world = World::new(3);
    let mut server = world.open().unwrap();
    for _ in 0..4 {
        let _perhaps_in_doubt = world.checkpoint(&mut server, false);
        let tag = head(&*world.home).unwrap().map(|(_, tag)| tag);
        server.publisher = world.settled(server.publisher, tag);
    }
    server.publisher.collect().unwrap();
    let newest = server.publisher.newest().unwrap().as_kept();
    let missing = KeptRecord {
        object: ObjectId(newest.object.0 + 1_000),
        ..newest
    };
    let before = |world: &World| world.home.objects().unwrap().len();
    for pins in [
        {
            let mut pins = Pins::default();
            pins.put(branch("b", BranchState::Made, missing));
            pins.encode()
        },
        b"logstead pins 2\n".to_vec(),
        b"logstead pins 1\ncrc 00000000\n".to_vec(),
    ] {
        match world.home.get(logstead_checkpoint::PINS).unwrap() {
            Some((_, tag)) => world
                .home
                .compare_and_swap(logstead_checkpoint::PINS, tag, &pins),
            None => world.home.put_if_absent(logstead_checkpoint::PINS, &pins),
        }
        .unwrap();
        for _ in 0..6 {
            let _perhaps_in_doubt = world.checkpoint(&mut server, false);
            let tag = head(&*world.home).unwrap().map(|(_, tag)| tag);
            server.publisher = world.settled(server.publisher, tag);
            let there = before(&world);
            let nothing_to_do = server.publisher.garbage() == 0;
            assert!(server.publisher.collect().is_err() || nothing_to_do);
            assert_eq!(before(&world), there);
        }
    }
    assert!(server.publisher.garbage() > 0);
    let (_, tag) = world.home.get(logstead_checkpoint::PINS).unwrap().unwrap();
    let none = Pins::default().encode();
    world
        .home
        .compare_and_swap(logstead_checkpoint::PINS, tag, &none)
        .unwrap();
    assert!(server.publisher.collect().unwrap().removed > 0);
}

/// T8: a server that was overtaken removes nothing, and publishes nothing.
#[test]
fn t8_an_overtaken_server_removes_nothing() {
    let mut world = World::new(1);
    let mut old = world.open().unwrap();
    while world.published < Csn(1_000_010) {
        if world.checkpoint(&mut old, false).is_err() {
            let tag = head(&*world.home).unwrap().map(|(_, tag)| tag);
            old.publisher = world.settled(old.publisher, tag);
        }
    }
    assert!(old.publisher.garbage() > 0);
    // Another server publishes, with the same tag to go by.
    let (checkpoint, tag) = head(&*world.home).unwrap().unwrap();
    let text = format!(
        "{} {} {} 9",
        checkpoint.object.0, checkpoint.crc, checkpoint.csn
    );
    world
        .home
        .compare_and_swap(HEAD, tag, text.as_bytes())
        .unwrap();
    let error = loop {
        match world.checkpoint(&mut old, false) {
            Err(CheckpointError::Home(HomeError::Io { .. })) => {}
            Err(error) => break error,
            Ok(()) => panic!("published by a server that was overtaken"),
        }
    };
    assert!(matches!(error, CheckpointError::Overtaken), "{error}");
    let before = world.home.objects().unwrap();
    assert!(matches!(
        old.publisher.collect(),
        Err(CheckpointError::Overtaken)
    ));
    assert_eq!(world.home.objects().unwrap(), before);
}

/// A disk that is too full for a checkpoint is not left fuller by it; and what is given up for other reasons goes soon.
#[test]
fn what_is_given_up_takes_no_room() {
    let memory = MemoryHome::new(1 << 20);
    let home: Arc<dyn LogHome> = Arc::new(memory.clone());
    let ledger = Arc::new(Ledger::new(Epoch(1)));
    let head = TestHead {
        home: Arc::clone(&home),
        tag: Mutex::new(None),
        random: Arc::new(SimRandom::new(1)),
    };
    let ids = || home.objects().unwrap().len();
    let mut chunks = ChunkWriter::new();
    let mut fill = |writer: &mut ObjectWriter<'_>, count: u64| {
        for chunk in 0..count {
            chunks.begin(key(1, chunk), Extent::Whole, Csn(9));
            chunks.row(0, Csn(1), &[7; 100], writer)?;
            chunks.finish(writer)?;
        }
        Ok::<(), CheckpointError>(())
    };
    let writer =
        || ObjectWriter::new(Arc::clone(&home), Arc::clone(&ledger), None).with_object_bytes(200);
    let mut full = writer();
    fill(&mut full, 9).unwrap();
    assert!(ids() > 3);
    memory.set_disk_full(true);
    let is_full = |told: Result<(), CheckpointError>| matches!(told, Err(CheckpointError::Home(error)) if error.is_disk_full());
    assert!(is_full(fill(&mut full, 9)));
    assert_eq!(ids(), 0);
    memory.set_disk_full(false);
    assert!(is_full(fill(&mut full, 1)), "it has given up, and says why");
    assert!(is_full(full.finish().map(|_| ())));
    // Given up by its owner: gone before the next one stores anything.
    let mut stopped = writer();
    fill(&mut stopped, 9).unwrap();
    let before = ids();
    drop(stopped);
    assert_eq!(ids(), before);
    let mut next = writer();
    fill(&mut next, 3).unwrap();
    let stored = next.finish().unwrap();
    assert_eq!(ids(), stored.written().objects.len());
    // Stored and never tried: gone with the next collection, without a publication.
    let mut publisher = Publisher::open(Arc::clone(&home), head, DATABASE, ledger, None).unwrap();
    publisher.collect().unwrap();
    assert!(ids() > 0);
    drop(stored);
    publisher.collect().unwrap();
    assert_eq!(ids(), 0);
}
