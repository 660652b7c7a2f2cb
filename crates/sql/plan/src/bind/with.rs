//! WITH: common table expressions, recursive ones too, those that change something, and references to them.
//!
//! INSERT, UPDATE and DELETE stand in the WITH of a whole statement only. Such a query is kept whether it is read or
//! not. Its target, and the view between, are its own: the binder's are put aside meanwhile.

use super::query::{columns_differ, locks};
use super::{Binder, Cte, Frame, RelSource, recursion};
use crate::OutputColumn;
use crate::query::{Definition, QueryTree};
use logstead_sql_parse::ast::{self, Alias, Name, RangeVar, SelectStmt, SetOp, Stmt};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::SqlType;
use logstead_types::SqlState;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

impl Binder<'_> {
    pub(crate) fn with_query(
        &mut self,
        query: &SelectStmt,
        with: &ast::WithClause,
    ) -> Result<QueryTree> {
        let top = std::mem::take(&mut self.top);
        let mut definitions = Vec::new();
        let mut behind = mentioned(query);
        for cte in in_order(with)? {
            // What stands before it and in it names something else.
            let own = mentioned(&cte.ctequery);
            for (name, count) in own {
                behind.entry(name).and_modify(|all| *all -= count);
            }
            let once = behind.get(&*cte.ctename).copied().unwrap_or(0) <= 1;
            let inline = match &cte.materialized {
                Some(true) => false,
                Some(false) => true,
                None => once,
            };
            definitions.extend(self.cte(cte, with.recursive, inline, top)?);
        }
        let body = self.query_without_with(query, true)?;
        self.forget_unused(&mut definitions)?;
        if definitions.is_empty() {
            return Ok(body);
        }
        let body = self.settle_body(body)?;
        Ok(QueryTree::With(definitions, Box::new(body)))
    }

    /// INSERT, UPDATE, DELETE or MERGE with the WITH in front of it.
    pub(crate) fn with_change(&mut self, statement: &Stmt) -> Result<QueryTree> {
        let Some(with) = statement.with_clause() else {
            return self.change(statement);
        };
        let top = std::mem::take(&mut self.top);
        self.frames.push(Frame::new());
        let result = self.with_change_in_frame(with, top, statement);
        self.frames.pop();
        result
    }

    fn with_change_in_frame(
        &mut self,
        with: &ast::WithClause,
        top: bool,
        statement: &Stmt,
    ) -> Result<QueryTree> {
        let mut definitions = Vec::new();
        for cte in in_order(with)? {
            definitions.extend(self.cte(cte, with.recursive, false, top)?);
        }
        let change = self.change(statement)?;
        self.forget_unused(&mut definitions)?;
        Ok(match definitions.is_empty() {
            true => change,
            false => QueryTree::With(definitions, Box::new(change)),
        })
    }

    /// Only definitions that are read, or change something, are kept. Those of a WITH within are there because they are
    /// read.
    fn forget_unused(&mut self, definitions: &mut Vec<Definition>) -> Result<()> {
        let frame = self.frame()?;
        let unused = |slot: usize| frame.ctes.iter().any(|c| c.slot == slot && !c.used);
        definitions.retain(|d| d.body.is_change() || !unused(d.slot));
        Ok(())
    }

    /// INSERT, UPDATE, DELETE or MERGE without its WITH.
    fn change(&mut self, statement: &Stmt) -> Result<QueryTree> {
        let change = self.outside_query(|b| match statement {
            Stmt::Insert(insert) => b.insert(insert),
            Stmt::Update(update) => b.update(update),
            Stmt::Delete(delete) => b.delete(delete),
            Stmt::Merge(merge) => b.merge_statement(merge),
            _ => Err(SqlError::internal("planning of what is no query")),
        })?;
        Ok(QueryTree::Change(Box::new(change)))
    }

    /// Binds a query of WITH that changes something.
    fn changing_cte(&mut self, change: &Stmt) -> Result<QueryTree> {
        let through = self.through.take();
        let target = std::mem::take(&mut self.uses.target);
        let from = self.uses_noted();
        let bound = self.deeper(|b| b.with_change(change));
        self.settle_change(from);
        self.uses.target = target;
        self.through = through;
        bound
    }

    /// Binds a query of WITH. There is no definition if it is to be read where it is named, which only what is neither
    /// recursive nor volatile nor locks rows may be.
    pub(crate) fn cte(
        &mut self,
        cte: &ast::CommonTableExpr,
        recursive: bool,
        inline: bool,
        top: bool,
    ) -> Result<Vec<Definition>> {
        let name = cte.ctename.to_string();
        let at = self.at(cte.location);
        if self.frame()?.ctes.iter().any(|c| c.name == name) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_ALIAS,
                format!("WITH query name \"{name}\" specified more than once"),
            )
            .at(at));
        }
        let search = cte.search_clause.as_ref().map(|s| ("SEARCH", s.location));
        let cycle = cte.cycle_clause.as_ref().map(|c| ("CYCLE", c.location));
        if let Some((word, location)) = search.or(cycle) {
            let error = SqlError::unsupported(format!("{word} of a recursive query"));
            return Err(error.at(self.at(location)));
        }
        let renames = cte.aliascolnames.as_slice();
        let query = match &*cte.ctequery {
            Stmt::Select(query) => Some(query),
            Stmt::Merge(_) => {
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "MERGE not supported in WITH query",
                )
                .at(at));
            }
            _ => None,
        };
        let Some(query) = query else {
            if recursive && mentions(&cte.ctequery, &name) {
                let message = format!(
                    "recursive query \"{name}\" must not contain data-modifying statements"
                );
                return Err(SqlError::new(INVALID_RECURSION, message).at(at));
            }
            let body = self.changing_cte(&cte.ctequery)?;
            if !top {
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "WITH clause containing a data-modifying statement must be at the top level",
                )
                .at(at));
            }
            let slot = self.slot();
            let columns = cte_columns(&self.range.body_columns(&body), renames, &name)?;
            let returns = body.gives_rows();
            self.frame()?.ctes.push(Cte {
                name: name.clone(),
                slot,
                columns,
                used: false,
                recursive_now: false,
                returns,
                inlined: None,
            });
            return Ok(vec![Definition {
                slot,
                name: name.into(),
                body,
                recursive: None,
            }]);
        };
        if recursive && recursion::names(query, &name) {
            return self.recursive_cte(query, name, renames, at);
        }
        let slot = self.slot();
        let before = std::mem::replace(&mut self.volatile, false);
        let bound = self.deeper(|b| b.query_body(query, true));
        let volatile = std::mem::replace(&mut self.volatile, before);
        self.volatile |= volatile;
        let body = bound?;
        let columns = cte_columns(&self.range.body_columns(&body), renames, &name)?;
        let inline = inline && !volatile && self.inlines && locks(query).is_empty();
        let body = match inline {
            true => None,
            false => Some(self.settle_body(body)?),
        };
        self.frame()?.ctes.push(Cte {
            name: name.clone(),
            slot,
            columns,
            used: false,
            recursive_now: false,
            returns: true,
            inlined: inline.then(|| Arc::from(query.clone())),
        });
        let definition = body.map(|body| Definition {
            slot,
            name: name.into(),
            body,
            recursive: None,
        });
        Ok(definition.into_iter().collect())
    }

    /// Binds a query of WITH RECURSIVE that names itself. What its own WITH defines comes before it.
    fn recursive_cte(
        &mut self,
        query: &SelectStmt,
        name: String,
        renames: &[Name],
        at: Option<usize>,
    ) -> Result<Vec<Definition>> {
        let terms = recursion::terms(query, &name).map_err(|e| e.at(at))?;
        self.frames.push(Frame::new());
        let bound = self.within_query(|b| b.recursive_in_frame(query, terms, name, renames));
        self.frames.pop();
        let (definitions, own) = bound?;
        self.frame()?.ctes.push(own);
        Ok(definitions)
    }

    fn recursive_in_frame(
        &mut self,
        query: &SelectStmt,
        terms: &SetOp,
        name: String,
        renames: &[Name],
    ) -> Result<(Vec<Definition>, Cte)> {
        let mut definitions = Vec::new();
        if let Some(with) = &query.with_clause {
            for cte in in_order(with)? {
                definitions.extend(self.cte(cte, with.recursive, false, false)?);
            }
        }
        let slot = self.slot();
        let body = self.query_body(&terms.larg, true)?;
        let first = self.settle_body(body)?;
        let columns = cte_columns(&self.range.body_columns(&first), renames, &name)?;
        let types: Vec<SqlType> = columns.iter().map(|(_, ty)| *ty).collect();
        self.frame()?.ctes.push(Cte {
            name: name.clone(),
            slot,
            columns,
            used: false,
            recursive_now: true,
            returns: true,
            inlined: None,
        });
        let body = self.query_body(&terms.rarg, false)?;
        let found = body.types();
        if found.len() != types.len() {
            return Err(columns_differ("UNION"));
        }
        for (i, (want, found)) in types.iter().zip(&found).enumerate() {
            let overall = self.common(&[(*want, None), (*found, None)], "UNION")?;
            // Of types with two different modifiers the common one has none.
            let modified = want.typmod >= 0 && found.typmod >= 0 && want.typmod != found.typmod;
            if overall.oid != want.oid || modified {
                return Err(SqlError::new(
                    SqlState::DATATYPE_MISMATCH,
                    format!(
                        "recursive query \"{name}\" column {} has type {} in non-recursive term but type {} overall",
                        i + 1,
                        self.types().format_type(*want),
                        self.types().format_type(overall)
                    ),
                )
                .hint("Cast the output of the non-recursive term to the correct type."));
            }
        }
        if !terms.all {
            super::hashing::recursive_union(&types, self.user_types())?;
        }
        let second = self.body_as(body, &types)?;
        let Some(mut own) = self.frame()?.ctes.pop() else {
            return Err(SqlError::internal(
                "a recursive query is not known to itself",
            ));
        };
        own.recursive_now = false;
        own.used = false;
        self.forget_unused(&mut definitions)?;
        definitions.push(Definition {
            slot,
            name: name.into(),
            body: first,
            recursive: Some((second, terms.all)),
        });
        Ok((definitions, own))
    }

    /// A FROM item that names a WITH query in sight.
    pub(crate) fn cte_reference(
        &mut self,
        name: &str,
        alias: Option<&Alias>,
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
        if !cte.returns {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("WITH query \"{name}\" does not have a RETURNING clause"),
            ));
        }
        let columns = cte
            .columns
            .into_iter()
            .map(|(name, ty)| (name, ty, None))
            .collect();
        let source = match &cte.inlined {
            None => RelSource::Cte { slot: cte.slot },
            Some(query) => self.inlined(query, depth, at)?,
        };
        self.add_item(source, columns, name, alias).map(Some)
    }
}

