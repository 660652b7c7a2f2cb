//! Checkpoints made by hand, sound ones and others: what is said of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use logstead_checkpoint::{
    CHUNK_SLOTS, ChunkWriter, ImageKind, IndexInfo, LeafWriter, ObjectIdAllocator, ObjectWriter,
    TableInfo,
};
use logstead_env::Env;
use logstead_home::MemoryHome;
use logstead_types::{Csn, DatabaseId, Epoch};

use super::*;
use crate::index::Index;
use crate::row::RowBuilder;

const TABLES: [TableId; 2] = [TableId(7), TableId(8)];
const UNIQUE: IndexId = IndexId(20);
const PLAIN: IndexId = IndexId(21);
/// Entries of a tile.
const TILE: usize = 5;

/// The key is a column, unless it is NULL; in the second one rows whose number is odd have none.
struct Column(usize);

impl KeyExtractor for Column {
    fn key(&self, row: RowRef<'_>, out: &mut Vec<u8>) -> KeyKind {
        match row.column(self.0) {
            Some(b"?") => KeyKind::Failed,
            Some(bytes) if self.0 == 1 && bytes.last().is_some_and(|b| b % 2 == 1) => {
                KeyKind::Absent
            }
            Some(bytes) => {
                out.extend_from_slice(bytes);
                KeyKind::Unique
            }
            None => {
                out.push(0xff);
                KeyKind::Nullable
            }
        }
    }

    fn keys(&self) -> u64 {
        40 + self.0 as u64
    }
}

fn row(unique: Option<u16>, plain: u16) -> Vec<u8> {
    let mut builder = RowBuilder::new();
    builder.start(0, 2);
    let unique = unique.map(u16::to_be_bytes);
    builder.push(unique.as_ref().map(<[u8; 2]>::as_slice));
    builder.push(Some(&plain.to_be_bytes()));
    builder.finish().to_vec()
}

fn entry(key: u16, rid: u64) -> Vec<u8> {
    let mut entry = key.to_be_bytes().to_vec();
    Index::complete(&mut entry, Rid(rid));
    entry
}

/// What is stored: rows of each table, entries of each index.
#[derive(Clone, Default)]
struct Stored {
    rows: BTreeMap<(TableId, u64), Vec<u8>>,
    entries: BTreeMap<(TableId, IndexId), BTreeSet<Vec<u8>>>,
}

impl Stored {
    /// Rows in several chunks, with gaps, all entries there.
    fn sound(count: u16) -> Stored {
        let mut stored = Stored::default();
        for table in TABLES {
            for number in 0..count {
                let rid = u64::from(number) * 37 + u64::from(table.get());
                stored.put(table, rid, Some(number), number / 3);
            }
        }
        stored
    }

    fn put(&mut self, table: TableId, rid: u64, unique: Option<u16>, plain: u16) {
        self.rows.insert((table, rid), row(unique, plain));
        let mut of_null = vec![0xff];
        Index::complete(&mut of_null, Rid(rid));
        let unique = unique.map_or(of_null, |key| entry(key, rid));
        self.entries
            .entry((table, UNIQUE))
            .or_default()
            .insert(unique);
        let plain_entries = self.entries.entry((table, PLAIN)).or_default();
        if plain.is_multiple_of(2) {
            plain_entries.insert(entry(plain, rid));
        }
    }

    /// Everything as pages.
    fn written(&self) -> (LogHome, CheckpointRecord) {
        let home = LogHome::from(MemoryHome::new(1 << 20));
        let object_ids = Arc::new(ObjectIdAllocator::new(Epoch(1)));
        let mut writer = ObjectWriter::new(home.objects.clone(), object_ids, None);
        let mut changes = Vec::new();
        let slots = u64::from(CHUNK_SLOTS);
        let mut chunks = ChunkWriter::new();
        let numbers: BTreeSet<_> = self.rows.keys().map(|(t, rid)| (*t, rid / slots)).collect();
        for (table, chunk) in numbers {
            let key = PageKey::Rows { table, chunk };
            chunks.begin(key.clone(), ImageKind::Whole, Csn(9));
            let of_chunk = (table, chunk * slots)..(table, (chunk + 1) * slots);
            for ((_, rid), bytes) in self.rows.range(of_chunk) {
                let slot = (rid % slots) as u16;
                chunks.row(slot, Csn(5), bytes, &mut writer).unwrap();
            }
            let chain = PageChain::whole(chunks.finish(&mut writer).unwrap());
            changes.push((key, chain));
        }
        let mut leaves = LeafWriter::new();
        for ((table, index), entries) in &self.entries {
            let entries: Vec<_> = entries.iter().collect();
            let tiles: Vec<_> = entries.chunks(TILE).collect();
            for (at, tile) in tiles.iter().enumerate() {
                let low = match at {
                    0 => Vec::new(),
                    _ => tile[0].clone(),
                };
                let high = tiles.get(at + 1).map(|next| next[0].as_slice());
                let (table, index) = (*table, *index);
                let key = PageKey::Leaf { table, index, low };
                leaves.begin(key.clone(), Csn(9)).unwrap();
                for entry in *tile {
                    leaves.entry(entry).unwrap();
                }
                changes.push((key, Some(leaves.finish(high, &mut writer).unwrap())));
            }
        }
        let applied = Directory::open(home.objects.clone(), None)
            .apply(&changes, &BTreeSet::new(), Csn(9), &mut writer)
            .unwrap();
        // Its objects stay although no record names them.
        std::mem::forget(writer.finish().unwrap());
        let info = |(table, index): &(TableId, IndexId)| IndexInfo {
            table: *table,
            index: *index,
            keys: if *index == UNIQUE { 40 } else { 41 },
        };
        let record = CheckpointRecord {
            divided: Vec::new(),
            database: DatabaseId(1),
            chunk_size: ChunkSize::Of64,
            csn: Csn(9),
            epoch: Epoch(1),
            taken_at_micros: 0,
            root: applied.directory.root(),
            tables: TABLES
                .map(|table| TableInfo {
                    table,
                    rid_end: 1 << 20,
                })
                .to_vec(),
            indexes: self.entries.keys().map(info).collect(),
            objects: Vec::new(),
            starts: Vec::new(),
            kept: Vec::new(),
            has_pins: false,
        };
        (home, record)
    }

