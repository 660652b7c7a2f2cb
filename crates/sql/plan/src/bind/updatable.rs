//! Views that INSERT, UPDATE and DELETE go through: those that pick rows and columns of one table, or of another such
//! view.
//!
//! The statement is bound to the table itself. [`ViewTarget`] says what the view's columns are in it, which of its rows
//! the view shows (UPDATE and DELETE touch no others), and what WITH CHECK OPTION asks of the rows written.

use super::access::{NOBODYS, Slot};
use super::scope::NsColumnSource;
use super::select::push_conjuncts;
use super::{Binder, COLUMN_BASE, Clause, Frame, RelSource};
use crate::query::Output;
use crate::query::expr::Expr;
use crate::{Check, CheckKind, Layout, PlanContext, walk};
use logstead_sql_catalog::{Relation, RelationKind, View, ViewSource};
use logstead_sql_parse::CheckOption;
use logstead_sql_parse::ast::{self, Alias, RangeVar, SelectBody, TableRef};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use std::sync::Arc;

const NO_COLUMN: Detail = "Views that have no updatable columns are not automatically updatable.";
const NOT_A_COLUMN: &str =
    "View columns that are not columns of their base relation are not updatable.";

/// What a statement does through a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Insert,
    Update,
    Delete,
}

/// A view between a statement and the table it changes.
#[derive(Clone)]
pub(crate) struct ViewTarget {
    /// The view that the statement names.
    pub view: Arc<Relation>,
    /// The table.
    pub base: Arc<Relation>,
    /// Position in the table of each of the view's columns; none for what is computed.
    pub columns: Vec<Option<usize>>,
    verb: Verb,
}

impl ViewTarget {
    /// Is the view's column of this name one that it computes?
    pub(super) fn computes(&self, name: &str) -> bool {
        let mut all = self.view.columns.iter().zip(&self.columns);
        all.any(|(column, base)| !column.dropped && column.name == name && base.is_none())
    }

    /// An expression over the view's columns as one over the table's; none if it reads one that the view computes.
    pub(super) fn over_base(&self, mut expr: Expr) -> Option<Expr> {
        self.rebase(&mut expr).then_some(expr)
    }

    fn rebase(&self, expr: &mut Expr) -> bool {
        if let Expr::Column(position, _) = expr {
            let base = self.columns.get(*position).copied().flatten();
            if let Some(base) = base {
                *position = base;
            }
            return base.is_some();
        }
        let mut all = true;
        walk::children_mut(expr, &mut |child| all = self.rebase(child) && all);
        all
    }
}

/// A view's query over its table, opened as a FROM item.
struct ExpandedView {
    base: Arc<Relation>,
    rel: usize,
    /// The view's columns over the table's.
    columns: Vec<Expr>,
    /// The conditions of the view and of those under it, outermost first.
    conditions: Vec<(Arc<Relation>, Arc<View>, Vec<Expr>)>,
}

/// Why nothing goes through a view: PostgreSQL's words.
type Detail = &'static str;

const SINGLE: Detail =
    "Views that do not select from a single table or view are not automatically updatable.";

const INSTEAD_BELOW: Detail = "Views of views with INSTEAD OF triggers are not updatable here.";

/// A view that nothing goes through.
struct Refusal {
    view: String,
    detail: Detail,
}

/// What PostgreSQL says of a view that a statement cannot go through.
fn refused(verb: Verb, refusal: &Refusal) -> SqlError {
    let (what, doing, event) = match verb {
        Verb::Insert => ("insert into", "inserting into", "INSERT"),
        Verb::Update => ("update", "updating", "UPDATE"),
        Verb::Delete => ("delete from", "deleting from", "DELETE"),
    };
    SqlError::new(
        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("cannot {what} view \"{}\"", refusal.view),
    )
    .detail(refusal.detail)
    .hint(format!(
        "To enable {doing} the view, provide an INSTEAD OF {event} trigger or an unconditional ON {event} DO INSTEAD rule."
    ))
}

