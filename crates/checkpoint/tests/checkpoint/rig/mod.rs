//! What the tests of this crate share: a database in memory, its checkpoints, and everything that can be read of one.
#![allow(dead_code, reason = "each test uses its part")]

pub(crate) mod paused;

use logstead_checkpoint::{
    CheckpointError, ChunkWriter, Directory, ImageKind, Leaf, LeafWriter, ObjectWriter, PageChain,
    PageKey, PageReader, StoredObjects,
};
use logstead_home::{LogHome, MemoryHome};
use logstead_types::{Csn, IndexId, TableId};
use std::collections::{BTreeMap, BTreeSet};

/// Rows by table, chunk and slot.
pub(crate) type Rows = BTreeMap<(u32, u64, u16), (Csn, Vec<u8>)>;

/// Entries of an index.
pub(crate) type Entries = BTreeSet<Vec<u8>>;

pub(crate) fn home() -> LogHome {
    LogHome::from(MemoryHome::new(1 << 20))
}

pub(crate) fn key(table: u32, chunk: u64) -> PageKey {
    PageKey::Rows {
        table: TableId(table),
        chunk,
    }
}

pub(crate) fn tile(table: u32, index: u32, low: &[u8]) -> PageKey {
    PageKey::Leaf {
        table: TableId(table),
        index: IndexId(index),
        low: low.to_vec(),
    }
}

pub(crate) fn write_tile(
    entries: &Entries,
    key: PageKey,
    high: Option<&[u8]>,
    csn: Csn,
    leaves: &mut LeafWriter,
    writer: &mut ObjectWriter<'_>,
) -> Result<PageChain, CheckpointError> {
    leaves.begin(key, csn)?;
    for entry in entries {
        leaves.entry(entry)?;
    }
    leaves.finish(high, writer)
}

/// All entries of an index, of which the tiles must cover everything, each place once.
pub(crate) fn read_index(
    home: &LogHome,
    directory: &Directory,
    (table, index): (u32, u32),
) -> Result<Entries, CheckpointError> {
    let mut reader = PageReader::new(home.objects.clone());
    let mut leaf = Leaf::default();
    let mut entries = Entries::new();
    let mut next = Some(Vec::new());
    let mut tiles = 0;
    for found in directory.tiles(TableId(table), IndexId(index), Vec::new()) {
        let (low, chain) = found?;
        assert_eq!(Some(&low), next.as_ref(), "tiles without a gap");
        reader.leaf(&tile(table, index, &low), &chain, &mut leaf)?;
        entries.extend(leaf.entries().map(<[u8]>::to_vec));
        next = leaf.high().map(<[u8]>::to_vec);
        tiles += 1;
    }
    assert!(tiles == 0 || next.is_none(), "the last tile has no end");
    Ok(entries)
}

/// Writes a chunk whole; `None` if it has no rows.
pub(crate) fn write_whole(
    rows: &Rows,
    (table, chunk): (u32, u64),
    csn: Csn,
    chunks: &mut ChunkWriter,
    writer: &mut ObjectWriter<'_>,
) -> Result<Option<PageChain>, CheckpointError> {
    let mut of_chunk = rows
        .range((table, chunk, 0)..=(table, chunk, u16::MAX))
        .peekable();
    if of_chunk.peek().is_none() {
        return Ok(None);
    }
    chunks.begin(key(table, chunk), ImageKind::Whole, csn);
    for ((_, _, slot), (csn, bytes)) in of_chunk {
        chunks.row(*slot, *csn, bytes, writer)?;
    }
    Ok(PageChain::whole(chunks.finish(writer)?))
}

/// Everything that a directory leads to.
pub(crate) fn read_all(home: &LogHome, directory: &Directory) -> Result<Rows, CheckpointError> {
    let mut reader = PageReader::new(home.objects.clone());
    let mut rows = Rows::new();
    for entry in directory.scan(None) {
        let (page, chain) = entry?;
        // Indexes come behind all rows.
        let PageKey::Rows { table, chunk } = &page else {
            break;
        };
        reader.chunk(&page, &chain, |slot, csn, bytes| {
            let row = (csn, bytes.to_vec());
            let twice = rows.insert((table.get(), *chunk, slot), row);
            assert!(twice.is_none(), "a slot is visited once");
        })?;
    }
    Ok(rows)
}

/// The same home with one bit changed.
pub(crate) fn flipped(home: &LogHome, object: usize, at: usize, bit: u8) -> LogHome {
    let copy = self::home();
    for (index, info) in home.objects.list_objects().unwrap().iter().enumerate() {
        let mut bytes = vec![0; info.size_bytes as usize];
        home.objects.read_object(info.id, 0, &mut bytes).unwrap();
        if index == object {
            bytes[at] ^= 1 << bit;
        }
        copy.objects.put_object(info.id, &bytes).unwrap();
    }
    copy
}

/// Objects stay although no record names them.
pub(crate) fn keep(stored: StoredObjects) {
    std::mem::forget(stored);
}
