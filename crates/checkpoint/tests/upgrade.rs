//! Checkpoints whose chunks have 1,024 slots are made anew in chunks of 64: the same rows, whatever their pages were like, with the machine stopping at every
//! single request, and with a manifest of which nobody knows whether it was stored. Written here byte by byte, since nothing else writes them any more.

mod rig;

use logstead_checkpoint::frame::{Encoder, FrameKind};
use logstead_checkpoint::{
    Chain, CheckpointError, ChunkSize, ChunkWriter, Directory, Extent, Head, IndexInfo, KeptRecord,
    LeafWriter, Ledger, NewCheckpoint, ObjectUse, ObjectWriter, PageKey, PageReader, Publisher,
    Record, TableInfo, Upgrade, Upgraded, Upgrading, backup, fsck,
};
use logstead_env::{Env, SimClock, SimRandom};
use logstead_home::bucket::memory::{MemoryBucket, MemoryOptions};
use logstead_home::simulated::MODELS;
use logstead_home::{
    HomeError, LogHome, ObjectHome, ObjectId, ObjectOptions, SimulatedHome, SimulatedOptions, Tag,
};
use logstead_types::{Csn, DatabaseId, Epoch, IndexId, TableId};
use logstead_wal::inspect::manifest_of;
use logstead_wal::manifest::{Checkpoint, Manifest};
use logstead_wal::varint;
use parking_lot::Mutex;
use rig::paused::Paused;
use rig::{Entries, key, read_all, read_index, tile, write_tile};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const DATABASE: DatabaseId = DatabaseId(0xfeed);
/// Stands for the manifest: the checkpoint, the epoch that wrote last, and a number that makes each state another.
const HEAD: &str = "head";
const OLD_SLOTS: u64 = 1024;
const INDEX: IndexInfo = IndexInfo {
    table: TableId(1),
    index: IndexId(2),
    keys: 3,
};

/// The row that a further checkpoint has.
const NEW: (u32, u64) = (7, 3 * 64 + 5);

/// Rows by table and row id.
type Rows = BTreeMap<(u32, u64), (Csn, Vec<u8>)>;

/// Makes a page of an old chunk.
fn page(
    encoder: &mut Encoder,
    kind: FrameKind,
    csn: Csn,
    (table, chunk): (u32, u64),
    rows: &[(u16, Csn, Vec<u8>)],
    gone: &[u16],
) -> Vec<u8> {
    let mut payload = Vec::new();
    payload.extend((rows.len() as u16).to_le_bytes());
    payload.extend((gone.len() as u16).to_le_bytes());
    let mut next = 0;
    for (slot, written, bytes) in rows {
        varint::put(u64::from(slot - next), &mut payload);
        varint::put(csn.0 - written.0, &mut payload);
        varint::put(bytes.len() as u64, &mut payload);
        payload.extend(bytes);
        next = slot + 1;
    }
    next = 0;
    for slot in gone {
        varint::put(u64::from(slot - next), &mut payload);
        next = slot + 1;
    }
    let key = page_key((table, chunk));
    encoder.encode(kind, csn, &key, &payload).unwrap().to_vec()
}

fn page_key((table, chunk): (u32, u64)) -> Vec<u8> {
    let mut key = vec![1];
    key.extend(table.to_be_bytes());
    key.extend(chunk.to_be_bytes());
    key
}

/// Makes the pieces of a row of an old chunk.
fn pieces(
    encoder: &mut Encoder,
    csn: Csn,
    chunk: (u32, u64),
    (slot, written, bytes): &(u16, Csn, Vec<u8>),
    len: usize,
) -> Vec<Vec<u8>> {
    let piece = |(number, part): (usize, &[u8])| {
        let mut payload = Vec::new();
        let at = number * len;
        for value in [
            u64::from(*slot),
            csn.0 - written.0,
            bytes.len() as u64,
            at as u64,
        ] {
            varint::put(value, &mut payload);
        }
        payload.extend(part);
        let frame = encoder.encode(FrameKind::RowPiece, csn, &page_key(chunk), &payload);
        frame.unwrap().to_vec()
    };
    bytes.chunks(len).enumerate().map(piece).collect()
}

/// Names the newest checkpoint, now and then without an answer.
struct TestHead {
    home: Arc<dyn LogHome>,
    tag: Mutex<Option<Tag>>,
    epoch: Epoch,
    random: Arc<SimRandom>,
}

fn head(home: &dyn LogHome) -> Result<(Checkpoint, Epoch, Tag), HomeError> {
    let (bytes, tag) = home.get(HEAD)?.expect("it was stored");
    let text = String::from_utf8(bytes).unwrap();
    let numbers: Vec<u64> = text.split(' ').map(|word| word.parse().unwrap()).collect();
    let checkpoint = Checkpoint {
        object: ObjectId(numbers[0]),
        crc: numbers[1] as u32,
        csn: Csn(numbers[2]),
        epoch: Epoch(numbers[3] as u32),
        starts: Vec::new(),
    };
    Ok((checkpoint, Epoch(numbers[4] as u32), tag))
}

impl TestHead {
    fn new(
        home: &Arc<dyn LogHome>,
        random: &Arc<SimRandom>,
        tag: Option<Tag>,
        epoch: Epoch,
    ) -> TestHead {
        TestHead {
            home: Arc::clone(home),
            tag: Mutex::new(tag),
            epoch,
            random: Arc::clone(random),
        }
    }

