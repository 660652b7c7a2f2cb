//! ALTER TABLE: which locks its actions take, in which passes they are done, and what each of them changes.
//!
//! ADD COLUMN is here, with the decision whether the rows are copied: a default that is one value for all of them is
//! kept beside the column instead. ALTER COLUMN TYPE is `alter_column`'s, the copying `table_rewrite`'s.

use super::columns::{
    COLUMNS_MAX, NewConstraintKind, NewSequence, check_column_name, new_column, new_constraint,
    timing,
};
use super::expressions::{bound, bound_default, eval, refuse_calls};
use super::namespace::altered;
use super::{
    DdlContext, constraints, create_table, distribution, drop_dependents, foreign_keys, generated,
    index, owners, renames, table_rewrite, using_index,
};
use crate::alter_table_cmd::{action_text, not_for};
use crate::column_removal::remove_column;
use crate::object_address::ObjectAddress;
use crate::pg_catalog::calls;
use crate::relations::{self, next_version, no_column, no_constraint, no_relation, wrong_kind};
use logstead_engine::TableLock;
use logstead_sql_catalog::SequenceSession;
use logstead_sql_catalog::{ConstraintKind, Relation, RelationKind};
use logstead_sql_parse::ast::{
    self, AlterTableCmd as Cmd, AlterTableStmt, ColumnDef, DropBehavior, KeyColumns, ObjectType,
    RangeVar, RelationKind as AlteredKind,
};
use logstead_sql_plan::walk;
use logstead_sql_types::RelationId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Datum;
use logstead_types::{Csn, SqlState};
use std::sync::Arc;

/// Runs ALTER TABLE, and ALTER of views.
pub(super) async fn execute(stmt: &AlterTableStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let name = &stmt.relation;
    let wanted = match stmt.objtype {
        AlteredKind::View => ObjectType::View,
        AlteredKind::MaterializedView => ObjectType::MatView,
        _ => ObjectType::Table,
    };
    let Some(oid) = altered(name, wanted, stmt.missing_ok, cx)? else {
        return Ok(());
    };
    let catalog = cx.catalog()?;
    let cmds = stmt.cmds.as_slice();
    match catalog.relations.get(&oid).map(|relation| &relation.kind) {
        Some(RelationKind::Table) => {}
        Some(RelationKind::View(_) | RelationKind::Materialized(..)) => {
            return super::alter_view::execute(oid, cmds, cx).await;
        }
        None => {
            return match cmds {
                [Cmd::SetRelOptions(said)] => {
                    index::set_parameters(name, false, said, false, cx).await
                }
                [Cmd::ResetRelOptions(said)] => {
                    index::set_parameters(name, false, said, true, cx).await
                }
                _ => refuse_all(name, "indexes", cmds),
            };
        }
        _ => return refuse_all(name, "sequences", cmds),
    }
    let lock = cmds.iter().map(lock_level).max();
    let lock = lock.unwrap_or(TableLock::AccessExclusive);
    let Some((relation, _)) = cx.lock_table(oid, lock).await? else {
        return Err(no_relation(name));
    };
    cx.must_own(&relation)?;
    cx.refuse_pending(oid, "ALTER TABLE")?;
    let mut cmds: Vec<&Cmd> = cmds.iter().collect();
    cmds.sort_by_key(|cmd| Pass::of(cmd));
    for cmd in cmds {
        let table = cx
            .catalog()?
            .relations
            .get(&oid)
            .cloned()
            .ok_or_else(|| no_relation(name))?;
        run(cmd, &table, cx).await?;
    }
    super::index_expression_columns::rebuild_stale(cx).await
}

/// 42809 for the actions of a statement on what has none of them.
fn refuse_all(name: &RangeVar, plural: &str, cmds: &[Cmd]) -> Result<()> {
    let name = calls::name_parts(name)?.1;
    let error = { cmds.first() }.map_or_else(
        || wrong_kind(&name, "a table"),
        |cmd| not_for(&name, plural, cmd),
    );
    Err(error)
}

/// The order in which a statement's operations are done, as in PostgreSQL; those of one pass as they are written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Pass {
    Drop,
    AlterType,
    AddColumn,
    ColumnAttributes,
    AddIndexConstraint,
    AddOtherConstraint,
    Misc,
}

