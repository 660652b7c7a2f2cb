//! What fsck says of a whole home, of damage anywhere in it, and of records that do not fit their pages.

use crate::rig;

use logstead_checkpoint::{
    CheckpointHead, CheckpointRecord, ChunkWriter, Directory, DirectoryUpdate, FsckReport,
    ImageKind, IndexInfo, LeafWriter, NewCheckpoint, ObjectIdAllocator, ObjectWriter, PageChain,
    PageKey, Publisher, RetainedRecord, TableInfo, fsck,
};
use logstead_home::{HomeError, LogHome, MemoryHome, ObjectId};
use logstead_types::{Csn, DatabaseId, Epoch, IndexId, TableId};
use logstead_wal::manifest::CheckpointRef;
use parking_lot::Mutex;
use rig::{Rows, flipped, home, key, tile, write_tile, write_whole};
use std::collections::BTreeSet;
use std::sync::Arc;

const DATABASE: DatabaseId = DatabaseId(5);
const INDEX: IndexInfo = IndexInfo {
    table: TableId(1),
    index: IndexId(2),
    keys: 0,
};

/// A tile of two entries.
fn put_tile(
    low: &[u8],
    high: Option<&[u8]>,
    csn: Csn,
    writer: &mut ObjectWriter<'_>,
) -> (PageKey, Option<PageChain>) {
    let entries = [b"1", b"2"].map(|end| [low, end].concat());
    let key = tile(1, 2, low);
    let mut leaves = LeafWriter::new();
    let chain = write_tile(&entries.into(), key.clone(), high, csn, &mut leaves, writer);
    (key, Some(chain.unwrap()))
}

/// Remembers what is named.
struct Named(Arc<Mutex<Option<CheckpointRef>>>);

impl CheckpointHead for Named {
    fn name(&self, checkpoint: CheckpointRef) -> Result<(), HomeError> {
        *self.0.lock() = Some(checkpoint);
        Ok(())
    }
}

/// Two checkpoints, the older one kept; the newer one has a chunk with a delta, and one that is unchanged.
fn two_checkpoints(rid_end: u64) -> (LogHome, CheckpointRef) {
    let home = home();
    let named = Arc::new(Mutex::new(None));
    let head = Named(Arc::clone(&named));
    let object_ids = Arc::new(ObjectIdAllocator::new(Epoch(1)));
    let mut publisher =
        Publisher::open(home.clone(), head, DATABASE, Arc::clone(&object_ids), None).unwrap();
    let mut directory = Directory::open(home.objects.clone(), None);
    let mut chunks = ChunkWriter::new();
    let rows: Rows = (0..3)
        .flat_map(|chunk| {
            (0..2).map(move |slot| ((1, chunk, slot), (Csn(5), vec![slot as u8; 20])))
        })
        .collect();
    for csn in [Csn(10), Csn(20)] {
        let mut writer = ObjectWriter::new(home.objects.clone(), Arc::clone(&object_ids), None);
        let mut changes: Vec<_> = match csn {
            Csn(10) => (0..3)
                .map(|chunk| {
                    let whole = write_whole(&rows, (1, chunk), csn, &mut chunks, &mut writer);
                    (key(1, chunk), whole.unwrap())
                })
                .collect(),
            _ => {
                let mut chain: PageChain = directory.get(&key(1, 1)).unwrap().unwrap();
                chunks.begin(key(1, 1), ImageKind::Delta, csn);
                chunks.delete(1).unwrap();
                chain.push(chunks.finish(&mut writer).unwrap());
                vec![(key(1, 1), Some(chain))]
            }
        };
        if csn == Csn(10) {
            changes.push(put_tile(b"", Some(b"k"), csn, &mut writer));
            changes.push(put_tile(b"k", Some(b"p"), csn, &mut writer));
        }
        changes.push(put_tile(b"p", None, csn, &mut writer));
        let applied = directory
            .apply(&changes, &BTreeSet::new(), csn, &mut writer)
            .unwrap();
        let new = NewCheckpoint {
            divided: Vec::new(),
            csn,
            taken_at_micros: 1,
            tables: vec![TableInfo {
                table: TableId(1),
                rid_end,
            }],
            indexes: vec![INDEX],
            starts: Vec::new(),
        };
        let stored = writer.finish().unwrap();
        publisher
            .publish(new, &applied, &[], stored, |_: &RetainedRecord| true)
            .unwrap();
        directory = applied.directory;
    }
    let newest = named.lock().clone();
    (home, newest.unwrap())
}

