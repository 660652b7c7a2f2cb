//! The stored form of what ANALYZE has found out: a row for each table, under its number.

use crate::stored::bytes::{DefinitionReader, DefinitionWriter, corrupt};
use crate::stored::{ObjectKey, ObjectRow};
use crate::{ColumnStatistics, TableStatistics};
use logstead_sql_types::error::Result;
use logstead_sql_types::value::{Datum, Oid, stored};
use logstead_sql_types::{DatabaseOid, RelationId, TypeId};
use logstead_types::TableId;

/// Version of the definitions.
const FORMAT: u8 = 1;

/// The key of a table's row.
pub fn key(database: DatabaseOid, table: RelationId) -> ObjectKey {
    ObjectKey {
        database,
        namespace: 0,
        name: table.to_string(),
    }
}

/// The row of a table's statistics; `oid` is the row's own.
pub fn encode(
    database: DatabaseOid,
    table: RelationId,
    oid: Oid,
    found: &TableStatistics,
) -> ObjectRow {
    let mut w = DefinitionWriter::default();
    w.u8(FORMAT);
    w.i64(found.rows.to_bits().cast_signed());
    w.u32(found.pages);
    w.u32(found.storage.get());
    w.list(&found.columns, |w, column| {
        w.u32(u32::try_from(column.position).unwrap_or(u32::MAX));
        w.u32(column.ty.get());
        w.u32(column.null_frac.to_bits());
        w.u32(column.width);
        w.u32(column.distinct.to_bits());
        w.list(&column.common, |w, (value, share)| {
            write_value(w, value);
            w.u32(share.to_bits());
        });
        w.list(&column.bounds, write_value);
        w.opt(column.correlation, |w, v| w.u32(v.to_bits()));
    });
    ObjectRow {
        key: key(database, table),
        oid,
        definition: w.0,
    }
}

fn write_value(w: &mut DefinitionWriter, value: &Datum) {
    let mut bytes = Vec::new();
    stored::encode(value, &mut bytes);
    w.bytes(&bytes);
}

/// Reads a row: the table, and what is known of it.
pub fn decode(row: &ObjectRow) -> Result<(RelationId, TableStatistics)> {
    let table = row
        .key
        .name
        .parse()
        .map(RelationId::new)
        .map_err(|_| corrupt("statistics are of no table"))?;
    let mut r = DefinitionReader(&row.definition);
    let format = r.u8()?;
    if format != FORMAT {
        return Err(corrupt(&format!(
            "statistics of table {table} have format {format}, this build reads {FORMAT}"
        )));
    }
    let rows = f64::from_bits(r.i64()?.cast_unsigned());
    let pages = r.u32()?;
    let storage = TableId(r.u32()?);
    let columns = r.list(|r| {
        let position = r.u32()? as usize;
        let ty = TypeId::new(r.u32()?);
        let null_frac = f32::from_bits(r.u32()?);
        let width = r.u32()?;
        let distinct = f32::from_bits(r.u32()?);
        let common = r.list(|r| {
            let value = stored::decode(ty, r.bytes()?)?;
            Ok((value, f32::from_bits(r.u32()?)))
        })?;
        let bounds = r.list(|r| stored::decode(ty, r.bytes()?))?;
        let correlation = r.opt(|r| Ok(f32::from_bits(r.u32()?)))?;
        let numbers = [null_frac, distinct];
        if !numbers.iter().all(|n| n.is_finite()) {
            return Err(corrupt("statistics are no numbers"));
        }
        Ok(ColumnStatistics {
            position,
            ty,
            null_frac,
            width,
            distinct,
            common,
            bounds,
            correlation,
        })
    })?;
    if !rows.is_finite() || !r.0.is_empty() {
        return Err(corrupt("a definition has bytes left over"));
    }
    Ok((
        table,
        TableStatistics {
            rows,
            pages,
            storage,
            columns,
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use logstead_sql_types::value::oid;

    #[test]
    fn what_is_stored_is_read_and_checked() {
        let found = TableStatistics {
            rows: 12_345.0,
            pages: 67,
            storage: TableId(16_400),
            columns: vec![ColumnStatistics {
                position: 2,
                ty: oid::TEXT,
                null_frac: 0.25,
                width: 6,
                distinct: -0.5,
                common: vec![(Datum::Text("a".into()), 0.5)],
                bounds: vec![Datum::Text("b".into()), Datum::Text("z".into())],
                correlation: Some(-0.1),
            }],
        };
        let row = encode(DatabaseOid::new(5), RelationId::new(16_390), 16_999, &found);
        assert_eq!(decode(&row).unwrap(), (RelationId::new(16_390), found));
        for end in 0..row.definition.len() {
            let mut cut = row.clone();
            cut.definition.truncate(end);
            assert!(decode(&cut).is_err(), "{end} bytes");
        }
    }
}