impl Pass {
    fn of(cmd: &Cmd) -> Pass {
        match cmd {
            Cmd::DropColumn { .. }
            | Cmd::DropConstraint { .. }
            | Cmd::ColumnDefault { default: None, .. }
            | Cmd::DropNotNull(_)
            | Cmd::DropExpression { .. }
            | Cmd::DropIdentity { .. } => Pass::Drop,
            Cmd::AlterColumnType(_) => Pass::AlterType,
            Cmd::AddColumn { .. } => Pass::AddColumn,
            Cmd::SetNotNull(_) | Cmd::SetIdentity { .. } => Pass::ColumnAttributes,
            Cmd::AddConstraint(constraint) => match constraint.kind {
                ast::ConstraintKind::Foreign { .. } | ast::ConstraintKind::Check { .. } => {
                    Pass::AddOtherConstraint
                }
                _ => Pass::AddIndexConstraint,
            },
            Cmd::AddIdentity { .. } | Cmd::ColumnDefault { .. } => Pass::AddOtherConstraint,
            _ => Pass::Misc,
        }
    }
}

/// The lock that an action needs, as in PostgreSQL: the strongest of a statement's actions is taken. Readers may go on
/// beside what no plan that only reads depends on, and writers beside what makes no difference to them either. A
/// statement that reads keeps the catalog it was planned with; the transaction's next one is planned anew.
fn lock_level(cmd: &Cmd) -> TableLock {
    match cmd {
        // The rows are written anew.
        Cmd::SetRelOptions(options) | Cmd::ResetRelOptions(options)
            if distribution::is_among(options) =>
        {
            TableLock::AccessExclusive
        }
        Cmd::ValidateConstraint(_)
        | Cmd::SetRelOptions(_)
        | Cmd::ResetRelOptions(_)
        | Cmd::SetStatistics { .. }
        | Cmd::SetStorage { .. }
        | Cmd::SetCompression { .. } => TableLock::ShareUpdateExclusive,
        Cmd::Trigger { .. } => TableLock::ShareRowExclusive,
        Cmd::AddConstraint(constraint) => match constraint.kind {
            ast::ConstraintKind::Foreign { .. } => TableLock::ShareRowExclusive,
            _ => TableLock::AccessExclusive,
        },
        _ => TableLock::AccessExclusive,
    }
}

async fn run(cmd: &Cmd, table: &Arc<Relation>, cx: &mut DdlContext<'_>) -> Result<()> {
    if super::policies::alter_table(cmd, table, cx).await?
        || super::triggers::alter_table(cmd, table, cx).await?
        || super::alter_column::execute(cmd, table, cx).await?
    {
        return Ok(());
    }
    match cmd {
        Cmd::AddColumn { def, missing_ok } => {
            renames::refuse_hiding(&def.colname, table)?;
            add_column(def, *missing_ok, table, cx).await
        }
        Cmd::DropColumn {
            name,
            missing_ok,
            behavior,
        } => {
            let (name, cascade) = (name.to_string(), *behavior == DropBehavior::Cascade);
            drop_column(&name, *missing_ok, cascade, table, cx).await
        }
        Cmd::AddConstraint(constraint) => add_constraint(constraint, table, cx).await,
        Cmd::DropConstraint {
            name,
            missing_ok,
            behavior,
        } => {
            let (name, cascade) = (name.to_string(), *behavior == DropBehavior::Cascade);
            drop_constraint(&name, *missing_ok, cascade, table, cx).await
        }
        Cmd::AlterConstraint {
            name,
            deferrable,
            initdeferred,
            ..
        } => {
            let name = name.to_string();
            foreign_keys::alter_timing(&name, timing(*deferrable, *initdeferred), table, cx).await
        }
        Cmd::ChangeOwner(new_owner) => owners::of_relation(table.oid, new_owner, cx).await,
        Cmd::SetRelOptions(options) | Cmd::ResetRelOptions(options) => {
            let is_reset = matches!(cmd, Cmd::ResetRelOptions(_));
            distribution::set_parameters(table, options, is_reset, cx).await
        }
        // No table has OIDs.
        Cmd::DropOids => Ok(()),
        Cmd::SetLogged => super::unlogged::set(table, true, cx).await,
        Cmd::SetUnlogged => super::unlogged::set(table, false, cx).await,
        Cmd::ReplicaIdentity(identity) => {
            super::relation_attributes::replica_identity(identity, table, cx).await
        }
        Cmd::ValidateConstraint(name) => {
            let name = name.to_string();
            validate_constraint(&name, table, cx).await
        }
        Cmd::Rule { name, .. } => Err(SqlError::unsupported(format!(
            "ALTER TABLE ... {} {name}",
            action_text(cmd)
        ))),
        _ => Err(SqlError::unsupported("this form of ALTER TABLE")),
    }
}