    fn store(&self, checkpoint: &Checkpoint) -> Result<(), HomeError> {
        let Checkpoint {
            object,
            crc,
            csn,
            epoch,
            ..
        } = checkpoint;
        let state = self.random.below(u64::MAX);
        let text = format!("{} {crc} {csn} {epoch} {} {state}", object.0, self.epoch);
        let mut tag = self.tag.lock();
        *tag = Some(match *tag {
            None => self.home.put_if_absent(HEAD, text.as_bytes())?,
            Some(tag) => self.home.compare_and_swap(HEAD, tag, text.as_bytes())?,
        });
        Ok(())
    }
}

impl Head for TestHead {
    fn name(&self, checkpoint: Checkpoint) -> Result<(), HomeError> {
        let doubtful = HomeError::io("naming", std::io::Error::other("no answer"));
        match self.random.below(8) {
            0 => Err(doubtful),
            1 => self.store(&checkpoint).and(Err(doubtful)),
            _ => self.store(&checkpoint),
        }
    }
}

type Started = Result<(Publisher<TestHead>, Directory), CheckpointError>;

/// A start: claims the home, makes the newest checkpoint anew, names it, and marks the new epoch.
fn start(home: &Arc<dyn LogHome>, random: &Arc<SimRandom>) -> Started {
    let (mut at, epoch, tag) = head(&**home)?;
    let naming = TestHead::new(home, random, Some(tag), epoch);
    naming.store(&at)?;
    let mut told = 0;
    if let Some(upgrade) = Upgrade::of(home, DATABASE, &at)? {
        let old = at.clone();
        let upgraded = upgrade.store(epoch, &mut || naming.store(&old), |_| told += 1)?;
        assert!(told > 0 && upgraded.read.rows > 0);
        naming.name(upgraded.checkpoint.clone())?;
        at = upgraded.checkpoint;
    }
    let next = Epoch(epoch.get() + 1);
    let tag = *naming.tag.lock();
    let marking = TestHead::new(home, random, tag, next);
    marking.store(&at)?;
    let ledger = Arc::new(Ledger::new(next));
    let publisher = Publisher::open(Arc::clone(home), marking, DATABASE, ledger, Some(&at))?;
    let root = publisher.newest().unwrap().record.root;
    Ok((publisher, Directory::open(Arc::clone(home), root)))
}

/// Makes a checkpoint anew that is an old one, where nobody else is.
fn upgrade(
    home: &Arc<dyn LogHome>,
    at: &Checkpoint,
    epoch: Epoch,
    progress: impl FnMut(&Upgrading),
) -> Result<Upgraded, CheckpointError> {
    let upgrade = Upgrade::of(home, DATABASE, at)?.expect("it is an old one");
    upgrade.store(epoch, &mut || Ok(()), progress)
}

struct World {
    sim: SimulatedHome,
    home: Arc<dyn LogHome>,
    random: Arc<SimRandom>,
    rows: Rows,
    /// What the record that is kept has.
    earlier: Rows,
    entries: Entries,
    /// The old records, oldest first.
    old: Vec<(ObjectId, Record)>,
}

/// A directory of old chunks being made.
struct Old<'w> {
    writer: ObjectWriter<'w>,
    directory: Directory,
    uses: BTreeMap<ObjectId, i64>,
}

impl World {
    fn new(seed: u64) -> World {
        let clock = Arc::new(SimClock::new());
        let (mut env, _) = Env::simulated(seed);
        env.clock = Arc::clone(&clock) as _;
        let model = MODELS.iter().find(|model| model.name == "s3express");
        let options = SimulatedOptions::new(model.unwrap().clone(), seed);
        let sim = SimulatedHome::in_virtual_time(&options, &env, clock).unwrap();
        let mut world = World {
            home: Arc::new(sim.clone()),
            sim,
            random: Arc::new(SimRandom::new(seed)),
            rows: Rows::new(),
            earlier: Rows::new(),
            entries: Entries::new(),
            old: Vec::new(),
        };
        world.fill();
        world
    }

    fn roll(&self, below: u64) -> u64 {
        self.random.below(below)
    }

    /// Two checkpoints of an old server: chunks whole, in parts and in pieces, then deltas of them.
    fn fill(&mut self) {
        let ledger = Arc::new(Ledger::new(Epoch(1)));
        let mut encoder = Encoder::new();
        let mut uses = BTreeMap::new();
        let mut directory = Directory::open(Arc::clone(&self.home), None);
        for (round, csn) in [Csn(1_000), Csn(2_000)].into_iter().enumerate() {
            let writer = ObjectWriter::new(Arc::clone(&self.home), Arc::clone(&ledger), None)
                .with_object_bytes(3_000);
            let mut old = Old {
                writer,
                directory,
                uses,
            };
            let changes = match round {
                0 => self.whole(csn, &mut old, &mut encoder),
                _ => self.deltas(csn, &mut old, &mut encoder),
            };
            let stored = {
                let none = BTreeSet::new();
                let made = old.directory.apply(&changes, &none, csn, &mut old.writer);
                let made = made.unwrap();
                for (object, bytes) in made.live {
                    *old.uses.entry(object).or_default() += bytes;
                }
                old.directory = made.directory;
                old.writer.finish().unwrap()
            };
            let objects = old.uses.iter().filter(|(_, live)| **live > 0);
            let sizes: BTreeMap<_, _> = self.home.objects().unwrap().into_iter().collect_sizes();
            let record = Record {
                database: DATABASE,
                chunk_size: ChunkSize::Of1024,
                csn,
                epoch: Epoch(1),
                taken_at_micros: csn.0 as i64,
                root: old.directory.root(),
                tables: [1, 7].map(|table| self.table(table)).into(),
                indexes: vec![INDEX],
                objects: objects
                    .map(|(object, live)| ObjectUse {
                        object: *object,
                        size_bytes: sizes[object],
                        live_bytes: *live as u64,
                    })
                    .collect(),
                starts: Vec::new(),
                kept: self
                    .old
                    .iter()
                    .map(|(object, record)| KeptRecord {
                        object: *object,
                        crc: crc32c::crc32c(&record.encode(*object).unwrap()),
                        csn: record.csn,
                        taken_at_micros: record.taken_at_micros,
                    })
                    .collect(),
                has_pins: false,
            };
            let object = ObjectId::new(Epoch(1), 1_000 + round as u32);
            let bytes = record.encode(object).unwrap();
            self.home.put_object(object, &bytes).unwrap();
            rig::keep(stored);
            self.old.push((object, record));
            if round == 0 {
                self.earlier = self.rows.clone();
            }
            (directory, uses) = (old.directory, old.uses);
        }
        let (object, record) = self.old.last().unwrap();
        let checkpoint = Checkpoint {
            object: *object,
            crc: crc32c::crc32c(&record.encode(*object).unwrap()),
            csn: record.csn,
            epoch: record.epoch,
            starts: Vec::new(),
        };
        self.head(None, Epoch(1)).store(&checkpoint).unwrap();
    }

