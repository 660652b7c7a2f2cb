//! A view's query in the form in which PostgreSQL shows it: `*` written out, columns qualified, names as they are now,
//! types of constants and implicit coercions explicit, sorting and grouping by expressions.
//!
//! The result is a tree again, which `catalog::print_query` lays out. Names are looked up with the binder's own scopes,
//! so that they mean here what they mean when the view is read.

mod columns;
mod from;

use super::explicit_types::{Names, explicit_in, explicit_window};
use super::names::output_name;
use super::scope::NsColumnSource;
use super::system_column::SYSTEM_COLUMNS;
use super::{Binder, Clause, Frame};
use crate::PlanContext;
use logstead_sql_catalog::name_lookup::NameLookup;
use logstead_sql_catalog::{Catalog, Relation, View};
use logstead_sql_parse::ast::{
    self, ColumnRef, Expr as Ast, LockingClause, Name, NodeBox, RangeVar, ResTarget, SelectBody,
    SelectStmt, SetOp, Stmt, Value, VisitMut, VisitorMut,
};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::SqlType;
use logstead_sql_types::value::user::TypeSpelling;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;

/// How a FROM item and its columns are called in the text.
#[derive(Clone, Default)]
struct Shown {
    name: String,
    columns: Vec<String>,
    /// The columns that its alias has to name.
    listed: Vec<String>,
}

/// One query level: what stands for each of the binder's names there.
struct Level {
    frame: usize,
    items: Vec<Shown>,
    /// The columns that its joins merge, of those joins that are still to be shown.
    using: VecDeque<Vec<String>>,
}

struct Definer<'b, 'a> {
    binder: &'b mut Binder<'a>,
    levels: Vec<Level>,
    /// Names that the query around WITH queries has.
    reserved: Vec<String>,
    catalog: &'a Catalog,
    lookup: NameLookup<'a>,
}

/// The query of a view, ready to be printed.
pub fn view_query_shown(
    relation: &Relation,
    view: &Arc<View>,
    cx: &PlanContext<'_>,
) -> Result<SelectStmt> {
    stored_query_shown(relation, view, cx)
}

/// A query that is kept, of a view or of a policy of a table, ready to be printed.
pub(super) fn stored_query_shown(
    relation: &Relation,
    view: &Arc<View>,
    cx: &PlanContext<'_>,
) -> Result<SelectStmt> {
    let mut binder = Binder::new(cx, "");
    binder.inlines = false;
    binder.secures = false;
    binder.stored_body(relation.oid, view, None, |binder, tree| {
        // Views that it reads stay FROM items.
        binder.recorded = Some(Vec::new());
        let mut definer = Definer {
            catalog: cx.catalog,
            lookup: cx.lookup(),
            binder,
            levels: Vec::new(),
            reserved: Vec::new(),
        };
        definer.query(tree)
    })
}

fn located(parts: &[&str]) -> Ast {
    Ast::column_ref(parts.iter().map(|part| Name::from(*part)))
}

/// The binder's scopes as the typer asks them.
struct Scopes<'s, 'b, 'a>(RefCell<&'s mut Definer<'b, 'a>>);

impl Names for Scopes<'_, '_, '_> {
    fn column(&self, name: &[Name]) -> Option<SqlType> {
        self.type_of(&Ast::column_ref(name.iter().cloned()))
    }

    fn row(&self, item: &ColumnRef) -> (Ast, Option<SqlType>) {
        let row = Ast::ColumnRef(Box::new(item.clone()));
        let ty = self.type_of(&row);
        let name = item.fields.last();
        let shown = name.and_then(|name| self.0.borrow().whole_row(name));
        (shown.unwrap_or(row), ty)
    }

    fn type_of(&self, expr: &Ast) -> Option<SqlType> {
        let mut definer = self.0.borrow_mut();
        let binder = &mut *definer.binder;
        let frame = binder.frames.last_mut()?;
        let (aggregates, sets) = (frame.aggregates.len(), frame.sets.len());
        let bound = binder.in_clause(Clause::Select, |b| b.expr(expr)).ok();
        // A domain's value is shown as it is brought to the base type.
        let ty = bound.map(|e| binder.domain_of(&e).map_or(e.ty(), SqlType::of));
        let frame = binder.frames.last_mut()?;
        frame.aggregates.truncate(aggregates);
        frame.sets.truncate(sets);
        ty
    }
}

