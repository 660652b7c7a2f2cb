//! The checkpoint record: everything that belongs to one checkpoint, in one small object. The manifest names the
//! newest.
//!
//! A record is a frame; its key is the database id and the record's own object, both u64 big endian, so that a record
//! that is read in another's place is found. Its CSN is the checkpoint's. Payload, all numbers varints unless said
//! otherwise: format (3; 1 or 2 where chunks have 1,024 slots), epoch, i64 (little endian) microseconds since
//! 2000-01-01 at which it was taken, number of roots (0 or 1) and the root's reference; number of tables and for each
//! its number and the end of its row ids; number of objects and for each its number, size and live bytes; number of
//! lanes and for each lane, segment, offset, block and u32 checksum; number of kept records and for each object, u32
//! checksum, CSN and i64 time; and, but for format 1, which has none, number of indexes and for each its table, its
//! number and the u64 (little endian) that says how its keys are made; and last, in format 3 only and only if it is so,
//! a 1: the home had a list of pins. Format 4 is that of databases with divided tables: in the place of that, 0 or 1
//! for the list of pins, the number of divided tables, and for each its number, the number of its virtual partitions,
//! and how many row ids each of them has handed out.
//!
//! Invariants: tables, indexes, objects, lanes and kept records are in ascending order, each there once; an object has
//! at least one live byte and not more than its size; every page and node that the root leads to lies in one of the
//! objects; the record's own object is in no list of its own.

use crate::error::CheckpointError;
use crate::error::{damaged, unread};
use crate::frame::{self, Encoder, FrameError, FrameKind, Header};
use crate::page_ref::PageRef;
use crate::rows::ChunkSize;
use logstead_home::{HomeError, OBJECT_BYTES_MAX, ObjectId, ObjectReader, Position};
use logstead_types::{Csn, DatabaseId, Epoch, IndexId, LaneId, TableId};
use logstead_wal::FormatError;
use logstead_wal::manifest::RedoPoint;
use logstead_wal::varint::{self, Reader};

/// The newest format that this code reads: that of records with divided tables.
const FORMAT_WITH_DIVIDED: u64 = 4;
/// The format of records without.
const FORMAT: u64 = 3;
/// The format of records with indexes whose chunks have 1,024 slots.
const FORMAT_OF_1024: u64 = 2;
/// The same without indexes.
const FORMAT_OF_1024_WITHOUT_INDEXES: u64 = 1;

/// A table of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableInfo {
    /// Its storage.
    pub table: TableId,
    /// Every row id it ever had is below this.
    pub rid_end: u64,
}

/// A table of a checkpoint whose rows lie in virtual partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DividedTable {
    /// Its storage.
    pub table: TableId,
    /// How many row ids each partition has handed out.
    pub partitions: Vec<u64>,
}

/// An index of a checkpoint: its tiles have an entry for each row of its table that the checkpoint holds and that has a
/// key, and perhaps more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexInfo {
    /// The storage of its table.
    pub table: TableId,
    /// The index.
    pub index: IndexId,
    /// How keys are made of rows: another number stands for other keys.
    pub keys: u64,
}

/// An object that a checkpoint needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectUse {
    /// Its number.
    pub object: ObjectId,
    /// Its length.
    pub size_bytes: u64,
    /// Bytes of it that this checkpoint needs.
    pub live_bytes: u64,
}

/// An older record that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetainedRecord {
    /// The object that is the record.
    pub object: ObjectId,
    /// CRC-32C of that object.
    pub crc: u32,
    /// Its CSN.
    pub csn: Csn,
    /// When it was taken, in microseconds since 2000-01-01 00:00 UTC.
    pub taken_at_micros: i64,
}

