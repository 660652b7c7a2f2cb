//! How a device is laid out: the superblock, and the table of what lies where.
//!
//! | offset | what |
//! |---|---|
//! | 0, 4,096 | the superblock, twice the same |
//! | 8,192 | the table, first slot |
//! | 8,192 + table size | the table, second slot |
//! | first multiple of the unit behind that | units |
//!
//! Superblock: magic `LGSTDDEV`, u16 version, u16 zero, u32 unit, u32 table size, u64 number of units, u32 CRC-32C of
//! the bytes before. Slot: magic `LGSTDTBL`, u64 sequence number, u32 length of the entries, u32 their CRC-32C, u32
//! CRC-32C of the bytes before, then the entries. Entry: u8 kind (0 directory, 1 file), u16 length of the name, the
//! name; of a file also u64 length, u32 number of extents, and of each u32 first unit and u32 number of units. All
//! numbers little endian.
//!
//! Invariant: bytes that are read may be anything; nothing is believed that has no checksum, and nothing that has one
//! is believed to make sense (extents are checked by whoever takes them).

use super::space::Extent;

pub(super) const VERSION: u16 = 1;
pub(super) const SUPERBLOCK_MAGIC: [u8; 8] = *b"LGSTDDEV";
pub(super) const TABLE_MAGIC: [u8; 8] = *b"LGSTDTBL";
/// Where the copies of the superblock are.
pub(super) const SUPERBLOCKS: [u64; 2] = [0, 4096];
/// Where the first slot of the table is.
pub(super) const TABLES_AT: u64 = 8192;
/// Bytes of a slot before its entries.
pub(super) const TABLE_HEADER: usize = 28;
/// Bytes that are handed out together.
pub(super) const UNIT: u64 = 64 << 10;
const SUPERBLOCK_LEN: usize = 32;

/// What a device is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Superblock {
    pub(super) unit: u32,
    pub(super) table_size: u32,
    pub(super) units: u64,
}

impl Superblock {
    /// For a new device of so many bytes; `None`: it is too small, or larger than this format knows.
    pub(super) fn new(device_size: u64) -> Option<Superblock> {
        let table_size = (device_size / 256).clamp(64 << 10, 1 << 20);
        let table_size = table_size - table_size % 4096;
        let data_at = (TABLES_AT + 2 * table_size).next_multiple_of(UNIT);
        let units = device_size.checked_sub(data_at)? / UNIT;
        if units < 4 || u32::try_from(units).is_err() {
            return None;
        }
        Some(Superblock {
            unit: UNIT as u32,
            table_size: table_size as u32,
            units,
        })
    }

    /// Where the slot of the table with this sequence number is.
    pub(super) fn slot(&self, sequence: u64) -> u64 {
        TABLES_AT + (sequence % 2) * u64::from(self.table_size)
    }

    /// Where a unit is.
    pub(super) fn place(&self, unit: u32) -> u64 {
        let unit_size = u64::from(self.unit);
        let data_at = (TABLES_AT + 2 * u64::from(self.table_size)).next_multiple_of(unit_size);
        data_at + u64::from(unit) * unit_size
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(SUPERBLOCK_LEN + 4);
        out.extend_from_slice(&SUPERBLOCK_MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&0u16.to_le_bytes());
        out.extend_from_slice(&self.unit.to_le_bytes());
        out.extend_from_slice(&self.table_size.to_le_bytes());
        out.extend_from_slice(&self.units.to_le_bytes());
        let crc = crc32c::crc32c(&out);
        out.extend_from_slice(&crc.to_le_bytes());
        out
    }

    /// `Ok(None)`: no superblock; an error: one that this version cannot use.
    pub(super) fn decode(bytes: &[u8]) -> Result<Option<Superblock>, String> {
        let mut reader = Reader(bytes);
        if reader.take(8) != Some(&SUPERBLOCK_MAGIC[..]) {
            return Ok(None);
        }
        let read = (|| {
            let version = reader.u16()?;
            let _zero = reader.u16()?;
            let superblock = Superblock {
                unit: reader.u32()?,
                table_size: reader.u32()?,
                units: reader.u64()?,
            };
            let covered = bytes.len() - reader.0.len();
            (reader.u32()? == crc32c::crc32c(&bytes[..covered])).then_some((version, superblock))
        })();
        let Some((version, superblock)) = read else {
            return Ok(None);
        };
        let sane = superblock.unit.is_power_of_two()
            && superblock.unit >= 4096
            && superblock.table_size.is_multiple_of(4096)
            && superblock.table_size >= 4096
            && u32::try_from(superblock.units).is_ok();
        if version != VERSION || !sane {
            return Err(format!("its format version is {version}, not {VERSION}"));
        }
        Ok(Some(superblock))
    }
}

/// One name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    Directory,
    File { len: u64, extents: Vec<Extent> },
}

/// Everything a device holds, by name, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) sequence: u64,
    pub(super) entries: Vec<(String, Entry)>,
}