/// Puts names as they are now, and queries in their shown form, into an expression.
struct Renamer<'s, 'b, 'a> {
    definer: &'s mut Definer<'b, 'a>,
    /// Inside a query, which has been done already.
    depth: usize,
    error: Option<SqlError>,
}

impl VisitorMut for Renamer<'_, '_, '_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut SelectStmt) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut SelectStmt) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Ast) -> ControlFlow<()> {
        if self.depth > 0 {
            return ControlFlow::Continue(());
        }
        self.column_of_row(expr);
        let query = match expr {
            Ast::SubLink(node) => Some(&mut node.subselect),
            _ => None,
        };
        if let Some(query) = query {
            match self.definer.query(query) {
                Ok(shown) => *query = shown,
                Err(error) => {
                    self.error = Some(error);
                    return ControlFlow::Break(());
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Ast) -> ControlFlow<()> {
        if self.depth > 0 {
            return ControlFlow::Continue(());
        }
        let names = expr.column_names();
        if let Some(found) = names.and_then(|names| self.definer.locate(names)) {
            *expr = found;
        }
        ControlFlow::Continue(())
    }
}

impl Renamer<'_, '_, '_> {
    /// A field of an item's row is the item's column.
    fn column_of_row(&self, expr: &mut Ast) {
        let Ast::Indirection(node) = expr else {
            return;
        };
        let Some(item) = node.arg.bare_name() else {
            return;
        };
        let Some(ast::Indirection::Field(field)) = node.indirection.first() else {
            return;
        };
        let row = self.definer.locate(std::slice::from_ref(item));
        if !matches!(row, Some(Ast::TypeCast(_))) {
            return;
        }
        let column = Ast::column_ref([item.clone(), field.clone()]);
        node.indirection.remove(0);
        match node.indirection.is_empty() {
            true => *expr = column,
            false => node.arg = column,
        }
    }
}

impl Definer<'_, '_> {
    /// A column's name as it is shown.
    fn locate(&self, names: &[Name]) -> Option<Ast> {
        for level in self.levels.iter().rev() {
            let ns = &self.binder.frames.get(level.frame)?.ns;
            let (rel, column) = match names {
                [column] => (None, column),
                [rel, column] => (Some((None, rel)), column),
                [schema, rel, column] => (Some((Some(schema), rel)), column),
                _ => return None,
            };
            for (index, item) in ns.iter().enumerate() {
                let here = match rel {
                    None => item.columns_visible,
                    Some((schema, rel)) => {
                        item.rel_visible
                            && *item.alias == **rel
                            && schema.is_none_or(|s| item.schema.as_deref() == Some(s))
                    }
                };
                if !here {
                    continue;
                }
                let found = item.columns.iter().position(|c| {
                    *c.name == **column && !matches!(c.what, NsColumnSource::Gone { .. })
                });
                if let Some(at) = found {
                    return Some(self.shown_column(level, index, at));
                }
            }
            if SYSTEM_COLUMNS.contains(&&**column) {
                let table = ns.iter().position(|item| {
                    item.table.is_some()
                        && match rel {
                            None => item.columns_visible,
                            Some((None, rel)) => item.rel_visible && *item.alias == **rel,
                            Some((Some(_), _)) => false,
                        }
                });
                if let Some(shown) = table.and_then(|index| level.items.get(index)) {
                    return Some(located(&[&shown.name, column]));
                }
            }
        }
        match names {
            [name] => self.whole_row(name),
            _ => None,
        }
    }

    /// The row of an item, cast to its type: `item.*::type`. The printer leaves the cast away where the text means a
    /// row without it.
    fn whole_row(&self, name: &str) -> Option<Ast> {
        for level in self.levels.iter().rev() {
            let ns = &self.binder.frames.get(level.frame)?.ns;
            let found = ns.iter().zip(&level.items).find(|(item, shown)| {
                item.rel_visible && *item.alias == *name && !shown.name.is_empty()
            });
            let Some((item, shown)) = found else { continue };
            if item.scalar {
                return None;
            }
            let own = match item.composite {
                None => item.row.and_then(|row| self.catalog.types.row_type(row)),
                Some(composite) => Some(SqlType::of(composite)),
            };
            let row = Ast::all_columns(&shown.name);
            let ty = own.unwrap_or(SqlType::of(logstead_sql_types::value::oid::RECORD));
            return Some(self.cast(row, ty));
        }
        None
    }

