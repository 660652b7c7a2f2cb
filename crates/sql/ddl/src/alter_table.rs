//! ALTER TABLE.

use super::columns::{
    COLUMNS_MAX, NewConstraintKind, NewSequence, check_column_name, new_column, new_constraint,
};
use super::expressions::{bound, bound_default, eval, refuse_calls};
use super::storage_parameters::{index_options, storage_options};
use super::{
    DdlContext, alter_column, constraints, create_table, dependents, foreign, generated, index,
    owners, renames, rewrite, sequence, using_index,
};
use crate::column_removal::remove_column;
use crate::object_address;
use crate::object_address::ObjectAddress;
use crate::pg_catalog::calls;
use crate::relations;
use crate::relations::no_column;
use crate::relations::no_relation;
use crate::relations::{next_version, no_constraint, system_relation, wrong_kind};
use crate::renames::{rename_column, renamed_table};
use logstead_engine::TableLock;
use logstead_sql_catalog::SequenceSession;
use logstead_sql_catalog::change::Change;
use logstead_sql_catalog::text::fold;
use logstead_sql_catalog::{ConstraintKind, Relation, RelationKind};
use logstead_sql_parse::lowered::{self as ast, AlterTableOperation as Op};
use logstead_sql_plan::walk;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, Oid};
use logstead_types::{Csn, SqlState};
use std::sync::Arc;

/// Runs ALTER TABLE; the tag follows what was named (ALTER TABLE works on indexes and sequences too).
pub(super) async fn execute(alter: &ast::AlterTable, cx: &mut DdlContext<'_>) -> Result<String> {
    let tag = "ALTER TABLE".to_owned();
    let (schema, name) = calls::lookup_parts(&alter.name)?;
    let catalog = cx.catalog()?;
    let Some(oid) = catalog.object_by_name(schema.as_deref(), &name, cx.search_path) else {
        if alter.if_exists {
            cx.notice(
                SqlState::SUCCESSFUL_COMPLETION,
                format!("relation \"{name}\" does not exist, skipping"),
            );
            return Ok(tag);
        }
        return Err(no_relation(&alter.name));
    };
    let moves = alter
        .operations
        .iter()
        .any(|o| super::set_schema::target(o).is_some());
    let is_table_or_view = |r: &Arc<Relation>| r.has_rows() || r.view().is_some();
    if moves && !catalog.relations.get(&oid).is_some_and(is_table_or_view) {
        return Err(SqlError::unsupported(
            "SET SCHEMA of what is no table and no view",
        ));
    }
    let Some(relation) = catalog.relations.get(&oid) else {
        return match alter.operations.as_slice() {
            [Op::RenameTable(new)] => {
                index::rename(oid, &calls::name_parts(new)?.1, cx).await?;
                Ok(tag)
            }
            [Op::OwnerTo(new_owner)] => {
                owners::of_relation(oid, new_owner, cx).await?;
                Ok(tag)
            }
            [Op::SetOptions(options, is_reset)] => {
                let all = catalog.options_of(oid).to_vec();
                let all = super::relation_attributes::changed_parameters(
                    all,
                    options,
                    *is_reset,
                    index_options,
                )?;
                index::change_options(&alter.name, false, cx, |old| {
                    *old = all;
                    Ok(())
                })
                .await?;
                Ok(tag)
            }
            _ => Err(wrong_kind(&name, "a table")),
        };
    };
    match relation.kind {
        RelationKind::Virtual(_) => return Err(system_relation(&name)),
        RelationKind::Sequence(_) => {
            return match alter.operations.as_slice() {
                [Op::RenameTable(new)] => {
                    sequence::rename(oid, &calls::name_parts(new)?.1, cx).await?;
                    Ok(tag)
                }
                [Op::OwnerTo(new_owner)] => {
                    owners::of_relation(oid, new_owner, cx).await?;
                    Ok(tag)
                }
                _ => Err(wrong_kind(&name, "a table")),
            };
        }
        RelationKind::View(_) | RelationKind::Materialized(..) => {
            return super::alter_view::as_table(oid, &alter.operations, cx)
                .await
                .map(|()| tag);
        }
        RelationKind::Table => {}
    }
    let lock = alter.operations.iter().map(lock_level).max();
    let lock = lock.unwrap_or(TableLock::Exclusive);
    let Some((relation, _)) = cx.lock_table(oid, lock).await? else {
        return Err(no_relation(&alter.name));
    };
    cx.must_own(&relation)?;
    cx.refuse_pending(oid, "ALTER TABLE")?;
    let mut operations: Vec<&Op> = alter.operations.iter().collect();
    operations.sort_by_key(|operation| Pass::of(operation));
    for operation in operations {
        let table = cx
            .catalog()?
            .relations
            .get(&oid)
            .cloned()
            .ok_or_else(|| no_relation(&alter.name))?;
        run(operation, &table, cx).await?;
    }
    super::index_expressions::rebuild_stale(cx).await?;
    Ok(tag)
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
    fn of(operation: &Op) -> Pass {
        match operation {
            Op::DropColumn { .. } | Op::DropConstraint { .. } => Pass::Drop,
            Op::AddColumn { .. } => Pass::AddColumn,
            Op::AddConstraint { constraint, .. } => match constraint {
                ast::TableConstraint::ForeignKey(_) | ast::TableConstraint::Check(_) => {
                    Pass::AddOtherConstraint
                }
                _ => Pass::AddIndexConstraint,
            },
            Op::AlterColumn { op, .. } => Pass::of_column(op),
            _ => Pass::Misc,
        }
    }

    fn of_column(operation: &ast::AlterColumnOperation) -> Pass {
        use logstead_sql_parse::GeneratedChange;
        match operation {
            ast::AlterColumnOperation::SetDataType { .. } => Pass::AlterType,
            ast::AlterColumnOperation::DropDefault | ast::AlterColumnOperation::DropNotNull => {
                Pass::Drop
            }
            ast::AlterColumnOperation::SetNotNull => Pass::ColumnAttributes,
            ast::AlterColumnOperation::AddGenerated { .. } => Pass::AddOtherConstraint,
            ast::AlterColumnOperation::Set(
                GeneratedChange::DropExpression(_) | GeneratedChange::DropIdentity(_),
            ) => Pass::Drop,
            ast::AlterColumnOperation::Set(_) => Pass::Misc,
            ast::AlterColumnOperation::SetIdentity(_) => Pass::ColumnAttributes,
            ast::AlterColumnOperation::SetDefault { .. } => Pass::AddOtherConstraint,
        }
    }
}

