//! CREATE TYPE ... AS (...), and ALTER TYPE of its attributes.
//!
//! Stored values have the fields that their type has now, in that order: nobody reads an older form. So the fields of a
//! type do not change while a table keeps values of it, nor the columns of a table while another keeps its rows
//! ([`refuse_kept_rows`]). PostgreSQL refuses what would have to write such values again, and only that.

use super::DdlContext;
use super::columns::{check_column_name, column_type};
use super::object_address::{relation_of, unexpected_object};
use super::relation_attributes::named_collation;
use super::types::{add, altered_as, array_name, free, put};
use crate::pg_catalog::calls;
use crate::types::refuse_row_type_of;
use logstead_sql_catalog::text::quote_ident;
use logstead_sql_catalog::{Catalog, Relation, RelationKind};
use logstead_sql_parse::ast::{
    AlterTableCmd, AlterTableStmt, CollationName, CompositeTypeStmt, Name, RangeVar, RenameStmt,
    TypeName,
};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::oid;
use logstead_sql_types::value::record::NESTING_MAX;
use logstead_sql_types::value::user;
use logstead_sql_types::value::user::TypeLookup;
use logstead_sql_types::value::user::{
    Attribute, COMPOSITE_BITS, Composite, UserKind, UserType, UserTypes, of_users,
};
use logstead_sql_types::{RelationId, TypeId};
use logstead_types::SqlState;
use std::sync::Arc;

/// Most attributes of a type, dropped ones included (PostgreSQL's limit).
const ATTRIBUTES_MAX: usize = 1_600;

fn duplicate(name: &str, relation: &str) -> SqlError {
    SqlError::new(
        SqlState::DUPLICATE_COLUMN,
        format!("column \"{name}\" of relation \"{relation}\" already exists"),
    )
}

fn no_attribute(name: &str, relation: &str) -> SqlError {
    SqlError::new(
        SqlState::UNDEFINED_COLUMN,
        format!("column \"{name}\" of relation \"{relation}\" does not exist"),
    )
}

fn attribute(
    (name, type_name, collation): (&Name, &TypeName, Option<&CollationName>),
    number: usize,
    cx: &mut DdlContext<'_>,
) -> Result<Attribute> {
    let name = name.to_string();
    check_column_name(&name)?;
    let ty = column_type(&name, type_name, cx)?;
    cx.must_use_types(of_users(ty.oid))?;
    if user::domain_in(ty.oid).is_some() {
        return Err(SqlError::unsupported(
            "an attribute of a composite type that is of a domain",
        ));
    }
    let collation = match collation {
        None => 0,
        Some(collation) => named_collation(collation.name.as_slice(), ty, cx)?,
    };
    // Fields of records are compared without their types.
    if matches!(ty.oid, oid::CITEXT | oid::CITEXT_ARRAY) {
        return Err(SqlError::unsupported("an attribute of type citext"));
    }
    Ok(Attribute {
        name: Arc::from(name),
        ty,
        number: i16::try_from(number).unwrap_or(i16::MAX),
        collation,
    })
}

fn too_many() -> SqlError {
    SqlError::new(
        SqlState::TOO_MANY_COLUMNS,
        format!("tables can have at most {ATTRIBUTES_MAX} columns"),
    )
}

/// Fails if a record of type `ty` would hold one of type `whole`, or too many in each other.
pub(super) fn refuse_cycle(
    known: TypeLookup<'_>,
    ty: TypeId,
    whole: Option<TypeId>,
    depth: usize,
) -> Result<()> {
    let types = known.types;
    let ty = types.element_of(ty).unwrap_or(ty);
    if !user::is_composite(ty) {
        return Ok(());
    }
    if Some(ty) == whole {
        return Err(SqlError::new(
            SqlState::INVALID_TABLE_DEFINITION,
            format!(
                "composite type {} cannot be made a member of itself",
                known.format_type_bare(ty)
            ),
        ));
    }
    if depth >= NESTING_MAX {
        return Err(SqlError::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!("composite types are nested more than {NESTING_MAX} deep"),
        ));
    }
    for (_, field) in types.shape(ty).iter().flat_map(|shape| shape.iter()) {
        refuse_cycle(known, field.oid, whole, depth + 1)?;
    }
    Ok(())
}

