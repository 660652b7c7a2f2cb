//! Chunks written and read back, and what becomes of damage.

use crate::rig;

use logstead_checkpoint::frame::{self, FrameKind};
use logstead_checkpoint::{
    CheckpointError, ChunkWriter, DecodedPage, Directory, ImageKind, ObjectIdAllocator,
    ObjectWriter, PageChain, PageReader, RateLimiter, RowsPageBuilder, SlotState, read_rows,
};
use logstead_env::{Clock, SimClock};
use logstead_types::{Csn, Epoch};
use proptest::prelude::*;
use rig::{Rows, flipped, home, key, read_all, write_whole};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// What becomes of a slot: a row of some length, or nothing.
fn step() -> impl Strategy<Value = BTreeMap<u16, Option<usize>>> {
    let state = proptest::option::of(prop_oneof![8 => 0..60_usize, 1 => 60..900_usize]);
    proptest::collection::btree_map(prop_oneof![0..40_u16, 0..64_u16], state, 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// A chunk is what its base and deltas make of it, whatever is cut: pages of 100 bytes, pieces of rows, objects of
    /// 1,000 bytes.
    #[test]
    fn a_chunk_is_what_was_written_last(steps in proptest::collection::vec(step(), 1..6)) {
        let home = home();
        let object_ids = Arc::new(ObjectIdAllocator::new(Epoch(3)));
        let mut chunks = ChunkWriter::new().with_page_bytes(100);
        let mut writer = ObjectWriter::new(home.objects.clone(), object_ids, None).with_object_bytes(1_000);
        let mut rows = BTreeMap::new();
        let mut chain: Option<PageChain> = None;
        for (number, step) in steps.iter().enumerate() {
            let csn = Csn(100 * (number as u64 + 1));
            let extent = if number == 0 { ImageKind::Whole } else { ImageKind::Delta };
            chunks.begin(key(7, 9), extent, csn);
            for (slot, len) in step {
                match len {
                    Some(len) => {
                        let bytes = vec![number as u8; *len];
                        let row = (Csn(csn.0 - 1 - u64::from(*slot % 50)), bytes);
                        chunks.row(*slot, row.0, &row.1, &mut writer).unwrap();
                        rows.insert(*slot, row);
                    }
                    None => {
                        rows.remove(slot);
                        if number > 0 {
                            chunks.delete(*slot).unwrap();
                        }
                    }
                }
            }
            let pages = chunks.finish(&mut writer).unwrap();
            match &mut chain {
                None => chain = PageChain::whole(pages),
                Some(chain) => chain.push(pages),
            }
        }
        rig::keep(writer.finish().unwrap());
        let mut found = BTreeMap::new();
        let mut reader = PageReader::new(home.objects.clone());
        reader.chunk(&key(7, 9), &chain.unwrap(), |slot, csn, bytes| {
            assert!(found.insert(slot, (csn, bytes.to_vec())).is_none());
        }).unwrap();
        prop_assert_eq!(found, rows);
    }
}

#[test]
fn a_page_of_another_chunk_is_not_taken() {
    let mut page = RowsPageBuilder::new();
    page.begin(Csn(9));
    page.row(3, Csn(4), b"row").unwrap();
    let mut encoder = frame::Encoder::new();
    let bytes = page.finish(FrameKind::RowsBase, &key(1, 2), &mut encoder);
    let bytes = bytes.unwrap().to_vec();
    let mut buffer = Vec::new();
    for (key, is_base, right) in [
        (key(1, 2), true, true),
        (key(1, 3), true, false),
        (key(2, 2), true, false),
        (key(1, 2), false, false),
    ] {
        let read = read_rows(&bytes, &key, is_base, &mut buffer);
        assert_eq!(read.is_ok(), right, "{key} {is_base}");
        if let Ok(DecodedPage::Rows(rows)) = read {
            assert_eq!(rows.csn(), Csn(9));
            rows.visit(|slot, state| {
                let row = SlotState::Row {
                    csn: Csn(4),
                    bytes: b"row",
                };
                assert_eq!((slot, state), (3, row));
            });
        }
    }
}

#[test]
fn rows_come_in_order_and_are_older_than_their_page() {
    let mut page = RowsPageBuilder::new();
    page.begin(Csn(9));
    page.row(3, Csn(4), b"").unwrap();
    for (slot, csn) in [(3, 4), (2, 4), (64, 4), (4, 9), (4, 10)] {
        let refused = page.row(slot, Csn(csn), b"");
        assert!(refused.is_err(), "slot {slot} csn {csn}");
    }
    page.row(63, Csn(8), b"").unwrap();
    assert!(page.delete(64).is_err());
}

/// A payload under right checksums that says something impossible.
#[test]
fn nothing_impossible_is_read_out_of_a_page() {
    let bad: [(&str, FrameKind, Vec<u8>); 11] = [
        ("empty", FrameKind::RowsBase, vec![]),
        ("a row missing", FrameKind::RowsBase, vec![1, 0, 0, 0]),
        (
            "slot too high",
            FrameKind::RowsBase,
            vec![1, 0, 0, 0, 64, 1, 0],
        ),
        ("distance 0", FrameKind::RowsBase, vec![1, 0, 0, 0, 0, 0, 0]),
        (
            "distance too large",
            FrameKind::RowsBase,
            vec![1, 0, 0, 0, 0, 11, 0],
        ),
        (
            "row too long",
            FrameKind::RowsBase,
            vec![1, 0, 0, 0, 0, 1, 9, 1],
        ),
        ("bytes behind", FrameKind::RowsBase, vec![0, 0, 0, 0, 1]),
        ("base empties", FrameKind::RowsBase, vec![0, 0, 1, 0, 5]),
        (
            "full and empty",
            FrameKind::RowsDelta,
            vec![1, 0, 1, 0, 5, 1, 0, 5],
        ),
        (
            "more than a chunk",
            FrameKind::RowsDelta,
            vec![255, 255, 1, 0],
        ),
        ("piece beyond", FrameKind::RowPiece, vec![1, 1, 3, 2, 7, 7]),
    ];
    let mut encoder = frame::Encoder::new();
    let mut right = RowsPageBuilder::new();
    right.begin(Csn(10));
    let right = right
        .finish(FrameKind::RowsBase, &key(1, 1), &mut encoder)
        .unwrap()
        .to_vec();
    let mut buffer = Vec::new();
    let page_key = frame::decode(&right, &mut buffer).unwrap().key.to_vec();
    for (what, kind, payload) in bad {
        let bytes = encoder
            .encode(kind, Csn(10), &page_key, &payload)
            .unwrap()
            .to_vec();
        let is_base = kind == FrameKind::RowsBase;
        let mut buffer = Vec::new();
        assert!(
            read_rows(&bytes, &key(1, 1), is_base, &mut buffer).is_err(),
            "{what}"
        );
    }
}

/// A small checkpoint with every kind of frame in it.
fn small() -> (logstead_home::LogHome, Directory, Rows) {
    let home = home();
    let object_ids = Arc::new(ObjectIdAllocator::new(Epoch(1)));
    let mut chunks = ChunkWriter::new().with_page_bytes(60);
    let mut writer =
        ObjectWriter::new(home.objects.clone(), object_ids, None).with_object_bytes(400);
    let mut rows = Rows::new();
    for chunk in 0..3 {
        for slot in 0..3 {
            let len = if (chunk, slot) == (1, 1) { 150 } else { 25 };
            rows.insert((5, chunk, slot), (Csn(7), vec![slot as u8 + 1; len]));
        }
    }
    let mut changes = Vec::new();
    for chunk in 0..3 {
        let whole = write_whole(&rows, (5, chunk), Csn(20), &mut chunks, &mut writer);
        changes.push((key(5, chunk), whole.unwrap()));
    }
    chunks.begin(key(5, 2), ImageKind::Delta, Csn(30));
    chunks.delete(0).unwrap();
    chunks.row(2, Csn(25), b"changed", &mut writer).unwrap();
    let delta = chunks.finish(&mut writer).unwrap();
    if let Some(chain) = &mut changes[2].1 {
        chain.push(delta);
    }
    rows.remove(&(5, 2, 0));
    rows.insert((5, 2, 2), (Csn(25), b"changed".to_vec()));
    let empty = Directory::open(home.objects.clone(), None);
    let applied = empty
        .apply(&changes, &BTreeSet::new(), Csn(30), &mut writer)
        .unwrap();
    rig::keep(writer.finish().unwrap());
    (home, applied.directory, rows)
}

/// Every bit of every byte of every page and node: found, and the object and place are named.
#[test]
fn every_flipped_bit_of_a_checkpoint_is_found_and_named() {
    let (home, directory, rows) = small();
    assert_eq!(read_all(&home, &directory).unwrap(), rows);
    for (index, info) in home.objects.list_objects().unwrap().iter().enumerate() {
        for at in 0..info.size_bytes as usize {
            let bad = flipped(&home, index, at, (at % 8) as u8);
            let directory = Directory::open(bad.objects.clone(), directory.root());
            match read_all(&bad, &directory) {
                Err(CheckpointError::Damaged(damage)) => {
                    let place = damage.offset as usize..(damage.offset + damage.len) as usize;
                    assert_eq!(damage.object, info.id);
                    assert!(place.contains(&at), "{damage} for byte {at}");
                    let named =
                        damage.what.contains("table 5 chunk") || damage.what.contains("directory");
                    assert!(named, "{damage}");
                }
                other => panic!("object {} byte {at}: {other:?}", info.id),
            }
        }
    }
}

#[test]
fn a_missing_or_shorter_object_is_named() {
    let (home, directory, _) = small();
    for info in home.objects.list_objects().unwrap() {
        let bad = rig::home();
        for other in home.objects.list_objects().unwrap() {
            let cut = usize::from(other.id == info.id);
            let mut bytes = vec![0; other.size_bytes as usize - cut];
            home.objects.read_object(other.id, 0, &mut bytes).unwrap();
            bad.objects.put_object(other.id, &bytes).unwrap();
        }
        for _ in 0..2 {
            let directory = Directory::open(bad.objects.clone(), directory.root());
            match read_all(&bad, &directory) {
                Err(CheckpointError::Damaged(damage)) => assert_eq!(damage.object, info.id),
                other => panic!("object {}: {other:?}", info.id),
            }
            bad.objects.remove_object(info.id).unwrap();
        }
    }
}

/// Pages that lie one behind the other are read with few requests.
#[test]
fn neighbours_are_read_together() {
    let home = home();
    let object_ids = Arc::new(ObjectIdAllocator::new(Epoch(1)));
    let mut chunks = ChunkWriter::new();
    let mut writer = ObjectWriter::new(home.objects.clone(), object_ids, None);
    let mut chains = Vec::new();
    for chunk in 0..200 {
        chunks.begin(key(1, chunk), ImageKind::Whole, Csn(2));
        for slot in 0..64 {
            let noise: Vec<u8> = (0..100)
                .map(|i| (i * 7 + slot * 13 + chunk as u16) as u8)
                .collect();
            chunks.row(slot, Csn(1), &noise, &mut writer).unwrap();
        }
        chains.push(PageChain::whole(chunks.finish(&mut writer).unwrap()).unwrap());
    }
    rig::keep(writer.finish().unwrap());
    let mut reader = PageReader::new(home.objects.clone());
    let mut rows = 0;
    for (chunk, chain) in chains.iter().enumerate() {
        reader
            .chunk(&key(1, chunk as u64), chain, |_, _, _| rows += 1)
            .unwrap();
    }
    assert_eq!(rows, 200 * 64);
    assert_eq!(reader.reads().pages, 200);
    assert!(reader.reads().requests < 20, "{:?}", reader.reads());
}

#[test]
fn a_budget_holds_back_who_writes_faster() {
    let home = home();
    let clock = Arc::new(SimClock::new());
    let object_ids = Arc::new(ObjectIdAllocator::new(Epoch(1)));
    let waits = std::sync::atomic::AtomicU64::new(0);
    let rate_limiter = RateLimiter::new(Arc::clone(&clock) as Arc<dyn Clock>, 1 << 20, |time| {
        waits.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        clock.advance(time);
    });
    let mut writer = ObjectWriter::new(home.objects, object_ids, Some(rate_limiter));
    let mut encoder = frame::Encoder::new();
    let noise: Vec<u8> = (0..100_000_u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let mut bytes = 0;
    while bytes < 3 << 20 {
        let frame = encoder
            .encode(FrameKind::RowsBase, Csn(1), b"k", &noise)
            .unwrap();
        bytes += frame.len() as u64;
        writer.put(frame).unwrap();
    }
    let expected = Duration::from_secs_f64(bytes as f64 / f64::from(1 << 20));
    let took = Duration::from_nanos(clock.monotonic().as_nanos());
    assert!(
        took <= expected && took + Duration::from_millis(25) > expected,
        "{took:?} {expected:?}"
    );
    assert!(waits.load(std::sync::atomic::Ordering::Relaxed) > 10);
}

/// An older state of the same page, whole and with the same key, in the place of the newer one.
#[test]
fn an_older_state_in_a_newer_ones_place_is_not_taken() {
    let home = home();
    let object_ids = Arc::new(ObjectIdAllocator::new(Epoch(1)));
    let mut chunks = ChunkWriter::new();
    let mut roots = Vec::new();
    for csn in [10, 11] {
        let mut writer = ObjectWriter::new(home.objects.clone(), Arc::clone(&object_ids), None);
        chunks.begin(key(1, 1), ImageKind::Whole, Csn(csn));
        chunks.row(0, Csn(csn - 1), b"row", &mut writer).unwrap();
        let chain = PageChain::whole(chunks.finish(&mut writer).unwrap());
        // Its pages are in one object, its directory in the next.
        let mut nodes = ObjectWriter::new(home.objects.clone(), Arc::clone(&object_ids), None);
        let empty = Directory::open(home.objects.clone(), None);
        let made = empty.apply(
            &[(key(1, 1), chain)],
            &BTreeSet::new(),
            Csn(csn),
            &mut nodes,
        );
        roots.push(made.unwrap().directory.root());
        rig::keep(writer.finish().unwrap());
        rig::keep(nodes.finish().unwrap());
    }
    let objects: Vec<_> = home
        .objects
        .list_objects()
        .unwrap()
        .iter()
        .map(|info| info.id)
        .collect();
    assert_eq!(objects.len(), 4);
    for (old, new, what) in [(0, 2, "table 1 chunk 1"), (1, 3, "directory")] {
        let bad = rig::home();
        for (index, id) in objects.iter().enumerate() {
            let from = objects[if index == new { old } else { index }];
            let mut bytes = vec![0; 1 << 10];
            let len = home.objects.read_object(from, 0, &mut bytes).unwrap();
            bad.objects.put_object(*id, &bytes[..len]).unwrap();
        }
        match read_all(&bad, &Directory::open(bad.objects.clone(), roots[1])) {
            Err(CheckpointError::Damaged(damage)) => {
                assert_eq!(damage.object, objects[new]);
                assert!(damage.what.contains(what), "{damage}");
                assert!(
                    damage.why.to_string().contains("another checksum"),
                    "{damage}"
                );
            }
            other => panic!("{what}: {other:?}"),
        }
    }
}

/// Puts a change behind a row.
fn append(row: &[u8], change: &[u8], into: &mut Vec<u8>) -> Result<(), &'static str> {
    if row.is_empty() {
        return Err("an empty row");
    }
    into.clear();
    into.extend_from_slice(row);
    into.extend_from_slice(change);
    Ok(())
}

type Found = BTreeMap<u16, (Csn, Option<Vec<u8>>)>;

/// What is read of a chain, how that ended, and of which slots it is known.
fn read_chain(
    reader: &mut PageReader,
    chain: &PageChain,
    wanted: impl Fn(u16) -> bool,
) -> (Found, Result<(), String>, u64) {
    let mut found = Found::new();
    let read = reader.rows(&key(7, 9), chain, wanted, |slot, csn, row| {
        let before = found.insert(slot, (csn, row.map(<[u8]>::to_vec)));
        assert!(before.is_none(), "once");
    });
    let read = read.map_err(|error| error.to_string());
    (found, read, reader.known())
}

/// A change that is longer than some pages is pieces; what is wanted of it is put together, and damage of one of them
/// is told.
#[test]
fn a_long_change_is_cut_in_pieces() {
    let home = home();
    let object_ids = Arc::new(ObjectIdAllocator::new(Epoch(3)));
    let mut writer = ObjectWriter::new(home.objects.clone(), object_ids, None);
    let mut chunks = ChunkWriter::new().with_page_bytes(30);
    chunks.begin(key(7, 9), ImageKind::Whole, Csn(10));
    for slot in [1, 2, 3] {
        chunks.row(slot, Csn(4), b"row", &mut writer).unwrap();
    }
    let mut chain = PageChain::whole(chunks.finish(&mut writer).unwrap()).unwrap();
    let long: Vec<u8> = (0..500).map(|at| b'a' + (at % 26) as u8).collect();
    for (csn, slots) in [(20, [1, 2]), (30, [2, 3])] {
        chunks.begin(key(7, 9), ImageKind::Delta, Csn(csn));
        for slot in slots {
            let change = if slot == 2 { &long[..] } else { b"+short" };
            chunks
                .change(slot, Csn(csn - 1), change, &mut writer)
                .unwrap();
        }
        let pages = chunks.finish(&mut writer).unwrap();
        assert!(pages.len() > 16, "{} pages", pages.len());
        chain.push(pages);
    }
    chunks.begin(key(7, 9), ImageKind::Delta, Csn(40));
    chunks.row(9, Csn(39), b"new", &mut writer).unwrap();
    let newest = chunks.finish(&mut writer).unwrap().to_vec();
    rig::keep(writer.finish().unwrap());
    let mut reader = PageReader::new(home.objects.clone()).merging(append);
    let (found, read, _) = read_chain(&mut reader, &chain, |_| true);
    read.unwrap();
    let row = |at: u64, parts: &[&[u8]]| (Csn(at), Some(parts.concat()));
    let expected = Found::from([
        (1, row(19, &[b"row", b"+short"])),
        (2, row(29, &[b"row", &long, &long])),
        (3, row(29, &[b"row", b"+short"])),
    ]);
    assert_eq!(found, expected);
    let (found, read, _) = read_chain(&mut reader, &chain, |slot| slot == 1);
    read.unwrap();
    assert_eq!(found[&1], expected[&1]);
    // One piece is missing.
    let mut cut = chain.pages().copied().collect::<Vec<_>>();
    cut.remove(5);
    let mut broken = PageChain::whole(&cut[..1]).unwrap();
    broken.push(&cut[1..]);
    broken.push(&newest);
    let (_, read, known) = read_chain(&mut reader, &broken, |_| true);
    assert!(read.unwrap_err().contains("piece"));
    // What newer pages tell is known all the same.
    assert_eq!(known, 1 << 9);
}

/// Changes of rows are put over what older pages have, the oldest first; without those pages what newer ones say is
/// known, and nothing else.
#[test]
fn changes_count_when_the_pages_below_them_can_be_read() {
    let home = home();
    let mut chunks = ChunkWriter::new().with_page_bytes(30);
    let (base, delta, change) = (1, 2, 3);
    let mut chain: Option<PageChain> = None;
    let csn = Csn;
    for (number, kind) in [base, change, delta, change].into_iter().enumerate() {
        let number = number as u64;
        // An object each.
        let object_ids = Arc::new(ObjectIdAllocator::new(Epoch(3 + number as u32)));
        let mut writer = ObjectWriter::new(home.objects.clone(), object_ids, None);
        let extent = if kind == base {
            ImageKind::Whole
        } else {
            ImageKind::Delta
        };
        chunks.begin(key(7, 9), extent, csn(10 * (number + 1)));
        let at = csn(10 * number + 1);
        match kind {
            1 => {
                for slot in [1, 2, 3, 4, 5] {
                    let row = vec![b'a' + slot as u8; if slot == 5 { 70 } else { 3 }];
                    chunks.row(slot, at, &row, &mut writer).unwrap();
                }
                assert!(chunks.change(6, at, b"no", &mut writer).is_err());
            }
            2 => {
                chunks.row(2, at, b"new", &mut writer).unwrap();
                chunks.delete(4).unwrap();
            }
            _ => {
                if number == 1 {
                    chunks.row(9, at, b"other", &mut writer).unwrap();
                }
                for slot in [1, 2, 5] {
                    let change = format!("+{number}");
                    chunks
                        .change(slot, at, change.as_bytes(), &mut writer)
                        .unwrap();
                }
            }
        }
        let pages = chunks.finish(&mut writer).unwrap();
        match &mut chain {
            None => chain = PageChain::whole(pages),
            Some(chain) => chain.push(pages),
        }
        rig::keep(writer.finish().unwrap());
    }
    let chain = chain.unwrap();
    let mut reader = PageReader::new(home.objects.clone()).merging(append);
    let (found, read, known) = read_chain(&mut reader, &chain, |_| true);
    read.unwrap();
    assert_eq!(known, 0b10_0011_1110);
    let row = |at: u64, row: &[u8]| (csn(at), Some(row.to_vec()));
    let mut long = vec![b'f'; 70];
    long.extend_from_slice(b"+1+3");
    let expected = Found::from([
        (1, row(31, b"bbb+1+3")),
        (2, row(31, b"new+3")),
        (3, row(1, b"ddd")),
        (5, row(31, &long)),
        (9, row(11, b"other")),
    ]);
    assert_eq!(found, expected);
    // Who cannot put them over rows is told if he wants one.
    let mut plain = PageReader::new(home.objects.clone());
    let (found, read, _) = read_chain(&mut plain, &chain, |_| false);
    read.unwrap();
    assert_eq!(found.len(), 5);
    let (_, read, _) = read_chain(&mut plain, &chain, |slot| slot == 1);
    assert!(read.unwrap_err().contains("a change of a row"));
    // Without the base page: those are known that newer pages have or empty.
    let object = chain.base().object;
    home.objects.remove_object(object).unwrap();
    // What was read is kept.
    let mut reader = PageReader::new(home.objects.clone()).merging(append);
    let (found, read, known) = read_chain(&mut reader, &chain, |_| true);
    assert!(read.unwrap_err().contains(&object.to_string()));
    assert_eq!(known, 0b10_0001_0100);
    for slot in [2, 9] {
        assert_eq!(found.get(&slot), expected.get(&slot));
    }
    assert_eq!(found.len(), 2);
}