impl Table {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut entries = Vec::new();
        for (name, entry) in &self.entries {
            entries.push(u8::from(matches!(entry, Entry::File { .. })));
            // Names are the home's own and short.
            entries.extend_from_slice(&(name.len() as u16).to_le_bytes());
            entries.extend_from_slice(name.as_bytes());
            if let Entry::File { len, extents } = entry {
                entries.extend_from_slice(&len.to_le_bytes());
                entries.extend_from_slice(&(extents.len() as u32).to_le_bytes());
                for extent in extents {
                    entries.extend_from_slice(&extent.start.to_le_bytes());
                    entries.extend_from_slice(&extent.units.to_le_bytes());
                }
            }
        }
        let mut out = Vec::with_capacity(TABLE_HEADER + entries.len());
        out.extend_from_slice(&TABLE_MAGIC);
        out.extend_from_slice(&self.sequence.to_le_bytes());
        out.extend_from_slice(&(entries.len() as u32).to_le_bytes());
        out.extend_from_slice(&crc32c::crc32c(&entries).to_le_bytes());
        let crc = crc32c::crc32c(&out);
        out.extend_from_slice(&crc.to_le_bytes());
        out.extend_from_slice(&entries);
        out
    }

    /// The table in a slot; `None` if there is no whole one.
    pub(super) fn decode(slot: &[u8]) -> Option<Table> {
        let mut reader = Reader(slot);
        if reader.take(8)? != TABLE_MAGIC {
            return None;
        }
        let sequence = reader.u64()?;
        let len = usize::try_from(reader.u32()?).ok()?;
        let entries_crc = reader.u32()?;
        if reader.u32()? != crc32c::crc32c(&slot[..TABLE_HEADER - 4]) {
            return None;
        }
        let entries = reader.take(len)?;
        if crc32c::crc32c(entries) != entries_crc {
            return None;
        }
        let mut reader = Reader(entries);
        let mut entries = Vec::new();
        while !reader.0.is_empty() {
            let kind = reader.take(1)?[0];
            let name_len = usize::from(reader.u16()?);
            let name = std::str::from_utf8(reader.take(name_len)?).ok()?.to_owned();
            let entry = match kind {
                0 => Entry::Directory,
                1 => {
                    let len = reader.u64()?;
                    let count = reader.u32()?;
                    let mut extents = Vec::new();
                    for _ in 0..count {
                        extents.push(Extent {
                            start: reader.u32()?,
                            units: reader.u32()?,
                        });
                    }
                    Entry::File { len, extents }
                }
                _ => return None,
            };
            entries.push((name, entry));
        }
        Some(Table { sequence, entries })
    }
}

struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let file = |extents: &[(u32, u32)]| Entry::File {
            len: 123_456_789,
            extents: extents
                .iter()
                .map(|&(start, units)| Extent { start, units })
                .collect(),
        };
        Table {
            sequence: 77,
            entries: vec![
                ("log".to_owned(), Entry::Directory),
                ("log/lane-0000/0.seg".to_owned(), file(&[(3, 4), (9, 1)])),
                ("manifest".to_owned(), file(&[])),
            ],
        }
    }

    #[test]
    fn the_layout_is_pinned() {
        let superblock = Superblock::new(1 << 30).expect("large enough");
        assert_eq!(superblock.table_size, 1 << 20);
        assert_eq!(superblock.slot(6), 8192);
        assert_eq!(superblock.slot(7), 8192 + (1 << 20));
        assert_eq!(superblock.place(0), (2 << 20) + (64 << 10));
        let hex: String = superblock
            .encode()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(
            hex,
            "4c47535444444556010000000000010000001000df3f00000000000038b422ca"
        );
        let hex: String = table()
            .encode()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(
            hex,
            "4c4753544454424c4d000000000000004f0000004c02c3256e4e60610003006c6f670113006c6f672f6c616e652d303030302f302e73656715cd5b070000000002000000030000000400000009000000010000000108006d616e696665737415cd5b070000000000000000"
        );
    }

    #[test]
    fn what_was_written_is_read_and_any_flipped_bit_is_seen() {
        let bytes = table().encode();
        assert_eq!(Table::decode(&bytes), Some(table()));
        let superblock = Superblock::new(100 << 20).expect("large enough");
        assert_eq!(
            Superblock::decode(&superblock.encode()),
            Ok(Some(superblock))
        );
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Table::decode(&flipped), None, "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert_eq!(Table::decode(&bytes[..len]), None, "cut to {len}");
        }
        let bytes = superblock.encode();
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Superblock::decode(&flipped), Ok(None), "bit {bit}");
        }
    }

    #[test]
    fn devices_too_small_or_of_another_version_are_refused() {
        assert_eq!(Superblock::new(100 << 10), None);
        assert!(Superblock::new(1 << 20).is_some());
        let mut bytes = Superblock::new(1 << 20).expect("fits").encode();
        bytes[8] = 2;
        let end = bytes.len() - 4;
        let crc = crc32c::crc32c(&bytes[..end]).to_le_bytes();
        bytes[end..].copy_from_slice(&crc);
        assert!(Superblock::decode(&bytes).is_err());
    }
}
