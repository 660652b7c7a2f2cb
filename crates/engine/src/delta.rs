//! What an update writes into the log: the columns that changed, with their numbers.
//!
//! Layout: u16 schema version of the new row, varint column count of the new row, then until the end per changed
//! column: varint column number minus the number after the last changed one, varint 0 for NULL or length + 1, bytes.
//! A column the old row did not have and the delta does not name is NULL.

use crate::row::{COLUMNS_MAX, ROW_BYTES_MAX, RowBuilder, RowError, RowRef};

fn put_varint(mut n: u64, out: &mut Vec<u8>) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

fn take_varint(bytes: &mut &[u8]) -> Result<u64, RowError> {
    let mut n = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes
            .split_first()
            .ok_or(RowError::new("delta ends inside a number"))?;
        *bytes = rest;
        if shift == 63 && byte > 1 {
            break;
        }
        n |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(n);
        }
    }
    Err(RowError::new("delta holds a number out of range"))
}

/// Appends to `out` what turns `old` into `new`.
pub fn diff(old: RowRef<'_>, new: RowRef<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(&new.schema_version().to_le_bytes());
    put_varint(new.column_count() as u64, out);
    let mut next = 0;
    for i in 0..new.column_count() {
        let column = new.column(i);
        if column == old.column(i) {
            continue;
        }
        put_varint((i - next) as u64, out);
        next = i + 1;
        match column {
            None => put_varint(0, out),
            Some(bytes) => {
                put_varint(bytes.len() as u64 + 1, out);
                out.extend_from_slice(bytes);
            }
        }
    }
}

/// The columns that `delta` changes, in order. Never trusts it; after an error there are no more.
pub fn columns(delta: &[u8]) -> Result<impl Iterator<Item = Result<usize, RowError>>, RowError> {
    let Some((_, mut rest)) = delta.split_first_chunk::<2>() else {
        return Err(RowError::new("delta shorter than its header"));
    };
    let columns = take_varint(&mut rest)?;
    if columns > COLUMNS_MAX as u64 {
        return Err(RowError::new("delta with too many columns"));
    }
    let mut next = 0u64;
    let mut step = move || {
        let changed = next.checked_add(take_varint(&mut rest)?);
        let changed = changed.filter(|changed| *changed < columns);
        let changed = changed.ok_or(RowError::new("delta names a column that does not exist"))?;
        let length = take_varint(&mut rest)?.saturating_sub(1);
        let after = usize::try_from(length).ok().and_then(|at| rest.get(at..));
        rest = after.ok_or(RowError::new("delta ends inside a column"))?;
        next = changed + 1;
        Ok((changed as usize, rest.is_empty()))
    };
    let mut ended = rest.is_empty();
    Ok(std::iter::from_fn(move || {
        if ended {
            return None;
        }
        let stepped = step();
        ended = !matches!(stepped, Ok((_, false)));
        Some(stepped.map(|(column, _)| column))
    }))
}

/// How many columns the row has that `delta` makes.
pub fn column_count(delta: &[u8]) -> Result<usize, RowError> {
    let Some((_, mut rest)) = delta.split_first_chunk::<2>() else {
        return Err(RowError::new("delta shorter than its header"));
    };
    let columns = take_varint(&mut rest)?;
    usize::try_from(columns).map_err(|_| RowError::new("delta with too many columns"))
}

/// Builds in `builder` the row that `delta` makes of `old`, and gives its bytes. Never trusts `delta`.
pub fn apply<'b>(
    old: RowRef<'_>,
    delta: &[u8],
    builder: &'b mut RowBuilder,
) -> Result<&'b [u8], RowError> {
    let Some((version, mut rest)) = delta.split_first_chunk::<2>() else {
        return Err(RowError::new("delta shorter than its header"));
    };
    let columns = take_varint(&mut rest)?;
    if columns > COLUMNS_MAX as u64 {
        return Err(RowError::new("delta with too many columns"));
    }
    let columns = columns as usize;
    builder.start(u16::from_le_bytes(*version), columns);
    let mut next = 0usize;
    while !rest.is_empty() {
        let skip = take_varint(&mut rest)?;
        if skip >= (columns - next) as u64 {
            return Err(RowError::new("delta names a column that does not exist"));
        }
        let changed = next + skip as usize;
        for i in next..changed {
            builder.push(old.column(i));
        }
        match take_varint(&mut rest)? {
            0 => builder.push_null(),
            length => {
                let length = length - 1;
                if length > rest.len() as u64 {
                    return Err(RowError::new("delta ends inside a column"));
                }
                let (bytes, after) = rest.split_at(length as usize);
                builder.push(Some(bytes));
                rest = after;
            }
        }
        next = changed + 1;
        if builder.byte_count() > ROW_BYTES_MAX {
            return Err(RowError::new("delta makes a row that is too long"));
        }
    }
    for i in next..columns {
        builder.push(old.column(i));
    }
    Ok(builder.finish())
}