/// Runs CREATE TYPE ... AS (...).
pub(super) async fn create(stmt: &CompositeTypeStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let clauses = &stmt.coldeflist;
    let (schema, name) = cx.new_type_name(&stmt.typevar)?;
    free(&schema.name, schema.oid, &name, cx)?;
    let catalog = cx.catalog()?;
    if catalog.names.contains_key(&(schema.oid, name.clone())) {
        // An index or a sequence.
        return Err(SqlError::new(
            SqlState::DUPLICATE_TABLE,
            format!("relation \"{name}\" already exists"),
        ));
    }
    if clauses.len() > ATTRIBUTES_MAX {
        return Err(too_many());
    }
    let mut attributes: Vec<Attribute> = Vec::with_capacity(clauses.len());
    for (clause, number) in clauses.iter().zip(1..) {
        let clause = (
            &clause.colname,
            &clause.type_name,
            clause.coll_clause.as_ref(),
        );
        let new = attribute(clause, number, cx)?;
        if attributes.iter().any(|a| a.name == new.name) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_COLUMN,
                format!("column \"{}\" specified more than once", new.name),
            ));
        }
        refuse_cycle(cx.lookup(&catalog).types(), new.ty.oid, None, 1)?;
        attributes.push(new);
    }
    let (oid, csn) = cx.store.new_type_oid(cx.worker, COMPOSITE_BITS)?;
    cx.depends_on(csn);
    let numbers = i16::try_from(attributes.len()).unwrap_or(i16::MAX);
    let composite = Composite::new(RelationId::new(cx.new_oid()?), numbers, attributes);
    let ty = UserType {
        oid,
        array_name: array_name(&schema.name, &name, oid, cx)?,
        name,
        schema: schema.oid,
        schema_name: schema.name.clone(),
        kind: UserKind::Composite(Box::new(composite)),
    };
    add(ty, cx).await
}

/// The composite type that is to be altered.
async fn held(name: &RangeVar, cx: &mut DdlContext<'_>) -> Result<(Arc<UserType>, Composite)> {
    let no_composite = |name: &str| {
        SqlError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("\"{name}\" is not a composite type"),
        )
    };
    let catalog = cx.catalog()?;
    let lookup = cx.lookup(&catalog);
    let (schema, plain) = calls::lookup_parts(name, lookup)?;
    let found = lookup.user_type(schema.as_deref(), &plain)?;
    if found.is_some_and(|oid| refuse_row_type_of(&catalog, oid).is_some()) {
        return Err(no_composite(&plain));
    }
    let ty = altered_as(name, "table", cx).await?;
    match ty.composite() {
        Some(composite) => Ok((Arc::clone(&ty), composite.clone())),
        None => Err(no_composite(&ty.name)),
    }
}

/// Does a value of type `ty` hold one of type `part`, or is it one? Domains are what they are over.
fn holds(types: &UserTypes, ty: TypeId, part: TypeId) -> bool {
    let ty = types.element_of(ty).unwrap_or(ty);
    if ty == part {
        return true;
    }
    if !user::is_composite(ty) {
        return false;
    }
    let shape = types.shape(ty);
    let mut fields = shape.iter().flat_map(|shape| shape.iter());
    fields.any(|(_, field)| holds(types, field.oid, part))
}

/// A column, of a table that keeps rows, whose values hold records of the type, as messages name it.
fn keeper(catalog: &Catalog, part: TypeId) -> Option<String> {
    let mut tables = catalog.relations_holding(part);
    tables.retain(|table| table.has_rows());
    let find = |arrays: bool| {
        tables.iter().find_map(|table| {
            let mut live = table.columns.iter().filter(|c| !c.dropped);
            let found = live.find(|c| {
                let is_array = catalog.types.element_of(c.ty.oid).is_some();
                is_array == arrays && holds(&catalog.types, c.ty.oid, part)
            })?;
            Some(format!("{}.{}", table.name, found.name))
        })
    };
    // PostgreSQL follows the array over the type first.
    find(true).or_else(|| find(false))
}

