//! ALTER VIEW, and ALTER TABLE where it names a view.

use super::alter_table_cmd::not_for;
use super::expressions::{bound_default, default_text};
use super::{DdlContext, alter_column, distribution, owners, view};
use crate::relations::{position_of, word_of};
use logstead_engine::TableLock;
use logstead_sql_catalog::change::CatalogChange;
use logstead_sql_catalog::{Relation, RelationKind, View};
use logstead_sql_parse::ast::AlterTableCmd as Cmd;
use logstead_sql_types::RelationId;
use logstead_sql_types::error::{Result, SqlError};
use std::sync::Arc;

/// Runs the actions on a view.
pub(super) async fn execute(oid: RelationId, cmds: &[Cmd], cx: &mut DdlContext<'_>) -> Result<()> {
    for cmd in cmds {
        let Some((relation, _)) = cx.lock_table(oid, TableLock::AccessExclusive).await? else {
            return Err(SqlError::internal("a view has gone"));
        };
        cx.must_own(&relation)?;
        one(cmd, &relation, cx).await?;
    }
    Ok(())
}

async fn one(cmd: &Cmd, relation: &Arc<Relation>, cx: &mut DdlContext<'_>) -> Result<()> {
    let is_materialized = matches!(relation.kind, RelationKind::Materialized(..));
    if is_materialized && alter_column::set_attribute(cmd, relation, cx).await? {
        return Ok(());
    }
    if is_materialized && let Cmd::SetRelOptions(options) | Cmd::ResetRelOptions(options) = cmd {
        let is_reset = matches!(cmd, Cmd::ResetRelOptions(_));
        return distribution::set_parameters(relation, options, is_reset, cx).await;
    }
    let mut changed = Relation::clone(relation);
    match cmd {
        // None of its columns is one.
        Cmd::AddIdentity { .. } | Cmd::SetIdentity { .. } | Cmd::DropIdentity { .. }
            if !is_materialized =>
        {
            return alter_column::execute(cmd, relation, cx).await.map(drop);
        }
        Cmd::ColumnDefault { name, default } => {
            let position = position_of(relation, name)?;
            let Some(column) = changed.columns.get_mut(position) else {
                return Err(SqlError::internal("a column vanished"));
            };
            column.default = match default {
                Some(value) => default_text(value, column.ty, cx)?,
                None => None,
            };
            let catalog = cx.catalog()?;
            let bound = bound_default(cx, &catalog, &changed, position)?;
            cx.may_define(bound)?;
        }
        Cmd::ChangeOwner(new_owner) => {
            return owners::of_relation(relation.oid, new_owner, cx).await;
        }
        Cmd::SetRelOptions(options) | Cmd::ResetRelOptions(options) => {
            let all = cx.catalog()?.options_of(relation.oid).to_vec();
            let all = super::relation_attributes::changed_parameters(
                all,
                options,
                matches!(cmd, Cmd::ResetRelOptions(_)),
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
            cx.state.push(CatalogChange::Options(relation.oid, all));
        }
        _ => {
            let plural = format!("{}s", word_of(&relation.kind).unwrap_or("relation"));
            return Err(not_for(&relation.name, &plural, cmd));
        }
    }
    cx.update_relation(changed).await.map(drop)
}