    fn table(&self, table: u32) -> TableInfo {
        TableInfo {
            table: TableId(table),
            rid_end: 5 * OLD_SLOTS + 100,
        }
    }

    fn head(&self, tag: Option<Tag>, epoch: Epoch) -> TestHead {
        TestHead::new(&self.home, &self.random, tag, epoch)
    }

    fn row(&self) -> Vec<u8> {
        let len = [0, 5, 40, 300][self.roll(4) as usize];
        vec![self.roll(256) as u8; len]
    }

    fn whole(
        &mut self,
        csn: Csn,
        old: &mut Old<'_>,
        encoder: &mut Encoder,
    ) -> Vec<(PageKey, Option<Chain>)> {
        let mut changes = Vec::new();
        for table in [1, 7] {
            for chunk in 0..6 {
                let end = if chunk == 5 { 100 } else { OLD_SLOTS };
                // Some have many rows, some few, some none.
                let count = [0, 3, 40, 200][(chunk + u64::from(table)) as usize % 4];
                let slots: BTreeSet<u16> = (0..count).map(|_| self.roll(end) as u16).collect();
                if slots.is_empty() {
                    continue;
                }
                let rows: Vec<_> = slots
                    .iter()
                    .map(|slot| (*slot, Csn(1 + self.roll(999)), self.row()))
                    .collect();
                let (base, part) = rows.split_at(rows.len() / 2);
                let place = (table, chunk);
                let mut frames = vec![page(encoder, FrameKind::RowsBase, csn, place, base, &[])];
                let (part, large) = part.split_at(part.len().saturating_sub(1));
                if !part.is_empty() {
                    frames.push(page(encoder, FrameKind::RowsDelta, csn, place, part, &[]));
                }
                let large = large.first().map(|(slot, written, _)| {
                    let bytes = vec![self.roll(256) as u8; 700];
                    (*slot, *written, bytes)
                });
                if let Some(large) = &large {
                    frames.extend(pieces(encoder, csn, place, large, 300));
                }
                let rows = base.iter().chain(part).cloned().chain(large);
                for (slot, written, bytes) in rows {
                    let rid = chunk * OLD_SLOTS + u64::from(slot);
                    self.rows.insert((table, rid), (written, bytes));
                }
                let pages: Vec<_> = frames
                    .iter()
                    .map(|frame| old.writer.put(frame).unwrap())
                    .collect();
                changes.push((key(table, chunk), Chain::whole(&pages)));
            }
        }
        self.entries = (0..30_u8).map(|n| vec![n, 1, 2]).collect();
        let mut leaves = LeafWriter::new().with_page_bytes(40);
        let lows: [&[u8]; 3] = [&[], &[10], &[20]];
        for (at, low) in lows.iter().enumerate() {
            let high = lows.get(at + 1).copied();
            let within =
                |entry: &&Vec<u8>| &entry[..] >= *low && high.is_none_or(|h| &entry[..] < h);
            let own: Entries = self.entries.iter().filter(within).cloned().collect();
            let tile = tile(1, 2, low);
            let chain = write_tile(&own, tile.clone(), high, csn, &mut leaves, &mut old.writer);
            changes.push((tile, Some(chain.unwrap())));
        }
        changes
    }

    fn deltas(
        &mut self,
        csn: Csn,
        old: &mut Old<'_>,
        encoder: &mut Encoder,
    ) -> Vec<(PageKey, Option<Chain>)> {
        let mut changes = Vec::new();
        for (number, found) in old.directory.scan(None).enumerate() {
            let (found, mut chain) = found.unwrap();
            let PageKey::Rows { table, chunk } = found else {
                break;
            };
            let table = table.get();
            if number == 0 {
                // All of its rows are gone, and so is it.
                self.rows
                    .retain(|(of, rid), _| (*of, rid / OLD_SLOTS) != (table, chunk));
                changes.push((key(table, chunk), None));
                continue;
            }
            let end = if chunk == 5 { 100 } else { OLD_SLOTS };
            let first = chunk * OLD_SLOTS;
            let slots: BTreeSet<u16> = (0..8).map(|_| self.roll(end) as u16).collect();
            let mut there = self
                .rows
                .range((table, first)..(table, first + OLD_SLOTS))
                .map(|((_, rid), _)| (rid - first) as u16);
            let gone: Vec<u16> = there.next().into_iter().chain(there.next_back()).collect();
            let new: Vec<_> = slots
                .iter()
                .filter(|slot| !gone.contains(slot))
                .map(|slot| (*slot, Csn(1_000 + self.roll(1_000)), self.row()))
                .collect();
            for slot in &gone {
                self.rows.remove(&(table, first + u64::from(*slot)));
            }
            for (slot, written, bytes) in &new {
                let rid = first + u64::from(*slot);
                self.rows.insert((table, rid), (*written, bytes.clone()));
            }
            let place = (table, chunk);
            let frame = page(encoder, FrameKind::RowsDelta, csn, place, &new, &gone);
            chain.push(&[old.writer.put(&frame).unwrap()]);
            changes.push((key(table, chunk), Some(chain)));
        }
        changes
    }

