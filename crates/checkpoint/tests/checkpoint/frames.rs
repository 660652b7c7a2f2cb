//! The formats, pinned: golden files that a person can read, and hostile bytes.
//!
//! If a golden test fails, the format has changed. That needs a new format version, never a new golden file alone.

use crate::rig;

use logstead_checkpoint::{
    CheckpointError, CheckpointRecord, ChunkSize, ChunkWriter, Directory, DividedTable, ImageKind,
    IndexInfo, LeafWriter, ObjectId, ObjectIdAllocator, ObjectUse, ObjectWriter, PageChain,
    PageReader, PageRef, RetainedRecord, TableInfo, frame,
};
use logstead_home::{LogHome, Position};
use logstead_types::{Csn, DatabaseId, Epoch, IndexId, LaneId, TableId};
use logstead_wal::manifest::RedoPoint;
use proptest::prelude::*;
use rig::{home, key, tile, write_tile};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

fn hex(bytes: &[u8]) -> String {
    let mut out = String::new();
    for line in bytes.chunks(16) {
        let line: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(out, "{}", line.join(" ")).unwrap();
    }
    out
}

fn bytes(golden: &str) -> Vec<u8> {
    let words = golden
        .lines()
        .filter(|line| !line.starts_with('#'))
        .flat_map(|line| line.split(' '));
    words
        .map(|word| u8::from_str_radix(word, 16).unwrap())
        .collect()
}

fn compare(name: &str, golden: &str, found: &[u8]) {
    assert!(
        bytes(golden) == found,
        "{name} has changed:\n{}",
        hex(found)
    );
}

fn object(home: &LogHome, at: &PageRef) -> Vec<u8> {
    let mut bytes = vec![0; at.len as usize];
    home.objects
        .read_object(at.object, u64::from(at.offset), &mut bytes)
        .unwrap();
    bytes
}

#[test]
fn pages_are_as_documented() {
    let home = home();
    let object_ids = Arc::new(ObjectIdAllocator::new(Epoch(1)));
    let mut writer = ObjectWriter::new(home.objects.clone(), object_ids, None);
    let mut chunks = ChunkWriter::new().with_page_bytes(40);
    chunks.begin(key(16_384, 258), ImageKind::Whole, Csn(1_000));
    chunks.row(0, Csn(999), b"first", &mut writer).unwrap();
    chunks.row(30, Csn(1), b"", &mut writer).unwrap();
    chunks
        .row(
            63,
            Csn(700),
            b"a row that is too large for the page: in two pieces",
            &mut writer,
        )
        .unwrap();
    let whole = chunks.finish(&mut writer).unwrap().to_vec();
    chunks.begin(key(16_384, 258), ImageKind::Delta, Csn(2_000));
    chunks.row(5, Csn(1_500), b"new", &mut writer).unwrap();
    chunks.delete(30).unwrap();
    chunks.delete(0).unwrap();
    let delta = chunks.finish(&mut writer).unwrap().to_vec();
    rig::keep(writer.finish().unwrap());
    assert_eq!((whole.len(), delta.len()), (3, 1));
    compare(
        "base",
        include_str!("golden/base.txt"),
        &object(&home, &whole[0]),
    );
    compare(
        "piece",
        include_str!("golden/piece.txt"),
        &object(&home, &whole[2]),
    );
    compare(
        "delta",
        include_str!("golden/delta.txt"),
        &object(&home, &delta[0]),
    );
}