/// One checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointRecord {
    /// Whose it is.
    pub database: DatabaseId,
    /// How many slots the chunks of its directory have: what the format says. A copy of a record has the record's.
    pub chunk_size: ChunkSize,
    /// It holds what all transactions below this CSN left, and nothing else.
    pub csn: Csn,
    /// The epoch in which it was taken.
    pub epoch: Epoch,
    /// When it was taken, in microseconds since 2000-01-01 00:00 UTC.
    pub taken_at_micros: i64,
    /// The root of its directory; `None` if there are no pages.
    pub root: Option<PageRef>,
    /// Its tables, by number.
    pub tables: Vec<TableInfo>,
    /// Its indexes, by table and number.
    pub indexes: Vec<IndexInfo>,
    /// The objects it needs, by number.
    pub objects: Vec<ObjectUse>,
    /// Where each lane of its epoch is needed from, by lane.
    pub starts: Vec<RedoPoint>,
    /// Older records that are kept, oldest first.
    pub kept: Vec<RetainedRecord>,
    /// Its home had a list of pins: if that is missing, it is lost.
    pub has_pins: bool,
    /// Those of its tables that are divided, by number.
    pub divided: Vec<DividedTable>,
}

fn key(database: DatabaseId, object: ObjectId) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&database.get().to_be_bytes());
    key[8..].copy_from_slice(&object.0.to_be_bytes());
    key
}

fn wrong(what: &'static str, at: usize) -> FormatError {
    FormatError::new(what, at)
}

impl CheckpointRecord {
    /// The bytes of the object `object` that is this record.
    pub fn encode(&self, object: ObjectId) -> Result<Vec<u8>, CheckpointError> {
        self.check().map_err(CheckpointError::Misuse)?;
        let mut payload = Vec::new();
        let out = &mut payload;
        let format = match self.chunk_size {
            ChunkSize::Of64 if !self.divided.is_empty() => FORMAT_WITH_DIVIDED,
            ChunkSize::Of64 => FORMAT,
            ChunkSize::Of1024 if self.indexes.is_empty() => FORMAT_OF_1024_WITHOUT_INDEXES,
            ChunkSize::Of1024 => FORMAT_OF_1024,
        };
        varint::put(format, out);
        varint::put(u64::from(self.epoch.get()), out);
        out.extend_from_slice(&self.taken_at_micros.to_le_bytes());
        varint::put(u64::from(self.root.is_some()), out);
        if let Some(root) = self.root {
            root.put(out);
        }
        varint::put(self.tables.len() as u64, out);
        for TableInfo { table, rid_end } in &self.tables {
            varint::put(u64::from(table.get()), out);
            varint::put(*rid_end, out);
        }
        varint::put(self.objects.len() as u64, out);
        for used in &self.objects {
            varint::put(used.object.0, out);
            varint::put(used.size_bytes, out);
            varint::put(used.live_bytes, out);
        }
        varint::put(self.starts.len() as u64, out);
        for start in &self.starts {
            varint::put(u64::from(start.lane.get()), out);
            varint::put(start.at.segment, out);
            varint::put(start.at.offset, out);
            varint::put(start.block, out);
            out.extend_from_slice(&start.previous_header_crc.to_le_bytes());
        }
        varint::put(self.kept.len() as u64, out);
        for kept in &self.kept {
            varint::put(kept.object.0, out);
            out.extend_from_slice(&kept.crc.to_le_bytes());
            varint::put(kept.csn.get(), out);
            out.extend_from_slice(&kept.taken_at_micros.to_le_bytes());
        }
        if format > FORMAT_OF_1024_WITHOUT_INDEXES {
            varint::put(self.indexes.len() as u64, out);
        }
        for IndexInfo { table, index, keys } in &self.indexes {
            varint::put(u64::from(table.get()), out);
            varint::put(u64::from(index.get()), out);
            out.extend_from_slice(&keys.to_le_bytes());
        }
        match format {
            FORMAT if self.has_pins => varint::put(1, out),
            FORMAT_WITH_DIVIDED => {
                varint::put(u64::from(self.has_pins), out);
                varint::put(self.divided.len() as u64, out);
                for DividedTable { table, partitions } in &self.divided {
                    varint::put(u64::from(table.get()), out);
                    varint::put(partitions.len() as u64, out);
                    partitions.iter().for_each(|end| varint::put(*end, out));
                }
            }
            _ => {}
        }
        let mut encoder = Encoder::new();
        let key = key(self.database, object);
        Ok(encoder
            .encode(FrameKind::Record, self.csn, &key, &payload)?
            .to_vec())
    }

