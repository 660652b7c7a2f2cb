//! Expressions that stand outside of queries: defaults, checks, and what COPY needs.
//!
//! Those that stand alone come as [`Bound`]: whoever computes them must be allowed to call the functions in them, and
//! what functions of LANGUAGE sql read. Those that are part of a statement are bound by its binder, and checked with
//! it.

use super::access::NOBODYS;
use super::constraint_rules::Change;
use super::{Binder, Clause, Frame};
use crate::permissions::Bound;
use crate::query::expr::Expr;
use crate::{Check, CheckKind, Insert, Layout, Plan, PlanContext};
use logstead_sql_catalog::{ConstraintKind, Relation};
use logstead_sql_parse as parse;
use logstead_sql_parse::ast::{self, Location};
use logstead_sql_types::FunctionId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, SqlType, oid};
use logstead_types::SqlState;
use std::sync::Arc;

/// Binds an expression of DDL over the full row of `relation` (all attribute positions). `what` is "CHECK" (the result
/// is a condition), "USING" (any value), "GENERATED" (a generated column), "INDEX" (a key), "PREDICATE" (an index's
/// condition), "COPY" (COPY's) or "DEFAULT" (no columns may be used). `text` is what positions of errors count in.
pub fn bind_scalar(
    expr: &ast::Expr,
    text: &str,
    relation: &Relation,
    cx: &PlanContext<'_>,
    what: &str,
) -> Result<Bound<Expr>> {
    let (binder, bound) = new_scalar(expr, text, relation, cx, what)?;
    Ok(binder.into_bound_expression(bound))
}

/// A call of a user's function in an expression that is to be kept: where, which, and by which name.
pub(crate) type StoredRoutineCall = (Location, FunctionId, String);

/// The users' functions that an expression calls, which [`bind_scalar`] would bind.
pub fn kept_calls(
    expr: &ast::Expr,
    text: &str,
    relation: &Relation,
    cx: &PlanContext<'_>,
    what: &str,
) -> Result<Vec<StoredRoutineCall>> {
    let (binder, _) = new_scalar(expr, text, relation, cx, what)?;
    Ok(binder.routines_kept)
}

/// An expression that is to be kept, and the binder that has bound it.
fn new_scalar<'a>(
    expr: &ast::Expr,
    text: &'a str,
    relation: &Relation,
    cx: &'a PlanContext<'a>,
    what: &str,
) -> Result<(Binder<'a>, Expr)> {
    let mut binder = Binder::new(cx, text);
    binder.fresh = true;
    binder.judges = matches!(what, "INDEX" | "PREDICATE" | "GENERATED");
    let bound = alone(&mut binder, expr, relation, what)?;
    Ok((binder, bound))
}

/// A domain's CHECK, by a binder that binds nothing else.
pub(super) fn check_alone(
    binder: &mut Binder<'_>,
    expr: &ast::Expr,
    relation: &Relation,
) -> Result<Expr> {
    alone(binder, expr, relation, "CHECK")
}

/// A key or a condition that ON CONFLICT names, as [`index_expression::bind`](crate::bind::index_expression::bind)
/// binds those of indexes.
pub(super) fn conflict_scalar(
    expr: &ast::Expr,
    text: &str,
    relation: &Relation,
    cx: &PlanContext<'_>,
    what: &str,
) -> Result<Expr> {
    let mut binder = Binder::new(cx, text);
    binder.fresh = true;
    alone(&mut binder, expr, relation, what)
}

fn alone(
    binder: &mut Binder<'_>,
    expr: &ast::Expr,
    relation: &Relation,
    what: &str,
) -> Result<Expr> {
    let expr = bind_over(binder, expr, relation, what)?;
    if !binder.params.is_empty() {
        return Err(SqlError::new(
            SqlState::UNDEFINED_PARAMETER,
            "there is no parameter $1",
        ));
    }
    Ok(expr)
}

/// As [`bind_scalar`], from stored text.
pub(crate) fn bind_scalar_text(
    text: &str,
    relation: &Relation,
    cx: &PlanContext<'_>,
    what: &str,
) -> Result<Bound<Expr>> {
    let expr = parse::parse_expr(text)?;
    let mut binder = Binder::new(cx, text);
    let bound = alone(&mut binder, &expr, relation, what)?;
    Ok(binder.into_bound_expression(bound))
}

fn bind_over(
    binder: &mut Binder<'_>,
    expr: &ast::Expr,
    relation: &Relation,
    what: &str,
) -> Result<Expr> {
    // What is around the statement has no names for it.
    let frames = std::mem::take(&mut binder.frames);
    let bound = bind_alone(binder, expr, relation, what);
    binder.frames = frames;
    bound
}