/// Those of formats 1 and 2: read in their size, by nobody else.
#[test]
fn pages_of_old_chunks_are_read_in_their_size() {
    let home = home();
    let base = stored(&home, 1, &bytes(include_str!("golden/base_1024.txt")));
    let delta = stored(&home, 2, &bytes(include_str!("golden/delta_1024.txt")));
    let piece = stored(&home, 3, &bytes(include_str!("golden/piece_1024.txt")));
    let key = key(16_384, 258);
    let read = |size: ChunkSize, chain: &PageChain| {
        let mut rows = Vec::new();
        let mut reader = PageReader::new(home.objects.clone());
        let read = reader.chunk_of(size, &key, chain, |slot, csn, row| {
            rows.push((slot, csn, row.to_vec()));
        });
        read.map(|()| rows)
    };
    let mut chain = PageChain::whole(&[base]).unwrap();
    let old = read(ChunkSize::Of1024, &chain).unwrap();
    let expected = [(0, Csn(999), b"first".to_vec()), (300, Csn(1), Vec::new())];
    assert_eq!(old, expected);
    assert!(read(ChunkSize::Of64, &chain).is_err());
    chain.push(&[delta]);
    let old = read(ChunkSize::Of1024, &chain).unwrap();
    assert_eq!(old, [(5, Csn(1_500), b"new".to_vec())]);
    // The last piece of two.
    chain.push(&[piece]);
    assert!(read(ChunkSize::Of1024, &chain).is_err());
}

#[test]
fn tiles_are_as_documented() {
    let home = home();
    let object_ids = Arc::new(ObjectIdAllocator::new(Epoch(1)));
    let mut writer = ObjectWriter::new(home.objects.clone(), object_ids, None);
    let mut leaves = LeafWriter::new().with_page_bytes(16);
    let entries = [&b"bat\x01"[..], b"bee\x01", b"bee\x02", b"beetle\x03"].map(<[u8]>::to_vec);
    let key = tile(16_384, 16_390, b"ba");
    let whole = write_tile(
        &entries.into(),
        key,
        Some(b"c"),
        Csn(1_000),
        &mut leaves,
        &mut writer,
    );
    let whole: Vec<_> = whole.unwrap().pages().copied().collect();
    rig::keep(writer.finish().unwrap());
    assert_eq!(whole.len(), 2);
    compare(
        "tile",
        include_str!("golden/tile.txt"),
        &object(&home, &whole[0]),
    );
    compare(
        "tile_piece",
        include_str!("golden/tile_piece.txt"),
        &object(&home, &whole[1]),
    );
}

fn page(object: u64, offset: u32) -> PageRef {
    PageRef {
        object: ObjectId(object),
        offset,
        len: 4_096,
        crc: 0x1234_5678,
    }
}

#[test]
fn nodes_are_as_documented() {
    let home = home();
    let object_ids = Arc::new(ObjectIdAllocator::new(Epoch(1)));
    let mut writer = ObjectWriter::new(home.objects.clone(), Arc::clone(&object_ids), None);
    let mut chain = PageChain::whole(&[page(7, 0), page(8, 1)]).unwrap();
    chain.push(&[page(9, 2)]);
    let changes = [
        (key(3, 1), Some(chain)),
        (key(3, 2), PageChain::whole(&[page(7, 4_096)])),
    ];
    let empty = Directory::open(home.objects.clone(), None);
    let leaf = empty
        .apply(&changes, &BTreeSet::new(), Csn(77), &mut writer)
        .unwrap();
    let many: Vec<_> = (0..150)
        .map(|n| (key(3, n), PageChain::whole(&[page(1, 0)])))
        .collect();
    let inner = empty
        .apply(&many, &BTreeSet::new(), Csn(78), &mut writer)
        .unwrap();
    rig::keep(writer.finish().unwrap());
    let leaf = object(&home, &leaf.directory.root().unwrap());
    compare("leaf", include_str!("golden/leaf.txt"), &leaf);
    // What its children are compressed to is up to the library; that they are read is up to this crate.
    let root = object(&home, &inner.directory.root().unwrap());
    let golden = bytes(include_str!("golden/inner.txt"));
    let mut buffer = Vec::new();
    let found = frame::decode(&root, &mut buffer).unwrap();
    let mut buffer = Vec::new();
    let expected = frame::decode(&golden, &mut buffer).unwrap();
    assert_eq!(
        (found.kind, found.key, found.csn),
        (expected.kind, expected.key, expected.csn),
        "{}",
        hex(&root)
    );
    assert_eq!(found.payload.len(), expected.payload.len());
}

