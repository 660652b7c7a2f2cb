//! WITH: common table expressions, recursive ones too, and references to them.

use super::names::fold_ident;
use super::select::Tail;
use super::setop::{Body, columns_differ};
use super::unplanned::Unplanned;
use super::{Binder, Cte, Frame, Source};
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::plan::{Merge, MergeAction, Node, OutputColumn, Plan, walk};
use crate::value::{SqlType, info, oid};
use logstead_types::SqlState;
use sqlparser::ast::{self, SetExpr};
use std::collections::HashMap;
use std::sync::Arc;

impl Binder<'_> {
    pub(crate) fn with_query(&mut self, query: &ast::Query, with: &ast::With) -> Result<Body> {
        let mut definitions = Vec::new();
        let mut behind = mentioned(query);
        for cte in &with.cte_tables {
            // What stands before it and in it names something else.
            let own = mentioned(&cte.query);
            for (name, count) in own {
                behind.entry(name).and_modify(|all| *all -= count);
            }
            let name = fold_ident(&cte.alias.name);
            let once = behind.get(&name).copied().unwrap_or(0) <= 1;
            let inline = match &cte.materialized {
                Some(ast::CteAsMaterialized::Materialized) => false,
                Some(ast::CteAsMaterialized::NotMaterialized) => true,
                None => once,
            };
            definitions.extend(self.cte(cte, with.recursive, inline)?);
        }
        let body = self.query_without_with(query, true)?;
        let used: Vec<usize> = self
            .frame()?
            .ctes
            .iter()
            .filter(|c| c.used)
            .map(|c| c.slot)
            .collect();
        if !definitions.iter().any(|d| used.contains(&d.slot)) {
            return Ok(body);
        }
        let mut plan = self.finish(body)?;
        for Definition {
            slot,
            name,
            plan: definition,
            recursive,
        } in definitions.into_iter().rev()
        {
            if !used.contains(&slot) {
                continue;
            }
            let rows = plan.rows;
            let cost = plan.cost + definition.cost;
            let columns = plan.columns.clone();
            plan = Plan {
                node: Node::With {
                    slot,
                    name,
                    definition: Box::new(definition),
                    recursive,
                    body: Box::new(plan),
                },
                columns,
                rows,
                cost,
            };
        }
        Ok(Body::Plan(Box::new(plan)))
    }

    /// WITH in front of INSERT, UPDATE, DELETE or MERGE: its queries belong to the source of the change.
    pub(crate) fn with_change(
        &mut self,
        with: &ast::With,
        change: impl FnOnce(&mut Self) -> Result<Plan>,
    ) -> Result<Plan> {
        self.frames.push(Frame::new());
        let result = self.with_change_in_frame(with, change);
        self.frames.pop();
        result
    }

    fn with_change_in_frame(
        &mut self,
        with: &ast::With,
        change: impl FnOnce(&mut Self) -> Result<Plan>,
    ) -> Result<Plan> {
        let mut definitions = Vec::new();
        for cte in &with.cte_tables {
            definitions.extend(self.cte(cte, with.recursive, false)?);
        }
        let mut plan = change(self)?;
        let used: Vec<usize> = self
            .frame()?
            .ctes
            .iter()
            .filter(|c| c.used)
            .map(|c| c.slot)
            .collect();
        if used.is_empty() {
            return Ok(plan);
        }
        let mut beside: Vec<&Expr> = Vec::new();
        match &plan.node {
            Node::Insert(insert) => {
                beside.extend(&insert.values);
                beside.extend(insert.returning.iter().flatten());
                if let Some(update) = insert.conflict.as_ref().and_then(|c| c.update.as_ref()) {
                    beside.extend(update.assignments.iter().map(|(_, e)| e));
                    beside.extend(&update.filter);
                }
            }
            Node::Update(update) => {
                beside.extend(update.assignments.iter().map(|(_, e)| e));
                beside.extend(update.returning.iter().flatten());
                beside.extend(&update.recheck);
            }
            Node::Delete(delete) => {
                beside.extend(delete.returning.iter().flatten());
                beside.extend(&delete.recheck);
            }
            Node::Merge(merge) => merge_exprs(merge, &mut beside),
            _ => {}
        }
        if beside.into_iter().any(walk::has_subquery) {
            return Err(SqlError::unsupported(
                "WITH together with subqueries in a data-modifying statement",
            ));
        }
        let source = match &mut plan.node {
            Node::Insert(insert) => &mut insert.source,
            Node::Update(update) => &mut update.source,
            Node::Delete(delete) => &mut delete.source,
            Node::Merge(merge) => &mut merge.source,
            _ => {
                return Err(SqlError::internal(
                    "WITH in front of something that changes nothing",
                ));
            }
        };
        for Definition {
            slot,
            name,
            plan: definition,
            recursive,
        } in definitions.into_iter().rev()
        {
            if !used.contains(&slot) {
                continue;
            }
            let body = source.clone();
            let (columns, rows, cost) =
                (body.columns.clone(), body.rows, body.cost + definition.cost);
            let node = Node::With {
                slot,
                name,
                definition: Box::new(definition),
                recursive,
                body: Box::new(body),
            };
            *source = Plan {
                node,
                columns,
                rows,
                cost,
            };
        }
        Ok(plan)
    }

    /// Binds a query of WITH. There is no definition if it is to be read where it is named, which only what is neither recursive nor volatile nor locks rows may be.
    pub(crate) fn cte(
        &mut self,
        cte: &ast::Cte,
        recursive: bool,
        inline: bool,
    ) -> Result<Option<Definition>> {
        let name = fold_ident(&cte.alias.name);
        let at = self.at(cte.alias.name.span);
        if self.frame()?.ctes.iter().any(|c| c.name == name) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_ALIAS,
                format!("WITH query name \"{name}\" specified more than once"),
            )
            .at(at));
        }
        if matches!(cte.query.body.as_ref(), SetExpr::Merge(_)) {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "MERGE not supported in WITH query",
            )
            .at(at));
        }
        if matches!(
            cte.query.body.as_ref(),
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_)
        ) {
            return Err(SqlError::unsupported("a data-modifying statement in WITH").at(at));
        }
        let slot = self.slot();
        let renames: Vec<String> = cte
            .alias
            .columns
            .iter()
            .map(|c| fold_ident(&c.name))
            .collect();
        let recursive_parts = if recursive {
            recursive_terms(&cte.query)
        } else {
            None
        };
        let (definition, term) = match recursive_parts {
            Some((first, second, union_all)) if mentions(&cte.query, &name) => {
                let tail = Tail::default();
                if cte.query.order_by.is_some()
                    || cte.query.limit_clause.is_some()
                    || cte.query.fetch.is_some()
                {
                    return Err(
                        SqlError::unsupported("ORDER BY or LIMIT in a recursive query").at(at),
                    );
                }
                let body = self.set_expr(first, &tail, true)?;
                let first = self.finish(body)?;
                let columns = cte_columns(&first.columns, &renames, &name)?;
                let types: Vec<SqlType> = columns.iter().map(|(_, ty)| *ty).collect();
                let rows = first.rows * 10.0;
                self.frame()?.ctes.push(Cte {
                    name: name.clone(),
                    slot,
                    columns,
                    rows: first.rows,
                    used: false,
                    recursive_now: true,
                    inlined: None,
                });
                let body = self.set_expr(second, &tail, false)?;
                let found = body.types();
                if found.len() != types.len() {
                    return Err(columns_differ("UNION"));
                }
                for (i, (want, found)) in types.iter().zip(&found).enumerate() {
                    if found.oid != want.oid && found.oid != oid::UNKNOWN {
                        return Err(SqlError::new(
                            SqlState::DATATYPE_MISMATCH,
                            format!(
                                "recursive query \"{name}\" column {} has type {} in non-recursive term but type {} overall",
                                i + 1,
                                info::format_type(*want),
                                info::format_type(*found)
                            ),
                        )
                        .hint("Cast the output of the non-recursive term to the correct type."));
                    }
                }
                let second = self.finish_as(body, &types)?;
                if let Some(own) = self.frame()?.ctes.last_mut() {
                    own.recursive_now = false;
                    own.used = false;
                    own.rows = rows;
                }
                (first, Some((Box::new(second), union_all)))
            }
            _ => {
                let before = std::mem::replace(&mut self.volatile, false);
                let bound = self.deeper(|b| b.query_body(&cte.query, true));
                let volatile = std::mem::replace(&mut self.volatile, before);
                self.volatile |= volatile;
                let body = bound?;
                let columns = cte_columns(&self.body_columns(&body), &renames, &name)?;
                let inline = inline && !volatile && self.inlines && cte.query.locks.is_empty();
                let (plan, rows) = match inline {
                    true => (None, 0.0),
                    false => {
                        let plan = self.finish(body)?;
                        let rows = plan.rows;
                        (Some(plan), rows)
                    }
                };
                self.frame()?.ctes.push(Cte {
                    name: name.clone(),
                    slot,
                    columns,
                    rows,
                    used: false,
                    recursive_now: false,
                    inlined: inline.then(|| Arc::from(cte.query.clone())),
                });
                let Some(plan) = plan else {
                    return Ok(None);
                };
                (plan, None)
            }
        };
        Ok(Some(Definition {
            slot,
            name: name.into(),
            plan: definition,
            recursive: term,
        }))
    }

    /// A FROM item that names a WITH query in sight.
    pub(crate) fn cte_reference(
        &mut self,
        name: &str,
        alias: Option<&ast::TableAlias>,
    ) -> Result<Option<usize>> {
        let mut found = None;
        for (depth, frame) in self.frames.iter_mut().enumerate().rev() {
            let at = frame.ctes.iter().rposition(|c| c.name == name);
            if let Some((at, cte)) = at.and_then(|at| Some((at, frame.ctes.get_mut(at)?))) {
                cte.used = true;
                found = Some((depth, at, cte.clone()));
                break;
            }
        }
        let Some((depth, at, cte)) = found else {
            return Ok(None);
        };
        let columns = cte
            .columns
            .into_iter()
            .map(|(name, ty)| (name, ty, (0, 0)))
            .collect();
        let source = match &cte.inlined {
            None => Source::Cte {
                slot: cte.slot,
                rows: cte.rows,
            },
            Some(query) => self.inlined(query, depth, at)?,
        };
        self.add_item(source, columns, name, alias).map(Some)
    }
}