impl Binder<'_> {
    /// Binds a query of WITH where it is named: with what is in sight where it stands, in the frame at `depth` behind
    /// the `at` queries before it.
    fn inlined(&mut self, query: &SelectStmt, depth: usize, at: usize) -> Result<RelSource> {
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
        self.subquery_source(body, own, false, true)
    }
}

/// The queries of WITH in an order in which none reads one behind it. As written, but for RECURSIVE.
fn in_order(with: &ast::WithClause) -> Result<Vec<&ast::CommonTableExpr>> {
    let mut left: Vec<&ast::CommonTableExpr> = with.ctes.iter().collect();
    if !with.recursive {
        return Ok(left);
    }
    let mut names: Vec<&str> = left.iter().map(|cte| &*cte.ctename).collect();
    let twice = (1..names.len()).any(|i| names[..i].contains(&names[i]));
    let mut ordered = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let ready = left.iter().enumerate().position(|(i, cte)| {
            let others = names.iter().enumerate().filter(|(other, _)| *other != i);
            let mut others = others.map(|(_, name)| name);
            !others.any(|name| mentions(&cte.ctequery, name) && !defines(&cte.ctequery, name))
        });
        let next = match ready {
            Some(next) => next,
            // The error is that of the name.
            None if twice => 0,
            None => {
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "mutual recursion between WITH items is not implemented",
                ));
            }
        };
        ordered.push(left.remove(next));
        names.remove(next);
    }
    Ok(ordered)
}