fn record() -> CheckpointRecord {
    CheckpointRecord {
        divided: Vec::new(),
        database: DatabaseId(0x0123_4567_89ab_cdef),
        chunk_size: ChunkSize::Of1024,
        csn: Csn(1_000),
        epoch: Epoch(3),
        taken_at_micros: -1,
        root: Some(page(3 << 32, 500)),
        tables: vec![
            TableInfo {
                table: TableId(5),
                rid_end: 300,
            },
            TableInfo {
                table: TableId(16_384),
                rid_end: 1 << 40,
            },
        ],
        indexes: Vec::new(),
        objects: vec![ObjectUse {
            object: ObjectId(3 << 32),
            size_bytes: 65_536,
            live_bytes: 60_000,
        }],
        starts: vec![RedoPoint {
            lane: LaneId(2),
            at: Position {
                segment: 9,
                offset: 8_192,
            },
            block: 4,
            previous_header_crc: 0xbad_cafe,
        }],
        kept: vec![RetainedRecord {
            object: ObjectId((2 << 32) + 1),
            crc: 0xfeed_f00d,
            csn: Csn(900),
            taken_at_micros: 77,
        }],
        has_pins: false,
    }
}

fn with_indexes() -> CheckpointRecord {
    let info = |table, index, keys| IndexInfo {
        table: TableId(table),
        index: IndexId(index),
        keys,
    };
    CheckpointRecord {
        indexes: vec![info(5, 6, 0), info(16_384, 16_390, 0x0102_0304_0506_0708)],
        ..record()
    }
}

/// In the format of today.
fn today(record: CheckpointRecord) -> CheckpointRecord {
    CheckpointRecord {
        chunk_size: ChunkSize::Of64,
        ..record
    }
}

const OBJECT: ObjectId = ObjectId((3 << 32) + 1);

#[test]
fn records_are_as_documented() {
    let bytes = record().encode(OBJECT).unwrap();
    compare("record", include_str!("golden/record.txt"), &bytes);
    let database = record().database;
    assert_eq!(
        CheckpointRecord::decode(&bytes, database, OBJECT).unwrap(),
        record()
    );
    assert!(CheckpointRecord::decode(&bytes, DatabaseId(1), OBJECT).is_err());
    assert!(CheckpointRecord::decode(&bytes, database, ObjectId(7)).is_err());
}

#[test]
fn a_record_says_whether_there_are_pins() {
    let with = CheckpointRecord {
        has_pins: true,
        ..today(with_indexes())
    };
    let without = today(with_indexes());
    for record in [&with, &without] {
        let bytes = record.encode(OBJECT).unwrap();
        assert_eq!(
            CheckpointRecord::decode(&bytes, record.database, OBJECT).unwrap(),
            *record
        );
    }
    // Where it cannot be said nothing is said.
    let old = CheckpointRecord {
        has_pins: true,
        ..record()
    };
    assert_eq!(
        old.encode(OBJECT).unwrap(),
        record().encode(OBJECT).unwrap()
    );
}

