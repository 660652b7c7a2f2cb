//! What an update writes into the log: the columns that changed, with their numbers; of an index's columns all, if one
//! of them has.
//!
//! Layout: u16 schema version of the new row, varint column count of the new row, then until the end per changed
//! column: varint column number minus the number after the last changed one, varint 0 for NULL or length + 1, bytes.
//! A column the old row did not have and the delta does not name is NULL.

use crate::row::{COLUMNS_MAX, ROW_BYTES_MAX, RowBuilder, RowError, RowRef};

pub(crate) fn put_varint(mut n: u64, out: &mut Vec<u8>) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

pub(crate) fn take_varint(bytes: &mut &[u8]) -> Result<u64, RowError> {
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
    diff_naming(old, new, |_| false, out);
}

/// The same with columns that are named though they have not changed.
pub fn diff_naming(
    old: RowRef<'_>,
    new: RowRef<'_>,
    is_named: impl Fn(usize) -> bool,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(&new.schema_version().to_le_bytes());
    put_varint(new.column_count() as u64, out);
    let mut next = 0;
    for i in 0..new.column_count() {
        let column = new.column(i);
        if column == old.column(i) && !is_named(i) {
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

/// Puts what `delta` makes of a row in `into`: [`logstead_checkpoint::Merge`] for rows. Trusts neither.
pub(crate) fn put_over(row: &[u8], delta: &[u8], into: &mut Vec<u8>) -> Result<(), &'static str> {
    let mut builder = RowBuilder::new();
    let row = RowRef::parse(row).map_err(RowError::what)?;
    let made = apply(row, delta, &mut builder).map_err(RowError::what)?;
    into.clear();
    into.extend_from_slice(made);
    Ok(())
}

/// One column that a delta changes.
struct Changed<'d> {
    column: usize,
    /// NULL, or its bytes.
    to: Option<&'d [u8]>,
}

/// What a delta says, column by column: schema version and column count of the row that it makes, and its columns in
/// order.
fn parts(delta: &[u8]) -> Result<(&[u8; 2], usize, Vec<Changed<'_>>), RowError> {
    let Some((version, mut rest)) = delta.split_first_chunk::<2>() else {
        return Err(RowError::new("delta shorter than its header"));
    };
    let count = column_count(delta)?;
    take_varint(&mut rest)?;
    let mut changed = Vec::new();
    for column in columns(delta)? {
        let column = column?;
        // Its number was read just now.
        take_varint(&mut rest)?;
        let to = match take_varint(&mut rest)? {
            0 => None,
            length => {
                let length = usize::try_from(length - 1).ok();
                let cut = length.and_then(|length| rest.split_at_checked(length));
                let (bytes, after) = cut.ok_or(RowError::new("delta ends inside a column"))?;
                rest = after;
                Some(bytes)
            }
        };
        changed.push(Changed { column, to });
    }
    Ok((version, count, changed))
}

/// What `first` and then `second` come to: a delta that makes of any row what the two make of it. Never trusts them.
pub fn merge(first: &[u8], second: &[u8]) -> Result<Vec<u8>, RowError> {
    let (_, first_count, first) = parts(first)?;
    let (version, count, second) = parts(second)?;
    let mut merged = version.to_vec();
    put_varint(count as u64, &mut merged);
    let mut next = 0;
    let (mut first, mut second) = (first.iter().peekable(), second.iter().peekable());
    for column in 0..count {
        let earlier = first.next_if(|changed| changed.column == column);
        let later = second.next_if(|changed| changed.column == column);
        let to = match (later, earlier) {
            (Some(changed), _) | (None, Some(changed)) => changed.to,
            // The first has cut it off, if it was there: the second finds NULL.
            (None, None) if column >= first_count => None,
            (None, None) => continue,
        };
        put_varint((column - next) as u64, &mut merged);
        next = column + 1;
        match to {
            None => put_varint(0, &mut merged),
            Some(bytes) => {
                put_varint(bytes.len() as u64 + 1, &mut merged);
                merged.extend_from_slice(bytes);
            }
        }
    }
    Ok(merged)
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