    fn start(&self) -> Started {
        start(&self.home, &self.random)
    }

    /// Everything is there: what the directory leads to, what is kept, and nothing else.
    fn verify(&self, publisher: &Publisher<TestHead>, directory: &Directory) {
        let named = self.verify_named(publisher, directory);
        let there = self.home.objects().unwrap();
        let there: BTreeSet<_> = there.into_iter().map(|info| info.id).collect();
        assert_eq!(there, named, "needed and there");
    }

    /// The same, whatever else is there: gives what is needed.
    fn verify_named(
        &self,
        publisher: &Publisher<TestHead>,
        directory: &Directory,
    ) -> BTreeSet<ObjectId> {
        let rows = read_all(&self.home, directory).unwrap();
        let of_rows = |(place, row): ((u32, u64, u16), _)| {
            assert!(place.2 < 64);
            ((place.0, place.1 * 64 + u64::from(place.2)), row)
        };
        let rows: Rows = rows.into_iter().map(of_rows).collect();
        assert!(rows == self.rows, "what is read");
        let entries = read_index(&self.home, directory, (1, 2)).unwrap();
        assert_eq!(entries, self.entries);
        let newest = publisher.newest().unwrap();
        let record = &newest.record;
        let mut named = BTreeSet::from([newest.object]);
        named.extend(record.objects.iter().map(|used| used.object));
        let [kept] = record.kept[..] else {
            panic!("one is kept: {:?}", record.kept);
        };
        let (object, earlier) = &self.old[0];
        assert_eq!(kept.object, *object);
        let read = Record::read(&*self.home, DATABASE, kept.object, kept.crc).unwrap();
        assert_eq!(read, *earlier);
        assert!(self.read_old(&read) == self.earlier, "what is kept");
        named.insert(kept.object);
        named.extend(read.objects.iter().map(|used| used.object));
        named
    }

    fn read_old(&self, record: &Record) -> Rows {
        let directory = Directory::open(Arc::clone(&self.home), record.root);
        let mut reader = PageReader::new(Arc::clone(&self.home));
        let mut rows = Rows::new();
        for found in directory.scan(None) {
            let (key, chain) = found.unwrap();
            let PageKey::Rows { table, chunk } = key else {
                break;
            };
            let size = record.chunk_size;
            let visit = |slot: u16, csn: Csn, bytes: &[u8]| {
                let rid = chunk * u64::from(size.slots()) + u64::from(slot);
                rows.insert((table.get(), rid), (csn, bytes.to_vec()));
            };
            reader.chunk_of(size, &key, &chain, visit).unwrap();
        }
        rows
    }

    /// One more checkpoint, on top of what was made anew.
    fn go_on(&mut self, publisher: &mut Publisher<TestHead>, directory: &mut Directory) {
        let csn = Csn(3_000);
        let ledger = Arc::clone(publisher.ledger());
        let mut writer = ObjectWriter::new(Arc::clone(&self.home), ledger, None);
        let mut chunks = ChunkWriter::new();
        let page = (7, 3);
        chunks.begin(key(page.0, page.1), Extent::Delta, csn);
        chunks.row(5, Csn(2_500), b"new", &mut writer).unwrap();
        let delta = chunks.finish(&mut writer).unwrap().to_vec();
        let mut chain = directory.get(&key(page.0, page.1)).unwrap().unwrap();
        chain.push(&delta);
        let before = self.rows.clone();
        self.rows.insert(NEW, (Csn(2_500), b"new".to_vec()));
        let changes = [(key(page.0, page.1), Some(chain))];
        let applied = directory.apply(&changes, &BTreeSet::new(), csn, &mut writer);
        let (applied, stored) = (applied.unwrap(), writer.finish().unwrap());
        let new = NewCheckpoint {
            csn,
            taken_at_micros: 3_000,
            tables: [1, 7].map(|table| self.table(table)).into(),
            indexes: vec![INDEX],
            starts: Vec::new(),
        };
        let keep = |kept: &KeptRecord| kept.csn == Csn(1_000);
        // Whether it is named or not, what is there is whole.
        if publisher.publish(new, &applied, stored, keep).is_ok() {
            *directory = applied.directory;
        } else {
            let (at, epoch, tag) = head(&*self.home).unwrap();
            if at.csn != csn {
                self.rows = before;
            }
            let ledger = Arc::new(Ledger::new(Epoch(epoch.get() + 1)));
            let again = self.head(Some(tag), ledger.epoch());
            again.store(&at).unwrap();
            let home = Arc::clone(&self.home);
            *publisher = Publisher::open(home, again, DATABASE, ledger, Some(&at)).unwrap();
            let root = publisher.newest().unwrap().record.root;
            *directory = Directory::open(Arc::clone(&self.home), root);
        }
        publisher.collect().unwrap();
    }

