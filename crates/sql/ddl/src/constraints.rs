//! Adding constraints to a table, new or not: names, keys, indexes, conditions.
//!
//! Does not: make foreign keys (`foreign_keys`), look at the rows that are there (`table_rewrite`), or check those that
//! are written (see `catalog::constraint`).

use super::choose_name::{columns_part, free_name, is_taken};
use super::columns::{NewConstraint, NewConstraintKind};
use super::expressions::{bound_check, check_text};
use super::{DdlContext, distribution, foreign_keys, table_rewrite};
use crate::default_operator_class::check_type;
use crate::relations::name_taken;
use crate::relations::relation;
use logstead_sql_catalog::text::columns_of;
use logstead_sql_catalog::{Constraint, ConstraintKind, IndexColumn, IndexDef, Relation, Timing};
use logstead_sql_parse::ast;
use logstead_sql_types::RelationId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::{IndexId, SqlState};
use std::ops::ControlFlow;
use std::sync::Arc;

/// What keys have in common that are one: columns, INCLUDE, NULLS NOT DISTINCT, when they are checked.
type SameKey = (Vec<String>, Vec<String>, bool, Timing);

/// Most key columns of an index.
const KEY_COLUMNS_MAX: usize = 32;

/// Positions of the columns of a key.
fn key_positions(relation: &Relation, names: &[String], what: &str) -> Result<Vec<usize>> {
    let mut positions = Vec::new();
    for name in names {
        let position = relation
            .columns
            .iter()
            .position(|c| !c.dropped && c.name == *name)
            .ok_or_else(|| {
                SqlError::new(
                    SqlState::UNDEFINED_COLUMN,
                    format!("column \"{name}\" named in key does not exist"),
                )
            })?;
        if positions.contains(&position) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_COLUMN,
                format!("column \"{name}\" appears twice in {what} constraint"),
            ));
        }
        positions.push(position);
    }
    Ok(positions)
}

/// Positions of the columns that a key's index includes.
fn included_positions(relation: &Relation, names: &[String]) -> Result<Vec<usize>> {
    let position = |name: &String| {
        let mut columns = relation.columns.iter();
        let found = columns.position(|c| !c.dropped && c.name == *name);
        found.ok_or_else(|| {
            SqlError::new(
                SqlState::UNDEFINED_COLUMN,
                format!("column \"{name}\" named in key does not exist"),
            )
        })
    };
    names.iter().map(position).collect()
}

/// Fails for columns that cannot be in an index, and for too many of them.
fn check_key(
    relation: &Relation,
    positions: &[usize],
    included: usize,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    if positions.len() + included > KEY_COLUMNS_MAX {
        return Err(SqlError::new(
            SqlState::TOO_MANY_COLUMNS,
            format!("cannot use more than {KEY_COLUMNS_MAX} columns in an index"),
        ));
    }
    for column in positions.iter().filter_map(|p| relation.columns.get(*p)) {
        check_type(column.ty, cx)?;
    }
    Ok(())
}

/// A unique index that a transaction is about to make.
pub(super) fn key_index(
    oid: RelationId,
    name: String,
    table: RelationId,
    primary: bool,
    deferrable: bool,
    positions: &[usize],
) -> IndexDef {
    let columns = positions.iter().map(|p| IndexColumn::of(*p)).collect();
    IndexDef {
        oid,
        name,
        table,
        storage: IndexId(oid.get()),
        unique: true,
        primary,
        nulls_not_distinct: false,
        deferrable,
        columns,
        include: Vec::new(),
        predicate: None,
        computed: Vec::new(),
        invalid: None,
    }
}

/// Adds constraints to the stored table `oid`; `fresh` if it is new and has no rows. Order as PostgreSQL's: checks,
/// then keys, the primary key first, then foreign keys.
pub(super) async fn add(
    cx: &mut DdlContext<'_>,
    oid: RelationId,
    constraints: Vec<NewConstraint>,
    fresh: bool,
) -> Result<()> {
    let (checks, keys): (Vec<_>, Vec<_>) = constraints
        .into_iter()
        .partition(|c| matches!(c.kind, NewConstraintKind::Check(_)));
    for check in checks {
        add_check(cx, oid, check, fresh).await?;
    }
    let (foreign, keys): (Vec<_>, Vec<_>) = keys
        .into_iter()
        .partition(|c| matches!(c.kind, NewConstraintKind::Foreign(_)));
    let (primary, unique): (Vec<_>, Vec<_>) = keys
        .into_iter()
        .partition(|c| matches!(c.kind, NewConstraintKind::Primary(_)));
    let existing = relation(cx, oid)?;
    let has_primary = existing
        .constraints
        .iter()
        .any(|c| matches!(c.kind, ConstraintKind::PrimaryKey(_)));
    if primary.len() + usize::from(has_primary) > 1 {
        return Err(SqlError::new(
            SqlState::INVALID_TABLE_DEFINITION,
            format!(
                "multiple primary keys for table \"{}\" are not allowed",
                existing.name
            ),
        ));
    }
    let mut seen: Vec<(SameKey, bool)> = Vec::new();
    for key in primary.into_iter().chain(unique) {
        let (NewConstraintKind::Primary(names) | NewConstraintKind::Unique(names)) = &key.kind
        else {
            continue;
        };
        // Columns of a primary key are made NOT NULL first, which says it its own way.
        if !fresh && matches!(key.kind, NewConstraintKind::Primary(_)) {
            for name in names {
                crate::relations::position_of(&existing, name)?;
            }
        }
        let named = key.name.is_some();
        let same = (
            names.clone(),
            key.include.clone(),
            key.nulls_not_distinct,
            key.timing,
        );
        // The same key asked for twice in one statement is made once.
        let made = seen
            .iter()
            .any(|(s, other)| *s == same && (!named || !other));
        if made && !key.copied {
            continue;
        }
        seen.push((same, named));
        add_key(cx, oid, key, fresh).await?;
    }
    for key in foreign {
        foreign_keys::add(cx, oid, key, fresh).await?;
    }
    Ok(())
}

