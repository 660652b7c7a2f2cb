//! A database that lives in checkpoints only, on a simulated home.
//!
//! Owns: [`World`], what the outside knows over all lives of the server; a life, with writes, checkpoints, pins and
//! branches; and the checks of what a start finds.

use super::rig::{Entries, Rows, key, read_all, read_index, tile, write_tile, write_whole};
use logstead_checkpoint::{
    BranchState, CheckpointError, CheckpointHead, CheckpointRecord, ChunkWriter, CompactionLimits,
    Directory, ImageKind, IndexInfo, LeafWriter, NewCheckpoint, ObjectIdAllocator, ObjectWriter,
    PageChain, PageKey, Pin, PinKind, Pins, PinsError, Publisher, RecoveryTarget, RetainedRecord,
    TableInfo, fsck, move_pages, pin_point,
};
use logstead_env::{Env, SimClock, SimRandom};
use logstead_home::simulated::MODELS;
use logstead_home::{HomeError, LogHome, ObjectId, SimulatedHome, SimulatedOptions, Tag};
use logstead_types::{Csn, DatabaseId, Epoch, IndexId, TableId};
use logstead_wal::manifest::{CheckpointRef, Manifest};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(super) const DATABASE: DatabaseId = DatabaseId(0xfeed);
pub(super) const HEAD: &str = "head";
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
pub(super) struct TestHead {
    pub(super) home: LogHome,
    pub(super) tag: Mutex<Option<Tag>>,
    pub(super) random: Arc<SimRandom>,
}