    /// Starts until one succeeds, and removes what is not needed.
    fn started(&self) -> (Publisher<TestHead>, Directory) {
        let (mut publisher, directory) = loop {
            match self.start() {
                Ok(started) => break started,
                Err(CheckpointError::Home(HomeError::Io { .. })) => {}
                Err(error) => panic!("{error}"),
            }
        };
        publisher.collect().unwrap();
        (publisher, directory)
    }

    /// Everything is there after a start, and after another checkpoint.
    fn settle(&mut self) {
        let (mut publisher, mut directory) = self.started();
        self.verify(&publisher, &directory);
        self.go_on(&mut publisher, &mut directory);
        self.verify(&publisher, &directory);
        self.check();
    }

    fn check(&self) {
        let (at, ..) = head(&*self.home).unwrap();
        let report = fsck(&self.home, DATABASE, Some(&at)).unwrap();
        assert!(report.is_clean(), "{report}: {:#?}", report.damage);
        assert_eq!((report.records, report.rows), (2, self.rows.len() as u64));
    }
}

/// Sizes by number.
trait Sizes {
    fn collect_sizes(self) -> BTreeMap<ObjectId, u64>;
}

impl<I: Iterator<Item = logstead_home::ObjectInfo>> Sizes for I {
    fn collect_sizes(self) -> BTreeMap<ObjectId, u64> {
        self.map(|info| (info.id, info.size_bytes)).collect()
    }
}

#[test]
fn an_old_checkpoint_has_the_same_rows_in_small_chunks() {
    for seed in 0..8 {
        let mut world = World::new(seed);
        let (at, ..) = head(&*world.home).unwrap();
        let report = fsck(&world.home, DATABASE, Some(&at)).unwrap();
        assert!(report.is_clean(), "{report}: {:#?}", report.damage);
        assert!(world.read_old(&world.old[1].1) == world.rows);
        world.settle();
    }
}

#[test]
fn a_crash_at_any_request_of_an_upgrade_loses_nothing() {
    for seed in 0..6 {
        let world = World::new(seed);
        let before = world.sim.requests();
        let (mut publisher, _) = loop {
            match world.start() {
                Ok(started) => break started,
                Err(error) => assert!(!world.sim.is_down(), "{error}"),
            }
        };
        publisher.collect().unwrap();
        let requests = world.sim.requests() - before;
        assert!(requests > 20, "{requests}");
        for crash_at in 0..requests {
            let run = || {
                let mut world = World::new(seed);
                world.sim.crash_at(world.sim.requests() + crash_at);
                while !world.sim.is_down() {
                    if let Ok((mut publisher, _)) = world.start() {
                        let _stopped = publisher.collect();
                        break;
                    }
                }
                world.sim.reboot();
                // A second start is cut off as well, some time.
                world
                    .sim
                    .crash_at(world.sim.requests() + world.roll(requests));
                let _cut_off = world.start().map(drop);
                world.sim.reboot();
                world.settle();
            };
            if let Err(panic) = std::panic::catch_unwind(run) {
                eprintln!("seed {seed}, crash at request {crash_at}");
                std::panic::resume_unwind(panic);
            }
        }
    }
}

/// What an interposed start has done, to be looked at afterwards.
type Overtaken = Arc<Mutex<Option<(World, Option<(Publisher<TestHead>, Directory)>)>>>;

/// Stops a start at every request, has others go as far as they like meanwhile, and lets it go on.
fn overlap(seed: u64, others: fn(&mut World, u64) -> (Publisher<TestHead>, Directory)) {
    let requests = {
        let world = World::new(seed);
        let paused = Paused::at(&world.home, u64::MAX, Box::new(|| ()));
        let home: Arc<dyn LogHome> = Arc::clone(&paused) as _;
        // Named or not: all of its requests are counted.
        let _started = start(&home, &world.random).map(|(mut publisher, _)| publisher.collect());
        paused.requests()
    };
    assert!(requests > 20, "{requests}");
    for stop_at in 0..requests {
        let run = || {
            let world = World::new(seed);
            let (raw, random) = (Arc::clone(&world.home), Arc::clone(&world.random));
            let shared: Overtaken = Arc::new(Mutex::new(Some((world, None))));
            let within = Arc::clone(&shared);
            let meanwhile = move || {
                let (mut world, _) = within.lock().take().unwrap();
                let served = others(&mut world, requests);
                *within.lock() = Some((world, Some(served)));
            };
            let paused = Paused::at(&raw, stop_at, Box::new(meanwhile));
            let home: Arc<dyn LogHome> = paused;
            let late = start(&home, &random);
            let taken_over = late.is_ok();
            if let Ok((mut publisher, _)) = late {
                let _stopped = publisher.collect();
            }
            let (mut world, served) = shared.lock().take().unwrap();
            // Nothing is gone of what the other one serves, unless it was overtaken itself.
            if let Some((publisher, directory)) = served
                && !taken_over
            {
                world.verify_named(&publisher, &directory);
            }
            let (publisher, directory) = world.started();
            world.verify(&publisher, &directory);
            if !world.rows.contains_key(&NEW) {
                world.settle();
            }
            world.check();
        };
        if let Err(panic) = std::panic::catch_unwind(run) {
            eprintln!("seed {seed}, stopped at request {stop_at}");
            std::panic::resume_unwind(panic);
        }
    }
}

#[test]
fn a_start_that_was_overtaken_takes_nothing_from_the_next_one() {
    for seed in 0..4 {
        overlap(seed, |world, _| {
            let (mut publisher, mut directory) = world.started();
            world.go_on(&mut publisher, &mut directory);
            (publisher, directory)
        });
    }
}

