//! The storage parameter `distribution`: by which columns a table's rows are divided among the virtual partitions.
//!
//! Owns: how the parameter is read and refused; what a table has for which nothing is said; the change of a table that
//! has rows already, which is a new storage with these rows and new indexes, as for a change of a column's type.
//!
//! A distribution that is decided here is for the database's good, not the application's: it is in nobody's way. A
//! column of it may be dropped, or get a type that nothing is divided by, and the table is in one partition from then
//! on. One that was said stays until something else is said, as a key of partitioned tables does in PostgreSQL.
//!
//! Does not: divide tables and indexes (`logstead_sql_catalog::distribution`, the engine).

use super::columns::check_column_name;
use super::{DdlContext, storage_parameters, table_rewrite};
use crate::pg_catalog::operator_class;
use crate::relations::{self, make_storage};
use logstead_sql_catalog::change::CatalogChange;
use logstead_sql_catalog::distribution::{COLUMNS_MAX, Distribution, PARAMETER, is_known};
use logstead_sql_catalog::{Relation, RelationKind};
use logstead_sql_parse::ast::{DefElem, Expr, FuncCall, FuncName};
use logstead_sql_types::RelationId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::SqlType;
use logstead_types::SqlState;
use std::sync::Arc;

/// Is one of the parameters this one?
pub(super) fn is_among(options: &[DefElem]) -> bool {
    let own = |option: &DefElem| option.namespace.is_none() && *option.name == *PARAMETER;
    options.iter().any(own)
}

/// Takes what was said of it out of storage parameters (`name=value`).
pub(super) fn take(options: &mut Vec<String>) -> Option<String> {
    let value = |option: &String| {
        let (name, value) = option.split_once('=')?;
        (name == PARAMETER).then(|| value.to_owned())
    };
    let said = options.iter().find_map(value);
    options.retain(|option| value(option).is_none());
    said
}

fn invalid(value: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!("invalid value for option \"{PARAMETER}\": {value}"),
    )
    .detail("Valid values are \"single\", \"replicated\" and \"hash (column [, ...])\".")
}

/// What a call has besides its name and arguments.
fn is_plain(call: &FuncCall) -> bool {
    let bare = call.agg_order.is_empty() && call.agg_filter.is_none() && call.over.is_none();
    let flags = call.agg_within_group || call.agg_star || call.agg_distinct || call.func_variadic;
    bare && !flags && call.args.iter().all(|arg| arg.name.is_none())
}

/// What a value says.
enum Said {
    Single,
    Replicated,
    /// By these columns, one at least.
    Hash(Vec<String>),
}

fn read(value: &str) -> Result<Said> {
    let expr = logstead_sql_parse::parse_expr(value).map_err(|_| invalid(value))?;
    if let Some(word) = expr.bare_name() {
        return match &**word {
            "single" => Ok(Said::Single),
            "replicated" => Ok(Said::Replicated),
            _ => Err(invalid(value)),
        };
    }
    let Expr::FuncCall(call) = &expr else {
        return Err(invalid(value));
    };
    let is_hash = match &call.funcname {
        FuncName::Named(names) => matches!(&names[..], [name] if **name == *"hash"),
        FuncName::Stored { .. } => false,
    };
    if !is_hash || !is_plain(call) || call.args.is_empty() {
        return Err(invalid(value));
    }
    let name = |expr: &Expr| match expr.bare_name() {
        Some(name) => Ok(name.to_string()),
        None => Err(SqlError::unsupported_text(
            "cannot use expressions in a distribution key",
        )),
    };
    let names = call.args.iter().map(|arg| name(&arg.value));
    names.collect::<Result<_>>().map(Said::Hash)
}

/// The distribution of a relation, as it was said.
fn said(value: &str, relation: &Relation, cx: &mut DdlContext<'_>) -> Result<Distribution> {
    let of_all = |what: &str| match relation.is_temporary() {
        true => Err(SqlError::new(
            SqlState::INVALID_TABLE_DEFINITION,
            format!("temporary tables cannot be {what}"),
        )),
        false => Ok(()),
    };
    let names = match read(value)? {
        Said::Single => return Ok(Distribution::single(true)),
        Said::Replicated => {
            of_all("replicated")?;
            return Ok(Distribution::replicated());
        }
        Said::Hash(names) => {
            of_all("distributed by hash")?;
            names
        }
    };
    if names.len() > COLUMNS_MAX {
        return Err(SqlError::new(
            SqlState::TOO_MANY_COLUMNS,
            format!("cannot distribute by more than {COLUMNS_MAX} columns"),
        ));
    }
    let mut positions = Vec::with_capacity(names.len());
    for name in &names {
        let mut columns = relation.columns.iter();
        let Some(position) = columns.position(|c| !c.dropped && c.name == *name) else {
            return Err(match check_column_name(name) {
                Ok(()) => SqlError::new(
                    SqlState::UNDEFINED_COLUMN,
                    format!("column \"{name}\" named in distribution key does not exist"),
                ),
                Err(_) => SqlError::new(
                    SqlState::INVALID_OBJECT_DEFINITION,
                    format!("cannot use system column \"{name}\" in distribution key"),
                ),
            });
        };
        if positions.contains(&position) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_COLUMN,
                format!("column \"{name}\" appears twice in distribution key"),
            ));
        }
        positions.push(position);
    }
    for column in positions.iter().filter_map(|at| relation.columns.get(*at)) {
        // No hint to make an operator class: what is hashed are the bytes of the types that this server orders.
        if !is_known(column.ty.oid) || operator_class(column.ty.oid) == 0 {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!(
                    "distribution by columns of type {} is not supported",
                    cx.format_type(SqlType::of(column.ty.oid))?
                ),
            ));
        }
    }
    Ok(Distribution::hash(positions, true))
}

