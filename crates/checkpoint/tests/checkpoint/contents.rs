//! Which pages lie in an object: found in the object itself, without the directory's being looked through.

use crate::rig;

use logstead_checkpoint::{
    ChunkWriter, Directory, ImageKind, LeafWriter, ObjectId, ObjectIdAllocator, ObjectWriter,
    PageChain, PageKey,
};
use logstead_home::LogHome;
use logstead_types::{Csn, Epoch};
use rig::{Entries, Rows, flipped, home, keep, key, tile, write_tile, write_whole};
use std::collections::BTreeSet;
use std::sync::Arc;

const CHUNKS: u64 = 400;

/// Chunks with deltas, large rows in pieces, tiles of several pages, replaced and removed pages; in objects of all
/// sizes.
fn database() -> (LogHome, Directory) {
    let home = home();
    let object_ids = Arc::new(ObjectIdAllocator::new(Epoch(1)));
    let mut directory = Directory::open(home.objects.clone(), None);
    let (mut chunks, mut leaves) = (
        ChunkWriter::new().with_page_bytes(3_000),
        LeafWriter::new().with_page_bytes(500),
    );
    for step in 0..12_u64 {
        let csn = Csn(10 + step);
        let writer = ObjectWriter::new(home.objects.clone(), Arc::clone(&object_ids), None);
        let mut writer = writer.with_object_bytes(500 << step);
        let mut changes = std::collections::BTreeMap::new();
        for chunk in (0..CHUNKS).filter(|chunk| step == 0 || chunk % 11 == step) {
            let place = key(1, chunk);
            let chain = match directory.get(&place).unwrap() {
                Some(mut chain) if chunk % 2 == 0 => {
                    chunks.begin(place.clone(), ImageKind::Delta, csn);
                    chunks.row(3, Csn(9), &[7; 90], &mut writer).unwrap();
                    chain.push(chunks.finish(&mut writer).unwrap());
                    Some(chain)
                }
                Some(_) if chunk % 3 == 0 => None,
                _ => {
                    let len = if chunk % 40 == 5 { 9_000 } else { 60 };
                    let row = |slot| ((1, chunk, slot), (Csn(5), vec![step as u8; len]));
                    let rows: Rows = (0..3).map(row).collect();
                    write_whole(&rows, (1, chunk), csn, &mut chunks, &mut writer).unwrap()
                }
            };
            changes.insert(place, chain);
        }
        if step % 3 == 0 {
            let lows: [&[u8]; 4] = [b"", b"d", b"k", b"p"];
            for (at, low) in lows.iter().enumerate() {
                let entries: Entries = (0..70_u8)
                    .map(|n| [low, &[b'd', n, 9][..]].concat())
                    .collect();
                let entries = entries.into_iter().filter(|entry| &entry[..] >= *low);
                let high = lows.get(at + 1).copied();
                let entries = entries.filter(|entry| high.is_none_or(|high| &entry[..] < high));
                let (entries, place) = (entries.collect(), tile(1, 2, low));
                let chain =
                    write_tile(&entries, place.clone(), high, csn, &mut leaves, &mut writer);
                changes.insert(place, Some(chain.unwrap()));
            }
        }
        let changes: Vec<(PageKey, Option<PageChain>)> = changes.into_iter().collect();
        let none = BTreeSet::new();
        let applied = directory.apply(&changes, &none, csn, &mut writer).unwrap();
        keep(writer.finish().unwrap());
        directory = applied.directory;
    }
    (home, directory)
}

fn objects(home: &LogHome) -> Vec<ObjectId> {
    let objects = home.objects.list_objects().unwrap();
    objects.into_iter().map(|info| info.id).collect()
}

#[test]
fn what_lies_in_an_object_is_found_there() {
    let (home, directory) = database();
    let all = objects(&home);
    assert!(all.len() > 30);
    let mut sets: Vec<BTreeSet<ObjectId>> = all.iter().map(|object| [*object].into()).collect();
    sets.push(all.iter().copied().collect());
    sets.push(all.iter().copied().step_by(3).collect());
    let mut found = 0;
    for set in sets {
        let expected = directory.keys_in(&set, usize::MAX).unwrap();
        assert_eq!(directory.keys_in(&set, 0).unwrap(), expected);
        assert_eq!(directory.keys_in(&set, 100).unwrap(), expected);
        found += expected.len();
    }
    assert!(found > CHUNKS as usize);
}

/// An object whose frames cannot be told apart says nothing; its pages are found all the same.
#[test]
fn of_a_damaged_object_the_directory_knows() {
    let (home, directory) = database();
    let all = objects(&home);
    for (at, object) in all.iter().enumerate().step_by(5) {
        let set = [*object].into();
        let expected = directory.keys_in(&set, usize::MAX).unwrap();
        // In the first frame's magic, checksum, length of the key, length of the payload.
        for byte in [0, 12, 25, 36] {
            let damaged = flipped(&home, at, byte, 3);
            let same = Directory::open(damaged.objects.clone(), directory.root());
            // Its nodes may be damaged too: then nobody knows.
            if let Ok(found) = same.keys_in(&set, 0) {
                assert_eq!(found, expected);
            }
        }
    }
}

/// What is read of the directory does not grow with it.
#[test]
fn a_large_directory_is_not_looked_through() {
    let mut read = Vec::new();
    for count in [2_000, 40_000] {
        let home = home();
        let object_ids = Arc::new(ObjectIdAllocator::new(Epoch(1)));
        let mut chunks = ChunkWriter::new();
        let mut directory = Directory::open(home.objects.clone(), None);
        let mut last = None;
        for (csn, all) in [(Csn(10), 0..count), (Csn(11), 500..510)] {
            let mut writer = ObjectWriter::new(home.objects.clone(), Arc::clone(&object_ids), None);
            let mut changes = Vec::new();
            for chunk in all {
                let rows = Rows::from([((1, chunk, 0), (Csn(5), vec![1]))]);
                let chain = write_whole(&rows, (1, chunk), csn, &mut chunks, &mut writer);
                changes.push((key(1, chunk), chain.unwrap()));
            }
            let none = BTreeSet::new();
            let applied = directory.apply(&changes, &none, csn, &mut writer).unwrap();
            keep(writer.finish().unwrap());
            directory = applied.directory;
            last = changes[0].1.clone();
        }
        let fresh = Directory::open(home.objects.clone(), directory.root());
        let set = [last.unwrap().base().object].into();
        let keys = fresh.keys_in(&set, 300).unwrap();
        let expected: Vec<_> = (500..510).map(|chunk| key(1, chunk)).collect();
        assert_eq!(keys, expected);
        read.push(fresh.cached_bytes());
    }
    assert!(read[1] < 3 * read[0], "{read:?}");
}