    /// Column `at` of a level's item as it is shown: under the table it comes from, unless a join has merged it.
    fn shown_column(&self, level: &Level, index: usize, at: usize) -> Ast {
        let ns = &self.binder.frames[level.frame].ns;
        let column = &ns[index].columns[at];
        let own = |index: usize, at: usize| {
            let shown = &level.items[index];
            located(&[&shown.name, &shown.columns[at]])
        };
        if !level.items[index].name.is_empty() {
            return own(index, at);
        }
        if let NsColumnSource::Column(id) = &column.what {
            for (other, item) in ns.iter().enumerate() {
                let here = item
                    .columns
                    .iter()
                    .position(|c| matches!(c.what, NsColumnSource::Column(i) if i == *id));
                // What has an alias around it is named by that.
                if let Some(here) = here
                    && item.rel_visible
                    && !level.items[other].name.is_empty()
                {
                    return own(other, here);
                }
            }
        }
        located(&[&level.items[index].columns[at]])
    }

    /// An expression cast to a type, as it is shown.
    fn cast(&self, expr: Ast, ty: SqlType) -> Ast {
        super::explicit_types::cast(expr, ty, TypeSpelling::named(self.lookup.types()))
    }

    /// An expression in its shown form.
    fn expr(&mut self, expr: &Ast) -> Result<Ast> {
        let lookup = self.lookup;
        let typed = {
            let scopes = Scopes(RefCell::new(self));
            explicit_in(expr, &scopes, lookup)
        };
        self.renamed(typed)
    }

    fn renamed(&mut self, mut expr: Ast) -> Result<Ast> {
        let mut renamer = Renamer {
            definer: self,
            depth: 0,
            error: None,
        };
        let _ = expr.visit(&mut renamer);
        match renamer.error {
            Some(error) => Err(error),
            None => Ok(expr),
        }
    }

    fn query(&mut self, query: &SelectStmt) -> Result<SelectStmt> {
        let mut shown = query.clone();
        let frames = self.binder.frames.len();
        let levels = self.levels.len();
        let done = self.query_parts(query, &mut shown);
        self.binder.frames.truncate(frames);
        self.levels.truncate(levels);
        done.map(|()| shown)
    }

    fn query_parts(&mut self, query: &SelectStmt, shown: &mut SelectStmt) -> Result<()> {
        match &query.with_clause {
            Some(with) => self.with_parts(query, with, shown),
            None => self.body(query, shown),
        }
    }

    fn with_parts(
        &mut self,
        query: &SelectStmt,
        with: &ast::WithClause,
        shown: &mut SelectStmt,
    ) -> Result<()> {
        self.binder.frames.push(Frame::new());
        for cte in &with.ctes {
            self.binder.cte(cte, with.recursive, false, false)?;
        }
        // The query itself comes first: names inside of the WITH queries give way to its own.
        let (frame, level) = (self.binder.frames.len(), self.levels.len());
        self.body(query, shown)?;
        let own = self.levels.iter().skip(level).flat_map(|l| &l.items);
        let own: Vec<String> = own.map(|i| i.name.clone()).collect();
        let reserved = self.reserved.len();
        self.reserved.extend(own);
        self.levels.truncate(level);
        self.binder.frames.truncate(frame);
        let all = std::mem::take(&mut self.binder.frame()?.ctes);
        let shown = shown.with_clause.iter_mut().flat_map(|with| &mut with.ctes);
        for (at, (cte, shown)) in with.ctes.iter().zip(shown).enumerate() {
            // A WITH query sees those before it, and a recursive one itself.
            let seen = all
                .get(..at + usize::from(with.recursive))
                .unwrap_or_default();
            self.binder.frame()?.ctes = seen.to_vec();
            if let Stmt::Select(query) = &*cte.ctequery {
                shown.ctequery = NodeBox::new(Stmt::Select(Box::new(self.query(query)?)));
            }
        }
        self.binder.frame()?.ctes = all;
        self.reserved.truncate(reserved);
        Ok(())
    }

