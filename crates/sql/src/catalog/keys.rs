//! Index keys from stored rows.
//!
//! Owns: [`ColumnsKey`], the engine's `KeyExtractor` of every user index. It is made when the index is, from the columns as they
//! are then: positions never change, dropped columns keep theirs, and rows older than a column have its `missing` value.

use super::{IndexDef, Relation};
use crate::value::{Datum, Oid, key, stored};
use logstead_engine::{KeyExtractor, KeyKind, RowRef};

struct Part {
    position: usize,
    ty: Oid,
    desc: bool,
    nulls_first: bool,
    /// Stored form for rows without the column; `None` is NULL.
    missing: Option<Vec<u8>>,
}

/// Key of the listed columns.
pub(super) struct ColumnsKey(Vec<Part>);

impl ColumnsKey {
    /// The extractor of `index` on `relation`.
    pub(super) fn new(relation: &Relation, index: &IndexDef) -> ColumnsKey {
        let part = |k: &super::IndexColumn| {
            let column = relation.columns.get(k.position)?;
            let missing = match &column.missing {
                Datum::Null => None,
                value => {
                    let mut bytes = Vec::new();
                    stored::encode(value, &mut bytes);
                    Some(bytes)
                }
            };
            let (ty, desc, nulls_first) = (column.ty.oid, k.desc, k.nulls_first);
            Some(Part {
                position: k.position,
                ty,
                desc,
                nulls_first,
                missing,
            })
        };
        ColumnsKey(index.columns.iter().filter_map(part).collect())
    }
}

impl KeyExtractor for ColumnsKey {
    fn key(&self, row: RowRef<'_>, out: &mut Vec<u8>) -> KeyKind {
        let mut kind = KeyKind::Unique;
        for part in &self.0 {
            let value = if row.is_missing(part.position) {
                part.missing.as_deref()
            } else {
                row.column(part.position)
            };
            if value.is_none() {
                kind = KeyKind::Nullable;
            }
            // A value that does not decode was damaged before it came here; reading the row reports it.
            if key::encode_key_stored(part.ty, value, part.desc, part.nulls_first, out).is_err() {
                return KeyKind::Absent;
            }
        }
        kind
    }
}
