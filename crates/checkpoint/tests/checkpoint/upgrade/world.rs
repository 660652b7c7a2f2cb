//! A database with checkpoints of chunks of 1,024 slots, on a simulated home.
//!
//! Owns: [`World`], with old checkpoints that are written here byte by byte, since nothing else writes them any more;
//! its starts; and the checks of what comes of them.

use super::rig::{self, Entries, key, read_all, read_index, tile, write_tile};
use logstead_checkpoint::frame::{Encoder, FrameKind};
use logstead_checkpoint::{
    CheckpointError, CheckpointHead, CheckpointRecord, CheckpointUpgrade, ChunkSize, ChunkWriter,
    Directory, ImageKind, IndexInfo, LeafWriter, NewCheckpoint, ObjectIdAllocator, ObjectUse,
    ObjectWriter, PageChain, PageKey, PageReader, Publisher, RetainedRecord, TableInfo,
    UpgradeProgress, UpgradedCheckpoint, fsck,
};
use logstead_env::{Env, SimClock, SimRandom};
use logstead_home::simulated::MODELS;
use logstead_home::{HomeError, LogHome, ObjectId, SimulatedHome, SimulatedOptions, Tag};
use logstead_types::{Csn, DatabaseId, Epoch, IndexId, TableId};
use logstead_wal::manifest::CheckpointRef;
use logstead_wal::varint;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(super) const DATABASE: DatabaseId = DatabaseId(0xfeed);
/// Stands for the manifest: the checkpoint, the epoch that wrote last, and a number that makes each state another.
const HEAD: &str = "head";
const OLD_SLOTS: u64 = 1024;
const INDEX: IndexInfo = IndexInfo {
    table: TableId(1),
    index: IndexId(2),
    keys: 3,
};

/// The row that a further checkpoint has.
pub(super) const NEW: (u32, u64) = (7, 3 * 64 + 5);

/// Rows by table and row id.
type Rows = BTreeMap<(u32, u64), (Csn, Vec<u8>)>;