/// Only a record with divided tables has their format: older servers read all others.
#[test]
fn a_record_says_which_tables_are_divided() {
    let divided = |table, partitions: &[u64]| DividedTable {
        table: TableId(table),
        partitions: partitions.to_vec(),
    };
    let with = |has_pins, tables: &[DividedTable]| CheckpointRecord {
        has_pins,
        divided: tables.to_vec(),
        ..today(with_indexes())
    };
    let both = [divided(5, &[0, 7, 300]), divided(16_384, &[1 << 40])];
    for has_pins in [false, true] {
        let record = with(has_pins, &both);
        let bytes = record.encode(OBJECT).unwrap();
        let read = CheckpointRecord::decode(&bytes, record.database, OBJECT).unwrap();
        assert_eq!(read, record);
        assert_eq!(read.divided(TableId(5)), Some(&both[0]));
        assert_eq!(read.divided(TableId(6)), None);
    }
    // Frames may be compressed: their payload is what is documented.
    let golden = bytes(include_str!("golden/record4.txt"));
    let encoded = with(false, &both).encode(OBJECT).unwrap();
    let mut buffers = [Vec::new(), Vec::new()];
    let [expected, found] = &mut buffers;
    let expected = frame::decode(&golden, expected).unwrap();
    let found = frame::decode(&encoded, found).unwrap();
    assert_eq!(found.payload, expected.payload, "{}", hex(found.payload));
    let read = CheckpointRecord::decode(&golden, record().database, OBJECT).unwrap();
    assert_eq!(read, with(false, &both));
    let swapped = [both[1].clone(), both[0].clone()];
    for wrong in [&swapped[..], &[divided(6, &[1])]] {
        assert!(with(false, wrong).encode(OBJECT).is_err());
    }
}

/// A frame as a newer server would write it: its version, and every checksum right.
fn newer(frame: &[u8], found: u16) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[8..10].copy_from_slice(&found.to_le_bytes());
    let key_len = usize::from(u16::from_le_bytes([frame[12], frame[13]]));
    let crc = crc32c::crc32c_append(crc32c::crc32c(&frame[..36]), &frame[40..40 + key_len]);
    frame[36..40].copy_from_slice(&crc.to_le_bytes());
    frame
}

/// Puts a frame in an object of its own; where it is.
fn stored(home: &LogHome, id: u64, frame: &[u8]) -> PageRef {
    home.objects.put_object(ObjectId(id), frame).unwrap();
    PageRef {
        object: ObjectId(id),
        offset: 0,
        len: frame.len() as u32,
        crc: u32::from_le_bytes(frame[36..40].try_into().unwrap()),
    }
}

#[test]
fn pages_nodes_and_records_of_a_newer_format_are_refused_by_their_versions() {
    let version = frame::FORMAT_VERSION + 1;
    let says = |error: &dyn std::fmt::Display, found: u16, known: u16| {
        let text = error.to_string();
        let versions = format!("version {found}; this server knows versions up to {known}: use a");
        assert!(text.contains(&versions), "{text}");
    };
    let damage = |found: Result<(), CheckpointError>| match found {
        Err(CheckpointError::Damaged(damage)) => damage,
        other => panic!("{other:?}"),
    };
    let home = home();
    let page = newer(&bytes(include_str!("golden/base.txt")), version);
    let page = stored(&home, 100, &page);
    let chain = PageChain::whole(&[page]).unwrap();
    let mut reader = PageReader::new(home.objects.clone());
    let read = reader.chunk(&key(16_384, 258), &chain, |_, _, _| panic!("it is read"));
    let read = damage(read.map(drop));
    assert!(read.what.contains("table 16384 chunk 258"), "{read}");
    says(&read, version, frame::FORMAT_VERSION);
    for (id, golden) in [
        (101, include_str!("golden/leaf.txt")),
        (102, include_str!("golden/inner.txt")),
    ] {
        let node = stored(&home, id, &newer(&bytes(golden), version));
        let directory = Directory::open(home.objects.clone(), Some(node));
        let read = damage(directory.get(&key(3, 1)).map(drop));
        assert_eq!(read.object, ObjectId(id));
        says(&read, version, frame::FORMAT_VERSION);
    }
    // A record by its frame's version, and by its own, which is the payload's first byte.
    let good = today(with_indexes()).encode(OBJECT).unwrap();
    let database = record().database;
    let error = CheckpointRecord::decode(&newer(&good, version), database, OBJECT).unwrap_err();
    says(&error, version, frame::FORMAT_VERSION);
    let (mut buffer, mut encoder) = (Vec::new(), frame::Encoder::new());
    let newest = bytes(include_str!("golden/record4.txt"));
    let found = frame::decode(&newest, &mut buffer).unwrap();
    let mut payload = found.payload.to_vec();
    let known = u16::from(payload[0]);
    payload[0] += 1;
    let own = encoder.encode(found.kind, found.csn, found.key, &payload);
    let own = own.unwrap().to_vec();
    let error = CheckpointRecord::decode(&own, database, OBJECT).unwrap_err();
    says(&error, known + 1, known);
    // And as a start reads it: named by a manifest.
    let object = home
        .objects
        .put_object(OBJECT, &own)
        .map(|()| crc32c::crc32c(&own));
    let read = CheckpointRecord::read(home.objects.as_ref(), database, OBJECT, object.unwrap());
    let read = damage(read.map(drop));
    assert_eq!(read.object, OBJECT);
    says(&read, known + 1, known);
}

