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
use logstead_sql_types::value::user;
use logstead_sql_types::value::{Oid, SqlType};
use logstead_types::SqlState;

/// The columns of a table that keep records, by position, each with its fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordShapes(Vec<(usize, Vec<RecordField>)>);

/// A field of a record: values hold it by its place among those that there are, so two types are the same to them if
/// each place has the same field.
#[derive(Clone, Debug, PartialEq)]
struct RecordField {
    /// Of the attribute or column, which no later one gets again.
    number: usize,
    ty: SqlType,
    /// Of a field that is a record, or holds some.
    fields: Option<Vec<RecordField>>,
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

/// The fields of the records that values of the type are or hold; none if they are no records.
fn fields_of(catalog: &Catalog, ty: Oid) -> Option<Vec<RecordField>> {
    let types = &catalog.types;
    let ty = types.element_of(ty).unwrap_or(ty);
    let field = |number: usize, ty: SqlType| RecordField {
        number,
        ty,
        // Types do not contain themselves.
        fields: fields_of(catalog, ty.oid),
    };
    if let Some(relation) = user::relation_of_row_type(ty) {
        let columns = catalog.relations.get(&relation)?.columns.iter().enumerate();
        let live = columns.filter(|(_, column)| !column.dropped);
        return Some(live.map(|(at, column)| field(at, column.ty)).collect());
    }
    let attributes = &types.get(ty)?.composite()?.attributes;
    let number = |attribute: &user::Attribute| usize::try_from(attribute.number).unwrap_or(0);
    Some(attributes.iter().map(|a| field(number(a), a.ty)).collect())
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
