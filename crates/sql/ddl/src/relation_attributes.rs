//! ALTER TABLE ... REPLICA IDENTITY, SET STATISTICS, SET STORAGE, SET COMPRESSION and RESET; collations of columns:
//! what is kept, told and dumped, and followed by nothing here
//! ([`inert_options`](logstead_sql_catalog::inert_options)).

use super::DdlContext;
use crate::pg_catalog::calls::QualifiedName;
use logstead_sql_catalog::Relation;
use logstead_sql_catalog::change::CatalogChange;
use logstead_sql_catalog::inert_options::{self, Attribute};
use logstead_sql_parse::ast::{DefElem, Names, ReplicaIdentity};
use logstead_sql_types::RelationId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::collations::{collation_by_name, collation_name};
use logstead_sql_types::value::{Oid, SqlType, info, oid};
use logstead_types::SqlState;
use std::sync::Arc;

/// The highest target that SET STATISTICS takes.
const STATISTICS_MAX: i32 = 10_000;

/// Says attributes of a relation and stores it with them.
async fn set_attributes(
    table: &Relation,
    said: &[(Attribute, Option<&str>)],
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let mut all = cx.catalog()?.options_of(table.oid).to_vec();
    for (attribute, value) in said {
        inert_options::set(&mut all, *attribute, *value);
    }
    cx.state.push(CatalogChange::Options(table.oid, all));
    cx.update_relation(Relation::clone(table)).await.map(drop)
}

/// SET STATISTICS; -1 is the default.
pub(super) async fn statistics(
    position: usize,
    target: i32,
    table: &Arc<Relation>,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let value = statistics_target(target, cx)?;
    let said = (Attribute::Statistics(position), value.as_deref());
    set_attributes(table, &[said], cx).await
}

/// A target of statistics as it is kept; none if it is the default.
pub(super) fn statistics_target(target: i32, cx: &mut DdlContext<'_>) -> Result<Option<String>> {
    if target < -1 {
        return Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("statistics target {target} is too low"),
        ));
    }
    if target > STATISTICS_MAX {
        cx.notices.push(super::Notice {
            severity: "WARNING",
            code: SqlState::INVALID_PARAMETER_VALUE,
            message: format!("lowering statistics target to {STATISTICS_MAX}"),
            detail: None,
            hint: None,
        });
    }
    let target = target.min(STATISTICS_MAX).to_string();
    Ok((target != "-1").then_some(target))
}

fn type_of(table: &Relation, position: usize) -> (SqlType, Option<&'static info::TypeInfo>) {
    let column = table.columns.get(position);
    let ty = column.map_or(SqlType::of(oid::INVALID), |c| c.ty);
    (ty, info::by_oid(ty.oid))
}

/// The code of SET STORAGE (`ATExecSetStorage`).
pub(super) fn storage_code(name: &str) -> Result<char> {
    match name.to_ascii_lowercase().as_str() {
        "plain" => Ok('p'),
        "external" => Ok('e'),
        "extended" => Ok('x'),
        "main" => Ok('m'),
        _ => Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("invalid storage type \"{name}\""),
        )),
    }
}

/// SET STORAGE.
pub(super) async fn storage(
    position: usize,
    code: char,
    table: &Arc<Relation>,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let (ty, known) = type_of(table, position);
    let fixed = known.is_some_and(|i| i.storage == 'p');
    if code != 'p' && fixed {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!(
                "column data type {} can only have storage PLAIN",
                cx.format_type(ty)?
            ),
        ));
    }
    let code = code.to_string();
    let value = known
        .is_none_or(|i| i.storage.to_string() != code)
        .then_some(code.as_str());
    set_attributes(table, &[(Attribute::Storage(position), value)], cx).await
}

/// The code of a compression method; none is the setting's (`GetAttributeCompression`).
pub(super) fn compression_code(
    method: &str,
    ty: SqlType,
    cx: &mut DdlContext<'_>,
) -> Result<Option<char>> {
    let code = match method {
        "pglz" => Some('p'),
        "lz4" => Some('l'),
        "default" => None,
        _ => {
            return Err(SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("invalid compression method \"{method}\""),
            ));
        }
    };
    let known = cx.catalog()?.types.type_info(ty.oid);
    if code.is_some() && known.is_some_and(|i| i.storage == 'p') {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!(
                "column data type {} does not support compression",
                cx.format_type(ty)?
            ),
        ));
    }
    Ok(code)
}

/// SET COMPRESSION.
pub(super) async fn compression(
    position: usize,
    method: &str,
    table: &Arc<Relation>,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let code = compression_code(method, type_of(table, position).0, cx)?;
    let code = code.map(String::from);
    set_attributes(
        table,
        &[(Attribute::Compression(position), code.as_deref())],
        cx,
    )
    .await
}

/// `pg_collation.oid` of a collation that must be there (`get_collation_oid`).
pub(super) fn collation_oid(name: &(impl QualifiedName + ?Sized)) -> Result<Oid> {
    let full = name.parts().join(".");
    let known = collation_by_name(full.strip_prefix("pg_catalog.").unwrap_or(&full));
    known.ok_or_else(|| {
        SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            format!("collation \"{full}\" for encoding \"UTF8\" does not exist"),
        )
    })
}

/// `pg_collation.oid` of the collation behind a type, if there is one and the type has an order that it could say.
pub(super) fn named_collation(
    name: &(impl QualifiedName + ?Sized),
    declared: SqlType,
    cx: &mut DdlContext<'_>,
) -> Result<Oid> {
    let collation = collation_oid(name)?;
    let known = cx.catalog()?.types.type_info(declared.oid);
    if known.is_none_or(|t| t.collation() == 0) {
        return Err(SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            format!(
                "collations are not supported by type {}",
                cx.format_type_bare(declared.oid)?
            ),
        ));
    }
    Ok(collation)
}