    fn check(&self, records_max: usize) -> IndexReport {
        let (home, record) = self.written();
        compared(&home, &record, records_max)
    }
}

fn compared(home: &LogHome, record: &CheckpointRecord, records_max: usize) -> IndexReport {
    let (env, _files) = Env::simulated(1);
    let dir = PathBuf::from("/scratch");
    env.files.create_dir(&dir).unwrap();
    let scratch = ScratchFiles::new(env.files, dir, "verify".to_owned());
    let indexes = TABLES.map(|table| {
        [(UNIQUE, true, 0), (PLAIN, false, 1)].map(|(index, unique, column)| StoredIndex {
            table,
            index,
            unique,
            name: format!("t{table} i{index}"),
            keys: Arc::new(Column(column)),
        })
    });
    let indexes: Vec<_> = indexes.into_iter().flatten().collect();
    let mut rows = StoredRows::new(home, record);
    let mut report = IndexReport::default();
    for (table, indexes) in rows.in_use(&indexes) {
        report.add(rows.check(table, &indexes, &scratch, records_max).unwrap());
    }
    report.not_used = record.indexes.len() as u64 - report.indexes;
    report
}

/// With everything in memory, and with a file for every few records.
const MEMORIES: [usize; 3] = [3, 50, RECORDS_MAX];

#[test]
fn what_is_sound_is_counted() {
    for records_max in MEMORIES {
        let report = Stored::sound(200).check(records_max);
        assert_eq!(report.damage, Vec::<String>::new());
        // 67 plain keys of three rows each, the last of two; every other one is not in the index.
        let plain = 34 * 3 - 1;
        let expected = IndexReport {
            indexes: 4,
            keys: 2 * (200 + plain),
            entries: 2 * (200 + plain),
            ..IndexReport::default()
        };
        assert_eq!(report, expected);
    }
    assert!(Stored::default().check(1).is_clean());
}

#[test]
fn a_row_without_its_entry_is_named() {
    for records_max in MEMORIES {
        for number in [0_u16, 1, 77, 199] {
            let mut stored = Stored::sound(200);
            let rid = u64::from(number) * 37 + 8;
            let entries = stored.entries.get_mut(&(TABLES[1], UNIQUE)).unwrap();
            assert!(entries.remove(&entry(number, rid)));
            let report = stored.check(records_max);
            let expected = format!("t8 i20: row {rid} has no entry for its key {number:04x}");
            assert_eq!(report.damage, [expected]);
            assert_eq!((report.damages, report.surplus), (1, 0));
        }
    }
}

/// A row that came without entries, where there was none and behind all others; and one that has the entry of another
/// key only.
#[test]
fn a_row_that_no_entry_leads_to_is_named() {
    for records_max in MEMORIES {
        let mut stored = Stored::sound(200);
        let table = TABLES[0];
        stored.rows.insert((table, 8), row(Some(900), 4));
        stored.rows.insert((table, 90_000), row(Some(901), 1));
        stored.rows.insert((table, 7 + 37), row(Some(902), 0));
        let report = stored.check(records_max);
        let expected = [
            "t7 i20: row 8 has no entry for its key 0384",
            "t7 i21: row 8 has no entry for its key 0004",
            "t7 i20: row 44 has no entry for its key 0386",
            "t7 i20: row 90000 has no entry for its key 0385",
        ];
        assert_eq!(report.damage, expected);
        // The key that the row had before.
        assert_eq!(report.surplus, 1);
    }
}

#[test]
fn entries_that_lead_nowhere_are_surplus() {
    for records_max in MEMORIES {
        let mut stored = Stored::sound(200);
        let entries = stored.entries.get_mut(&(TABLES[0], UNIQUE)).unwrap();
        // Of no row, before, between and behind all; of a row that has another key; of the key of another row.
        for (key, rid) in [(5, 0), (5, 9), (5, u64::MAX), (500, 7 + 37), (2, 7 + 37)] {
            entries.insert(entry(key, rid));
        }
        stored.rows.remove(&(TABLES[1], 8 + 37));
        let report = stored.check(records_max);
        assert_eq!(report.damage, Vec::<String>::new());
        assert_eq!(report.surplus, 5 + 2);
        assert_eq!(report.entries, report.keys + report.surplus);
    }
}