/// Its leftovers, and those of one that was cut off, are the third one's to remove, and that one's are nobody's.
#[test]
fn of_three_starts_the_last_one_has_everything() {
    for seed in 0..4 {
        overlap(seed, |world, requests| {
            let cut_off = world.roll(requests);
            let second: Arc<dyn LogHome> = Paused::dead_after(&world.home, cut_off);
            let _cut_off = start(&second, &world.random).map(drop);
            let (mut publisher, mut directory) = world.started();
            world.go_on(&mut publisher, &mut directory);
            (publisher, directory)
        });
    }
}

/// What an attempt has left goes with the next one, whose numbers are all higher.
#[test]
fn an_attempt_removes_what_the_one_before_has_left() {
    for seed in 0..4 {
        let world = World::new(seed);
        let own = |home: &Arc<dyn LogHome>| -> Vec<ObjectId> {
            let there = home.objects().unwrap().into_iter().map(|info| info.id);
            there.filter(|id| id.counter() >= 1 << 31).collect()
        };
        let (at, epoch, _) = head(&*world.home).unwrap();
        let upgrade = Upgrade::of(&world.home, DATABASE, &at).unwrap().unwrap();
        let first = upgrade.store(epoch, &mut || Ok(()), |_| ()).unwrap();
        let left = own(&world.home);
        assert!(left.contains(&first.checkpoint.object));
        let second = upgrade.store(epoch, &mut || Ok(()), |_| ()).unwrap();
        let there = own(&world.home);
        assert!(there.contains(&second.checkpoint.object));
        assert!(there.iter().all(|object| left.iter().max() < Some(object)));
        // Who does not have the home any more removes nothing, and stores nothing.
        let fenced = || HomeError::Fenced("another server".to_owned());
        let late = upgrade.store(epoch, &mut || Err(fenced()), |_| ());
        assert!(matches!(
            late,
            Err(CheckpointError::Home(HomeError::Fenced(_)))
        ));
        assert_eq!(own(&world.home), there);
    }
}

/// A number that the home has under other bytes is not removed by who would have used it.
#[test]
fn what_another_one_has_stored_stays_when_a_put_says_so() {
    let home = rig::home();
    let epoch = Epoch(3);
    let others: Vec<_> = (0..2).map(|n| ObjectId::new(epoch, n)).collect();
    for other in &others {
        home.put_object(*other, b"another server's").unwrap();
    }
    let ledger = Arc::new(Ledger::new(epoch));
    let mut writer = ObjectWriter::new(Arc::clone(&home), Arc::clone(&ledger), None);
    let mut encoder = Encoder::new();
    let frame = encoder.encode(FrameKind::RowsBase, Csn(5), &page_key((1, 1)), b"rows");
    writer.put(frame.unwrap()).unwrap();
    let refused = writer.finish().map(drop).unwrap_err();
    assert!(
        matches!(refused, CheckpointError::Home(HomeError::Conflict(_))),
        "{refused}"
    );
    // The same with a record.
    let random = Arc::new(SimRandom::new(1));
    let naming = TestHead::new(&home, &random, None, epoch);
    let mut publisher = Publisher::open(
        Arc::clone(&home),
        naming,
        DATABASE,
        Arc::clone(&ledger),
        None,
    )
    .unwrap();
    let mut writer = ObjectWriter::new(Arc::clone(&home), ledger, None);
    let directory = Directory::open(Arc::clone(&home), None);
    let applied = directory.apply(&[], &BTreeSet::new(), Csn(9), &mut writer);
    let applied = applied.unwrap();
    let new = NewCheckpoint {
        csn: Csn(9),
        taken_at_micros: 0,
        tables: Vec::new(),
        indexes: Vec::new(),
        starts: Vec::new(),
    };
    let published = publisher.publish(new, &applied, writer.finish().unwrap(), |_| true);
    let refused = published.map(drop).unwrap_err();
    assert!(
        matches!(refused, CheckpointError::Home(HomeError::Conflict(_))),
        "{refused}"
    );
    publisher.collect().unwrap();
    let there = home.objects().unwrap();
    assert_eq!(there.iter().map(|info| info.id).collect::<Vec<_>>(), others);
}

/// Nothing is published on top of old chunks: keys of both sizes would stand for other rows.
#[test]
fn a_checkpoint_on_top_of_old_chunks_is_refused() {
    let world = World::new(3);
    let (at, epoch, tag) = head(&*world.home).unwrap();
    let ledger = Arc::new(Ledger::new(Epoch(epoch.get() + 1)));
    let naming = world.head(Some(tag), ledger.epoch());
    let home = Arc::clone(&world.home);
    let mut publisher =
        Publisher::open(home, naming, DATABASE, Arc::clone(&ledger), Some(&at)).unwrap();
    let root = publisher.newest().unwrap().record.root;
    let directory = Directory::open(Arc::clone(&world.home), root);
    let mut writer = ObjectWriter::new(Arc::clone(&world.home), ledger, None);
    let applied = directory.apply(&[], &BTreeSet::new(), Csn(3_000), &mut writer);
    let new = NewCheckpoint {
        csn: Csn(3_000),
        taken_at_micros: 0,
        tables: Vec::new(),
        indexes: Vec::new(),
        starts: Vec::new(),
    };
    let stored = writer.finish().unwrap();
    let published = publisher.publish(new, &applied.unwrap(), stored, |_| true);
    let error = published.map(drop).unwrap_err();
    assert!(matches!(error, CheckpointError::Misuse(_)), "{error}");
    assert_eq!(head(&*world.home).unwrap().0, at);
}