/// Whether a query of WITH in a query has this name.
fn defines(query: &Stmt, name: &str) -> bool {
    struct Find<'n>(&'n str);
    impl ast::Visitor for Find<'_> {
        type Break = ();

        fn pre_visit_with(&mut self, with: &ast::WithClause) -> ControlFlow<()> {
            match with.ctes.iter().any(|cte| *cte.ctename == *self.0) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }
    }
    ast::Visit::visit(query, &mut Find(name)).is_break()
}

/// 42P19.
const INVALID_RECURSION: SqlState = SqlState::new(b"42P19");

/// How often a query names each relation without a schema.
fn mentioned(query: &impl ast::Visit) -> HashMap<String, usize> {
    let mut found: HashMap<String, usize> = HashMap::new();
    let _all = ast::visit_relations(query, |item: &RangeVar| {
        if let Some(name) = item.bare_name() {
            *found.entry(name.to_string()).or_default() += 1;
        }
        std::ops::ControlFlow::<()>::Continue(())
    });
    found
}

/// Whether a query names `table` in some FROM.
fn mentions(query: &Stmt, table: &str) -> bool {
    let flow = ast::visit_relations(query, |item: &RangeVar| {
        match item.bare_name().is_some_and(|name| **name == *table) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    flow.is_break()
}

fn cte_columns(
    columns: &[OutputColumn],
    renames: &[Name],
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
                    .map_or(c.name.as_str(), |name| &**name)
                    .into(),
                c.ty,
            )
        })
        .collect())
}
