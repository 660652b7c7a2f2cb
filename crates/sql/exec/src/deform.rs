//! Between stored rows and datums: decoding the columns that are wanted, and the columns a stored row lacks.

use logstead_engine::RowBuilder;
use logstead_engine::RowRef;
use logstead_sql_catalog::{Column, Relation};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, SqlType, stored};

/// A column given straight from stored bytes.
#[derive(Clone, Debug)]
pub struct StoredColumn {
    /// Attribute position in the row.
    pub position: usize,
    /// Its type.
    pub ty: SqlType,
    /// Its value in rows stored before the column was added.
    pub missing: Datum,
}

impl StoredColumn {
    /// How to read the column at `position` of `relation`.
    pub fn of(relation: &Relation, position: usize) -> Result<StoredColumn> {
        let column = attribute(relation, position)?;
        Ok(StoredColumn {
            position,
            ty: column.ty,
            missing: column.missing.clone(),
        })
    }

    /// The column's value in `row`.
    #[inline]
    pub fn decode(&self, row: RowRef<'_>) -> Result<Datum> {
        match row.column(self.position) {
            Some(bytes) => stored::decode(self.ty.oid, bytes),
            None if row.is_missing(self.position) => Ok(self.missing.clone()),
            None => Ok(Datum::Null),
        }
    }
}

/// The attribute at `position`.
pub(crate) fn attribute(relation: &Relation, position: usize) -> Result<&Column> {
    relation.columns.get(position).ok_or_else(|| {
        SqlError::internal(format!(
            "relation {} has no attribute {position}",
            relation.name
        ))
    })
}

/// Value of the attribute at `position`; one that is not stored is NULL.
pub(crate) fn decode(relation: &Relation, row: RowRef<'_>, position: usize) -> Result<Datum> {
    let column = attribute(relation, position)?;
    if !column.is_stored() {
        return Ok(Datum::Null);
    }
    match row.column(position) {
        Some(bytes) => stored::decode(column.ty.oid, bytes),
        None if row.is_missing(position) => Ok(column.missing.clone()),
        None => Ok(Datum::Null),
    }
}

/// Puts all attributes of `row` into `out`.
pub(crate) fn decode_all(relation: &Relation, row: RowRef<'_>, out: &mut Vec<Datum>) -> Result<()> {
    out.clear();
    for position in 0..relation.columns.len() {
        out.push(decode(relation, row, position)?);
    }
    Ok(())
}

/// Encodes a full row.
pub(crate) fn encode_full(
    relation: &Relation,
    row: &[Datum],
    builder: &mut RowBuilder,
) -> Result<()> {
    if row.len() != relation.columns.len() {
        return Err(SqlError::internal(format!(
            "a row of {} columns for table {}",
            row.len(),
            relation.name
        )));
    }
    builder.start(relation.schema_version, row.len());
    for (datum, column) in row.iter().zip(&relation.columns) {
        let stored = if column.is_stored() {
            datum
        } else {
            &Datum::Null
        };
        push_datum(stored, builder);
    }
    Ok(())
}

/// Encodes the row that `old` becomes: assigned columns anew, the others as they are stored.
pub(crate) fn encode_changed<'d>(
    relation: &Relation,
    old: RowRef<'_>,
    assigned: impl Fn(usize) -> Option<&'d Datum>,
    builder: &mut RowBuilder,
) {
    builder.start(relation.schema_version, relation.columns.len());
    for (position, column) in relation.columns.iter().enumerate() {
        if let Some(datum) = assigned(position) {
            push_datum(datum, builder);
        } else if !column.is_stored() {
            builder.push_null();
        } else if old.is_missing(position) {
            push_datum(&column.missing, builder);
        } else {
            builder.push(old.column(position));
        }
    }
}

fn push_datum(datum: &Datum, builder: &mut RowBuilder) {
    if datum.is_null() {
        builder.push_null();
    } else {
        builder.push_with(|out| stored::encode(datum, out));
    }
}