    /// The same with its checksum.
    pub fn encode_with_crc(&self, object: ObjectId) -> Result<(Vec<u8>, u32), CheckpointError> {
        let bytes = self.encode(object)?;
        let crc = crc32c::crc32c(&bytes);
        Ok((bytes, crc))
    }

    /// Reads the record of a database out of the bytes of the object `object`.
    pub fn decode(
        bytes: &[u8],
        database: DatabaseId,
        object: ObjectId,
    ) -> Result<CheckpointRecord, FrameError> {
        let mut buffer = Vec::new();
        let frame = frame::decode(bytes, &mut buffer)?;
        if frame.kind != FrameKind::Record {
            return Err(wrong("no checkpoint record", 10).into());
        }
        if frame.key != key(database, object) {
            let what = "the checkpoint record of another database, or another one";
            return Err(wrong(what, frame::HEADER_BYTES).into());
        }
        let record = parse(database, frame.csn, frame.payload)?;
        record.check().map_err(|what| wrong(what, 0))?;
        Ok(record)
    }

    /// Reads the record of a database, of which the manifest says the object and its checksum. Where the home has
    /// several copies, any that is good.
    pub fn read(
        objects: &dyn ObjectReader,
        database: DatabaseId,
        object: ObjectId,
        crc: u32,
    ) -> Result<CheckpointRecord, CheckpointError> {
        Ok(CheckpointRecord::read_with_bytes(objects, database, object, crc)?.0)
    }

    /// The same with the bytes of the object.
    pub(crate) fn read_with_bytes(
        objects: &dyn ObjectReader,
        database: DatabaseId,
        object: ObjectId,
        crc: u32,
    ) -> Result<(CheckpointRecord, Vec<u8>), CheckpointError> {
        let any = |offset, into: &mut [u8]| objects.read_object(object, offset, into);
        let read = CheckpointRecord::read_by(any, database, object, crc);
        if let Some(copies) = objects.object_copies()
            && matches!(read, Err(CheckpointError::Damaged(_)))
        {
            for copy in 0..copies.object_copy_count() {
                let one =
                    |offset, into: &mut [u8]| copies.read_object_copy(copy, object, offset, into);
                if let Ok(record) = CheckpointRecord::read_by(one, database, object, crc) {
                    return Ok(record);
                }
            }
        }
        read
    }

    fn read_by(
        read: impl Fn(u64, &mut [u8]) -> Result<usize, HomeError>,
        database: DatabaseId,
        object: ObjectId,
        crc: u32,
    ) -> Result<(CheckpointRecord, Vec<u8>), CheckpointError> {
        let mut bytes = vec![0; 16 << 10];
        let mut at = PageRef {
            object,
            offset: 0,
            len: 0,
            crc,
        };
        let what = || "a checkpoint record".to_owned();
        let got = read(0, &mut bytes);
        let got = got.map_err(|error| unread(what, &at, error))?;
        at.len = got as u32;
        let bad = |at: &PageRef, why: FrameError| damaged(what(), at, why);
        bytes.truncate(got);
        let len = Header::decode(&bytes)
            .map_err(|why| bad(&at, why))?
            .frame_len();
        if len > got && got == 16 << 10 && len <= OBJECT_BYTES_MAX {
            at.len = len as u32;
            bytes.resize(len, 0);
            let rest = read(got as u64, &mut bytes[got..])?;
            bytes.truncate(got + rest);
        }
        if crc32c::crc32c(&bytes) != crc {
            let other = wrong(
                "a record with another checksum than the manifest has for it",
                0,
            );
            return Err(bad(&at, other.into()));
        }
        let record =
            CheckpointRecord::decode(&bytes, database, object).map_err(|why| bad(&at, why))?;
        Ok((record, bytes))
    }