#[test]
fn rows_with_one_key_in_a_unique_index_are_named() {
    for records_max in MEMORIES {
        let mut stored = Stored::sound(200);
        let table = TABLES[0];
        stored.put(table, 70_000, Some(3), 1);
        stored.put(table, 60_000, Some(3), 1);
        // NULL is no key twice, and surplus entries are no rows.
        stored.put(table, 70_001, None, 1);
        stored.put(table, 70_002, None, 1);
        let entries = stored.entries.get_mut(&(table, UNIQUE)).unwrap();
        entries.insert(entry(4, 70_002));
        entries.insert(entry(5, 80_000));
        let report = stored.check(records_max);
        let expected = [
            "t7 i20: rows 118 and 60000 have one key in a unique index: 0003",
            "t7 i20: rows 60000 and 70000 have one key in a unique index: 0003",
        ];
        assert_eq!(report.damage, expected);
        assert_eq!(report.surplus, 2);
    }
}

#[test]
fn a_key_that_cannot_be_computed_is_named() {
    let mut stored = Stored::sound(20);
    let mut builder = RowBuilder::new();
    builder.start(0, 2);
    builder.push(Some(b"?"));
    builder.push(Some(&1_u16.to_be_bytes()));
    stored
        .rows
        .insert((TABLES[0], 3), builder.finish().to_vec());
    let report = stored.check(RECORDS_MAX);
    assert_eq!(
        report.damage,
        ["t7 i20: the key of row 3 cannot be computed"]
    );
}

/// Keys made in another way, and no number at all: a start does not use these tiles either.
#[test]
fn what_a_start_makes_anew_is_not_compared() {
    let mut stored = Stored::sound(20);
    stored
        .entries
        .get_mut(&(TABLES[0], UNIQUE))
        .unwrap()
        .clear();
    let (home, mut record) = stored.written();
    for info in &mut record.indexes {
        if info.table == TABLES[0] {
            info.keys = 0;
        }
    }
    let report = compared(&home, &record, RECORDS_MAX);
    assert_eq!(report.damage, Vec::<String>::new());
    assert_eq!((report.indexes, report.not_used), (2, 2));
}

/// Whatever bit is wrong: nothing is said of what cannot be read, and all the rest is compared.
#[test]
fn damaged_pages_are_no_missing_entries() {
    let stored = Stored::sound(60);
    let (home, record) = stored.written();
    let sound = compared(&home, &record, RECORDS_MAX);
    let objects = home.objects.list_objects().unwrap();
    let mut found = 0;
    for info in &objects {
        for at in (0..info.size_bytes as usize).step_by(101) {
            let copy = LogHome::from(MemoryHome::new(1 << 20));
            for other in &objects {
                let mut bytes = vec![0; other.size_bytes as usize];
                home.objects.read_object(other.id, 0, &mut bytes).unwrap();
                if other.id == info.id {
                    bytes[at] ^= 4;
                }
                copy.objects.put_object(other.id, &bytes).unwrap();
            }
            let report = compared(&copy, &record, 20);
            assert!(report.entries <= sound.entries);
            assert_eq!(report.surplus, 0, "{:?}", report.damage);
            for damage in &report.damage {
                assert!(damage.contains("not compared"), "{damage}");
            }
            assert_eq!(report.is_clean(), report == sound);
            found += usize::from(!report.is_clean());
        }
    }
    assert!(found > 20);
}

/// Tiles that do not cover everything: an index is compared only if it is all there.
#[test]
fn an_index_with_a_gap_is_not_compared() {
    for (gone, why) in [
        (0, "its tiles do not follow one another"),
        (3, "its tiles do not follow one another"),
        (11, "its last tiles are missing"),
    ] {
        let stored = Stored::sound(60);
        let (home, mut record) = stored.written();
        let directory = Directory::open(home.objects.clone(), record.root);
        let tile = directory.tiles(TABLES[0], UNIQUE, Vec::new()).nth(gone);
        let (table, index, low) = (TABLES[0], UNIQUE, tile.unwrap().unwrap().0);
        let mut writer = ObjectWriter::new(
            home.objects.clone(),
            Arc::new(ObjectIdAllocator::new(Epoch(2))),
            None,
        );
        let changes = [(PageKey::Leaf { table, index, low }, None)];
        let applied = directory
            .apply(&changes, &BTreeSet::new(), Csn(9), &mut writer)
            .unwrap();
        std::mem::forget(writer.finish().unwrap());
        record.root = applied.directory.root();
        let report = compared(&home, &record, RECORDS_MAX);
        let expected = format!("t7 i20: not compared with its rows: {why}");
        assert_eq!(report.damage, [expected]);
        assert_eq!((report.indexes, report.surplus), (3, 0));
    }
}