/// The distribution of a relation of which nothing is said: by its primary key if there are instances to divide it
/// among.
fn decided(primary: Option<&[usize]>, relation: &Relation, cx: &DdlContext<'_>) -> Distribution {
    let single = Distribution::single(false);
    let is_table = matches!(relation.kind, RelationKind::Table) && !relation.is_temporary();
    if !is_table || cx.store.engine().instances().count() == 1 {
        return single;
    }
    let divides = |position: &usize| {
        let column = relation.columns.get(*position);
        column.is_some_and(|column| is_known(column.ty.oid))
    };
    match primary {
        Some(key) if !key.is_empty() && key.iter().all(divides) => {
            Distribution::hash(key.to_vec(), false)
        }
        _ => single,
    }
}

/// The distribution of a new relation: as was said, or by its primary key.
pub(super) fn of_new(
    value: Option<&str>,
    primary: Option<&[String]>,
    relation: &Relation,
    cx: &mut DdlContext<'_>,
) -> Result<Distribution> {
    if let Some(value) = value {
        return said(value, relation, cx);
    }
    // A name that is not there is refused when the key is made.
    let position = |name: &String| relation.columns.iter().position(|c| c.name == *name);
    let primary = primary.and_then(|names| names.iter().map(position).collect::<Option<Vec<_>>>());
    Ok(decided(primary.as_deref(), relation, cx))
}

/// SET and RESET of storage parameters.
pub(super) async fn set_parameters(
    relation: &Arc<Relation>,
    options: &[DefElem],
    is_reset: bool,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let before = cx.catalog()?.options_of(relation.oid).to_vec();
    let mut all = super::relation_attributes::changed_parameters(
        before.clone(),
        options,
        is_reset,
        storage_parameters::storage_options,
    )?;
    let value = take(&mut all);
    let distribution = match value {
        Some(value) => said(&value, relation, cx)?,
        None if is_among(options) => decided(primary_key(relation).as_deref(), relation, cx),
        None => relation.distribution.clone(),
    };
    if all != before {
        cx.state.push(CatalogChange::Options(relation.oid, all));
    }
    change(relation, distribution, cx).await
}

/// Stores a relation with another distribution, and its rows in a storage that is divided so.
async fn change(
    relation: &Relation,
    distribution: Distribution,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let mut changed = Relation::clone(relation);
    changed.distribution = distribution;
    if changed.distribution.is_stored_like(&relation.distribution) {
        return cx.update_relation(changed).await.map(drop);
    }
    table_rewrite::rewrite(cx, relation, changed, |_, row| Ok(row))
        .await
        .map(drop)
}

fn primary_key(relation: &Relation) -> Option<Vec<usize>> {
    let index = relation.indexes.iter().find(|index| index.primary)?;
    index.positions()
}

/// A table has got a primary key: one that has no rows yet is divided by it, as if it had been made with it, unless
/// something else was said. One that has rows stays as it is.
pub(super) async fn follow_primary_key(table: RelationId, cx: &mut DdlContext<'_>) -> Result<()> {
    let table = relations::relation(cx, table)?;
    if table.distribution != Distribution::single(false) {
        return Ok(());
    }
    let distribution = decided(primary_key(&table).as_deref(), &table, cx);
    if distribution.columns().is_none() || !table_rewrite::is_empty(cx, &table).await? {
        return Ok(());
    }
    change(&table, distribution, cx).await
}

fn in_key(what: &str, position: usize, table: &Relation) -> SqlError {
    let column = table.columns.get(position);
    let column = column.map_or("?", |column| column.name.as_str());
    SqlError::new(
        SqlState::INVALID_TABLE_DEFINITION,
        format!(
            "cannot {what} column \"{column}\" because it is part of the distribution key of relation \"{}\"",
            table.name
        ),
    )
    .hint("Set another distribution first, or reset it.")
}

/// Fails for a column that cannot be dropped because it was said that the table is distributed by it.
pub(super) fn refuse_drop(table: &Relation, position: usize) -> Result<()> {
    match table.distribution.is_said() && table.distribution.mentions(position) {
        true => Err(in_key("drop", position, table)),
        false => Ok(()),
    }
}

/// A column is about to be dropped: gives the table as it is then.
pub(super) async fn without_column(
    table: &Arc<Relation>,
    position: usize,
    cx: &mut DdlContext<'_>,
) -> Result<Arc<Relation>> {
    refuse_drop(table, position)?;
    if !table.distribution.mentions(position) {
        return Ok(Arc::clone(table));
    }
    change(table, Distribution::single(false), cx).await?;
    relations::relation(cx, table.oid)
}

/// A column is about to have the type that `changed` gives it. The rows of one by which the table is distributed are
/// written anew unless their bytes stay, so they come to where they belong then.
pub(super) fn follow_type(changed: &mut Relation, position: usize) -> Result<()> {
    let column = changed.columns.get(position);
    let known = column.is_some_and(|column| is_known(column.ty.oid));
    if known || !changed.distribution.mentions(position) {
        return Ok(());
    }
    if changed.distribution.is_said() {
        return Err(in_key("change the type of", position, changed));
    }
    changed.distribution = Distribution::single(false);
    Ok(())
}

/// Makes a new storage for a relation that keeps its distribution.
pub(super) fn new_storage(relation: &Relation, cx: &mut DdlContext<'_>) -> Result<Relation> {
    let mut new = Relation::clone(relation);
    new.storage = cx.new_storage()?;
    make_storage(cx, &new)?;
    Ok(new)
}