/// The SELECT of a query that picks rows and columns of one table, and that table.
fn simple(query: &ast::SelectStmt) -> std::result::Result<(&ast::SelectCore, &RangeVar), Detail> {
    let select = query.core();
    if let Some(select) = select {
        let grouped = !select.group_clause.is_empty();
        if select.distinct != ast::Distinct::No {
            return Err("Views containing DISTINCT are not automatically updatable.");
        }
        if grouped {
            return Err("Views containing GROUP BY are not automatically updatable.");
        }
        if select.having_clause.is_some() {
            return Err("Views containing HAVING are not automatically updatable.");
        }
    }
    if matches!(query.body, SelectBody::SetOp(_)) {
        return Err(
            "Views containing UNION, INTERSECT, or EXCEPT are not automatically updatable.",
        );
    }
    if query.with_clause.is_some() {
        return Err("Views containing WITH are not automatically updatable.");
    }
    if query.limit.is_some() {
        return Err("Views containing LIMIT or OFFSET are not automatically updatable.");
    }
    let Some(select) = select else {
        return Err(SINGLE);
    };
    match select.from_clause.as_slice() {
        [TableRef::RangeVar(item)] => Ok((select, item)),
        _ => Err(SINGLE),
    }
}

impl Binder<'_> {
    /// Opens the table under a view, with everything between. Unless that is `noted` already, it is noted as what is
    /// under the target.
    fn open_view(
        &mut self,
        relation: &Arc<Relation>,
        view: &Arc<View>,
        noted: bool,
    ) -> Result<std::result::Result<ExpandedView, Refusal>> {
        self.reads(relation);
        let refuse = |detail| Refusal {
            view: relation.name.clone(),
            detail,
        };
        let outer_view = Arc::clone(view);
        self.view_body(relation, view, |b, tree| {
            let (select, item) = match simple(tree) {
                Ok(parts) => parts,
                Err(detail) => return Ok(Err(refuse(detail))),
            };
            b.frames.push(Frame::new());
            let opened = b.open_select(select, item, &outer_view, &refuse, noted);
            b.frames.pop();
            let (mut opened, conditions) = match opened? {
                Ok(opened) => opened,
                Err(refusal) => return Ok(Err(refusal)),
            };
            opened.conditions.insert(
                0,
                (Arc::clone(relation), Arc::clone(&outer_view), conditions),
            );
            Ok(Ok(opened))
        })
    }

    fn open_select(
        &mut self,
        select: &ast::SelectCore,
        item: &RangeVar,
        view: &Arc<View>,
        refuse: &dyn Fn(Detail) -> Refusal,
        noted: bool,
    ) -> Result<std::result::Result<(ExpandedView, Vec<Expr>), Refusal>> {
        let alias = item.alias.as_deref();
        let Some(source) = view.source(item) else {
            return Ok(Err(refuse(SINGLE)));
        };
        let inner = self.source_relation(source)?;
        let slots: Vec<Slot>;
        let mut opened = match &inner.kind {
            RelationKind::Table => {
                self.reads(&inner);
                let rows = RelSource::Table(Arc::clone(&inner));
                let rel = self.attached(NOBODYS, |b| {
                    b.relation_item(&inner, rows, alias, Some(source))
                })?;
                let first = self.range.rels[rel].first;
                slots = (0..inner.columns.len())
                    .map(|i| Slot::Column(first + i))
                    .collect();
                ExpandedView {
                    columns: Vec::new(),
                    base: Arc::clone(&inner),
                    rel,
                    conditions: Vec::new(),
                }
            }
            RelationKind::View(_) if self.has_instead(&inner) => {
                return Ok(Err(refuse(INSTEAD_BELOW)));
            }
            RelationKind::View(under) => {
                let opened = match self.open_view(&inner, under, noted)? {
                    Ok(opened) => opened,
                    Err(refusal) => return Ok(Err(refusal)),
                };
                slots = self.push_view(&inner, &opened.columns, alias, Some(source))?;
                opened
            }
            _ => return Ok(Err(refuse(SINGLE))),
        };
        let under = (!noted).then(|| {
            let number = self.note_use(&inner, 0, false, slots.clone());
            self.uses.target.insert(0, number);
            number
        });
        let mut outputs: Vec<Output> = Vec::new();
        self.in_clause(Clause::Select, |b| {
            b.select_list(&select.target_list, &mut outputs)
        })?;
        let frame = self.frame()?;
        if !frame.aggregates.is_empty() {
            return Ok(Err(refuse(
                "Views that return aggregate functions are not automatically updatable.",
            )));
        }
        if !frame.windows.is_empty() {
            return Ok(Err(refuse(
                "Views that return window functions are not automatically updatable.",
            )));
        }
        if !frame.sets.is_empty() {
            return Ok(Err(refuse(
                "Views that return set-returning functions are not automatically updatable.",
            )));
        }
        let mut columns = Vec::with_capacity(outputs.len());
        for output in outputs {
            columns.push(self.settle(output.expr)?);
        }
        let mut conditions = Vec::new();
        if let Some(selection) = &select.where_clause {
            let condition =
                self.in_clause(Clause::Where, |b| b.condition_of(selection, "WHERE"))?;
            push_conjuncts(condition, &mut conditions);
        }
        // What is named from here on is named of the view.
        match under {
            Some(number) => self.settle_under(number, &slots),
            None => self.forget_all_named(&slots),
        }
        opened.columns = columns;
        Ok(Ok((opened, conditions)))
    }

    /// Puts a view's columns into the innermost frame.
    fn push_view(
        &mut self,
        relation: &Arc<Relation>,
        columns: &[Expr],
        alias: Option<&Alias>,
        source: Option<&ViewSource>,
    ) -> Result<Vec<Slot>> {
        let what: Vec<NsColumnSource> = columns.iter().map(|e| self.view_column(e)).collect();
        let slots = Self::slots_of(&what);
        let item = self.relation_names(relation, what, alias, source)?;
        self.frame()?.ns.push(item);
        Ok(slots)
    }

    /// The table under the view that a statement names, remembered for the rest of the statement.
    pub(crate) fn target_through(
        &mut self,
        relation: &Arc<Relation>,
        view: &Arc<View>,
        verb: Verb,
    ) -> Result<Arc<Relation>> {
        let opened = self.open_view(relation, view, false)?;
        let opened = opened.map_err(|refusal| match refusal.detail {
            INSTEAD_BELOW => {
                SqlError::unsupported("a change through a view of a view with INSTEAD OF triggers")
            }
            _ => refused(verb, &refusal),
        })?;
        let slots = opened.columns.iter().map(|e| match e {
            Expr::Column(id, _) if *id >= COLUMN_BASE => Slot::Column(*id),
            _ => Slot::Gone,
        });
        let slots = slots.collect();
        let number = self.note_use(relation, 0, false, slots);
        self.uses.target.insert(0, number);
        let (first, width) = (
            self.range.rels[opened.rel].first,
            self.range.rels[opened.rel].width,
        );
        let position = |e: &Expr| match e {
            Expr::Column(id, _) => id.checked_sub(first).filter(|p| *p < width),
            _ => None,
        };
        let columns: Vec<Option<usize>> = opened.columns.iter().map(position).collect();
        if verb != Verb::Delete && columns.iter().all(Option::is_none) {
            let refusal = Refusal {
                view: relation.name.clone(),
                detail: NO_COLUMN,
            };
            return Err(refused(verb, &refusal));
        }
        let base = Arc::clone(&opened.base);
        self.tables_read.retain(|r| r.oid != base.oid);
        self.through = Some(Arc::new(ViewTarget {
            view: Arc::clone(relation),
            columns,
            base: Arc::clone(&base),
            verb,
        }));
        Ok(base)
    }

    /// The view that the statement names instead of `relation`.
    pub(crate) fn through(&self, relation: &Relation) -> Option<Arc<ViewTarget>> {
        let through = self.through.as_ref()?;
        (through.base.oid == relation.oid).then(|| Arc::clone(through))
    }

    /// Opens the table under the view in the innermost frame, where the view's columns are in sight. The FROM item, and
    /// the conditions under which the view shows a row.
    pub(crate) fn open_through(
        &mut self,
        through: &ViewTarget,
        alias: Option<&Alias>,
    ) -> Result<(usize, Vec<Expr>)> {
        let RelationKind::View(view) = &through.view.kind else {
            return Err(SqlError::internal("a table stands for a view"));
        };
        let read = self.tables_read.iter().any(|r| r.oid == through.base.oid);
        let opened = self.open_view(&through.view, view, true)?;
        let opened = opened.map_err(|refusal| refused(through.verb, &refusal))?;
        if !read {
            self.tables_read.retain(|r| r.oid != through.base.oid);
        }
        let slots = self.push_view(&through.view, &opened.columns, alias, None)?;
        self.see_target(slots);
        let shown = self.frame()?.ns.last().map(|item| item.alias.clone());
        if let Some(shown) = shown {
            self.range.rels[opened.rel].shown = shown;
        }
        let conditions = opened.conditions.into_iter().flat_map(|(_, _, c)| c);
        Ok((opened.rel, conditions.collect()))
    }

    /// What WITH CHECK OPTION of the views between asks of a row of the table, innermost view first.
    pub(crate) fn view_checks(&mut self, relation: &Relation) -> Result<Vec<Check>> {
        let Some(through) = self.through(relation) else {
            return Ok(Vec::new());
        };
        let RelationKind::View(view) = &through.view.kind else {
            return Ok(Vec::new());
        };
        let read = self.tables_read.iter().any(|r| r.oid == through.base.oid);
        let opened = self.open_view(&through.view, view, true)?;
        let opened = opened.map_err(|refusal| refused(through.verb, &refusal))?;
        if read {
            self.reads(&through.base);
        } else {
            self.tables_read.retain(|r| r.oid != through.base.oid);
        }
        let (first, width) = (
            self.range.rels[opened.rel].first,
            self.range.rels[opened.rel].width,
        );
        let layout = Layout::new((first..first + width).collect());
        let mut checks = Vec::new();
        let mut cascaded = false;
        for (relation, view, conditions) in opened.conditions {
            cascaded |= view.check == Some(CheckOption::Cascaded);
            if !(cascaded || view.check.is_some()) {
                continue;
            }
            if let Some(condition) = super::and(conditions) {
                if walk::has_subquery(&condition) {
                    return Err(SqlError::unsupported(
                        "WITH CHECK OPTION over a condition with a subquery",
                    ));
                }
                let mut holds = Expr::IsBool {
                    arg: Box::new(condition),
                    value: Some(true),
                    negated: false,
                };
                self.put_over_row(&mut holds, &layout)?;
                checks.push(Check {
                    name: relation.name.clone(),
                    expr: holds,
                    kind: CheckKind::View,
                });
            }
        }
        checks.reverse();
        Ok(checks)
    }
}

