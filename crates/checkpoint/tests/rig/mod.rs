//! What the tests of this crate share: a database in memory, its checkpoints, and everything that can be read of one.
#![allow(dead_code, reason = "each test uses its part")]

use logstead_checkpoint::{
    Chain, CheckpointError, ChunkWriter, Directory, Extent, Finished, ObjectWriter, PageKey,
    PageReader,
};
use logstead_home::{LogHome, MemoryHome};
use logstead_types::{Csn, TableId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rows by table, chunk and slot.
pub(crate) type Rows = BTreeMap<(u32, u64, u16), (Csn, Vec<u8>)>;

pub(crate) fn home() -> Arc<dyn LogHome> {
    Arc::new(MemoryHome::new(1 << 20))
}

pub(crate) fn key(table: u32, chunk: u64) -> PageKey {
    PageKey::Rows {
        table: TableId(table),
        chunk,
    }
}

/// Writes a chunk whole; `None` if it has no rows.
pub(crate) fn write_whole(
    rows: &Rows,
    (table, chunk): (u32, u64),
    csn: Csn,
    chunks: &mut ChunkWriter,
    writer: &mut ObjectWriter<'_>,
) -> Result<Option<Chain>, CheckpointError> {
    let mut of_chunk = rows
        .range((table, chunk, 0)..=(table, chunk, u16::MAX))
        .peekable();
    if of_chunk.peek().is_none() {
        return Ok(None);
    }
    chunks.begin(key(table, chunk), Extent::Whole, csn);
    for ((_, _, slot), (csn, bytes)) in of_chunk {
        chunks.row(*slot, *csn, bytes, writer)?;
    }
    Ok(Chain::whole(chunks.finish(writer)?))
}

/// Everything that a directory leads to.
pub(crate) fn read_all(
    home: &Arc<dyn LogHome>,
    directory: &Directory,
) -> Result<Rows, CheckpointError> {
    let mut reader = PageReader::new(Arc::clone(home));
    let mut rows = Rows::new();
    for entry in directory.scan(None) {
        let (page, chain) = entry?;
        let PageKey::Rows { table, chunk } = &page else {
            panic!("only rows were written");
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
pub(crate) fn flipped(
    home: &Arc<dyn LogHome>,
    object: usize,
    at: usize,
    bit: u8,
) -> Arc<dyn LogHome> {
    let copy = self::home();
    for (index, info) in home.objects().unwrap().iter().enumerate() {
        let mut bytes = vec![0; info.size_bytes as usize];
        home.read_object(info.id, 0, &mut bytes).unwrap();
        if index == object {
            bytes[at] ^= 1 << bit;
        }
        copy.put_object(info.id, &bytes).unwrap();
    }
    copy
}

/// Objects stay although no record names them.
pub(crate) fn keep(stored: Finished) {
    std::mem::forget(stored);
}