/// The lock that an operation needs, as in PostgreSQL: the strongest of a statement's operations is taken. Readers may
/// go on beside what no plan that only reads depends on, and writers beside what makes no difference to them either. A
/// statement that reads keeps the catalog it was planned with; the transaction's next one is planned anew.
fn lock_level(operation: &Op) -> TableLock {
    match operation {
        Op::ValidateConstraint { .. } | Op::SetOptions(..) => TableLock::ShareUpdateExclusive,
        Op::AlterColumn { op, .. } if alter_column::changes_nothing_read(op) => {
            TableLock::ShareUpdateExclusive
        }
        Op::AddConstraint {
            constraint: ast::TableConstraint::ForeignKey(_),
            ..
        }
        | Op::Trigger(..) => TableLock::ShareRowExclusive,
        _ => TableLock::Exclusive,
    }
}

async fn run(operation: &Op, table: &Arc<Relation>, cx: &mut DdlContext<'_>) -> Result<()> {
    if let Some(schema) = super::set_schema::target(operation) {
        return super::set_schema::execute(table, schema, cx).await;
    }
    if super::policies::alter_table(operation, table, cx).await?
        || super::triggers::alter_table(operation, table, cx).await?
    {
        return Ok(());
    }
    match operation {
        Op::AddColumn {
            if_not_exists,
            column_def,
            ..
        } => {
            renames::refuse_hiding(&fold(&column_def.name), table)?;
            add_column(column_def, *if_not_exists, table, cx).await
        }
        Op::DropColumn {
            column_name,
            if_exists,
            cascade,
        } => drop_column(&fold(column_name), *if_exists, *cascade, table, cx).await,
        Op::AddConstraint {
            constraint: ast::TableConstraint::PrimaryKeyUsingIndex(using),
            ..
        } => using_index::add(true, using, table, cx).await,
        Op::AddConstraint {
            constraint: ast::TableConstraint::UniqueUsingIndex(using),
            ..
        } => using_index::add(false, using, table, cx).await,
        Op::AddConstraint {
            constraint,
            not_valid,
        } => {
            let mut new = new_constraint(constraint)?;
            new.not_valid = *not_valid;
            if new.not_valid
                && !matches!(
                    new.kind,
                    NewConstraintKind::Check(_) | NewConstraintKind::Foreign(_)
                )
            {
                let what = match new.kind {
                    NewConstraintKind::Primary(_) => "PRIMARY KEY",
                    _ => "UNIQUE",
                };
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    format!("{what} constraints cannot be marked NOT VALID"),
                ));
            }
            constraints::add(cx, table.oid, vec![new], false).await
        }
        Op::DropConstraint {
            if_exists,
            name,
            cascade,
        } => drop_constraint(&fold(name), *if_exists, *cascade, table, cx).await,
        Op::RenameColumn {
            old_column_name,
            new_column_name,
        } => rename_column(&fold(old_column_name), &fold(new_column_name), table, cx).await,
        Op::RenameConstraint { old_name, new_name } => {
            rename_constraint(&fold(old_name), &fold(new_name), table, cx).await
        }
        Op::RenameTable(name) => renamed_table(table, &calls::name_parts(name)?.1, cx).await,
        Op::AlterColumn { column_name, op } => {
            alter_column::execute(&fold(column_name), op, table, cx).await
        }
        Op::OwnerTo(new_owner) => owners::of_relation(table.oid, new_owner, cx).await,
        Op::SetOptions(options, is_reset) => {
            let all = cx.catalog()?.options_of(table.oid).to_vec();
            let all = super::relation_attributes::changed_parameters(
                all,
                options,
                *is_reset,
                storage_options,
            )?;
            cx.state.push(Change::Options(table.oid, all));
            cx.update_relation(Relation::clone(table)).await.map(drop)
        }
        Op::SetLogged => super::persistence::set(table, true, cx).await,
        Op::SetUnlogged => super::persistence::set(table, false, cx).await,
        Op::ReplicaIdentity(identity) => {
            super::relation_attributes::replica_identity(identity, table, cx).await
        }
        Op::ValidateConstraint { name } => validate_constraint(&fold(name), table, cx).await,
        Op::Rule(name, _) => Err(SqlError::unsupported(format!(
            "ALTER TABLE ... {} {name}",
            operation.words()
        ))),
        other => Err(SqlError::unsupported(format!(
            "ALTER TABLE ... {}",
            other.words()
        ))),
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
            rewrite::validate_check(cx, table, &condition, name).await?;
        }
        ConstraintKind::Foreign(_) => foreign::validate(cx, table, constraint).await?,
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
    def: &ast::ColumnDef,
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
            && rewrite::is_empty(cx, table).await?;
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
                if refused && !rewrite::is_empty(cx, table).await? {
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
                rewrite::rewrite(cx, table, changed, |cx, mut row| {
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
    sequence: Oid,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let catalog = cx.catalog()?;
    let ty = changed
        .columns
        .last()
        .map_or(logstead_sql_types::value::oid::INT8, |c| c.ty.oid);
    let mut numbers = SequenceSession::default();
    rewrite::rewrite(cx, table, changed, |cx, mut row| {
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
    let target = object_address::ObjectAddress::Column(table.oid, position);
    dependents::report_dependents(&[target], None, cascade, cx).await?;
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
        let needed = foreign::dependents(cx, &[table.oid], |_, _, key| key.index == oid)?;
        let what = format!("constraint {name} on table {}", table.name);
        let on = format!("index {}", index.name);
        foreign::drop_dependents(cx, needed, cascade, &what, &on).await?;
        // And views whose GROUP BY relies on it.
        let key = ObjectAddress::Constraint(table.oid, constraint.oid);
        dependents::report_dependents(&[key], None, cascade, cx).await?;
        cx.delete_index(table, index).await?;
    }
    let mut changed = Relation::clone(&*relations::relation(cx, table.oid)?);
    changed.constraints.retain(|c| c.name != name);
    cx.update_relation(changed).await.map(drop)
}

async fn rename_constraint(
    old: &str,
    new: &str,
    table: &Arc<Relation>,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let Some(at) = table.constraints.iter().position(|c| c.name == old) else {
        return Err(SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            format!(
                "constraint \"{old}\" for table \"{}\" does not exist",
                table.name
            ),
        ));
    };
    let new = cx.name(new);
    if table.constraints.iter().any(|c| c.name == new) {
        return Err(SqlError::new(
            SqlState::DUPLICATE_OBJECT,
            format!(
                "constraint \"{new}\" for relation \"{}\" already exists",
                table.name
            ),
        ));
    }
    let mut changed = Relation::clone(table);
    if let Some(constraint) = changed.constraints.get_mut(at) {
        let mut copy = logstead_sql_catalog::Constraint::clone(constraint);
        copy.name.clone_from(&new);
        if let ConstraintKind::PrimaryKey(oid) | ConstraintKind::Unique(oid) = copy.kind
            && let Some(index) = table.indexes.iter().find(|i| i.oid == oid)
        {
            let mut index = logstead_sql_catalog::IndexDef::clone(index);
            index.name = new;
            cx.update_index(table.schema, index).await?;
        }
        *constraint = Arc::new(copy);
    }
    cx.update_relation(changed).await.map(drop)
}
