//! Whether a session's own table can still be read: at a replica the primary changes and drops the types that it uses,
//! and asks nobody.
//!
//! At a primary the types of temporary tables are kept from that (`types_in_use`). At a replica they are compared, each
//! time that such a table is named: a type must be there, and the fields of records that rows keep must be of the types
//! that they had when the column was made, since the values hold them as they were.
//!
//! Does not: look at what expressions of the table name; whoever binds those says what is missing.

use super::{Catalog, Relation};
use logstead_sql_types::TypeId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::SqlType;
use logstead_sql_types::value::user;
use logstead_types::SqlState;
use std::collections::BTreeSet;

/// The columns of a table that keep records, by position, each with its fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordShapes(Vec<(usize, Vec<RecordField>)>);

/// A field of a record type: values hold it by its place among those that there are, so two types are the same to them
/// if each place has the same field.
#[derive(Clone, Debug, PartialEq)]
struct RecordField {
    /// The type that has it.
    record: TypeId,
    /// Of the attribute or column, which no later one gets again.
    number: usize,
    ty: SqlType,
}

impl RecordShapes {
    /// Those of a table whose columns have been made or changed just now; columns that are as they were keep what they
    /// had.
    pub fn of(relation: &Relation, catalog: &Catalog, old: Option<(&Relation, &Self)>) -> Self {
        let live = relation.columns.iter().enumerate();
        let live = live.filter(|(_, column)| !column.dropped);
        let shape = |(position, column): (usize, &super::Column)| {
            let declared = column.declared();
            let before = old.and_then(|(old, shapes)| {
                let same = old.columns.get(position)?.declared() == declared;
                same.then(|| shapes.at(position)).flatten()
            });
            let fields = match before {
                Some(before) => before.to_vec(),
                None => fields_of(catalog, column.ty.oid)?,
            };
            Some((position, fields))
        };
        RecordShapes(live.filter_map(shape).collect())
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn at(&self, position: usize) -> Option<&[RecordField]> {
        let found = self.0.iter().find(|(at, _)| *at == position);
        found.map(|(_, fields)| fields.as_slice())
    }
}

/// The fields of all record types that values of the type are made of, each type once: types may use others many times,
/// and deep. None if they are no records.
fn fields_of(catalog: &Catalog, ty: TypeId) -> Option<Vec<RecordField>> {
    let types = &catalog.types;
    let (mut found, mut seen, mut left) = (None, BTreeSet::new(), vec![ty]);
    while let Some(ty) = left.pop() {
        let record = types.element_of(ty).unwrap_or(ty);
        if !user::is_composite(record) || !seen.insert(record) {
            continue;
        }
        let fields: &mut Vec<RecordField> = found.get_or_insert_default();
        let mut add = |number: usize, ty: SqlType| {
            fields.push(RecordField { record, number, ty });
            left.push(ty.oid);
        };
        match user::relation_of_row_type(record) {
            Some(relation) => {
                let relation = catalog.relations.get(&relation);
                let columns = relation.iter().flat_map(|r| r.columns.iter().enumerate());
                for (at, column) in columns.filter(|(_, column)| !column.dropped) {
                    add(at, column.ty);
                }
            }
            None => {
                let composite = types.get(record).and_then(|ty| ty.composite());
                for field in composite.iter().flat_map(|of| &of.attributes) {
                    add(usize::try_from(field.number).unwrap_or(0), field.ty);
                }
            }
        }
    }
    found
}

impl Catalog {
    /// 42704 or 55000 if a type that a temporary table keeps values of is not there any more, or has been changed.
    pub fn check_types_of_own(&self, relation: &Relation) -> Result<()> {
        if !relation.is_temporary() {
            return Ok(());
        }
        let shapes = self.notes.record_shapes.get(&relation.oid);
        let (table, types) = (&relation.name, &self.types);
        let users =
            relation.columns.iter().enumerate().filter(|(_, column)| {
                !column.dropped && user::class(column.declared().oid).is_some()
            });
        for (position, column) in users {
            let name = &column.name;
            let error = if !types.exists(column.declared().oid) {
                let code = SqlState::UNDEFINED_OBJECT;
                let what = "does not exist any more";
                SqlError::new(
                    code,
                    format!(
                        "the type of column \"{name}\" of temporary relation \"{table}\" {what}"
                    ),
                )
            } else if let Some(kept) = shapes.and_then(|shapes| shapes.at(position))
                && fields_of(self, column.ty.oid).as_deref() != Some(kept)
            {
                let code = SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE;
                let what = "has been changed since the column was made";
                SqlError::new(
                    code,
                    format!(
                        "the type of column \"{name}\" of temporary relation \"{table}\" {what}"
                    ),
                )
            } else {
                continue;
            };
            return Err(error
                .detail("The primary has done that, which does not wait for sessions of a replica.")
                .hint("Drop the column or the relation."));
        }
        Ok(())
    }
}