#[test]
fn records_with_indexes_are_as_documented() {
    let record = with_indexes();
    let bytes = record.encode(OBJECT).unwrap();
    compare("record2", include_str!("golden/record2.txt"), &bytes);
    let read = CheckpointRecord::decode(&bytes, record.database, OBJECT).unwrap();
    assert_eq!(read, record);
    let found = read.index(TableId(16_384), IndexId(16_390));
    assert_eq!(found.map(|info| info.keys), Some(0x0102_0304_0506_0708));
    assert_eq!(read.index(TableId(5), IndexId(16_390)), None);
}

/// Whoever has no indexes has the same format.
#[test]
fn records_of_today_are_as_documented() {
    let record = today(with_indexes());
    let bytes = record.encode(OBJECT).unwrap();
    compare("record3", include_str!("golden/record3.txt"), &bytes);
    let read = CheckpointRecord::decode(&bytes, record.database, OBJECT).unwrap();
    assert_eq!(read, record);
    let none = today(self::record());
    let bytes = none.encode(OBJECT).unwrap();
    let read = CheckpointRecord::decode(&bytes, record.database, OBJECT).unwrap();
    assert_eq!(read, none);
}

/// What a later server has written is refused by its number.
#[test]
fn a_record_of_a_newer_format_is_refused() {
    let record = record();
    let bytes = record.encode(OBJECT).unwrap();
    let mut buffer = Vec::new();
    let frame = frame::decode(&bytes, &mut buffer).unwrap();
    let mut payload = frame.payload.to_vec();
    for (format, newer) in [
        (0, false),
        (2, false),
        (3, false),
        (4, false),
        (5, true),
        (99, true),
    ] {
        payload[0] = format;
        let mut encoder = frame::Encoder::new();
        let bytes = encoder
            .encode(frame::FrameKind::Record, record.csn, frame.key, &payload)
            .unwrap();
        let error = CheckpointRecord::decode(bytes, record.database, OBJECT).unwrap_err();
        let is_newer = matches!(error, frame::FrameError::Newer { .. });
        assert_eq!(is_newer, newer, "{format}: {error}");
    }
}

/// A compressed frame that was written once is read by every later version of the library.
#[test]
fn a_compressed_frame_of_old_is_read() {
    let golden = bytes(include_str!("golden/compressed.txt"));
    let mut buffer = Vec::new();
    let frame = frame::decode(&golden, &mut buffer).unwrap();
    assert_eq!(
        frame.payload,
        b"a page that says the same again and again; ".repeat(40)
    );
}

#[test]
fn every_flipped_bit_of_a_record_is_found() {
    let record = with_indexes();
    let home = home();
    let good = record.encode(OBJECT).unwrap();
    let crc = crc32c::crc32c(&good);
    home.objects.put_object(OBJECT, &good).unwrap();
    assert_eq!(
        CheckpointRecord::read(home.objects.as_ref(), record.database, OBJECT, crc).unwrap(),
        record
    );
    for at in 0..good.len() {
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[at] ^= 1 << bit;
            home.objects.remove_object(OBJECT).unwrap();
            home.objects.put_object(OBJECT, &bad).unwrap();
            assert!(CheckpointRecord::decode(&bad, record.database, OBJECT).is_err());
            match CheckpointRecord::read(home.objects.as_ref(), record.database, OBJECT, crc) {
                Err(CheckpointError::Damaged(damage)) => assert_eq!(damage.object, OBJECT),
                other => panic!("byte {at} bit {bit}: {other:?}"),
            }
        }
    }
    home.objects.remove_object(OBJECT).unwrap();
    let missing = CheckpointRecord::read(home.objects.as_ref(), record.database, OBJECT, crc);
    assert!(matches!(missing, Err(CheckpointError::Damaged(_))));
}