fn report(home: &LogHome, newest: &CheckpointRef) -> FsckReport {
    fsck(home, DATABASE, Some(newest)).unwrap()
}

#[test]
fn a_whole_home_is_clean_and_counted() {
    let (home, newest) = two_checkpoints(3 * 64);
    let found = report(&home, &newest);
    assert!(found.is_clean(), "{:#?}", found.damage);
    let counts = (
        found.records,
        found.nodes,
        found.chunks,
        found.pages,
        found.rows,
    );
    // The chunks and tiles that both share are read once.
    assert_eq!(counts, (2, 2, 4, 9, 5));
    assert_eq!((found.indexes, found.tiles, found.entries), (1, 4, 6));
    assert_eq!((found.objects, found.unneeded_objects), (4, 0));
    home.objects
        .put_object(ObjectId(1 << 40), b"nobody's")
        .unwrap();
    let found = report(&home, &newest);
    assert!(found.is_clean());
    assert_eq!((found.unneeded_objects, found.unneeded_bytes), (1, 8));
    let empty = fsck(&rig::home(), DATABASE, None).unwrap();
    assert_eq!(empty, FsckReport::default());
}

#[test]
fn damage_to_any_byte_is_found_and_its_object_named() {
    let (home, newest) = two_checkpoints(3 * 64);
    for (index, info) in home.objects.list_objects().unwrap().iter().enumerate() {
        for at in 0..info.size_bytes as usize {
            let bad = flipped(&home, index, at, (at % 8) as u8);
            let found = report(&bad, &newest);
            let names = found
                .damage
                .iter()
                .any(|what| what.contains(&info.id.to_string()));
            assert!(names, "object {} byte {at}: {:#?}", info.id, found.damage);
        }
    }
}

#[test]
fn what_can_be_read_is_checked_in_spite_of_damage() {
    let (home, newest) = two_checkpoints(3 * 64);
    let record =
        CheckpointRecord::read(home.objects.as_ref(), DATABASE, newest.object, newest.crc).unwrap();
    let root = record.root.unwrap();
    let objects = home.objects.list_objects().unwrap();
    let index = objects
        .iter()
        .position(|info| info.id == root.object)
        .unwrap();
    let bad = flipped(&home, index, root.offset as usize + 50, 1);
    let found = report(&bad, &newest);
    assert_eq!(found.damages, 1, "{:#?}", found.damage);
    assert!(found.damage[0].contains("pages from the first page on cannot be found"));
    // The older record has its own root.
    assert_eq!((found.records, found.nodes, found.chunks), (2, 1, 3));
}

#[test]
fn missing_and_shorter_objects_are_named() {
    let (home, newest) = two_checkpoints(3 * 64);
    for info in home.objects.list_objects().unwrap() {
        let bad = rig::home();
        for other in home.objects.list_objects().unwrap() {
            let cut = usize::from(other.id == info.id);
            let mut bytes = vec![0; other.size_bytes as usize - cut];
            home.objects.read_object(other.id, 0, &mut bytes).unwrap();
            bad.objects.put_object(other.id, &bytes).unwrap();
        }
        for _ in 0..2 {
            let found = report(&bad, &newest);
            let names = found
                .damage
                .iter()
                .any(|what| what.contains(&info.id.to_string()));
            assert!(names, "{}: {:#?}", info.id, found.damage);
            bad.objects.remove_object(info.id).unwrap();
        }
    }
}