    /// The query without its WITH.
    fn body(&mut self, query: &SelectStmt, shown: &mut SelectStmt) -> Result<()> {
        shown.body = match &query.body {
            SelectBody::Select(core) => {
                SelectBody::Select(Box::new(self.select(core, query, shown)?))
            }
            SelectBody::SetOp(operation) => {
                let larg = self.query(&operation.larg)?;
                let rarg = self.query(&operation.rarg)?;
                self.positions(shown, &output_names(&larg));
                SelectBody::SetOp(NodeBox::new(SetOp {
                    larg,
                    rarg,
                    ..**operation
                }))
            }
            SelectBody::Values(rows) => {
                let bound = self.binder.values(rows, true)?;
                let types = bound.types();
                let mut rows = rows.clone();
                self.binder.frames.push(Frame::new());
                for row in &mut rows {
                    for (at, e) in row.iter_mut().enumerate() {
                        // NULL has its column's type.
                        let null = e.is_null();
                        *e = match types.get(at).filter(|_| null) {
                            Some(ty) => self.cast(e.clone(), *ty),
                            // All columns of an item stay what they are.
                            None if matches!(e, Ast::ColumnRef(column) if column.star) => continue,
                            None => self.expr(e)?,
                        };
                    }
                }
                self.binder.frames.pop();
                SelectBody::Values(rows)
            }
        };
        Ok(())
    }

    /// ORDER BY of a set operation: by the number of the column.
    fn positions(&self, shown: &mut SelectStmt, names: &[String]) {
        for item in &mut shown.sort_clause {
            if let Some(name) = item.node.bare_name()
                && let Some(at) = names.iter().position(|n| **n == **name)
            {
                item.node = number(at + 1);
            }
        }
    }

    fn select(
        &mut self,
        select: &ast::SelectCore,
        query: &SelectStmt,
        shown_query: &mut SelectStmt,
    ) -> Result<ast::SelectCore> {
        let mut shown = select.clone();
        self.binder.frames.push(Frame::new());
        let frame = self.binder.frames.len() - 1;
        self.binder.bind_from(&select.from_clause)?;
        let (items, using) = self.names(&select.from_clause);
        self.levels.push(Level {
            frame,
            items,
            using,
        });
        let mut at = 0;
        for (item, shown) in select.from_clause.iter().zip(&mut shown.from_clause) {
            self.table_ref(item, shown, &mut at)?;
        }

        // The select list, `*` written out; each with its name.
        let mut list: Vec<(Ast, Ast, String)> = Vec::new();
        for item in &select.target_list {
            match (&item.val, &item.name) {
                (None, _) => return Err(SqlError::internal("a result without a value")),
                (Some(Ast::ColumnRef(column)), _) if column.star => {
                    self.star(column.fields.last().map(|item| &**item), &mut list);
                }
                (Some(e), Some(name)) => {
                    list.push((e.clone(), self.expr(e)?, name.to_string()));
                }
                (Some(e), None) if logstead_sql_parse::all_fields(e).is_some() => {
                    return Err(SqlError::unsupported(
                        "the definition of a view with (expression).*",
                    ));
                }
                (Some(e), None) => list.push((
                    e.clone(),
                    self.expr(e)?,
                    output_name(e, &self.catalog.types),
                )),
            }
        }
        let targets = list.iter();
        let targets =
            targets.map(|(_, e, name)| ResTarget::of(Some(name.as_str().into()), e.clone()));
        shown.target_list = targets.collect();
        if let Some(condition) = &select.where_clause {
            shown.where_clause = Some(self.expr(condition)?);
        }
        if let Some(having) = &select.having_clause {
            shown.having_clause = Some(self.expr(having)?);
        }
        for item in &mut shown.group_clause {
            self.group_item(item, &list)?;
        }
        for window in &mut shown.window_clause {
            self.window(window)?;
        }
        shown_query.locking_clause = self.locks(&query.locking_clause);
        if let ast::Distinct::On(items) = &mut shown.distinct {
            for item in items {
                *item = self.key(item, &list, false)?;
            }
        }
        for (item, shown) in query.sort_clause.iter().zip(&mut shown_query.sort_clause) {
            shown.node = self.key(&item.node, &list, false)?;
        }
        Ok(shown)
    }

    /// An element of GROUP BY, grouping sets within it.
    fn group_item(
        &mut self,
        item: &mut ast::GroupingItem,
        list: &[(Ast, Ast, String)],
    ) -> Result<()> {
        match item {
            ast::GroupingItem::Expr(expr) => self.group_key(expr, list)?,
            ast::GroupingItem::Empty(_) => {}
            ast::GroupingItem::Rollup(exprs, _) | ast::GroupingItem::Cube(exprs, _) => {
                for expr in exprs {
                    self.group_key(expr, list)?;
                }
            }
            ast::GroupingItem::Sets(items, _) => {
                for item in items {
                    self.group_item(item, list)?;
                }
            }
        }
        Ok(())
    }