/// What an attempt has left that was cut short is gone before the next one stores anything, and whatever comes up under its numbers later is not taken for what that has stored.
#[test]
fn what_an_attempt_has_left_is_removed_and_its_numbers_are_not_used_again() {
    let mut world = World::new(4);
    let left = [0, 1, 7].map(|number| ObjectId::new(Epoch(1), (1 << 31) + number));
    let (at, epoch, _) = head(&*world.home).unwrap();
    let cut_short = Upgrade::of(&world.home, DATABASE, &at).unwrap().unwrap();
    let stops = || HomeError::io("look", std::io::Error::other("no answer"));
    let stopped = cut_short.store(epoch, &mut || Err(stops()), |_| ());
    assert!(stopped.is_err());
    for id in left {
        world.home.put_object(id, b"something else").unwrap();
    }
    let mut there = Vec::new();
    let upgraded = upgrade(&world.home, &at, epoch, |_| {
        there = world.home.objects().unwrap();
    });
    assert!(there.iter().all(|info| !left.contains(&info.id)));
    let upgraded = upgraded.unwrap();
    let record = &upgraded.checkpoint;
    let record = Record::read(&*world.home, DATABASE, record.object, record.crc).unwrap();
    let new: Vec<ObjectId> = record.objects.iter().map(|used| used.object).collect();
    assert!(new.iter().any(|id| id.counter() > 1 << 31));
    assert!(new.iter().all(|id| !left.contains(id)));
    assert!(upgraded.checkpoint.object.counter() > (1 << 31) + 7);
    // Nobody has named it: it goes, and so does what the next attempt has no use for.
    world.settle();
}

/// A database that has been backed up to `target` and upgraded since, in the epoch that the copy has; a server that was started on the copy has ended before
/// anything but its objects was stored, which have the numbers of the database's own.
fn left_on_a_backup(target: &Arc<dyn LogHome>) -> World {
    let world = World::new(7);
    let (env, _) = Env::simulated(1);
    let (at, ..) = head(&*world.home).unwrap();
    let manifest = |checkpoint| Manifest {
        epoch: Epoch(3),
        checkpoint: Some(checkpoint),
        ..Manifest::first(DATABASE)
    };
    let tag = world
        .home
        .put_if_absent("manifest", &manifest(at.clone()).encode());
    backup(&world.home, &**target, &env).unwrap();
    let copy = manifest_of(&**target).unwrap();
    // The source's epoch comes to be the copy's.
    let source = upgrade(&world.home, &at, copy.epoch, |_| ()).unwrap();
    let of_copy = copy.checkpoint.unwrap();
    let upgraded = Upgrade::of(target, copy.database, &of_copy).unwrap();
    let left = upgraded.unwrap().store(copy.epoch, &mut || Ok(()), |_| ());
    assert_eq!(
        left.unwrap().checkpoint.object,
        source.checkpoint.object,
        "the same numbers"
    );
    let next = Manifest {
        epoch: copy.epoch,
        ..manifest(source.checkpoint)
    };
    let home = &world.home;
    home.compare_and_swap("manifest", tag.unwrap(), &next.encode())
        .unwrap();
    world
}

/// What such a server has left is gone, or, as `change` says, other bytes than it was.
fn change_left(target: &dyn LogHome, change: Option<fn(&mut u8)>) {
    for info in target.objects().unwrap() {
        if info.id.counter() >= 1 << 31 {
            let mut bytes = vec![0; info.size_bytes as usize];
            target.read_object(info.id, 0, &mut bytes).unwrap();
            target.remove_object(info.id).unwrap();
            if let Some(change) = change {
                bytes.iter_mut().for_each(change);
                target.put_object(info.id, &bytes).unwrap();
            }
        }
    }
}

/// The backup is whole, and of this database.
fn assert_whole(target: &Arc<dyn LogHome>, world: &World, when: &str) {
    let copy = manifest_of(&**target).unwrap();
    let report = fsck(target, copy.database, copy.checkpoint.as_ref()).unwrap();
    assert!(report.is_clean(), "{when}: {report}: {:#?}", report.damage);
    assert_eq!(report.rows, world.rows.len() as u64, "{when}");
}

fn bucket() -> Arc<dyn LogHome> {
    let bucket = MemoryBucket::new(MemoryOptions::plain());
    let options = ObjectOptions::default();
    let home = ObjectHome::open(Arc::new(bucket), &Env::simulated(2).0, options);
    Arc::new(home.expect("opens"))
}

/// A server was started on a backup, and ended before anything but objects was stored: they are not taken for those of the source.
#[test]
fn a_backup_does_not_take_what_an_upgrade_has_left_for_its_own() {
    let target = rig::home();
    let world = left_on_a_backup(&target);
    // It had as many bytes, and not the same ones.
    change_left(&*target, Some(|byte| *byte ^= 1));
    let again = backup(&world.home, &*target, &Env::simulated(1).0).unwrap();
    assert!(again.incremental);
    assert_whole(&target, &world, "again");
}

/// A bucket has no lock: what looks as if such a server had left it may be what another backup has just copied, and is not removed, whenever that one is made.
#[test]
fn a_backup_in_a_bucket_does_not_remove_what_another_one_has_copied() {
    let mut lost = 0;
    for at in 0.. {
        let target = bucket();
        let world = left_on_a_backup(&target);
        change_left(&*target, None);
        let meanwhile = {
            let (source, target) = (Arc::clone(&world.home), Arc::clone(&target));
            move || {
                backup(&source, &*target, &Env::simulated(2).0).unwrap();
            }
        };
        let paused = Paused::at(&target, at, Box::new(meanwhile));
        let outcome = backup(&world.home, &*paused, &Env::simulated(1).0);
        lost += u64::from(outcome.is_err());
        assert_whole(&target, &world, &format!("at {at}: {outcome:?}"));
        if at >= paused.requests() {
            break;
        }
    }
    assert!(lost > 3, "{lost}");
}