async fn add_check(
    cx: &mut DdlContext<'_>,
    oid: RelationId,
    new: NewConstraint,
    fresh: bool,
) -> Result<()> {
    let NewConstraintKind::Check(expr) = &new.kind else {
        return Ok(());
    };
    let table = relation(cx, oid)?;
    let catalog = cx.catalog()?;
    let bound = bound_check(cx, &catalog, &table, expr)?;
    let name = match new.name {
        Some(name) => {
            let name = name.to_string();
            if table.constraints.iter().any(|c| c.name == name) {
                let message = if fresh {
                    format!("check constraint \"{name}\" already exists")
                } else {
                    format!(
                        "constraint \"{name}\" for relation \"{}\" already exists",
                        table.name
                    )
                };
                return Err(SqlError::new(SqlState::DUPLICATE_OBJECT, message));
            }
            name
        }
        None => {
            let mentioned = columns_of(expr, &table);
            let column = match mentioned.as_slice() {
                [one] if !names_system_column(expr) => {
                    table.columns.get(*one).map(|c| c.name.as_str())
                }
                _ => None,
            };
            free_name(&table.name, column, "check", |n| {
                table.constraints.iter().any(|c| c.name == n)
            })
        }
    };
    if !fresh && !new.not_valid {
        let condition = cx.may_run(bound)?;
        table_rewrite::validate_check(cx, &table, &condition, &name).await?;
    }
    let kind = ConstraintKind::Check(check_text(cx, &catalog, &table, expr));
    let oid = cx.new_oid()?;
    let mut changed = Relation::clone(&table);
    let mut constraint = Constraint::new(oid, name, kind);
    constraint.validated = fresh || !new.not_valid;
    changed.constraints.push(Arc::new(constraint));
    cx.update_relation(changed).await?;
    Ok(())
}

async fn add_key(
    cx: &mut DdlContext<'_>,
    oid: RelationId,
    new: NewConstraint,
    fresh: bool,
) -> Result<()> {
    let table = relation(cx, oid)?;
    let catalog = cx.catalog()?;
    let (names, primary) = match &new.kind {
        NewConstraintKind::Primary(names) => (names, true),
        NewConstraintKind::Unique(names) => (names, false),
        NewConstraintKind::Check(_) | NewConstraintKind::Foreign(_) => return Ok(()),
    };
    let positions = key_positions(
        &table,
        names,
        if primary { "primary key" } else { "unique" },
    )?;
    let included = included_positions(&table, &new.include)?;
    check_key(&table, &positions, included.len(), cx)?;
    let name = match new.name {
        Some(name) => {
            let name = name.to_string();
            if table.constraints.iter().any(|c| c.name == name) {
                return Err(SqlError::new(
                    SqlState::DUPLICATE_OBJECT,
                    format!(
                        "constraint \"{name}\" for relation \"{}\" already exists",
                        table.name
                    ),
                ));
            }
            if catalog.names.contains_key(&(table.schema, name.clone())) {
                return Err(name_taken(&name));
            }
            name
        }
        None => {
            let all = names.iter().chain(&new.include);
            let columns = columns_part(all.map(String::as_str));
            let (second, label) = if primary {
                (None, "pkey")
            } else {
                (Some(columns.as_str()), "key")
            };
            free_name(&table.name, second, label, |n| {
                is_taken(&catalog, table.schema, Some(&table), n)
            })
        }
    };
    let mut changed = Relation::clone(&table);
    if primary {
        for position in &positions {
            if let Some(column) = changed.columns.get_mut(*position)
                && !column.not_null
            {
                column.not_null = true;
                if !fresh {
                    table_rewrite::validate_not_null(cx, &table, *position).await?;
                }
            }
        }
    }
    cx.debug(|| {
        let statement = match (fresh, primary) {
            (true, true) => "CREATE TABLE / PRIMARY KEY",
            (true, false) => "CREATE TABLE / UNIQUE",
            (false, true) => "ALTER TABLE / ADD PRIMARY KEY",
            (false, false) => "ALTER TABLE / ADD UNIQUE",
        };
        format!(
            "{statement} will create implicit index \"{name}\" for table \"{}\"",
            table.name
        )
    });
    let index_oid = RelationId::new(cx.new_oid()?);
    let deferrable = new.timing.is_deferrable();
    let mut index = key_index(
        index_oid,
        name.clone(),
        table.oid,
        primary,
        deferrable,
        &positions,
    );
    index.nulls_not_distinct = new.nulls_not_distinct;
    index.include = included;
    cx.create_index(&table, index).await?;
    let kind = if primary {
        ConstraintKind::PrimaryKey(index_oid)
    } else {
        ConstraintKind::Unique(index_oid)
    };
    let constraint = cx.new_oid()?;
    let mut constraint = Constraint::new(constraint, name, kind);
    constraint.timing = new.timing;
    changed.constraints.push(Arc::new(constraint));
    cx.update_relation(changed).await?;
    match primary && !fresh {
        true => distribution::follow_primary_key(oid, cx).await,
        false => Ok(()),
    }
}

/// Does a check name `tableoid`, the one system column that it may name?
fn names_system_column(expr: &ast::Expr) -> bool {
    let found: ControlFlow<()> = ast::visit_expressions(expr, |expr| {
        let name = expr.column_names().and_then(<[_]>::last);
        match name.is_some_and(|name| **name == *"tableoid") {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    found.is_break()
}