impl ViewTarget {
    /// The table's column under a column of the view.
    pub(crate) fn base_position(&self, position: usize) -> Result<usize> {
        let found = self.columns.get(position).copied().flatten();
        found.ok_or_else(|| {
            let column = self.view.columns.get(position);
            let what = match self.verb {
                Verb::Insert => "insert into",
                _ => "update",
            };
            SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!(
                    "cannot {what} column \"{}\" of view \"{}\"",
                    column.map_or("?", |c| c.name.as_str()),
                    self.view.name
                ),
            )
            .detail(NOT_A_COLUMN)
        })
    }

    /// The view's column over a column of the table that has a default of its own.
    pub(crate) fn default_for(&self, position: usize) -> Option<usize> {
        (0..self.columns.len()).find(|at| {
            self.columns[*at] == Some(position)
                && self
                    .view
                    .columns
                    .get(*at)
                    .is_some_and(|c| c.default.is_some())
        })
    }
}

/// Which of a view's columns can be changed through it; none if nothing can.
pub fn updatable_columns(relation: &Arc<Relation>, cx: &PlanContext<'_>) -> Option<Vec<bool>> {
    let RelationKind::View(view) = &relation.kind else {
        return None;
    };
    let mut binder = Binder::new(cx, "");
    binder.secures = false;
    let opened = binder.open_view(relation, view, true).ok()?.ok()?;
    let columns = opened.columns.iter();
    Some(
        columns
            .map(|e| matches!(e, Expr::Column(id, _) if *id >= COLUMN_BASE))
            .collect(),
    )
}

/// 0A000 if nothing can be written through a view, and so nothing be checked.
pub fn check_option_allowed(relation: &Arc<Relation>, cx: &PlanContext<'_>) -> Result<()> {
    let RelationKind::View(view) = &relation.kind else {
        return Ok(());
    };
    let mut binder = Binder::new(cx, "");
    binder.secures = false;
    let detail = match binder.open_view(relation, view, true)? {
        Ok(opened) => {
            let plain = |e: &Expr| matches!(e, Expr::Column(..));
            (!opened.columns.iter().any(plain)).then_some(NO_COLUMN)
        }
        Err(refusal) => Some(refusal.detail),
    };
    match detail {
        None => Ok(()),
        Some(detail) => Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "WITH CHECK OPTION is supported only on automatically updatable views",
        )
        .hint(detail)),
    }
}
