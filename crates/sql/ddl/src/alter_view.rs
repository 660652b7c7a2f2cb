//! ALTER VIEW, and ALTER TABLE where it names a view.

use super::expressions::{bound_default, default_text};
use super::{DdlContext, owners, view};
use crate::pg_catalog::calls;
use crate::relations::name_taken;
use crate::relations::no_relation;
use crate::relations::word_of;
use crate::relations::{position_of, system_relation, wrong_kind};
use crate::renames::rename_column;
use logstead_engine::TableLock;
use logstead_sql_catalog::change::Change;
use logstead_sql_catalog::text::fold;
use logstead_sql_catalog::{Relation, RelationKind, View};
use logstead_sql_parse::GeneratedChange;
use logstead_sql_parse::lowered::{self as ast, AlterColumnOperation, AlterTableOperation as Op};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Oid;
use logstead_types::SqlState;
use std::sync::Arc;

/// Runs ALTER VIEW (or ALTER MATERIALIZED VIEW).
pub(super) async fn execute(
    alter: &ast::AlterTable,
    materialized: bool,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let word = if materialized {
        "materialized view"
    } else {
        "view"
    };
    let (schema, name) = calls::lookup_parts(&alter.name)?;
    let catalog = cx.catalog()?;
    let Some(oid) = catalog.object_by_name(schema.as_deref(), &name, cx.search_path) else {
        if alter.if_exists {
            cx.notice(
                SqlState::SUCCESSFUL_COMPLETION,
                format!("relation \"{name}\" does not exist, skipping"),
            );
            return Ok(());
        }
        return Err(no_relation(&alter.name));
    };
    let kind = catalog.relations.get(&oid).map(|r| &r.kind);
    match kind {
        Some(RelationKind::Virtual(_)) => return Err(system_relation(&name)),
        Some(kind) if word_of(kind) == Some(word) => {}
        _ => return Err(wrong_kind(&name, &format!("a {word}"))),
    }
    as_table(oid, &alter.operations, cx).await
}

/// Runs ALTER TABLE operations on a view.
pub(super) async fn as_table(oid: Oid, operations: &[Op], cx: &mut DdlContext<'_>) -> Result<()> {
    for operation in operations {
        let Some((relation, _)) = cx.lock_table(oid, TableLock::Exclusive).await? else {
            return Err(SqlError::internal("a view has gone"));
        };
        cx.must_own(&relation)?;
        one(operation, &relation, cx).await?;
    }
    Ok(())
}

async fn one(operation: &Op, relation: &Arc<Relation>, cx: &mut DdlContext<'_>) -> Result<()> {
    if let Some(schema) = super::set_schema::target(operation) {
        return super::set_schema::execute(relation, schema, cx).await;
    }
    let mut changed = Relation::clone(relation);
    match operation {
        Op::RenameTable(name) => {
            let new = cx.name(&calls::name_parts(name)?.1);
            let taken = (relation.schema, new.clone());
            if cx.catalog()?.names.contains_key(&taken) {
                return Err(name_taken(&new));
            }
            changed.name = new;
            super::renames::relation(relation, &mut changed, cx).await?;
        }
        Op::RenameColumn {
            old_column_name,
            new_column_name,
        } => {
            // Indexes of a materialized view name its columns, as a table's do.
            return rename_column(&fold(old_column_name), &fold(new_column_name), relation, cx)
                .await;
        }
        Op::AlterColumn { column_name, op } => {
            let position = position_of(relation, &fold(column_name))?;
            if let (AlterColumnOperation::Set(change), RelationKind::Materialized(..)) =
                (op, &relation.kind)
            {
                match *change {
                    GeneratedChange::Statistics(target) => {
                        return super::relation_attributes::statistics(
                            position, target, relation, cx,
                        )
                        .await;
                    }
                    GeneratedChange::Storage(code) => {
                        return super::relation_attributes::storage(position, code, relation, cx)
                            .await;
                    }
                    GeneratedChange::Compression(code) => {
                        return super::relation_attributes::compression(
                            position, code, relation, cx,
                        )
                        .await;
                    }
                    GeneratedChange::DropExpression(_) | GeneratedChange::DropIdentity(_) => {}
                }
            }
            let ty = relation.columns.get(position).map(|c| c.ty);
            let text = match (op, ty) {
                (AlterColumnOperation::SetDefault { value }, Some(ty)) => {
                    default_text(value, ty, cx)?
                }
                (AlterColumnOperation::DropDefault, _) => None,
                (other, _) => {
                    let what = match other {
                        AlterColumnOperation::SetDataType { .. } => "SET DATA TYPE",
                        AlterColumnOperation::SetNotNull => "SET NOT NULL",
                        AlterColumnOperation::DropNotNull => "DROP NOT NULL",
                        AlterColumnOperation::AddGenerated { .. } => "ADD GENERATED",
                        AlterColumnOperation::Set(change) => change.words(),
                        AlterColumnOperation::SetIdentity(_) => "SET",
                        AlterColumnOperation::SetDefault { .. } => "SET DEFAULT",
                        AlterColumnOperation::DropDefault => "DROP DEFAULT",
                    };
                    return Err(not_for_views(relation, &format!("ALTER COLUMN ... {what}")));
                }
            };
            if let Some(column) = changed.columns.get_mut(position) {
                column.default = text;
            }
            let catalog = cx.catalog()?;
            let bound = bound_default(cx, &catalog, &changed, position)?;
            cx.may_define(bound)?;
        }
        Op::OwnerTo(new_owner) => {
            return owners::of_relation(relation.oid, new_owner, cx).await;
        }
        Op::SetOptions(options, is_reset) => {
            let all = cx.catalog()?.options_of(relation.oid).to_vec();
            let all = super::relation_attributes::changed_parameters(
                all,
                options,
                *is_reset,
                view::parameters,
            )?;
            if let RelationKind::View(old) = &relation.kind {
                let view = View::new(
                    old.rule,
                    old.query.clone(),
                    old.sources.clone(),
                    view::check_of(&all),
                );
                changed.kind = RelationKind::View(Arc::new(view));
            }
            view::refuse_check(&changed, cx)?;
            cx.state.push(Change::Options(relation.oid, all));
        }
        Op::DropColumn { .. } => return Err(not_for_views(relation, "DROP COLUMN")),
        Op::AddColumn { .. } => return Err(not_for_views(relation, "ADD COLUMN")),
        other => return Err(not_for_views(relation, &first_words(other.words()))),
    }
    cx.update_relation(changed).await.map(drop)
}

/// What an operation begins with.
fn first_words(said: &str) -> String {
    let words: Vec<&str> = said.split_whitespace().take(2).collect();
    words.join(" ")
}

/// 42809 for what only tables do.
fn not_for_views(relation: &Relation, what: &str) -> SqlError {
    SqlError::new(
        SqlState::WRONG_OBJECT_TYPE,
        format!(
            "ALTER action {what} cannot be performed on relation \"{}\"",
            relation.name
        ),
    )
    .detail(format!(
        "This operation is not supported for {}s.",
        word_of(&relation.kind).unwrap_or("relation")
    ))
}