fn bind_alone(
    binder: &mut Binder<'_>,
    expr: &ast::Expr,
    relation: &Relation,
    what: &str,
) -> Result<Expr> {
    let relation = Arc::new(relation.clone());
    if what != "DEFAULT" {
        let clause = match what {
            "INDEX" => Clause::IndexExpression,
            "PREDICATE" => Clause::IndexPredicate,
            "GENERATED" => Clause::Generated,
            "COPY" => Clause::CopyWhere,
            _ => Clause::Check,
        };
        let reads = binder.tables_read.len();
        let (first, width) = binder.attached(NOBODYS, |b| b.relation_frame(&relation, None))?;
        binder.tables_read.truncate(reads);
        let bound = binder.in_clause(clause, |b| match what {
            "CHECK" => b.condition_of(expr, "CHECK"),
            "PREDICATE" | "COPY" => b.condition_of(expr, "WHERE"),
            "INDEX" | "GENERATED" => b.expr(expr).and_then(|e| b.settle(e)),
            _ => b.expr(expr),
        });
        binder.frames.pop();
        let mut bound = bound?;
        if what == "COPY" && crate::query::walk::needs_more_than_row(&bound) {
            return Err(SqlError::unsupported(
                "a function that is more than an expression in COPY FROM WHERE",
            ));
        }
        let layout = Layout::new((first..first + width).collect());
        binder.put_over_row(&mut bound, &layout)?;
        return Ok(bound);
    }
    binder.frames.push(Frame::new());
    let bound = binder.in_clause(Clause::Default, |b| {
        b.expr(expr).map_err(|e| {
            if e.code() == SqlState::UNDEFINED_COLUMN {
                SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "cannot use column reference in DEFAULT expression",
                )
                .at(b.at(expr.location()))
            } else {
                e
            }
        })
    });
    binder.frames.pop();
    bound
}

/// The value that column `position` gets when a statement gives none: DEFAULT, the next number of its sequence, or
/// NULL; coerced to the column's type.
pub fn default_expr(
    relation: &Relation,
    position: usize,
    cx: &PlanContext<'_>,
) -> Result<Bound<Expr>> {
    let mut binder = Binder::new(cx, "");
    let value = column_default(&mut binder, relation, position)?;
    Ok(binder.into_bound_expression(value))
}

pub(crate) fn column_default(
    binder: &mut Binder<'_>,
    relation: &Relation,
    position: usize,
) -> Result<Expr> {
    let Some(column) = relation.columns.get(position) else {
        return Err(SqlError::internal(
            "default of a column that does not exist",
        ));
    };
    // A generated column has its value when the row is there.
    if column.dropped || column.generated {
        return Ok(Expr::Const(Datum::Null, column.ty));
    }
    if let (Some(_), Some(sequence)) = (column.identity, column.sequence) {
        let sequence = Expr::Const(Datum::Oid(sequence.get()), SqlType::of(oid::REGCLASS));
        let next = binder.own_number(sequence);
        return binder.assign(next, column, None);
    }
    // A domain's default comes after the column's own.
    let types = binder.user_types();
    let domain = column.domain.and_then(|domain| types.get(domain));
    let of_domain = domain.and_then(|ty| ty.domain());
    let text = match (&column.default, of_domain) {
        (Some(text), _) => Some(text),
        (None, Some(domain)) => domain.default.as_ref(),
        (None, None) => None,
    };
    let Some(text) = text else {
        let null = Expr::Const(Datum::Null, column.ty);
        return binder.assign(null, column, None);
    };
    let expr = parse::parse_expr(text)?;
    let bound = bind_over(binder, &expr, relation, "DEFAULT").map_err(without_position)?;
    binder.assign(bound, column, None).map_err(without_position)
}

/// The generated columns of a relation: (attribute position, value over the new full row), coerced to their types.
pub fn generated_exprs(
    relation: &Relation,
    cx: &PlanContext<'_>,
) -> Result<Bound<Vec<(usize, Expr)>>> {
    let mut binder = Binder::new(cx, "");
    let values = generated(&mut binder, relation)?;
    Ok(binder.into_bound_expression(values))
}

pub(crate) fn generated(
    binder: &mut Binder<'_>,
    relation: &Relation,
) -> Result<Vec<(usize, Expr)>> {
    let mut out = Vec::new();
    for (position, column) in relation.columns.iter().enumerate() {
        let Some(text) = column.default.as_ref().filter(|_| column.generated) else {
            continue;
        };
        let expr = parse::parse_expr(text)?;
        let bound = bind_over(binder, &expr, relation, "GENERATED").map_err(without_position)?;
        let value = binder.assign(bound, column, None);
        out.push((position, value.map_err(without_position)?));
    }
    Ok(out)
}