/// What is kept of a column's collation: nothing if it is its type's own.
pub(super) fn collation_attribute(said: Oid, ty: SqlType) -> Option<&'static str> {
    let own = info::by_oid(ty.oid).map_or(0, info::TypeInfo::collation);
    collation_name(said).filter(|_| said != own)
}

/// ALTER COLUMN ... TYPE: the collation that it says, or that of the type.
pub(super) async fn set_collation(
    position: usize,
    said: Option<Oid>,
    table: RelationId,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let catalog = cx.catalog()?;
    let Some(table) = catalog.relations.get(&table) else {
        return Ok(());
    };
    let attribute = Attribute::Collation(position);
    let (ty, _) = type_of(table, position);
    let said = said.and_then(|said| collation_attribute(said, ty));
    if inert_options::get(catalog.options_of(table.oid), attribute) == said {
        return Ok(());
    }
    set_attributes(table, &[(attribute, said)], cx).await
}

/// REPLICA IDENTITY.
pub(super) async fn replica_identity(
    identity: &ReplicaIdentity,
    table: &Arc<Relation>,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let value = match identity {
        ReplicaIdentity::Default => None,
        ReplicaIdentity::Full => Some("f".to_owned()),
        ReplicaIdentity::Nothing => Some("n".to_owned()),
        ReplicaIdentity::Index(name) => Some(identity_index(name, table)?.to_string()),
    };
    let said = (Attribute::ReplicaIdentity, value.as_deref());
    set_attributes(table, &[said], cx).await
}

/// The index that identifies rows: unique, immediate, of all rows, over columns that are NOT NULL.
fn identity_index(name: &str, table: &Relation) -> Result<RelationId> {
    let wrong = |message: String| SqlError::new(SqlState::WRONG_OBJECT_TYPE, message);
    let found = table.indexes.iter().find(|i| i.name == name);
    let index = found.ok_or_else(|| {
        SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            format!(
                "index \"{name}\" for table \"{}\" does not exist",
                table.name
            ),
        )
    })?;
    if !index.unique {
        return Err(wrong(format!(
            "cannot use non-unique index \"{name}\" as replica identity"
        )));
    }
    if index.deferrable {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("cannot use non-immediate index \"{name}\" as replica identity"),
        ));
    }
    let Some(positions) = index.positions() else {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("cannot use expression index \"{name}\" as replica identity"),
        ));
    };
    if index.predicate.is_some() {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("cannot use partial index \"{name}\" as replica identity"),
        ));
    }
    let mut columns = positions.iter().filter_map(|at| table.columns.get(*at));
    if let Some(column) = columns.find(|c| !c.not_null) {
        return Err(wrong(format!(
            "index \"{name}\" cannot be used as replica identity because column \"{}\" is nullable",
            column.name
        )));
    }
    Ok(index.oid)
}

/// A column goes, and what was said of it; whoever calls stores the relation.
pub(super) fn forget_column(
    table: RelationId,
    position: usize,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let catalog = cx.catalog()?;
    let mut all = catalog.options_of(table).to_vec();
    inert_options::forget_column(&mut all, position);
    if all.len() != catalog.options_of(table).len() {
        cx.state.push(CatalogChange::Options(table, all));
    }
    Ok(())
}

/// Storage parameters after SET or RESET.
pub(super) fn changed_parameters(
    mut all: Vec<String>,
    said: &[DefElem],
    is_reset: bool,
    read: impl FnOnce(&[DefElem]) -> Result<Vec<String>>,
) -> Result<Vec<String>> {
    let name = |option: &str| option.split('=').next().unwrap_or_default().to_owned();
    if is_reset {
        if said.iter().any(|option| option.arg.is_some()) {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                "RESET must not include values for parameters",
            ));
        }
        let is_said = |known: &str| {
            let mut own = said.iter().filter(|option| option.namespace.is_none());
            own.any(|option| *option.name == *known)
        };
        all.retain(|known| !is_said(&name(known)));
        return Ok(all);
    }
    let given = read(said)?;
    all.retain(|o| !given.iter().any(|g| name(g) == name(o)));
    all.extend(given);
    Ok(all)
}

/// What is kept of an index's key beside what it orders by: a collation and an operator class that are not its column's
/// own.
pub(super) fn key_attributes(
    at: usize,
    (collation, own): (Option<&Names>, Oid),
    ty: SqlType,
    class: Option<&str>,
    cx: &mut DdlContext<'_>,
) -> Result<Vec<(Attribute, String)>> {
    let mut all = Vec::new();
    if let Some(name) = collation {
        let said = named_collation(name.as_slice(), ty, cx)?;
        if let Some(name) = collation_name(said).filter(|_| said != own) {
            all.push((Attribute::Collation(at), name.to_owned()));
        }
    }
    if let Some(class) = class {
        all.push((Attribute::OperatorClass(at), class.to_owned()));
    }
    Ok(all)
}

/// What is kept of a column that is added; whoever calls stores the relation.
pub(super) fn set_new_column_attributes(
    table: RelationId,
    position: usize,
    kept: &[NewColumnAttribute],
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    if kept.is_empty() {
        return Ok(());
    }
    let mut all = cx.catalog()?.options_of(table).to_vec();
    for (attribute, value) in kept {
        inert_options::set(&mut all, attribute(position), Some(value));
    }
    cx.state.push(CatalogChange::Options(table, all));
    Ok(())
}

/// An attribute of a column whose position is not known yet, and its value.
pub(crate) type NewColumnAttribute = (ColumnAttribute, String);

/// An attribute of the column at a position.
pub(crate) type ColumnAttribute = fn(usize) -> Attribute;