/// What MERGE evaluates beside its source.
fn merge_exprs<'p>(merge: &'p Merge, out: &mut Vec<&'p Expr>) {
    out.extend(&merge.on);
    for when in merge.matched.iter().chain(&merge.unmatched) {
        out.extend(&when.condition);
        match &when.action {
            MergeAction::Update(update) => out.extend(update.assignments.iter().map(|(_, e)| e)),
            MergeAction::Insert(insert) => out.extend(&insert.values),
            MergeAction::Delete(_) | MergeAction::Nothing => {}
        }
    }
}

impl Binder<'_> {
    /// Binds a query of WITH where it is named: with what is in sight where it stands, in the frame at `depth` behind the `at` queries before it.
    fn inlined(&mut self, query: &ast::Query, depth: usize, at: usize) -> Result<Source> {
        self.cx.session.interrupted()?;
        let above = self.frames.split_off(depth + 1);
        let frame = self.frame()?;
        let later = frame.ctes.split_off(at);
        let hidden = std::mem::take(&mut frame.ns);
        let bound = self.with_own(|b| b.deeper(|b| b.query_body(query, true)));
        let frame = self.frame()?;
        frame.ns = hidden;
        frame.ctes.extend(later);
        self.frames.extend(above);
        let (body, own) = bound?;
        Ok(Source::Query(Some(Box::new(Unplanned {
            body,
            own,
            barrier: false,
            with: true,
        }))))
    }
}