    /// What the record says of an index, if it has it.
    pub fn index(&self, table: TableId, index: IndexId) -> Option<&IndexInfo> {
        let found = self
            .indexes
            .binary_search_by_key(&(table, index), |info| (info.table, info.index));
        found.ok().map(|at| &self.indexes[at])
    }

    /// What the record says of a divided table.
    pub fn divided(&self, table: TableId) -> Option<&DividedTable> {
        let found = self
            .divided
            .binary_search_by_key(&table, |divided| divided.table);
        found.ok().map(|at| &self.divided[at])
    }

    /// What the record needs of an object, if anything.
    pub fn object(&self, object: ObjectId) -> Option<&ObjectUse> {
        let found = self
            .objects
            .binary_search_by_key(&object, |used| used.object);
        found.ok().map(|index| &self.objects[index])
    }

    /// Bytes of pages and nodes that it needs, and bytes of the objects in which they lie.
    pub fn bytes(&self) -> (u64, u64) {
        let live = self.objects.iter().map(|used| used.live_bytes).sum();
        (live, self.objects.iter().map(|used| used.size_bytes).sum())
    }

    fn check(&self) -> Result<(), &'static str> {
        fn ascend<T, K: Ord>(items: &[T], key: impl Fn(&T) -> K) -> bool {
            items.windows(2).all(|pair| key(&pair[0]) < key(&pair[1]))
        }
        if !ascend(&self.tables, |table| table.table) {
            return Err("tables out of their order");
        }
        if !ascend(&self.indexes, |info| (info.table, info.index)) {
            return Err("indexes out of their order");
        }
        let table_of = |info: &IndexInfo| {
            let tables = &self.tables;
            tables.binary_search_by_key(&info.table, |table| table.table)
        };
        if self.indexes.iter().any(|info| table_of(info).is_err()) {
            return Err("an index of a table that is not there");
        }
        if !ascend(&self.divided, |divided| divided.table) {
            return Err("divided tables out of their order");
        }
        let is_known = |divided: &DividedTable| {
            let tables = &self.tables;
            let found = tables.binary_search_by_key(&divided.table, |table| table.table);
            found.is_ok()
        };
        if !self.divided.iter().all(is_known) {
            return Err("a divided table that is not there");
        }
        if !ascend(&self.objects, |used| used.object) {
            return Err("objects out of their order");
        }
        if !ascend(&self.starts, |start| start.lane) {
            return Err("lanes out of their order");
        }
        if !ascend(&self.kept, |kept| kept.object) {
            return Err("kept records out of their order");
        }
        let is_used = |used: &ObjectUse| (1..=used.size_bytes).contains(&used.live_bytes);
        if !self.objects.iter().all(is_used) {
            return Err("an object of which nothing is needed, or more than there is");
        }
        if self
            .objects
            .iter()
            .any(|used| used.size_bytes > OBJECT_BYTES_MAX as u64)
        {
            return Err("an object that is larger than objects are");
        }
        if self
            .root
            .is_some_and(|root| self.object(root.object).is_none())
        {
            return Err("a root in an object that is not named");
        }
        Ok(())
    }
}

/// A count of items that take at least `bytes` each.
fn count(from: &mut Reader<'_>, len: usize, bytes: usize) -> Result<usize, FormatError> {
    let at = from.at();
    let count = from.number()?;
    if count > (len / bytes) as u64 {
        return Err(wrong("more items than there are bytes", at));
    }
    Ok(count as usize)
}

fn u64_le(from: &mut Reader<'_>) -> Result<u64, FormatError> {
    Ok(u64::from(from.u32_le()?) | u64::from(from.u32_le()?) << 32)
}