#[test]
fn records_that_do_not_fit_their_pages_are_found() {
    // Rows behind the table's end, in both checkpoints.
    let (home, newest) = two_checkpoints(2 * 64);
    let found = report(&home, &newest);
    assert!(
        found.damage[0].contains("table 1 chunk 2: 2 rows behind the table's end"),
        "{:#?}",
        found.damage
    );
    let (home, newest) = two_checkpoints(3 * 64);
    type Spoil = fn(&mut CheckpointRecord);
    let spoil: [(&str, Spoil); 6] = [
        ("an index that the record does not name", |record| {
            record.indexes[0].index = IndexId(3)
        }),
        ("index 3: the record of CSN 20 names it", |record| {
            record.indexes.push(IndexInfo {
                index: IndexId(3),
                ..INDEX
            })
        }),
        ("live bytes", |record| record.objects[0].live_bytes -= 1),
        ("bytes long, not", |record| {
            record.objects[0].size_bytes += 1
        }),
        ("does not name", |record| {
            record.tables[0].table = TableId(2);
            record.indexes.clear();
        }),
        ("newer than the checkpoint", |record| record.csn = Csn(5)),
    ];
    for (what, spoil) in spoil {
        let mut record =
            CheckpointRecord::read(home.objects.as_ref(), DATABASE, newest.object, newest.crc)
                .unwrap();
        spoil(&mut record);
        let object = ObjectId::new(Epoch(1), 99);
        let bytes = record.encode(object).unwrap();
        home.objects.remove_object(object).unwrap();
        home.objects.put_object(object, &bytes).unwrap();
        let other = CheckpointRef {
            object,
            crc: crc32c::crc32c(&bytes),
            csn: record.csn,
            ..newest.clone()
        };
        let found = report(&home, &other);
        let says = found.damage.iter().any(|line| line.contains(what));
        assert!(says, "{what}: {:#?}", found.damage);
    }
    let other = CheckpointRef {
        csn: Csn(21),
        ..newest
    };
    let found = report(&home, &other);
    assert!(
        found.damage[0].contains("does not say what the manifest says"),
        "{:#?}",
        found.damage
    );
}

/// Tiles that leave a gap, overlap, or are too few.
#[test]
fn tiles_that_do_not_fit_together_are_found() {
    type Tiles = &'static [(&'static [u8], Option<&'static [u8]>)];
    let tilings: [(Option<&str>, Tiles); 6] = [
        (None, &[(b"", Some(b"k")), (b"k", None)]),
        (Some("its last tiles are missing"), &[(b"", Some(b"k"))]),
        (Some("does not begin where"), &[(b"a", None)]),
        (
            Some("does not begin where"),
            &[(b"", Some(b"k")), (b"l", None)],
        ),
        (
            Some("does not begin where"),
            &[(b"", Some(b"m")), (b"k", None)],
        ),
        (Some("does not begin where"), &[(b"", None), (b"k", None)]),
    ];
    for (expected, tiles) in tilings {
        let home = home();
        let named = Arc::new(Mutex::new(None));
        let head = Named(Arc::clone(&named));
        let object_ids = Arc::new(ObjectIdAllocator::new(Epoch(1)));
        let mut publisher =
            Publisher::open(home.clone(), head, DATABASE, Arc::clone(&object_ids), None).unwrap();
        let mut writer = ObjectWriter::new(home.objects.clone(), object_ids, None);
        let changes: Vec<_> = tiles
            .iter()
            .map(|(low, high)| put_tile(low, *high, Csn(3), &mut writer))
            .collect();
        let empty = Directory::open(home.objects.clone(), None);
        let applied: DirectoryUpdate = empty
            .apply(&changes, &BTreeSet::new(), Csn(3), &mut writer)
            .unwrap();
        let new = NewCheckpoint {
            divided: Vec::new(),
            csn: Csn(3),
            taken_at_micros: 1,
            tables: vec![TableInfo {
                table: TableId(1),
                rid_end: 0,
            }],
            indexes: vec![INDEX],
            starts: Vec::new(),
        };
        let stored = writer.finish().unwrap();
        publisher
            .publish(new, &applied, &[], stored, |_| true)
            .unwrap();
        let newest = named.lock().clone().unwrap();
        let found = report(&home, &newest);
        let says = |what| found.damage.iter().any(|line| line.contains(what));
        match expected {
            None => assert!(found.is_clean(), "{:#?}", found.damage),
            Some(what) => assert!(says(what), "{what}: {:#?}", found.damage),
        }
    }
}