#[test]
fn a_long_record_is_read_whole() {
    let mut record = record();
    let objects = (0..20_000).map(|n| ObjectUse {
        object: ObjectId((3 << 32) + n * n),
        size_bytes: 65_536 + n,
        live_bytes: 60_000 - n,
    });
    record.objects = objects.collect();
    let id = ObjectId(1);
    let bytes = record.encode(id).unwrap();
    assert!(bytes.len() > 100_000);
    let home = home();
    home.objects.put_object(id, &bytes).unwrap();
    let read = CheckpointRecord::read(
        home.objects.as_ref(),
        record.database,
        id,
        crc32c::crc32c(&bytes),
    );
    assert_eq!(read.unwrap(), record);
}

#[test]
fn records_that_contradict_themselves_are_neither_written_nor_read() {
    let bad: [fn(&mut CheckpointRecord); 11] = [
        |record| record.tables.swap(0, 1),
        |record| record.objects.push(record.objects[0]),
        |record| record.objects[0].live_bytes = 0,
        |record| record.objects[0].live_bytes = 65_537,
        |record| record.objects[0].size_bytes = 65 << 20,
        |record| record.objects[0].object = ObjectId(1),
        |record| record.starts.push(record.starts[0]),
        |record| record.kept.push(record.kept[0]),
        |record| record.indexes.swap(0, 1),
        |record| record.indexes.push(record.indexes[1]),
        |record| record.indexes[0].table = TableId(4),
    ];
    for (index, spoil) in bad.into_iter().enumerate() {
        let mut record = with_indexes();
        spoil(&mut record);
        assert!(record.encode(OBJECT).is_err(), "{index}");
    }
}

proptest! {
    /// Right checksums around anything: nothing panics, and what is read is written as the same bytes again.
    #[test]
    fn any_payload_of_a_record_is_safe(
        payload in proptest::collection::vec(any::<u8>(), 0..120),
        at in 0..200_usize,
        byte: u8,
    ) {
        let mut encoder = frame::Encoder::new();
        let good = with_indexes().encode(OBJECT).unwrap();
        let mut buffer = Vec::new();
        let good = frame::decode(&good, &mut buffer).unwrap();
        let mut changed = good.payload.to_vec();
        let len = changed.len();
        changed[at % len] = byte;
        for payload in [&payload[..], &changed, &changed[..at % len]] {
            let bytes = encoder.encode(frame::FrameKind::Record, Csn(1_000), good.key, payload).unwrap();
            if let Ok(read) = CheckpointRecord::decode(bytes, record().database, OBJECT) {
                let again = read.encode(OBJECT).unwrap();
                prop_assert_eq!(&again[..], bytes);
            }
        }
    }

    /// The same for nodes: a directory that anybody made up.
    #[test]
    fn any_payload_of_a_node_is_safe(
        payload in proptest::collection::vec(any::<u8>(), 0..200),
        level in 0..3_u8,
    ) {
        let home = home();
        let mut encoder = frame::Encoder::new();
        let bytes = encoder.encode(frame::FrameKind::Node, Csn(1), &[level, 1], &payload).unwrap();
        home.objects.put_object(OBJECT, bytes).unwrap();
        let root = PageRef {
            object: OBJECT,
            offset: 0,
            len: bytes.len() as u32,
            crc: frame::checksum(bytes),
        };
        let directory = Directory::open(home.objects.clone(), Some(root));
        let _no_panic = directory.get(&key(1, 1));
        let _no_panic = directory.scan(None).count();
    }
}