/// Makes a page of an old chunk.
pub(super) fn page(
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

pub(super) fn page_key((table, chunk): (u32, u64)) -> Vec<u8> {
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
pub(super) struct TestHead {
    home: LogHome,
    tag: Mutex<Option<Tag>>,
    epoch: Epoch,
    random: Arc<SimRandom>,
}

pub(super) fn head(home: &LogHome) -> Result<(CheckpointRef, Epoch, Tag), HomeError> {
    let (bytes, tag) = home.names.get(HEAD)?.expect("it was stored");
    let text = String::from_utf8(bytes).unwrap();
    let numbers: Vec<u64> = text.split(' ').map(|word| word.parse().unwrap()).collect();
    let checkpoint = CheckpointRef {
        object: ObjectId(numbers[0]),
        crc: numbers[1] as u32,
        csn: Csn(numbers[2]),
        epoch: Epoch(numbers[3] as u32),
        starts: Vec::new(),
    };
    Ok((checkpoint, Epoch(numbers[4] as u32), tag))
}

impl TestHead {
    pub(super) fn new(
        home: &LogHome,
        random: &Arc<SimRandom>,
        tag: Option<Tag>,
        epoch: Epoch,
    ) -> TestHead {
        TestHead {
            home: home.clone(),
            tag: Mutex::new(tag),
            epoch,
            random: Arc::clone(random),
        }
    }

    pub(super) fn store(&self, checkpoint: &CheckpointRef) -> Result<(), HomeError> {
        let CheckpointRef {
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
            None => self.home.names.put_if_absent(HEAD, text.as_bytes())?,
            Some(tag) => self
                .home
                .names
                .compare_and_swap(HEAD, tag, text.as_bytes())?,
        });
        Ok(())
    }
}

impl CheckpointHead for TestHead {
    fn name(&self, checkpoint: CheckpointRef) -> Result<(), HomeError> {
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
pub(super) fn start(home: &LogHome, random: &Arc<SimRandom>) -> Started {
    let (mut at, epoch, tag) = head(home)?;
    let naming = TestHead::new(home, random, Some(tag), epoch);
    naming.store(&at)?;
    let mut told = 0;
    if let Some(upgrade) = CheckpointUpgrade::of(home, DATABASE, &at)? {
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
    let object_ids = Arc::new(ObjectIdAllocator::new(next));
    let publisher = Publisher::open(home.clone(), marking, DATABASE, object_ids, Some(&at))?;
    let root = publisher.newest().unwrap().record.root;
    Ok((publisher, Directory::open(home.objects.clone(), root)))
}

/// Makes a checkpoint anew that is an old one, where nobody else is.
pub(super) fn upgrade(
    home: &LogHome,
    at: &CheckpointRef,
    epoch: Epoch,
    progress: impl FnMut(&UpgradeProgress),
) -> Result<UpgradedCheckpoint, CheckpointError> {
    let upgrade = CheckpointUpgrade::of(home, DATABASE, at)?.expect("it is an old one");
    upgrade.store(epoch, &mut || Ok(()), progress)
}

pub(super) struct World {
    pub(super) sim: SimulatedHome,
    pub(super) home: LogHome,
    pub(super) random: Arc<SimRandom>,
    pub(super) rows: Rows,
    /// What the record that is kept has.
    earlier: Rows,
    entries: Entries,
    /// The old records, oldest first.
    pub(super) old: Vec<(ObjectId, CheckpointRecord)>,
}

/// A directory of old chunks being made.
struct Old<'w> {
    writer: ObjectWriter<'w>,
    directory: Directory,
    uses: BTreeMap<ObjectId, i64>,
}

impl World {
    pub(super) fn new(seed: u64) -> World {
        let clock = Arc::new(SimClock::new());
        let (mut env, _) = Env::simulated(seed);
        env.clock = Arc::clone(&clock) as _;
        let model = MODELS.iter().find(|model| model.name == "s3express");
        let options = SimulatedOptions::new(model.unwrap().clone(), seed);
        let sim = SimulatedHome::in_virtual_time(&options, &env, clock).unwrap();
        let mut world = World {
            home: LogHome::from(sim.clone()),
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

    pub(super) fn roll(&self, below: u64) -> u64 {
        self.random.below(below)
    }

    /// Two checkpoints of an old server: chunks whole, in parts and in pieces, then deltas of them.
    fn fill(&mut self) {
        let object_ids = Arc::new(ObjectIdAllocator::new(Epoch(1)));
        let mut encoder = Encoder::new();
        let mut uses = BTreeMap::new();
        let mut directory = Directory::open(self.home.objects.clone(), None);
        for (round, csn) in [Csn(1_000), Csn(2_000)].into_iter().enumerate() {
            let writer =
                ObjectWriter::new(self.home.objects.clone(), Arc::clone(&object_ids), None)
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
            let sizes: BTreeMap<_, _> = self
                .home
                .objects
                .list_objects()
                .unwrap()
                .into_iter()
                .collect_sizes();
            let record = CheckpointRecord {
                divided: Vec::new(),
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
                    .map(|(object, record)| RetainedRecord {
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
            self.home.objects.put_object(object, &bytes).unwrap();
            rig::keep(stored);
            self.old.push((object, record));
            if round == 0 {
                self.earlier = self.rows.clone();
            }
            (directory, uses) = (old.directory, old.uses);
        }
        let (object, record) = self.old.last().unwrap();
        let checkpoint = CheckpointRef {
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

    pub(super) fn head(&self, tag: Option<Tag>, epoch: Epoch) -> TestHead {
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
    ) -> Vec<(PageKey, Option<PageChain>)> {
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
                changes.push((key(table, chunk), PageChain::whole(&pages)));
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
    ) -> Vec<(PageKey, Option<PageChain>)> {
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

    pub(super) fn start(&self) -> Started {
        start(&self.home, &self.random)
    }

    /// Everything is there: what the directory leads to, what is kept, and nothing else.
    pub(super) fn verify(&self, publisher: &Publisher<TestHead>, directory: &Directory) {
        let named = self.verify_named(publisher, directory);
        let there = self.home.objects.list_objects().unwrap();
        let there: BTreeSet<_> = there.into_iter().map(|info| info.id).collect();
        assert_eq!(there, named, "needed and there");
    }

    /// The same, whatever else is there: gives what is needed.
    pub(super) fn verify_named(
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
        let read =
            CheckpointRecord::read(self.home.objects.as_ref(), DATABASE, kept.object, kept.crc)
                .unwrap();
        assert_eq!(read, *earlier);
        assert!(self.read_old(&read) == self.earlier, "what is kept");
        named.insert(kept.object);
        named.extend(read.objects.iter().map(|used| used.object));
        named
    }

    pub(super) fn read_old(&self, record: &CheckpointRecord) -> Rows {
        let directory = Directory::open(self.home.objects.clone(), record.root);
        let mut reader = PageReader::new(self.home.objects.clone());
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
    pub(super) fn go_on(&mut self, publisher: &mut Publisher<TestHead>, directory: &mut Directory) {
        let csn = Csn(3_000);
        let object_ids = Arc::clone(publisher.object_ids());
        let mut writer = ObjectWriter::new(self.home.objects.clone(), object_ids, None);
        let mut chunks = ChunkWriter::new();
        let page = (7, 3);
        chunks.begin(key(page.0, page.1), ImageKind::Delta, csn);
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
            divided: Vec::new(),
            csn,
            taken_at_micros: 3_000,
            tables: [1, 7].map(|table| self.table(table)).into(),
            indexes: vec![INDEX],
            starts: Vec::new(),
        };
        let keep = |kept: &RetainedRecord| kept.csn == Csn(1_000);
        // Whether it is named or not, what is there is whole.
        if publisher.publish(new, &applied, &[], stored, keep).is_ok() {
            *directory = applied.directory;
        } else {
            let (at, epoch, tag) = head(&self.home).unwrap();
            if at.csn != csn {
                self.rows = before;
            }
            let object_ids = Arc::new(ObjectIdAllocator::new(Epoch(epoch.get() + 1)));
            let again = self.head(Some(tag), object_ids.epoch());
            again.store(&at).unwrap();
            let home = self.home.clone();
            *publisher = Publisher::open(home, again, DATABASE, object_ids, Some(&at)).unwrap();
            let root = publisher.newest().unwrap().record.root;
            *directory = Directory::open(self.home.objects.clone(), root);
        }
        publisher.collect().unwrap();
    }

    /// Starts until one succeeds, and removes what is not needed.
    pub(super) fn started(&self) -> (Publisher<TestHead>, Directory) {
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
    pub(super) fn settle(&mut self) {
        let (mut publisher, mut directory) = self.started();
        self.verify(&publisher, &directory);
        self.go_on(&mut publisher, &mut directory);
        self.verify(&publisher, &directory);
        self.check();
    }

    pub(super) fn check(&self) {
        let (at, ..) = head(&self.home).unwrap();
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