/// What lies over the tree because a leaf of the directory could not be read is checked with it: when the leaf can be
/// read again nothing is wrong, though the tiles in the tree alone have a gap.
#[test]
fn what_lies_over_the_tree_is_as_whole_as_the_tree() {
    const TILES: u32 = 1_500;
    let memory = MemoryHome::new(64 << 20);
    let home = LogHome::from(memory.clone());
    let named = Arc::new(Mutex::new(None));
    let head = Named(Arc::clone(&named));
    let object_ids = Arc::new(ObjectIdAllocator::new(Epoch(1)));
    let mut publisher =
        Publisher::open(home.clone(), head, DATABASE, Arc::clone(&object_ids), None).unwrap();
    let low = |number: u32| match number {
        0 => Vec::new(),
        // Behind the entries of the first tile.
        _ => [&b"a"[..], &number.to_be_bytes()].concat(),
    };
    let put = |from: u32, to: u32, csn, writer: &mut ObjectWriter<'_>| {
        let high = (to < TILES).then(|| low(to));
        put_tile(&low(from), high.as_deref(), csn, writer)
    };
    let mut directory = Directory::open(home.objects.clone(), None);
    let mut publish = |directory: &Directory,
                       csn: u64,
                       changes: &[(PageKey, Option<PageChain>)],
                       mut writer: ObjectWriter<'_>| {
        let applied = directory
            .apply(changes, &BTreeSet::new(), Csn(csn), &mut writer)
            .unwrap();
        let new = NewCheckpoint {
            divided: Vec::new(),
            csn: Csn(csn),
            taken_at_micros: 1,
            tables: vec![TableInfo {
                table: TableId(1),
                rid_end: 64,
            }],
            indexes: vec![INDEX],
            starts: Vec::new(),
        };
        let stored = writer.finish().unwrap();
        publisher
            .publish(new, &applied, &[], stored, |_: &RetainedRecord| false)
            .unwrap();
        (applied.directory, applied.unreadable.is_some())
    };
    let writer = || ObjectWriter::new(home.objects.clone(), Arc::clone(&object_ids), None);
    // The first leaf alone stays in the first object.
    let mut first = writer();
    let all: Vec<_> = (0..TILES)
        .map(|number| put(number, number + 1, Csn(10), &mut first))
        .collect();
    (directory, _) = publish(&directory, 10, &all, first);
    let object = directory.root().unwrap().object;
    let uncached = |root| Directory::with_cache(home.objects.clone(), root, 0);
    let mut others = writer();
    let rest: Vec<_> = (TILES / 2..TILES)
        .map(|number| put(number, number + 1, Csn(20), &mut others))
        .collect();
    directory = publish(&directory, 20, &rest, others).0;
    directory = uncached(directory.root());
    memory.set_unreadable(Some((object, u64::MAX)));
    let is_hidden = |number: &u32| directory.get(&tile(1, 2, &low(*number))).is_err();
    let hidden = (0..TILES).filter(is_hidden).max().expect("some leaf");
    assert!(hidden + 2 < TILES, "not all");
    // One tile takes the place of the last one there and the next, whose leaf can be read.
    let mut over = writer();
    let mut changes = vec![put(hidden, hidden + 2, Csn(30), &mut over)];
    changes.push((tile(1, 2, &low(hidden + 1)), None));
    let (forked, is_over) = publish(&directory, 30, &changes, over);
    assert!(is_over);
    let newest = || named.lock().clone().unwrap();
    memory.set_unreadable(None);
    let found = report(&home, &newest());
    assert!(found.is_clean(), "{:#?}", found.damage);
    let (whole, is_over) = publish(&forked, 40, &[], writer());
    assert!(!is_over && whole.root().is_some());
    let found = report(&home, &newest());
    assert!(found.is_clean(), "{:#?}", found.damage);
}
