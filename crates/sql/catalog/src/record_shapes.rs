//! Whether a session's own table can still be read: at a replica the primary changes and drops the types that it uses,
//! and asks nobody.
//!
//! At a primary the types of temporary tables are kept from that (`types_in_use`). At a replica they are compared, each
//! time that such a table is named: a type must be there, and the fields of records that rows keep must be of the types
//! that they had when the column was made, since the values hold them as they were.
//!
//! Does not: look at what expressions of the table name; whoever binds those says what is missing.

use super::{Catalog, Relation};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::{self, UserTypes};
use logstead_sql_types::value::{Oid, SqlType};
use logstead_types::SqlState;

/// The columns of a table that keep records, by position: with the types of all fields, those of records in them too.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordShapes(Vec<(usize, Vec<SqlType>)>);

impl RecordShapes {
    /// Those of a table whose columns have been made or changed just now; columns that are as they were keep what they
    /// had.
    pub fn of(relation: &Relation, types: &UserTypes, old: Option<(&Relation, &Self)>) -> Self {
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
                None => fields_of(types, column.ty.oid),
            };
            (!fields.is_empty()).then_some((position, fields))
        };
        RecordShapes(live.filter_map(shape).collect())
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn at(&self, position: usize) -> Option<&[SqlType]> {
        let found = self.0.iter().find(|(at, _)| *at == position);
        found.map(|(_, fields)| fields.as_slice())
    }
}

/// The types of the fields of records that values of the type hold.
fn fields_of(types: &UserTypes, ty: Oid) -> Vec<SqlType> {
    let mut found = Vec::new();
    let mut left = vec![ty];
    while let Some(ty) = left.pop() {
        let ty = types.element_of(ty).unwrap_or(ty);
        if user::is_composite(ty) {
            for (_, field) in types.shape(ty).iter().flat_map(|shape| shape.iter()) {
                found.push(*field);
                left.push(field.oid);
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
                && kept != fields_of(types, column.ty.oid)
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
