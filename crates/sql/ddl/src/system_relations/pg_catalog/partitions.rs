//! `logstead_partition_of` and `logstead_instance_of_partition`: where rows lie.

use super::calls::{int_arg, relation_arg};
use logstead_engine::{VIRTUAL_PARTITIONS, partition_of};
use logstead_sql_catalog::{Relation, VirtualContext};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, OutputStyle, SqlType, key, oid, stored, text_io};
use logstead_types::{PartitionId, SqlState};

/// The virtual partition of the row with these values in the distribution columns of a table: of any row if the table
/// is in one.
pub(super) fn of_key(args: &[Datum], cx: &VirtualContext<'_>) -> Result<Datum> {
    let relation = relation_arg(args, 0).and_then(|oid| cx.catalog.relations.get(&oid));
    let (Some(relation), Some(values)) = (relation.filter(|r| r.has_rows()), args.get(1..)) else {
        return Ok(Datum::Null);
    };
    let partition = match relation.distribution.columns() {
        Some(columns) => of_values(values, columns, relation, cx)?,
        None => {
            let number = relation.storage.get() % u32::from(VIRTUAL_PARTITIONS);
            PartitionId(u16::try_from(number).unwrap_or_default())
        }
    };
    Ok(Datum::Int4(i32::from(partition.0)))
}

fn of_values(
    values: &[Datum],
    columns: &[usize],
    relation: &Relation,
    cx: &VirtualContext<'_>,
) -> Result<PartitionId> {
    if values.len() != columns.len() {
        return Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!(
                "table \"{}\" has {} distribution column(s), not {}",
                relation.name,
                columns.len(),
                values.len()
            ),
        ));
    }
    let mut bytes = Vec::new();
    for (value, position) in values.iter().zip(columns) {
        let ty = relation.columns.get(*position).map(|column| column.ty);
        let ty = ty.ok_or_else(|| SqlError::internal("a distribution column is not there"))?;
        let value = assigned(value, ty, cx)?;
        key::encode_key(ty.oid, &value, false, false, &mut bytes);
    }
    Ok(partition_of(&bytes))
}

/// The value as one of a column's type.
fn assigned(value: &Datum, ty: SqlType, cx: &VirtualContext<'_>) -> Result<Datum> {
    let form = stored::form_of(value);
    let is_integer = |ty| matches!(ty, oid::INT2 | oid::INT4 | oid::INT8);
    if value.is_null() || form == ty.oid || is_integer(form) && is_integer(ty.oid) {
        return Ok(value.clone());
    }
    let text = text_io::to_text(value, SqlType::of(form), &OutputStyle::of(cx.session))?;
    text_io::input(ty, &text, Some(cx.session))
}

/// The instance that owns a virtual partition now; NULL if there is no such partition.
pub(super) fn instance(args: &[Datum], cx: &VirtualContext<'_>) -> Datum {
    let number = int_arg(args, 0).and_then(|number| u16::try_from(number).ok());
    let partition = number.filter(|number| *number < VIRTUAL_PARTITIONS);
    let live = cx.catalog.notes.live.as_ref();
    let owner = live.and_then(|live| live.instance_of(PartitionId(partition?)));
    owner.map_or(Datum::Null, |instance| Datum::Int4(i32::from(instance.0)))
}