async fn add_constraint(
    constraint: &ast::Constraint,
    table: &Arc<Relation>,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    use ast::ConstraintKind::{PrimaryKey, Unique};
    if let PrimaryKey(key) | Unique(key) = &constraint.kind
        && let KeyColumns::Index(index) = &key.keys
    {
        return using_index::add(constraint, index, table, cx).await;
    }
    let new = new_constraint(constraint)?;
    let what = match new.kind {
        NewConstraintKind::Primary(_) => "PRIMARY KEY",
        NewConstraintKind::Unique(_) => "UNIQUE",
        NewConstraintKind::Check(_) | NewConstraintKind::Foreign(_) => {
            return constraints::add(cx, table.oid, vec![new], false).await;
        }
    };
    match new.not_valid {
        false => constraints::add(cx, table.oid, vec![new], false).await,
        true => Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("{what} constraints cannot be marked NOT VALID"),
        )),
    }
}

/// VALIDATE CONSTRAINT: looks at the rows that NOT VALID left alone.
async fn validate_constraint(
    name: &str,
    table: &Arc<Relation>,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let Some(at) = table.constraints.iter().position(|c| c.name == name) else {
        return Err(no_constraint(name, &table.name));
    };
    let Some(constraint) = table.constraints.get(at) else {
        return Err(no_constraint(name, &table.name));
    };
    match &constraint.kind {
        ConstraintKind::PrimaryKey(_) | ConstraintKind::Unique(_) => {
            return Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!(
                    "constraint \"{name}\" of relation \"{}\" is not a foreign key or check constraint",
                    table.name
                ),
            ));
        }
        _ if constraint.validated => return Ok(()),
        ConstraintKind::Check(text) => {
            let catalog = cx.catalog()?;
            let condition = bound(
                cx,
                &catalog,
                table,
                &logstead_sql_parse::parse_expr(text)?,
                "CHECK",
            )?;
            let condition = cx.may_run(condition)?;
            table_rewrite::validate_check(cx, table, &condition, name).await?;
        }
        ConstraintKind::Foreign(_) => foreign_keys::validate(cx, table, constraint).await?,
    }
    let mut changed = Relation::clone(table);
    if let Some(slot) = changed.constraints.get_mut(at) {
        let mut copy = logstead_sql_catalog::Constraint::clone(slot);
        copy.validated = true;
        *slot = Arc::new(copy);
    }
    cx.update_relation(changed).await.map(drop)
}

async fn add_column(
    def: &ColumnDef,
    skip: bool,
    table: &Arc<Relation>,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let mut new = new_column(def, &table.name, cx)?;
    let name = new.column.name.clone();
    if table.columns.iter().any(|c| !c.dropped && c.name == name) {
        let message = format!(
            "column \"{name}\" of relation \"{}\" already exists",
            table.name
        );
        if skip {
            cx.notice(SqlState::DUPLICATE_COLUMN, format!("{message}, skipping"));
            return Ok(());
        }
        return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
    }
    if table.columns.len() >= COLUMNS_MAX {
        return Err(SqlError::new(
            SqlState::TOO_MANY_COLUMNS,
            format!("tables can have at most {COLUMNS_MAX} columns"),
        ));
    }
    let owned: Option<NewSequence> = new.sequence.take();
    let sequence = match &owned {
        Some(owned) => Some(create_table::own_sequence(cx, table, &mut new.column, owned).await?),
        None => None,
    };
    let position = table.columns.len();
    let attributes: Vec<_> = new.attributes.drain(..).collect();
    super::relation_attributes::set_new_column_attributes(table.oid, position, &attributes, cx)?;
    let mut changed = Relation::clone(table);
    changed.columns.push(new.column);
    changed.schema_version = next_version(table)?;
    if let Some(expr) = &new.generated {
        generated::add(table, changed, expr, cx).await?;
    } else if let Some(sequence) = sequence {
        number_rows(table, changed, sequence, cx).await?;
    } else {
        let catalog = cx.catalog()?;
        let default = match changed.columns.get(position) {
            // A domain may have a default of its own, and may refuse NULL.
            Some(c) if c.default.is_some() || c.domain.is_some() => {
                let bound = bound_default(cx, &catalog, &changed, position)?;
                Some(cx.may_run(bound)?)
            }
            _ => None,
        };
        // Its rules are asked, and functions called, for rows only.
        let calls = default.as_ref().is_some_and(walk::needs_more_than_row);
        let nothing = (calls
            || changed
                .columns
                .get(position)
                .is_some_and(|c| c.domain.is_some()))
            && table_rewrite::is_empty(cx, table).await?;
        if let (Some(default), false) = (&default, nothing) {
            refuse_calls(default)?;
        }
        let default = default.filter(|_| !nothing);
        match default {
            // One value for all rows that are there: they are read with it, and stay as they are.
            default if !default.as_ref().is_some_and(walk::is_volatile) => {
                let missing = default
                    .as_ref()
                    .map_or(Ok(Datum::Null), |d| eval(cx, d, &[]))?;
                let refused = matches!(missing, Datum::Null)
                    && changed.columns.get(position).is_some_and(|c| c.not_null);
                if refused && !table_rewrite::is_empty(cx, table).await? {
                    return Err(SqlError::new(
                        SqlState::NOT_NULL_VIOLATION,
                        format!(
                            "column \"{name}\" of relation \"{}\" contains null values",
                            table.name
                        ),
                    )
                    .table(&table.schema_name, &table.name)
                    .column(&name));
                }
                if let Some(column) = changed.columns.last_mut() {
                    column.missing = missing;
                }
                cx.update_relation(changed).await?;
            }
            None => {}
            Some(default) => {
                table_rewrite::rewrite(cx, table, changed, |cx, mut row| {
                    let value = eval(cx, &default, &row)?;
                    row.push(value);
                    Ok(row)
                })
                .await?;
            }
        }
    }
    constraints::add(cx, table.oid, new.constraints, false).await
}