/// The same of temporary tables of other sessions.
fn keeper_elsewhere(part: TypeId, cx: &mut DdlContext<'_>) -> Result<Option<String>> {
    let types = Arc::clone(&cx.catalog()?.types);
    let own = cx.state.temporary().map(|own| own.schema_name().to_owned());
    let others = &cx.store.temporary_types;
    let all = types.all();
    let mut holders = all.iter().filter(|ty| holds(&types, ty.oid, part));
    Ok(holders
        .find(|ty| others.stored(ty.oid, own.as_deref()))
        .map(|ty| format!("a temporary table with {}", ty.name)))
}

/// 0A000 if a table keeps values of the type.
fn refuse_kept(ty: &UserType, cx: &mut DdlContext<'_>) -> Result<()> {
    let found = keeper(&*cx.catalog()?, ty.oid);
    let found = match found {
        Some(found) => Some(found),
        None => keeper_elsewhere(ty.oid, cx)?,
    };
    match found {
        None => Ok(()),
        Some(column) => Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!(
                "cannot alter type \"{}\" because column \"{column}\" uses it",
                ty.name
            ),
        )),
    }
}

/// 0A000 if the columns of a relation change while a table keeps rows of it.
pub(super) fn refuse_kept_rows(
    new: &Relation,
    old: Option<&Relation>,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let catalog = cx.catalog()?;
    let row = user::row_type_of(new.oid);
    let types = |relation: &Relation| {
        let shape = relation.row_shape()?;
        Some(shape.iter().map(|(_, ty)| *ty).collect::<Vec<_>>())
    };
    let now = types(new);
    for ty in now.iter().flatten() {
        refuse_cycle(cx.lookup(&catalog).types(), ty.oid, row, 1)?;
    }
    if old.is_none_or(|old| types(old) == now) {
        return Ok(());
    }
    match row.and_then(|row| keeper(&catalog, row)) {
        None => Ok(()),
        Some(column) => {
            let word = match new.kind {
                RelationKind::View(_) => "view",
                RelationKind::Materialized(..) => "materialized view",
                _ => "table",
            };
            Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!(
                    "cannot alter {word} \"{}\" because column \"{column}\" uses its row type",
                    new.name
                ),
            ))
        }
    }
}

/// 0A000 if an expression that is kept would mean something else.
fn refuse_named(
    ty: &UserType,
    named: &dyn Fn(&str) -> bool,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let catalog = cx.catalog()?;
    let relations = catalog.relations.values();
    let found = relations
        .filter(|r| super::types::texts(r).into_iter().any(named))
        .map(|r| r.name.clone())
        .min();
    match found {
        None => Ok(()),
        Some(relation) => Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!(
                "cannot alter type \"{}\" because an expression of relation \"{relation}\" may use it",
                ty.name
            ),
        )),
    }
}

/// Does a stored text select a field of this name?
fn selects(text: &str, field: &str) -> bool {
    let pattern = format!(").{}", quote_ident(field));
    text.match_indices(&pattern).any(|(at, found)| {
        let rest = text.get(at + found.len()..).unwrap_or_default();
        !rest.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '$'))
    })
}