fn parse(database: DatabaseId, csn: Csn, payload: &[u8]) -> Result<CheckpointRecord, FrameError> {
    let mut from = Reader::new(payload);
    let from = &mut from;
    let len = payload.len();
    let format = from.number()?;
    if format > FORMAT_WITH_DIVIDED {
        let found = u16::try_from(format).unwrap_or(u16::MAX);
        let known = FORMAT_WITH_DIVIDED as u16;
        return Err(FrameError::Newer { found, known });
    }
    if format < FORMAT_OF_1024_WITHOUT_INDEXES {
        return Err(wrong("unknown format of a record", 0).into());
    }
    let mut record = CheckpointRecord {
        database,
        chunk_size: match format {
            FORMAT | FORMAT_WITH_DIVIDED => ChunkSize::Of64,
            _ => ChunkSize::Of1024,
        },
        csn,
        epoch: Epoch(from.number_u32()?),
        taken_at_micros: u64_le(from)? as i64,
        root: None,
        tables: Vec::new(),
        indexes: Vec::new(),
        objects: Vec::new(),
        starts: Vec::new(),
        kept: Vec::new(),
        has_pins: false,
        divided: Vec::new(),
    };
    record.root = match from.number()? {
        0 => None,
        1 => Some(PageRef::read(from)?),
        _ => return Err(wrong("more than one root", from.at()).into()),
    };
    for _ in 0..count(from, len, 2)? {
        record.tables.push(TableInfo {
            table: TableId(from.number_u32()?),
            rid_end: from.number()?,
        });
    }
    for _ in 0..count(from, len, 3)? {
        record.objects.push(ObjectUse {
            object: ObjectId(from.number()?),
            size_bytes: from.number()?,
            live_bytes: from.number()?,
        });
    }
    for _ in 0..count(from, len, 8)? {
        record.starts.push(RedoPoint {
            lane: LaneId(from.number_u16()?),
            at: Position {
                segment: from.number()?,
                offset: from.number()?,
            },
            block: from.number()?,
            previous_header_crc: from.u32_le()?,
        });
    }
    for _ in 0..count(from, len, 14)? {
        record.kept.push(RetainedRecord {
            object: ObjectId(from.number()?),
            crc: from.u32_le()?,
            csn: Csn(from.number()?),
            taken_at_micros: u64_le(from)? as i64,
        });
    }
    if format > FORMAT_OF_1024_WITHOUT_INDEXES {
        let at = from.at();
        let indexes = count(from, len, 10)?;
        if indexes == 0 && format == FORMAT_OF_1024 {
            return Err(wrong("a record of a later format than it needs", at).into());
        }
        for _ in 0..indexes {
            record.indexes.push(IndexInfo {
                table: TableId(from.number_u32()?),
                index: IndexId(from.number_u32()?),
                keys: u64_le(from)?,
            });
        }
    }
    if format == FORMAT && !from.is_empty() {
        let at = from.at();
        if from.number()? != 1 {
            return Err(wrong("not what says that there are pins", at).into());
        }
        record.has_pins = true;
    }
    if format == FORMAT_WITH_DIVIDED {
        let at = from.at();
        record.has_pins = match from.number()? {
            0 => false,
            1 => true,
            _ => return Err(wrong("not what says whether there are pins", at).into()),
        };
        let at = from.at();
        let divided = count(from, len, 2)?;
        if divided == 0 {
            return Err(wrong("a record of a later format than it needs", at).into());
        }
        for _ in 0..divided {
            let table = TableId(from.number_u32()?);
            let partitions = (0..count(from, len, 1)?)
                .map(|_| from.number())
                .collect::<Result<_, _>>()?;
            record.divided.push(DividedTable { table, partitions });
        }
    }
    if !from.is_empty() {
        return Err(wrong("bytes behind the record", from.at()).into());
    }
    Ok(record)
}
