//! Tiles of indexes: written and read back, cut anywhere, replaced by tiles with other fences, and damaged at every
//! bit.

use crate::rig;

use logstead_checkpoint::frame::{self, FrameKind};
use logstead_checkpoint::{
    CheckpointError, Directory, FENCE_BYTES_MAX, Leaf, LeafWriter, ObjectId, ObjectIdAllocator,
    ObjectWriter, PageChain, PageReader, PageRef,
};
use logstead_home::LogHome;
use logstead_types::{Csn, Epoch, IndexId, TableId};
use proptest::prelude::*;
use rig::{Entries, flipped, home, key, read_index, tile, write_tile};
use std::collections::BTreeSet;
use std::sync::Arc;

fn writer_of(home: &LogHome, epoch: u32) -> ObjectWriter<'static> {
    let object_ids = Arc::new(ObjectIdAllocator::new(Epoch(epoch)));
    ObjectWriter::new(home.objects.clone(), object_ids, None).with_object_bytes(1_000)
}

/// Entries that share much, little and nothing, some of them long.
fn entries() -> impl Strategy<Value = Entries> {
    let short = proptest::collection::vec(0..4_u8, 0..6);
    let long = (0..3_u8, 0..400_usize, any::<u8>()).prop_map(|(byte, len, last)| {
        let mut entry = vec![byte; len];
        entry.push(last);
        entry
    });
    proptest::collection::btree_set(prop_oneof![4 => short, 1 => long], 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    /// A tile is what was written, whatever is shared and wherever it is cut; and it is of no other key.
    #[test]
    fn a_tile_is_what_was_written(
        all in entries(),
        low in proptest::collection::vec(0..4_u8, 0..3),
        high in proptest::option::of(proptest::collection::vec(0..4_u8, 1..4)),
        page_bytes in prop_oneof![1..40_usize, Just(4 << 20)],
    ) {
        prop_assume!(high.as_ref().is_none_or(|high| *high > low));
        let within: Entries = all.into_iter()
            .filter(|entry| *entry >= low && high.as_ref().is_none_or(|high| entry < high))
            .collect();
        let home = home();
        let mut writer = writer_of(&home, 1);
        let mut leaves = LeafWriter::new().with_page_bytes(page_bytes);
        let chain = write_tile(
            &within, tile(3, 9, &low), high.as_deref(), Csn(7), &mut leaves, &mut writer,
        ).unwrap();
        rig::keep(writer.finish().unwrap());
        let mut reader = PageReader::new(home.objects.clone());
        let mut leaf = Leaf::default();
        reader.leaf(&tile(3, 9, &low), &chain, &mut leaf).unwrap();
        prop_assert_eq!(leaf.high(), high.as_deref());
        prop_assert_eq!(leaf.len(), within.len());
        prop_assert_eq!(leaf.is_empty(), within.is_empty());
        prop_assert!(leaf.entries().eq(within.iter().map(|entry| &entry[..])));
        for other in [tile(3, 8, &low), tile(2, 9, &low), tile(3, 9, b"\xff"), key(3, 9)] {
            prop_assert!(reader.leaf(&other, &chain, &mut leaf).is_err());
        }
    }

    /// Right checksums around anything: nothing panics.
    #[test]
    fn any_payload_of_a_tile_is_safe(
        payload in proptest::collection::vec(any::<u8>(), 0..80),
        piece in proptest::collection::vec(any::<u8>(), 0..30),
        at in 0..200_usize,
        byte: u8,
    ) {
        let home = home();
        let mut good = good_frame(&home);
        let len = good.len();
        good[at % len] = byte;
        let own_key = page_key(&home);
        let mut encoder = frame::Encoder::new();
        for (object, payload) in [(1, &payload[..]), (2, &good), (3, &good[..at % len])] {
            let mut writer = writer_of(&home, 100 + object);
            let mut pages: Vec<PageRef> = Vec::new();
            let frame = encoder.encode(FrameKind::Leaf, Csn(1), &own_key, payload).unwrap();
            pages.push(writer.put(frame).unwrap());
            let frame = encoder.encode(FrameKind::LeafPiece, Csn(1), &own_key, &piece).unwrap();
            pages.push(writer.put(frame).unwrap());
            rig::keep(writer.finish().unwrap());
            let mut reader = PageReader::new(home.objects.clone());
            for pages in [&pages[..], &pages[..1], &pages[1..]] {
                let chain = PageChain::whole(pages).unwrap();
                let mut leaf = Leaf::default();
                if reader.leaf(&tile(1, 2, b"b"), &chain, &mut leaf).is_ok() {
                    let read: Vec<_> = leaf.entries().map(<[u8]>::to_vec).collect();
                    prop_assert!(read.windows(2).all(|pair| pair[0] < pair[1]));
                    prop_assert!(read.iter().all(|entry| entry[..] >= b"b"[..]));
                    prop_assert!(read.iter().all(|entry| leaf.high().is_none_or(|high| &entry[..] < high)));
                }
            }
        }
    }

    /// Any tiling over any other: what is read is what the last one to cover it said, and every fence is the next
    /// one's.
    #[test]
    fn tiles_take_the_place_of_tiles(
        steps in proptest::collection::vec(
            (proptest::collection::btree_set(0..40_u8, 1..12), 0..40_u8, 0..40_u8), 1..8),
    ) {
        let home = home();
        let mut directory = Directory::with_cache(home.objects.clone(), None, 10_000);
        // Each fence's entries say which step wrote them.
        let mut model: Vec<Option<u8>> = vec![None; 40];
        let mut leaves = LeafWriter::new();
        // Neighbours that must not be touched.
        let mut writer = writer_of(&home, 1);
        let mut changes = Vec::new();
        for other in [tile(1, 1, b""), tile(1, 3, b""), tile(2, 2, b"")] {
            let entries = BTreeSet::from([b"other".to_vec()]);
            let chain = write_tile(&entries, other.clone(), None, Csn(1), &mut leaves, &mut writer).unwrap();
            changes.push((other, Some(chain)));
        }
        directory = directory.apply(&changes, &BTreeSet::new(), Csn(1), &mut writer).unwrap().directory;
        rig::keep(writer.finish().unwrap());
        for (step, (fences, from, to)) in steps.into_iter().enumerate() {
            let mut writer = writer_of(&home, 2 + step as u32);
            let mut changes = Vec::new();
            let old: Vec<u8> = directory.tiles(TableId(1), IndexId(2), Vec::new())
                .map(|tile| tile.unwrap().0.first().copied().unwrap_or(0)).collect();
            // What is written anew reaches from one present fence to another, as leaves do.
            let (from, to) = (from.min(to), from.max(to));
            let from = old.iter().rev().find(|low| **low <= from).copied().unwrap_or(0);
            let to = old.iter().find(|low| **low > to).copied();
            let mut lows: Vec<u8> = fences.into_iter()
                .filter(|low| *low > from && to.is_none_or(|to| *low < to)).collect();
            lows.insert(0, from);
            for (at, low) in lows.iter().enumerate() {
                let high = lows.get(at + 1).copied().or(to);
                let mut entries = Entries::new();
                for byte in *low..high.unwrap_or(40) {
                    entries.insert(vec![byte, step as u8]);
                    model[usize::from(byte)] = Some(step as u8);
                }
                let fence = |byte: u8| if byte == 0 { Vec::new() } else { vec![byte] };
                let key = tile(1, 2, &fence(*low));
                let high = high.map(|high| vec![high]);
                let chain = write_tile(&entries, key.clone(), high.as_deref(), Csn(9), &mut leaves, &mut writer).unwrap();
                directory.replace_tile(key, high.as_deref(), chain, &mut changes).unwrap();
            }
            directory = directory.apply(&changes, &BTreeSet::new(), Csn(9), &mut writer).unwrap().directory;
            rig::keep(writer.finish().unwrap());
            let found = read_index(&home, &directory, (1, 2)).unwrap();
            let expected: Entries = model.iter().enumerate()
                .filter_map(|(byte, step)| Some(vec![byte as u8, (*step)?])).collect();
            prop_assert_eq!(found, expected);
        }
        for other in [(1, 1), (1, 3), (2, 2)] {
            prop_assert_eq!(read_index(&home, &directory, other).unwrap().len(), 1);
        }
    }
}

fn page_key(home: &LogHome) -> Vec<u8> {
    let mut bytes = vec![0; 1_000];
    let first = home.objects.list_objects().unwrap()[0].id;
    let len = home.objects.read_object(first, 0, &mut bytes).unwrap();
    let mut buffer = Vec::new();
    frame::decode(&bytes[..len], &mut buffer)
        .unwrap()
        .key
        .to_vec()
}

/// The payload of a right tile, stored at the home; its key is tile(1, 2, "b").
fn good_frame(home: &LogHome) -> Vec<u8> {
    let mut writer = writer_of(home, 1);
    let entries = [&b"bat"[..], b"bee", b"beetle", b"cat"].map(<[u8]>::to_vec);
    let mut leaves = LeafWriter::new();
    let key = tile(1, 2, b"b");
    write_tile(
        &entries.into(),
        key,
        Some(b"d"),
        Csn(1),
        &mut leaves,
        &mut writer,
    )
    .unwrap();
    rig::keep(writer.finish().unwrap());
    let mut bytes = vec![0; 1_000];
    let first = home.objects.list_objects().unwrap()[0].id;
    let len = home.objects.read_object(first, 0, &mut bytes).unwrap();
    let mut buffer = Vec::new();
    frame::decode(&bytes[..len], &mut buffer)
        .unwrap()
        .payload
        .to_vec()
}

/// Every bit of every frame of an index in several tiles, one of them in pieces: found and named.
#[test]
fn every_flipped_bit_of_a_tile_is_found_and_named() {
    let home = home();
    let mut writer = writer_of(&home, 1);
    let mut leaves = LeafWriter::new().with_page_bytes(12);
    let all: Entries = (0..30_u8).map(|n| vec![n / 10, n, 7, 7, 7, n]).collect();
    let mut changes = Vec::new();
    for (low, high) in [
        (&[][..], Some(&[1][..])),
        (&[1], Some(&[2, 25])),
        (&[2, 25], None),
    ] {
        let within: Entries = all
            .iter()
            .filter(|entry| &entry[..] >= low && high.is_none_or(|high| &entry[..] < high))
            .cloned()
            .collect();
        let key = tile(5, 6, low);
        let chain = write_tile(&within, key.clone(), high, Csn(3), &mut leaves, &mut writer);
        changes.push((key, Some(chain.unwrap())));
    }
    let longest = changes.iter().flat_map(|(_, chain)| chain);
    assert!(longest.map(|chain| chain.parts().len()).max() > Some(1));
    let empty = Directory::open(home.objects.clone(), None);
    let made = empty.apply(&changes, &BTreeSet::new(), Csn(3), &mut writer);
    let root = made.unwrap().directory.root();
    rig::keep(writer.finish().unwrap());
    let read =
        |home: &LogHome| read_index(home, &Directory::open(home.objects.clone(), root), (5, 6));
    assert_eq!(read(&home).unwrap(), all);
    for (index, info) in home.objects.list_objects().unwrap().iter().enumerate() {
        for at in 0..info.size_bytes as usize {
            for bit in [at % 8, (at + 3) % 8].map(|bit| bit as u8) {
                match read(&flipped(&home, index, at, bit)) {
                    Err(CheckpointError::Damaged(damage)) => {
                        let place = damage.offset as usize..(damage.offset + damage.len) as usize;
                        assert_eq!(damage.object, info.id);
                        assert!(place.contains(&at), "{damage} for byte {at}");
                        let named = damage.what.contains("table 5 index 6")
                            || damage.what.contains("directory");
                        assert!(named, "{damage}");
                    }
                    other => panic!("object {} byte {at}: {other:?}", info.id),
                }
            }
        }
    }
}

/// Entries that no page has room for, and fences as long as they may be.
#[test]
fn entries_of_any_length_are_stored() {
    let home = home();
    let mut writer = ObjectWriter::new(
        home.objects.clone(),
        Arc::new(ObjectIdAllocator::new(Epoch(1))),
        None,
    );
    let noise = |seed: u32, len: u32| -> Vec<u8> {
        (0..len)
            .map(|n| ((n ^ seed).wrapping_mul(2_654_435_761) >> 21) as u8)
            .collect()
    };
    let mut low = noise(1, FENCE_BYTES_MAX as u32);
    low[0] = 0;
    let entries: Entries = (0..4_u8)
        .map(|n| {
            let mut entry = noise(u32::from(n), 5 << 20);
            entry[0] = n + 1;
            entry
        })
        .collect();
    let mut leaves = LeafWriter::new();
    let key = tile(1, 1, &low);
    let chain = write_tile(
        &entries,
        key.clone(),
        None,
        Csn(2),
        &mut leaves,
        &mut writer,
    )
    .unwrap();
    assert_eq!(chain.parts().len(), 5);
    let empty = Directory::open(home.objects.clone(), None);
    let changes = [(key.clone(), Some(chain))];
    let made = empty.apply(&changes, &BTreeSet::new(), Csn(2), &mut writer);
    let directory = made.unwrap().directory;
    rig::keep(writer.finish().unwrap());
    let cold = Directory::open(home.objects.clone(), directory.root());
    let chain = cold.get(&key).unwrap().unwrap();
    let mut leaf = Leaf::default();
    let mut reader = PageReader::new(home.objects);
    reader.leaf(&key, &chain, &mut leaf).unwrap();
    assert!(leaf.entries().eq(entries.iter().map(|entry| &entry[..])));
}

#[test]
fn what_is_out_of_order_is_not_written() {
    let home = home();
    let mut writer = writer_of(&home, 1);
    let mut leaves = LeafWriter::new();
    let long = vec![1; FENCE_BYTES_MAX + 1];
    assert!(leaves.begin(key(1, 1), Csn(1)).is_err());
    assert!(leaves.begin(tile(1, 1, &long), Csn(1)).is_err());
    leaves.begin(tile(1, 1, b"b"), Csn(1)).unwrap();
    assert!(leaves.finish(Some(b"b"), &mut writer).is_err());
    assert!(leaves.finish(Some(&long), &mut writer).is_err());
    assert!(leaves.entry(b"a").is_err());
    leaves.entry(b"b").unwrap();
    assert!(leaves.entry(b"b").is_err());
    leaves.entry(b"c").unwrap();
    assert!(leaves.entry(b"bb").is_err());
    assert!(leaves.finish(Some(b"c"), &mut writer).is_err());
    leaves.finish(Some(b"d"), &mut writer).unwrap();
}

/// A whole tile in another's place, or a piece of it too few or in another order.
#[test]
fn pieces_of_other_tiles_are_not_taken() {
    let home = home();
    let mut writer = writer_of(&home, 1);
    let mut leaves = LeafWriter::new().with_page_bytes(20);
    let entries: Entries = (0..20_u8).map(|n| vec![n, n, n, n, n, n]).collect();
    let own = tile(1, 1, b"");
    let chain = write_tile(
        &entries,
        own.clone(),
        None,
        Csn(1),
        &mut leaves,
        &mut writer,
    )
    .unwrap();
    rig::keep(writer.finish().unwrap());
    let pages: Vec<PageRef> = chain.pages().copied().collect();
    assert!(pages.len() > 4);
    let mut swapped = pages.clone();
    swapped.swap(1, 2);
    let twice = [&pages[..2], &pages[1..]].concat();
    let mut reader = PageReader::new(home.objects.clone());
    let mut leaf = Leaf::default();
    for wrong in [&pages[1..], &pages[..pages.len() - 1], &swapped, &twice] {
        let chain = PageChain::whole(wrong).unwrap();
        let read = reader.leaf(&own, &chain, &mut leaf);
        assert!(matches!(read, Err(CheckpointError::Damaged(_))));
    }
    reader.leaf(&own, &chain, &mut leaf).unwrap();
    assert_eq!(leaf.len(), 20);
    let nobody = PageRef {
        object: ObjectId(77),
        ..pages[0]
    };
    let chain = PageChain::whole(&[nobody]).unwrap();
    assert!(reader.leaf(&own, &chain, &mut leaf).is_err());
}
