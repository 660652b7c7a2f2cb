//! The layout is pinned; hostile bytes are refused; deltas reproduce the new row.

use super::*;
use crate::delta;

fn build(version: u16, columns: &[Option<&[u8]>]) -> Vec<u8> {
    let mut builder = RowBuilder::new();
    builder.start(version, columns.len());
    for column in columns {
        builder.push(*column);
    }
    builder.finish().to_vec()
}

#[test]
fn golden_layout() {
    let row = build(0x0102, &[Some(&[7, 0, 0, 0]), None, Some(b"ab")]);
    assert_eq!(
        row,
        [2, 1, 3, 0, 0b010, 4, 0, 4, 0, 6, 0, 7, 0, 0, 0, b'a', b'b']
    );
    let row = RowRef::parse(&row).expect("valid");
    assert_eq!(row.schema_version(), 0x0102);
    assert_eq!(
        (row.column(0), row.column(1), row.column(2)),
        (Some(&[7u8, 0, 0, 0][..]), None, Some(&b"ab"[..]))
    );
    assert!(row.column(3).is_none() && row.is_missing(3) && !row.is_missing(1));
}

#[test]
fn golden_delta() {
    let old = build(1, &[Some(b"a"), Some(b"b"), None]);
    let new = build(2, &[Some(b"a"), None, Some(b"xyz"), Some(b"")]);
    let mut bytes = Vec::new();
    delta::diff(RowRef::new(&old), RowRef::new(&new), &mut bytes);
    assert_eq!(bytes, [2, 0, 4, 1, 0, 0, 4, b'x', b'y', b'z', 0, 1]);
    let mut builder = RowBuilder::new();
    assert_eq!(
        delta::apply(RowRef::new(&old), &bytes, &mut builder),
        Ok(&new[..])
    );
}

#[test]
fn wide_rows_and_shrinking_rows() {
    let big = vec![9u8; 70_000];
    let wide = build(1, &[Some(b"k"), Some(&big), None, Some(b"t")]);
    let row = RowRef::parse(&wide).expect("valid");
    assert_eq!(
        (row.column(1).map(<[u8]>::len), row.column(3)),
        (Some(70_000), Some(&b"t"[..]))
    );
    let small = build(3, &[Some(b"k")]);
    for (from, to) in [(&wide, &small), (&small, &wide), (&wide, &wide)] {
        let mut bytes = Vec::new();
        delta::diff(RowRef::new(from), RowRef::new(to), &mut bytes);
        let mut builder = RowBuilder::new();
        assert_eq!(
            delta::apply(RowRef::new(from), &bytes, &mut builder).expect("applies"),
            &to[..]
        );
        if from == to {
            assert!(bytes.len() < 8, "nothing changed, nothing written");
        }
    }
}

#[test]
fn hostile_bytes_never_panic() {
    let row = build(1, &[Some(b"abc"), None, Some(b"defg")]);
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let mut builder = RowBuilder::new();
    for _ in 0..20_000 {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        let mut bytes = row.clone();
        let at = seed as usize % bytes.len();
        bytes[at] ^= (seed >> 32) as u8;
        bytes.truncate(bytes.len() - (seed >> 48) as usize % 3);
        if let Ok(row) = RowRef::parse(&bytes) {
            for i in 0..row.column_count() + 1 {
                let _ = row.column(i);
            }
        }
        let unchecked = RowRef::new(&bytes);
        for i in 0..unchecked.column_count().min(50) {
            let _ = unchecked.column(i);
        }
        let _ = delta::apply(RowRef::new(&row), &bytes, &mut builder);
    }
}