/// Runs ALTER TYPE with actions on attributes.
///
/// CASCADE and RESTRICT speak of typed tables: there are none.
pub(super) async fn alter(stmt: &AlterTableStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let (ty, mut composite) = held(&stmt.relation, cx).await?;
    let mut touched: Vec<Arc<str>> = Vec::new();
    for cmd in &stmt.cmds {
        let at = |composite: &Composite, name: &str| {
            composite.attributes.iter().position(|a| *a.name == *name)
        };
        match cmd {
            AlterTableCmd::AddAttribute { def, .. } => {
                let clause = (&def.colname, &def.type_name, def.coll_clause.as_ref());
                let number = usize::from(composite.numbers.unsigned_abs()) + 1;
                if number > ATTRIBUTES_MAX {
                    return Err(too_many());
                }
                let new = attribute(clause, number, cx)?;
                if at(&composite, &new.name).is_some() {
                    return Err(duplicate(&new.name, &ty.name));
                }
                let catalog = cx.catalog()?;
                refuse_cycle(cx.lookup(&catalog).types(), new.ty.oid, Some(ty.oid), 1)?;
                composite.numbers = new.number;
                composite.attributes.push(new);
            }
            AlterTableCmd::DropColumn {
                name, missing_ok, ..
            } => match at(&composite, name) {
                Some(found) => touched.push(composite.attributes.remove(found).name),
                None if *missing_ok => {
                    let error = no_attribute(name, &ty.name);
                    let message = format!("{}, skipping", error.fields().message);
                    cx.notice(SqlState::SUCCESSFUL_COMPLETION, message);
                }
                None => return Err(no_attribute(name, &ty.name)),
            },
            AlterTableCmd::AlterColumnType(alter) => {
                let found = at(&composite, &alter.name);
                let slot = found.and_then(|at| composite.attributes.get_mut(at));
                let slot = slot.ok_or_else(|| no_attribute(&alter.name, &ty.name))?;
                let number = usize::from(slot.number.unsigned_abs());
                let clause = (&alter.name, &alter.type_name, alter.coll_clause.as_ref());
                *slot = attribute(clause, number, cx)?;
                touched.push(Arc::clone(&slot.name));
                let catalog = cx.catalog()?;
                refuse_cycle(cx.lookup(&catalog).types(), slot.ty.oid, Some(ty.oid), 1)?;
            }
            _ => return Err(unexpected_object()),
        }
    }
    let changed = Composite::new(composite.relation, composite.numbers, composite.attributes);
    if Some(&changed) == ty.composite() {
        return Ok(());
    }
    refuse_kept(&ty, cx)?;
    let named = |text: &str| {
        user::names_type(text, ty.oid)
            || user::names_type(text, user::array_over(ty.oid))
            || touched.iter().any(|field| selects(text, field))
    };
    refuse_named(&ty, &named, cx)?;
    let mut new = UserType::clone(&ty);
    new.kind = UserKind::Composite(Box::new(changed));
    cx.lock_types_of_type(&new).await?;
    put(&new, cx).await
}

/// Runs ALTER TYPE ... RENAME ATTRIBUTE. Values know nothing of names.
pub(super) async fn rename(stmt: &RenameStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let from = stmt.subname.as_deref().ok_or_else(unexpected_object)?;
    let (ty, mut composite) = held(relation_of(&stmt.object)?, cx).await?;
    let to = stmt.newname.to_string();
    check_column_name(&to)?;
    let exists = composite.attributes.iter().any(|a| *a.name == *to);
    let found = composite.attributes.iter_mut().find(|a| *a.name == *from);
    let Some(found) = found else {
        return Err(SqlError::new(
            SqlState::UNDEFINED_COLUMN,
            format!("column \"{from}\" does not exist"),
        ));
    };
    if exists {
        return Err(duplicate(&to, &ty.name));
    }
    found.name = Arc::from(to);
    refuse_named(&ty, &|text| selects(text, from), cx)?;
    let changed = Composite::new(composite.relation, composite.numbers, composite.attributes);
    let mut new = UserType::clone(&ty);
    new.kind = UserKind::Composite(Box::new(changed));
    put(&new, cx).await
}

/// Drops an attribute whose type goes.
pub(super) async fn remove_attribute(
    ty: TypeId,
    number: i16,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let Some(ty) = cx.catalog()?.types.get(ty).cloned() else {
        return Ok(());
    };
    let Some(composite) = ty.composite() else {
        return Ok(());
    };
    refuse_kept(&ty, cx)?;
    let mut attributes = composite.attributes.clone();
    attributes.retain(|a| a.number != number);
    let changed = Composite::new(composite.relation, composite.numbers, attributes);
    let mut new = UserType::clone(&ty);
    new.kind = UserKind::Composite(Box::new(changed));
    put(&new, cx).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_in_stored_texts() {
        assert!(selects("SELECT ((t.c).a) FROM t", "a"));
        assert!(selects("((c).\"B c\" > 1)", "B c"));
        assert!(!selects("SELECT (t.c).ab, t.a FROM t", "a"));
    }
}