/// What is in the way of a backup in a bucket stays, and so does the backup that is there.
#[test]
fn a_backup_in_a_bucket_is_refused_where_others_objects_are_in_the_way() {
    let target = bucket();
    let world = left_on_a_backup(&target);
    let before = manifest_of(&*target).unwrap();
    change_left(&*target, Some(|byte| *byte ^= 1));
    let refused = backup(&world.home, &*target, &Env::simulated(1).0).unwrap_err();
    assert!(
        refused.to_string().contains("has left objects"),
        "{refused}"
    );
    assert_eq!(manifest_of(&*target).unwrap().checkpoint, before.checkpoint);
    assert_whole(&target, &world, "the one before");
    // Of the same bytes nobody minds whose they are.
    change_left(&*target, Some(|byte| *byte ^= 1));
    backup(&world.home, &*target, &Env::simulated(1).0).unwrap();
    assert_whole(&target, &world, "again");
}

/// Rows that are too many to be kept at once: the chunk is read once for each that it becomes.
#[test]
fn a_chunk_that_is_larger_than_what_is_kept_at_once() {
    let world = World::new(2);
    let csn = Csn(2_000);
    let rows: Vec<(u16, Csn, Vec<u8>)> = (0..24)
        .map(|n| (n * 40, Csn(100), vec![n as u8; 900_000]))
        .collect();
    let ledger = Arc::new(Ledger::new(Epoch(2)));
    let mut writer = ObjectWriter::new(Arc::clone(&world.home), ledger, None);
    let mut encoder = Encoder::new();
    let page = page(&mut encoder, FrameKind::RowsBase, csn, (1, 3), &rows, &[]);
    let chain = Chain::whole(&[writer.put(&page).unwrap()]);
    let none = BTreeSet::new();
    let directory = Directory::open(Arc::clone(&world.home), None);
    let made = directory.apply(&[(key(1, 3), chain)], &none, csn, &mut writer);
    let (made, written) = (made.unwrap(), writer.finish().unwrap());
    let objects = &written.written().objects;
    let record = Record {
        root: made.directory.root(),
        objects: objects
            .iter()
            .map(|(object, size_bytes)| ObjectUse {
                object: *object,
                size_bytes: *size_bytes,
                live_bytes: made.live[object] as u64,
            })
            .collect(),
        indexes: Vec::new(),
        ..world.old[1].1.clone()
    };
    let object = ObjectId::new(Epoch(1), 5_000);
    let bytes = record.encode(object).unwrap();
    world.home.put_object(object, &bytes).unwrap();
    let at = Checkpoint {
        object,
        crc: crc32c::crc32c(&bytes),
        csn,
        epoch: record.epoch,
        starts: Vec::new(),
    };
    let upgraded = upgrade(&world.home, &at, Epoch(2), |_| ()).unwrap();
    let upgraded = upgraded.checkpoint;
    let new = Record::read(&*world.home, DATABASE, upgraded.object, upgraded.crc).unwrap();
    let directory = Directory::open(Arc::clone(&world.home), new.root);
    let found: Vec<_> = read_all(&world.home, &directory)
        .unwrap()
        .into_iter()
        .collect();
    assert_eq!(found.len(), rows.len());
    for ((place, row), (slot, written, bytes)) in found.iter().zip(&rows) {
        let expected = (1, 3 * 16 + u64::from(slot / 64), slot % 64);
        assert!(*place == expected && row.0 == *written && row.1 == *bytes);
    }
    rig::keep(written);
}

/// A row that is not of its checkpoint is not made one of it.
#[test]
fn rows_that_are_newer_than_their_checkpoint_are_told() {
    let world = World::new(6);
    let record = Record {
        csn: Csn(600),
        ..world.old[1].1.clone()
    };
    let object = ObjectId::new(Epoch(1), 5_000);
    let bytes = record.encode(object).unwrap();
    world.home.put_object(object, &bytes).unwrap();
    let at = Checkpoint {
        object,
        crc: crc32c::crc32c(&bytes),
        csn: record.csn,
        epoch: record.epoch,
        starts: Vec::new(),
    };
    let error = upgrade(&world.home, &at, Epoch(1), |_| ()).unwrap_err();
    assert!(matches!(error, CheckpointError::Damaged(_)), "{error}");
    assert!(error.to_string().contains("newer than its checkpoint"));
}

/// A page that is damaged is named, and the old record stays in force.
#[test]
fn damage_is_told_and_nothing_changes() {
    let world = World::new(5);
    let (at, epoch, _) = head(&*world.home).unwrap();
    let base = {
        let directory = Directory::open(Arc::clone(&world.home), world.old[1].1.root);
        let chain = directory.get(&key(7, 2)).unwrap();
        chain.expect("it has rows").base()
    };
    let mut bytes = vec![0; 1 << 20];
    let got = world.home.read_object(base.object, 0, &mut bytes).unwrap();
    bytes.truncate(got);
    bytes[base.offset as usize + base.len as usize - 1] ^= 1;
    world.home.remove_object(base.object).unwrap();
    world.home.put_object(base.object, &bytes).unwrap();
    let error = upgrade(&world.home, &at, epoch, |_| ()).unwrap_err();
    let CheckpointError::Damaged(damage) = &error else {
        panic!("{error}");
    };
    assert_eq!((damage.object, damage.offset), (base.object, base.offset));
    assert!(damage.what.contains("table 7 chunk 2"), "{damage}");
    assert_eq!(head(&*world.home).unwrap().0, at);
}
