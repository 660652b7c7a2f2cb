//! Generated columns: GENERATED ALWAYS AS (...) STORED.
//!
//! The expression is the column's `default`, in normal form, over the columns of its table that are not generated
//! themselves; it is immutable, so that a row's values always follow from each other. `bind::generated_exprs` binds it
//! for those who write rows.

use super::expressions::{stored_text, with_planner, written};
use super::{DdlContext, table_rewrite};
use logstead_sql_catalog::Relation;
use logstead_sql_parse::ast::{self, Location, Name, Visit, Visitor};
use logstead_sql_plan::bind;
use logstead_sql_plan::bind::index_expression;
use logstead_sql_plan::expr::Expr;
use logstead_sql_plan::{Bound, Node, Plan, walk};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Makes columns of a relation that is being made generated ones: (position, expression as written).
pub(super) fn settle(
    relation: &mut Relation,
    columns: &[(usize, ast::Expr)],
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    for (position, _) in columns {
        if let Some(column) = relation.columns.get_mut(*position) {
            column.generated = true;
        }
    }
    let catalog = cx.catalog()?;
    for (position, expr) in columns {
        refuse_nested(relation, expr, cx)?;
        let value = written(cx, &catalog, relation, expr, "GENERATED")?;
        let value = cx.may_define(value)?;
        if !is_immutable(&value) {
            return Err(invalid("generation expression is not immutable"));
        }
        let mut text = stored_text(cx, &catalog, relation, expr, "GENERATED");
        if let Some(column) = relation.columns.get_mut(*position) {
            // NULL is of whatever type is wanted.
            if is_null(expr) {
                text = format!("NULL::{}", cx.format_type(column.ty)?);
            }
            column.default = Some(text);
        }
    }
    let bound = values(relation, cx)?;
    cx.may_define(bound).map(drop)
}

fn is_null(expr: &ast::Expr) -> bool {
    expr.is_null()
}

/// Has an expression the same value whenever it is computed over the same row? Functions that the session runs are what
/// they were declared to be: that was looked at.
pub(super) fn is_immutable(value: &Expr) -> bool {
    match value {
        Expr::Subquery(subquery) if subquery.call => computes(&subquery.plan),
        Expr::Outer { .. } => true,
        _ if index_expression::varies(value) => false,
        _ => {
            let mut good = true;
            walk::children(value, &mut |child| good = good && is_immutable(child));
            good
        }
    }
}

/// The same of what calls are made of; whoever reads a table gives another value at another time.
fn computes(plan: &Plan) -> bool {
    match &plan.node {
        Node::RoutineScan { args, .. } => args.iter().all(is_immutable),
        Node::Project { input, exprs } => exprs.iter().all(is_immutable) && computes(input),
        Node::Limit { input, .. } => computes(input),
        Node::OneRow => true,
        _ => false,
    }
}

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_OBJECT_DEFINITION, message)
}