/// Adds a serial or identity column: every stored row gets its number.
async fn number_rows(
    table: &Relation,
    changed: Relation,
    sequence: RelationId,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let catalog = cx.catalog()?;
    let ty = changed
        .columns
        .last()
        .map_or(logstead_sql_types::value::oid::INT8, |c| c.ty.oid);
    let mut numbers = SequenceSession::default();
    table_rewrite::rewrite(cx, table, changed, |cx, mut row| {
        // The transaction depends on everything before it anyway, and so does its error.
        let told = std::cell::Cell::new(Csn::ZERO);
        let value = numbers.nextval(cx.store, cx.worker, &catalog, sequence, |csn| told.set(csn));
        cx.depends_on(told.get());
        let value = value?;
        let range = || SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range");
        row.push(match ty {
            logstead_sql_types::value::oid::INT2 => {
                Datum::Int2(value.try_into().map_err(|_| range())?)
            }
            logstead_sql_types::value::oid::INT4 => {
                Datum::Int4(value.try_into().map_err(|_| range())?)
            }
            _ => Datum::Int8(value),
        });
        Ok(row)
    })
    .await
    .map(drop)
}

async fn drop_column(
    name: &str,
    skip: bool,
    cascade: bool,
    table: &Arc<Relation>,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let Some(position) = table
        .columns
        .iter()
        .position(|c| !c.dropped && c.name == name)
    else {
        if skip {
            let message = format!(
                "column \"{name}\" of relation \"{}\" does not exist, skipping",
                table.name
            );
            cx.notice(SqlState::SUCCESSFUL_COMPLETION, message);
            return Ok(());
        }
        if check_column_name(name).is_err() {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("cannot drop system column \"{name}\""),
            ));
        }
        return Err(no_column(name, &table.name));
    };
    distribution::refuse_drop(table, position)?;
    let target = ObjectAddress::Column(table.oid, position);
    drop_dependents::report_dependents(&[target], None, cascade, cx).await?;
    remove_column(table.oid, position, cascade, cx).await
}

async fn drop_constraint(
    name: &str,
    skip: bool,
    cascade: bool,
    table: &Arc<Relation>,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let Some(constraint) = table.constraints.iter().find(|c| c.name == name) else {
        if skip {
            let message = format!(
                "constraint \"{name}\" of relation \"{}\" does not exist, skipping",
                table.name
            );
            cx.notice(SqlState::SUCCESSFUL_COMPLETION, message);
            return Ok(());
        }
        return Err(no_constraint(name, &table.name));
    };
    if let ConstraintKind::PrimaryKey(oid) | ConstraintKind::Unique(oid) = constraint.kind
        && let Some(index) = table.indexes.iter().find(|i| i.oid == oid)
    {
        let needed = foreign_keys::dependents(cx, &[table.oid], |_, _, key| key.index == oid)?;
        let what = format!("constraint {name} on table {}", table.name);
        let on = format!("index {}", index.name);
        foreign_keys::drop_dependents(cx, needed, cascade, &what, &on).await?;
        // And views whose GROUP BY relies on it.
        let key = ObjectAddress::Constraint(table.oid, constraint.oid);
        drop_dependents::report_dependents(&[key], None, cascade, cx).await?;
        cx.delete_index(table, index).await?;
    }
    let mut changed = Relation::clone(&*relations::relation(cx, table.oid)?);
    changed.constraints.retain(|c| c.name != name);
    cx.update_relation(changed).await.map(drop)
}