pub(super) fn head(home: &LogHome) -> Result<Option<(CheckpointRef, Tag)>, HomeError> {
    let Some((bytes, tag)) = home.names.get(HEAD)? else {
        return Ok(None);
    };
    let text = String::from_utf8(bytes).unwrap();
    let numbers: Vec<u64> = text.split(' ').map(|word| word.parse().unwrap()).collect();
    let checkpoint = CheckpointRef {
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
            None => self.home.names.put_if_absent(HEAD, text.as_bytes()),
            Some(tag) => self.home.names.compare_and_swap(HEAD, tag, text.as_bytes()),
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

impl CheckpointHead for TestHead {
    fn name(&self, checkpoint: CheckpointRef) -> Result<(), HomeError> {
        let CheckpointRef {
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
pub(super) fn manifest(home: &LogHome) -> Result<Manifest, CheckpointError> {
    let checkpoint = head(home)?.map(|(checkpoint, _)| checkpoint);
    Ok(Manifest {
        epoch: Epoch(u32::MAX),
        checkpoint,
        ..Manifest::first(DATABASE)
    })
}

/// A branch of that name, as far as `state`.
pub(super) fn branch(name: &str, state: BranchState, record: RetainedRecord) -> Pin {
    let database = DatabaseId(1);
    Pin {
        kind: PinKind::Branch { state, database },
        name: name.to_owned(),
        record,
    }
}

/// Makes a branch as who makes one does. `manifest` reads the manifest.
pub(super) fn make_branch(
    home: &LogHome,
    name: &str,
    which: &RecoveryTarget,
    manifest: impl Fn() -> Result<Manifest, CheckpointError>,
    chosen: impl Fn(),
) -> Result<Option<RetainedRecord>, CheckpointError> {
    let making = |_: &Pins, record| {
        chosen();
        Ok(branch(name, BranchState::Making, record))
    };
    let Some(pin) = pin_point(home, which, making, manifest)? else {
        return Ok(None);
    };
    Pins::change(home.names.as_ref(), |pins| {
        pins.put(branch(name, BranchState::Made, pin.record));
        Ok::<_, PinsError>(())
    })?;
    Ok(Some(pin.record))
}

/// What the outside knows over all lives.
pub(super) struct World {
    pub(super) sim: SimulatedHome,
    pub(super) home: LogHome,
    pub(super) random: Arc<SimRandom>,
    pub(super) epoch: u32,
    /// By CSN: every state of which a checkpoint was tried.
    pub(super) history: BTreeMap<Csn, Rows>,
    pub(super) published: Csn,
    tried: BTreeSet<Csn>,
}

pub(super) struct Server {
    pub(super) publisher: Publisher<TestHead>,
    directory: Directory,
    rows: Rows,
    csn: Csn,
    chunks: ChunkWriter,
}

impl World {
    pub(super) fn new(seed: u64) -> World {
        let clock = Arc::new(SimClock::new());
        let (mut env, _) = Env::simulated(seed);
        env.clock = Arc::clone(&clock) as _;
        let model = MODELS.iter().find(|model| model.name == "s3express");
        let options = SimulatedOptions::new(model.unwrap().clone(), seed);
        let sim = SimulatedHome::in_virtual_time(&options, &env, clock).unwrap();
        World {
            home: LogHome::from(sim.clone()),
            sim,
            random: Arc::new(SimRandom::new(seed)),
            epoch: 0,
            history: BTreeMap::from([(Csn::ZERO, Rows::new())]),
            published: Csn::ZERO,
            tried: BTreeSet::new(),
        }
    }

    /// A start: finds the newest checkpoint, which must be the last that was published or one that was tried since, and
    /// reads it.
    pub(super) fn open(&mut self) -> Result<Server, CheckpointError> {
        self.epoch += 1;
        let found = head(&self.home)?;
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
            self.home.clone(),
            TestHead {
                home: self.home.clone(),
                tag: Mutex::new(found.as_ref().map(|(_, tag)| *tag)),
                random: Arc::clone(&self.random),
            },
            DATABASE,
            Arc::new(ObjectIdAllocator::new(Epoch(self.epoch))),
            found.as_ref().map(|(checkpoint, _)| checkpoint),
        )?;
        let root = publisher.newest().and_then(|newest| newest.record.root);
        let directory = Directory::open(self.home.objects.clone(), root);
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

    /// Everything that the newest record and what it keeps name is there and whole; nothing is missing, nothing is
    /// wrong.
    pub(super) fn check(&self, server: &Server) -> Result<BTreeSet<ObjectId>, CheckpointError> {
        let found = head(&self.home)?;
        let report = fsck(&self.home, DATABASE, found.as_ref().map(|(head, _)| head))?;
        assert!(report.is_clean(), "{report}: {:#?}", report.damage);
        let mut named = BTreeSet::new();
        for pin in Pins::read(self.home.names.as_ref())?.0.iter() {
            let RetainedRecord {
                object, crc, csn, ..
            } = pin.record;
            let in_making = matches!(
                pin.kind,
                PinKind::Branch {
                    state: BranchState::Making,
                    ..
                }
            );
            match CheckpointRecord::read(self.home.objects.as_ref(), DATABASE, object, crc) {
                Ok(record) => {
                    let directory = Directory::open(self.home.objects.clone(), record.root);
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
            let record = CheckpointRecord::read(
                self.home.objects.as_ref(),
                DATABASE,
                kept.object,
                kept.crc,
            )?;
            let directory = Directory::open(self.home.objects.clone(), record.root);
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
    pub(super) fn checkpoint(
        &mut self,
        server: &mut Server,
        given_up: bool,
    ) -> Result<(), CheckpointError> {
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
        let limits = CompactionLimits {
            moved_bytes_max: 3_000,
            small_objects: 4,
            ..CompactionLimits::default()
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
        limits: &CompactionLimits,
        given_up: bool,
    ) -> Result<(), CheckpointError> {
        let Server {
            publisher,
            directory,
            rows,
            chunks,
            ..
        } = server;
        let object_ids = Arc::clone(publisher.object_ids());
        let rewrites = publisher.to_rewrite(directory, limits)?;
        let mut writer =
            ObjectWriter::new(self.home.objects.clone(), object_ids, None).with_object_bytes(1_500);
        let mut changes: BTreeMap<_, Option<PageChain>> = BTreeMap::new();
        let whole = (0..CHUNKS).filter(|chunk| rewrites.keys.contains(&key(1, *chunk)));
        for chunk in touched.iter().copied().chain(whole) {
            let old = directory.get(&key(1, chunk))?;
            let is_rewritten = rewrites.keys.contains(&key(1, chunk));
            let chain = match old {
                Some(mut chain) if !is_rewritten && !chain.is_due_for_merge(100, 0) => {
                    chunks.begin(key(1, chunk), ImageKind::Delta, csn);
                    for slot in 0..SLOTS as u16 {
                        let place = (1, chunk, slot);
                        match (before.get(&place), rows.get(&place)) {
                            (old, Some(row)) if old != Some(row) => {
                                chunks.row(slot, row.0, &row.1, &mut writer)?;
                            }
                            (Some(_), None) => chunks.delete(slot)?,
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
            divided: Vec::new(),
            csn,
            taken_at_micros: csn.0 as i64,
            tables: vec![table],
            indexes: vec![INDEX],
            starts: Vec::new(),
        };
        let keep_every = 1 + self.random.below(3);
        let keep = |kept: &RetainedRecord| kept.csn.0 % keep_every == 1 && csn.0 - kept.csn.0 < 20;
        publisher.publish(new, &applied, &[], stored, keep)?;
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
                    0 => RecoveryTarget::Newest,
                    _ => RecoveryTarget::At(self.random.below(2_000_000) as i64),
                };
                make_branch(&self.home, &name, &which, || manifest(&self.home), || {})?;
            }
            1 => {
                let point = |_: &Pins, record| {
                    Ok::<_, CheckpointError>(Pin {
                        kind: PinKind::Point,
                        name: name.clone(),
                        record,
                    })
                };
                pin_point(&self.home, &RecoveryTarget::Newest, point, || {
                    manifest(&self.home)
                })?;
            }
            2 => {
                Pins::change(self.home.names.as_ref(), |pins| {
                    pins.remove_branch(&name);
                    pins.remove_point(&name);
                    Ok::<_, PinsError>(())
                })?;
            }
            _ => {}
        }
        Ok(())
    }

    /// One life: some checkpoints; everything is checked after each of them if `is_checked`. Ends with the first error
    /// of a machine that has stopped.
    pub(super) fn live(
        &mut self,
        checkpoints: u64,
        is_checked: bool,
    ) -> Result<(), CheckpointError> {
        let mut server = self.open()?;
        for _ in 0..checkpoints {
            let given_up = self.random.below(8) == 0;
            let before = server.rows.clone();
            match self.checkpoint(&mut server, given_up) {
                Ok(()) => {}
                Err(error) if self.sim.is_down() => return Err(error),
                // A publication in doubt: the server goes on.
                Err(_) => {
                    let (found, tag) = match head(&self.home)? {
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
    pub(super) fn settled(
        &self,
        publisher: Publisher<TestHead>,
        tag: Option<Tag>,
    ) -> Publisher<TestHead> {
        *publisher.head().tag.lock() = tag;
        publisher
    }

    /// After a crash: what was published or tried is whole, and one more checkpoint leaves nothing that is not needed.
    pub(super) fn verify(&mut self) {
        let mut server = self.open().unwrap();
        self.check(&server).unwrap();
        let published = loop {
            match self.checkpoint(&mut server, false) {
                Ok(()) => break true,
                Err(CheckpointError::Home(HomeError::Io { .. })) => {
                    let tag = head(&self.home).unwrap().map(|(_, tag)| tag);
                    server.publisher = self.settled(server.publisher, tag);
                }
                Err(error) => panic!("{error}"),
            }
        };
        assert!(published);
        let collected = server.publisher.collect().unwrap();
        assert_eq!(collected.left, 0);
        let named = self.check(&server).unwrap();
        let there = self.home.objects.list_objects().unwrap();
        let there: BTreeSet<_> = there.into_iter().map(|info| info.id).collect();
        assert_eq!(there, named, "needed and there");
        // Nothing leaks for ever: without its branches and restore points, what only they needed goes.
        unpin_all(&self.home);
        server.publisher.collect().unwrap();
        let named = self.check(&server).unwrap();
        let there = self.home.objects.list_objects().unwrap();
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
    changes: &mut Vec<(PageKey, Option<PageChain>)>,
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
pub(super) fn unpin_all(home: &LogHome) {
    Pins::change(home.names.as_ref(), |pins| {
        *pins = Pins::default();
        Ok::<_, PinsError>(())
    })
    .unwrap();
}

pub(super) fn requests_of_a_life(seed: u64, checkpoints: u64) -> u64 {
    let mut world = World::new(seed);
    world.live(checkpoints, false).unwrap();
    let requests = world.sim.requests();
    world.verify();
    requests
}