    /// A key of GROUP BY, or several in parentheses.
    fn group_key(&mut self, expr: &mut Ast, list: &[(Ast, Ast, String)]) -> Result<()> {
        let keys = match expr {
            Ast::RowExpr(node) if !node.is_explicit => node.args.as_mut_slice(),
            key => std::slice::from_mut(key),
        };
        for key in keys {
            *key = self.key(key, list, true)?;
        }
        Ok(())
    }

    /// The definition of a named window.
    fn window(&mut self, spec: &mut ast::WindowDef) -> Result<()> {
        let lookup = self.lookup;
        explicit_window(spec, &Scopes(RefCell::new(self)), lookup);
        let keys = spec.order_clause.iter_mut().map(|item| &mut item.node);
        for e in spec.partition_clause.iter_mut().chain(keys) {
            *e = self.renamed(e.clone())?;
        }
        if let Some(frame) = &mut spec.frame {
            for bound in [Some(&mut frame.start), frame.end.as_mut()] {
                if let Some(e) = bound.and_then(ast::FrameBound::offset_mut) {
                    *e = self.renamed(e.clone())?;
                }
            }
        }
        Ok(())
    }

    /// Locking clauses, one for each item of FROM whose rows are locked.
    fn locks(&self, locks: &[LockingClause]) -> Vec<LockingClause> {
        let mut shown: Vec<LockingClause> = Vec::new();
        let Some(level) = self.levels.last() else {
            return shown;
        };
        let ns = &self.binder.frames[level.frame].ns;
        for lock in locks {
            let names = lock.locked_rels.iter();
            let names: Vec<&Name> = names.filter_map(RangeVar::bare_name).collect();
            for (item, own) in ns.iter().zip(&level.items) {
                let listed = names.iter().any(|name| ***name == *item.alias);
                let locked = match names.is_empty() {
                    true => self.relation_of(item).is_some(),
                    false => listed,
                };
                if !locked || own.name.is_empty() {
                    continue;
                }
                shown.push(LockingClause {
                    locked_rels: vec![RangeVar::named(&own.name)],
                    ..*lock
                });
            }
        }
        shown
    }

    /// Something to sort or group by: a column of the list by its number or name is its expression.
    fn key(&mut self, item: &Ast, list: &[(Ast, Ast, String)], group: bool) -> Result<Ast> {
        if let Some(Value::Integer(at)) = item.constant()
            && let Ok(at) = usize::try_from(*at)
            && let Some((_, shown, _)) = at.checked_sub(1).and_then(|i| list.get(i))
        {
            return Ok(shown.clone());
        }
        if let Some(name) = item.bare_name() {
            let found = list.iter().find(|(_, _, n)| **n == **name);
            let own = self.own_column(name);
            if let Some((_, shown, _)) = found
                && !(group && own)
            {
                return Ok(shown.clone());
            }
        }
        self.expr(item)
    }

    /// Is it a column of this level's FROM?
    fn own_column(&self, name: &str) -> bool {
        let items = self.binder.frames.last().map(|f| f.ns.as_slice());
        items.unwrap_or_default().iter().any(|i| {
            i.columns_visible
                && i.columns
                    .iter()
                    .any(|c| *c.name == *name && !matches!(c.what, NsColumnSource::Gone { .. }))
        })
    }

    fn star(&self, rel: Option<&str>, list: &mut Vec<(Ast, Ast, String)>) {
        let Some(level) = self.levels.last() else {
            return;
        };
        for (index, item) in self.binder.frames[level.frame].ns.iter().enumerate() {
            let here = match rel {
                None => item.columns_visible,
                Some(rel) => item.rel_visible && *item.alias == *rel,
            };
            if !here {
                continue;
            }
            for (at, column) in item.columns.iter().enumerate() {
                if !matches!(column.what, NsColumnSource::Gone { .. }) {
                    let shown = self.shown_column(level, index, at);
                    list.push((shown.clone(), shown, column.name.to_string()));
                }
            }
        }
    }
}

fn number(n: usize) -> Ast {
    Ast::number(&n.to_string())
}

/// The names of a query's columns.
fn output_names(query: &SelectStmt) -> Vec<String> {
    match &query.body {
        SelectBody::Select(core) => { core.target_list.iter() }
            .map(|target| target.column().to_owned())
            .collect(),
        SelectBody::SetOp(operation) => output_names(&operation.larg),
        SelectBody::Values(rows) => (1..=rows.first().map_or(0, Vec::len))
            .map(|i| format!("column{i}"))
            .collect(),
    }
}