/// A query of WITH that is kept.
pub(crate) struct Definition {
    slot: usize,
    name: Arc<str>,
    plan: Plan,
    /// The recursive term, and whether all its rows are kept.
    recursive: Option<(Box<Plan>, bool)>,
}

/// How often a query names each relation without a schema.
fn mentioned(query: &ast::Query) -> HashMap<String, usize> {
    let mut found: HashMap<String, usize> = HashMap::new();
    let _all = ast::visit_relations(query, |name: &ast::ObjectName| {
        if let [ast::ObjectNamePart::Identifier(ident)] = name.0.as_slice() {
            *found.entry(fold_ident(ident)).or_default() += 1;
        }
        std::ops::ControlFlow::<()>::Continue(())
    });
    found
}

/// The two terms of `a UNION [ALL] b`.
fn recursive_terms(query: &ast::Query) -> Option<(&SetExpr, &SetExpr, bool)> {
    match query.body.as_ref() {
        SetExpr::SetOperation {
            left,
            op: ast::SetOperator::Union,
            set_quantifier,
            right,
        } => Some((
            left,
            right,
            matches!(set_quantifier, ast::SetQuantifier::All),
        )),
        _ => None,
    }
}

/// Whether a query names `table` in some FROM.
fn mentions(query: &ast::Query, table: &str) -> bool {
    let flow = ast::visit_relations(query, |name: &ast::ObjectName| {
        let hit = match name.0.as_slice() {
            [ast::ObjectNamePart::Identifier(ident)] => fold_ident(ident) == table,
            _ => false,
        };
        if hit {
            std::ops::ControlFlow::Break(())
        } else {
            std::ops::ControlFlow::Continue(())
        }
    });
    flow.is_break()
}

fn cte_columns(
    columns: &[OutputColumn],
    renames: &[String],
    name: &str,
) -> Result<Vec<(Arc<str>, SqlType)>> {
    if renames.len() > columns.len() {
        return Err(SqlError::new(
            SqlState::INVALID_COLUMN_REFERENCE,
            format!(
                "WITH query \"{name}\" has {} columns available but {} columns specified",
                columns.len(),
                renames.len()
            ),
        ));
    }
    Ok(columns
        .iter()
        .enumerate()
        .map(|(i, c)| {
            (
                renames
                    .get(i)
                    .map_or(c.name.as_str(), String::as_str)
                    .into(),
                c.ty,
            )
        })
        .collect())
}