/// Those of them whose value a change of the columns `changed` may change.
pub(crate) fn generated_after(
    binder: &mut Binder<'_>,
    relation: &Relation,
    changed: &[usize],
) -> Result<Vec<(usize, Expr)>> {
    let mut all = generated(binder, relation)?;
    let mut changed = changed.to_vec();
    all.retain(|(position, _)| {
        let column = relation.columns.get(*position);
        let follows = column.is_some_and(|column| column.follows(relation, &changed));
        // What an index has computed may be made of it; that comes behind.
        if follows {
            changed.push(*position);
        }
        follows
    });
    Ok(all)
}

/// Stored text is not the client's statement: places in it mean nothing to him.
fn without_position(mut error: SqlError) -> SqlError {
    error.fields_mut().position = None;
    error
}

/// CHECK constraints of a relation, over its full row.
pub(crate) fn checks(binder: &mut Binder<'_>, relation: &Relation) -> Result<Vec<Check>> {
    let mut out = Vec::new();
    for constraint in &relation.constraints {
        let ConstraintKind::Check(text) = &constraint.kind else {
            continue;
        };
        let expr = parse::parse_expr(text)?;
        let expr = bind_over(binder, &expr, relation, "CHECK").map_err(without_position)?;
        out.push(Check {
            name: constraint.name.clone(),
            expr,
            kind: CheckKind::Constraint,
        });
    }
    // PostgreSQL checks them in the order of their names.
    out.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(out)
}

/// The condition of COPY ... WHERE. 0A000 if functions in it read tables.
pub fn copy_condition(
    expr: &ast::Expr,
    text: &str,
    relation: &Relation,
    cx: &PlanContext<'_>,
) -> Result<Bound<Expr>> {
    let mut binder = Binder::new(cx, text);
    binder.fresh = true;
    let bound = alone(&mut binder, expr, relation, "COPY")?;
    if !binder.tables_read.is_empty() {
        return Err(SqlError::unsupported(
            "COPY with a condition that calls a function of LANGUAGE sql that reads a table",
        ));
    }
    Ok(binder.into_bound_expression(bound))
}

/// The domains of columns that COPY FROM reads: over a row of the value alone, by column.
pub fn copied_domains(
    relation: &Relation,
    columns: &[usize],
    cx: &PlanContext<'_>,
) -> Result<Bound<Vec<Option<Expr>>>> {
    let mut binder = Binder::new(cx, "");
    let mut values = Vec::with_capacity(columns.len());
    for column in columns.iter().filter_map(|at| relation.columns.get(*at)) {
        values.push(match column.domain {
            Some(domain) => Some(binder.as_domain(Expr::Column(0, column.ty), domain)?),
            None => None,
        });
    }
    Ok(binder.into_bound_expression(values))
}

/// What COPY FROM does with each row: an `Insert` whose source row is the given columns, of their types already, in the
/// order of `columns`; the others get their defaults. The source plan is a placeholder. The caller locks the table and
/// those that its foreign keys reference. 0A000 if functions that rows are computed or checked by read tables: these
/// would have to be locked, too.
pub fn bind_copy_from(
    relation: &Arc<Relation>,
    columns: &[usize],
    cx: &PlanContext<'_>,
) -> Result<Bound<Insert>> {
    let mut binder = Binder::new(cx, "");
    let mut values = Vec::with_capacity(relation.columns.len());
    for (position, column) in relation.columns.iter().enumerate() {
        values.push(match columns.iter().position(|&c| c == position) {
            Some(field) => Expr::Column(field, column.ty),
            None => column_default(&mut binder, relation, position)?,
        });
    }
    let generated = generated(&mut binder, relation)?;
    let checks = checks(&mut binder, relation)?;
    // Conditions of triggers read no tables.
    let reads = !binder.tables_read.is_empty();
    let rules = binder.rules(relation, &Change::Insert(Vec::new()))?;
    if reads {
        return Err(SqlError::unsupported(
            "COPY into a table whose defaults, checks or generated columns call a function of LANGUAGE sql that reads a table",
        ));
    }
    let insert = Insert {
        table: relation.clone(),
        source: Plan::nothing(),
        values,
        generated,
        checks,
        // Nobody for whom policies hold copies into the table.
        policies: Vec::new(),
        conflict: None,
        rules,
        given: columns.to_vec(),
        returning: None,
        hidden: false,
    };
    Ok(binder.into_bound_expression(insert))
}