/// 42P17 for the first generated column that an expression speaks of, or for the whole row, which has them all.
fn refuse_nested(relation: &Relation, expr: &ast::Expr, cx: &DdlContext<'_>) -> Result<()> {
    struct Generated<'a> {
        relation: &'a Relation,
        /// A whole row of which only a field is taken.
        field_of: Option<Location>,
    }
    impl Generated<'_> {
        fn is_generated(&self, name: &str) -> bool {
            let mut columns = self.relation.columns.iter();
            columns.any(|c| c.generated && !c.dropped && c.name == name)
        }

        /// `relation.*`, or the relation's name where no column has it.
        fn is_whole_row(&self, expr: &ast::Expr) -> bool {
            let ast::Expr::ColumnRef(column) = expr else {
                return false;
            };
            let mut columns = self.relation.columns.iter();
            let named = column
                .fields
                .last()
                .is_some_and(|n| **n == *self.relation.name);
            let is_column = |name: &Name| columns.any(|c| !c.dropped && *c.name == **name);
            named && (column.star || !expr.bare_name().is_none_or(is_column))
        }
    }
    impl Visitor for Generated<'_> {
        type Break = (Option<String>, Location);
        fn pre_visit_expr(&mut self, expr: &ast::Expr) -> ControlFlow<Self::Break> {
            let stop = |name, expr: &ast::Expr| ControlFlow::Break((name, expr.location()));
            match expr {
                // A field of the row is the column.
                ast::Expr::Indirection(node) if self.is_whole_row(&node.arg) => {
                    if let Some(ast::Indirection::Field(name)) = node.indirection.first() {
                        if self.is_generated(name) {
                            return stop(Some(name.to_string()), &node.arg);
                        }
                        self.field_of = Some(node.arg.location());
                    }
                    ControlFlow::Continue(())
                }
                // The columns of the row are those of the one that is made.
                ast::Expr::RowExpr(node) => {
                    let mut columns = self.relation.columns.iter();
                    let first = columns.find(|c| c.generated && !c.dropped);
                    let is_star = |arg: &&ast::Expr| {
                        matches!(arg, ast::Expr::ColumnRef(column) if column.star)
                            && self.is_whole_row(arg)
                    };
                    match (first, node.args.iter().find(is_star)) {
                        (Some(column), Some(star)) => stop(Some(column.name.clone()), star),
                        _ => ControlFlow::Continue(()),
                    }
                }
                _ if self.is_whole_row(expr) => match self.field_of.take() {
                    Some(place) if place == expr.location() => ControlFlow::Continue(()),
                    _ => stop(None, expr),
                },
                _ => match expr.column_names().and_then(<[_]>::last) {
                    Some(name) if self.is_generated(name) => stop(Some(name.to_string()), expr),
                    _ => ControlFlow::Continue(()),
                },
            }
        }
    }
    let mut generated = Generated {
        relation,
        field_of: None,
    };
    match expr.visit(&mut generated) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break((None, location)) => Err(invalid(
            "cannot use whole-row variable in column generation expression",
        )
        .detail("This would cause the generated column to depend on its own value.")
        .at(cx.at(location))),
        ControlFlow::Break((Some(name), location)) => Err(invalid(format!(
            "cannot use generated column \"{name}\" in column generation expression"
        ))
        .detail("A generated column cannot reference another generated column.")
        .at(cx.at(location))),
    }
}

/// What the generated columns of a relation are made by.
pub(super) fn values(
    relation: &Relation,
    cx: &mut DdlContext<'_>,
) -> Result<Bound<Vec<(usize, Expr)>>> {
    let catalog = cx.catalog()?;
    let bound = with_planner(cx, &catalog, |plan| bind::generated_exprs(relation, plan));
    bound.map_err(|mut error| {
        let fields = error.fields_mut();
        fields.message =
            fields
                .message
                .replacen("but expression is of", "but default expression is of", 1);
        error
    })
}

/// Adds a generated column, the last of `changed`, to a table: all rows that are there get their value.
pub(super) async fn add(
    table: &Relation,
    mut changed: Relation,
    expr: &ast::Expr,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let position = table.columns.len();
    settle(&mut changed, &[(position, expr.clone())], cx)?;
    let all = values(&changed, cx)?;
    let all = cx.may_run(all)?;
    let Some((_, value)) = all.into_iter().find(|(p, _)| *p == position) else {
        return Err(SqlError::internal("a generated column without a value"));
    };
    table_rewrite::rewrite(cx, table, changed, |cx, mut row| {
        super::expressions::refuse_calls(&value)?;
        let value = super::expressions::eval(cx, &value, &row)?;
        row.push(value);
        Ok(row)
    })
    .await
    .map(drop)
}

/// 0A000 if generated columns are made of the column at `position`, whose type is to change.
pub(super) fn refuse_type_change(table: &Relation, position: usize) -> Result<()> {
    let user = table
        .columns
        .iter()
        .find(|c| !c.dropped && c.generated_from(table).contains(&position));
    let (Some(user), Some(column)) = (user, table.columns.get(position)) else {
        return Ok(());
    };
    Err(SqlError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        "cannot alter type of a column used by a generated column",
    )
    .detail(format!(
        "Column \"{}\" is used by generated column \"{}\".",
        column.name, user.name
    )))
}

/// ALTER COLUMN ... DROP EXPRESSION: the values stay, and are anybody's from now on.
pub(super) async fn drop_expression(
    position: usize,
    skip: bool,
    table: &Arc<Relation>,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let mut changed = Relation::clone(table);
    let Some(column) = changed.columns.get_mut(position) else {
        return Err(SqlError::internal("a column vanished"));
    };
    if !column.generated {
        let message = format!(
            "column \"{}\" of relation \"{}\" is not a stored generated column",
            column.name, table.name
        );
        if skip {
            cx.notice(
                SqlState::SUCCESSFUL_COMPLETION,
                format!("{message}, skipping"),
            );
            return Ok(());
        }
        return Err(SqlError::new(
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            message,
        ));
    }
    column.generated = false;
    column.default = None;
    cx.update_relation(changed).await.map(drop)
}
