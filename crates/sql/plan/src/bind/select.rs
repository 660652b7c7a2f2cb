//! SELECT: the clauses of one query block.

use super::grouped_subquery::groups_by_subquery;
use super::grouping::GroupBy;
use super::names::output_name;
use super::scope::{NsColumnSource, NsItem};
use super::window::window_names;
use super::{Binder, Clause, ColId, Frame, RelSource};
use crate::query::expr::Expr;
use crate::query::{Distinct, From, FromList, Grouping, Output, RowMark, Select, collect_rels};
use crate::{LockWait, OutputColumn, walk};
use logstead_engine::RowLock;
use logstead_sql_catalog::RelationKind;
use logstead_sql_func::CastContext;
use logstead_sql_parse::ast::{
    self, ColumnRef, Expr as Ast, LockStrength, LockWaitPolicy, LockingClause, ResTarget,
};
use logstead_sql_parse::{all_fields, schema_and_name};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, SqlType, oid};
use logstead_types::SqlState;
use std::sync::Arc;

/// The clauses that belong to a query around its SELECT.
#[derive(Default)]
pub(crate) struct Tail<'q> {
    pub(crate) order_by: &'q [ast::SortBy],
    pub limit: Option<&'q Ast>,
    pub offset: Option<&'q Ast>,
    /// FETCH FIRST ... WITH TIES.
    pub ties: bool,
    pub locks: &'q [LockingClause],
}

/// The lock of a row that a locking clause takes.
fn row_lock(strength: LockStrength) -> RowLock {
    match strength {
        LockStrength::Update => RowLock::Update,
        LockStrength::NoKeyUpdate => RowLock::NoKeyUpdate,
        LockStrength::Share => RowLock::Share,
        LockStrength::KeyShare => RowLock::KeyShare,
    }
}

impl Binder<'_> {
    /// Binds one SELECT with the clauses after it. With `settle` off, literals of unknown type stay so in the outputs.
    pub(crate) fn select(
        &mut self,
        select: &ast::SelectCore,
        tail: &Tail<'_>,
        settle: bool,
    ) -> Result<Select> {
        self.frames.push(Frame::new());
        let result = self.select_in_frame(select, tail, settle);
        self.frames.pop();
        result
    }

    fn select_in_frame(
        &mut self,
        select: &ast::SelectCore,
        tail: &Tail<'_>,
        settle: bool,
    ) -> Result<Select> {
        refuse(select)?;
        let inherited = self.whole_conditions;
        self.whole_conditions = inherited || !tail.locks.is_empty();
        // Locked rows are checked again under the whole condition: it stays in one piece.
        let in_pieces = !self.whole_conditions;
        let from = self.in_clause(Clause::From, |b| b.bind_from(&select.from_clause));
        self.whole_conditions = inherited;
        let from = from?;
        let mut rels = Vec::new();
        collect_rels(&from, &mut rels);
        let mut block = Select {
            from,
            may_join_sublinks: in_pieces,
            ..Select::default()
        };

        self.frame()?.clause = Clause::Select;
        self.frame()?.window_names = window_names(&select.window_clause);
        self.frame()?.groups_by_subquery = groups_by_subquery(&select.group_clause);
        self.select_list(&select.target_list, &mut block.outputs)?;
        let plain = tail.order_by.is_empty() && select.distinct == ast::Distinct::No;
        if settle || !plain {
            for output in &mut block.outputs {
                let expr =
                    std::mem::replace(&mut output.expr, Expr::Param(0, SqlType::of(oid::UNKNOWN)));
                output.expr = self.settle(expr)?;
                output.column.ty = output.expr.ty();
            }
        }

        if let Some(selection) = &select.where_clause {
            let condition =
                self.in_clause(Clause::Where, |b| b.condition_of(selection, "WHERE"))?;
            push_conjuncts(condition, &mut block.from.conditions);
        }
        let having = match &select.having_clause {
            Some(having) => {
                let condition =
                    self.in_clause(Clause::Having, |b| b.condition_of(having, "HAVING"))?;
                let mut all = Vec::new();
                push_conjuncts(condition, &mut all);
                Some(all)
            }
            None => None,
        };
        let mut order = match tail.order_by {
            [] => Vec::new(),
            keys => self.in_clause(Clause::OrderBy, |b| b.order_by(keys, &block.outputs))?,
        };
        let groups = self.group_by(select, &block.outputs)?;
        block.distinct = self.distinct(&select.distinct, &mut order, &block.outputs)?;

        let limits = self.limits_apart(tail)?;
        block.windows = self.windows(&select.window_clause)?;
        block.sets = std::mem::take(&mut self.frame()?.sets);
        self.frame()?.sets_at.clear();
        let aggregates = std::mem::take(&mut self.frame()?.aggregates);
        let calls = std::mem::take(&mut self.frame()?.groupings);
        if !aggregates.is_empty() && rels.iter().any(|rel| self.is_recursion(*rel)) {
            return Err(SqlError::new(
                SqlState::new(b"42P19"),
                "aggregate functions are not allowed in a recursive query's recursive term",
            ));
        }
        if groups.is_some() || having.is_some() || !aggregates.is_empty() || !calls.is_empty() {
            let GroupBy {
                keys,
                sets,
                outputs,
                ..
            } = groups.unwrap_or_default();
            for (key, output) in outputs {
                if let (Some((id, key)), Some(output)) =
                    (keys.get(key), block.outputs.get_mut(output))
                {
                    output.expr = Expr::Column(*id, key.ty());
                    output.column.ty = key.ty();
                }
            }
            block.grouped_sets = take_grouped(&mut block.sets, &keys);
            let calls = self.grouping_calls(calls, &keys)?;
            let mut grouping = Grouping {
                keys,
                sets,
                calls,
                aggregates,
                having: Vec::new(),
            };
            let mut having = having.unwrap_or_default();
            for output in &mut block.outputs {
                self.regroup(&mut output.expr, &mut grouping, &rels)?;
            }
            for condition in &mut having {
                self.regroup(condition, &mut grouping, &rels)?;
            }
            for key in &mut order {
                self.regroup(&mut key.expr, &mut grouping, &rels)?;
            }
            for (_, call) in &mut block.sets {
                self.regroup(call, &mut grouping, &rels)?;
            }
            for window in &mut block.windows {
                self.regroup_window(window, &mut grouping, &rels)?;
            }
            if let Distinct::On(keys) = &mut block.distinct {
                for key in keys {
                    self.regroup(key, &mut grouping, &rels)?;
                }
            }
            let direct = std::mem::take(&mut self.frame()?.direct);
            self.check_direct(direct, &mut grouping, &rels)?;
            grouping.having = having;
            super::hashing::grouped(&grouping, self.user_types())?;
            block.grouping = Some(grouping);
        }
        // What nothing is computed over only had to be right.
        block.windows.retain(|window| !window.calls.is_empty());
        block.order = order;
        (block.limit, block.offset) = limits;
        block.ties = tail.ties;
        block.sets_last = !tail.order_by.is_empty() && matches!(block.distinct, Distinct::On(_));
        if !tail.locks.is_empty() {
            block.locks = self.locks(tail.locks, &block, &rels)?;
        }
        Ok(block)
    }

    /// Whether a FROM item is the recursive query that is being bound.
    fn is_recursion(&self, rel: usize) -> bool {
        let RelSource::Cte { slot, .. } = self.range.rels[rel].source else {
            return false;
        };
        let mut ctes = self.frames.iter().flat_map(|frame| &frame.ctes);
        ctes.any(|cte| cte.slot == slot && cte.recursive_now)
    }

    /// Appends the select list's items.
    pub(crate) fn select_list(&mut self, items: &[ResTarget], out: &mut Vec<Output>) -> Result<()> {
        for item in items {
            let Some(expr) = &item.val else {
                return Err(SqlError::internal("a result without a value"));
            };
            match (expr, &item.name) {
                // A name of all columns says nothing.
                (Ast::ColumnRef(column), _) if column.star => self.all_columns(column, out)?,
                (expr, Some(name)) => {
                    let bound = self.expr(expr)?;
                    self.output(name.to_string(), bound, out);
                }
                (expr, None) => match all_fields(expr) {
                    Some(record) => self.record_star(&record, out)?,
                    None => {
                        let name = output_name(expr, self.user_types());
                        let bound = self.expr(expr)?;
                        self.output(name, bound, out);
                    }
                },
            }
        }
        Ok(())
    }

    /// `*` and `item.*`.
    fn all_columns(&mut self, column: &ColumnRef, out: &mut Vec<Output>) -> Result<()> {
        let at = self.at(column.location);
        let live = |item: &NsItem| {
            let live = item.columns.iter();
            let live = live.filter(|c| !matches!(c.what, NsColumnSource::Gone { .. }));
            let columns = live.map(|c| (c.name.clone(), c.what.clone()));
            columns.collect::<Vec<_>>()
        };
        if column.fields.is_empty() {
            let items = &self.frame()?.ns;
            if items.is_empty() {
                let message = "SELECT * with no tables specified is not valid";
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(at));
            }
            let columns = items.iter().filter(|item| item.columns_visible);
            let columns = columns.flat_map(live).collect();
            return self.star(columns, at, out);
        }
        let (schema, rel) = schema_and_name(&column.fields, &self.cx.catalog.database_name)?;
        let found = self.find_item(schema.as_deref(), &rel);
        let Some((level, index)) = found.map_err(|e| e.at(at))? else {
            return Err(self.missing_item(schema.as_deref(), &rel).at(at));
        };
        let columns = live(&self.frames[level].ns[index]);
        self.star(columns, at, out)
    }

    /// `(record).*`: a column for each field.
    fn record_star(&mut self, expr: &Ast, out: &mut Vec<Output>) -> Result<()> {
        for (name, field) in self.fields_of(expr)? {
            let field = self.settle(field)?;
            self.output(name.to_string(), field, out);
        }
        Ok(())
    }

    /// Names and values of a record's fields.
    pub(crate) fn fields_of(&mut self, expr: &Ast) -> Result<Vec<(Arc<str>, Expr)>> {
        let record = self.expr(expr)?;
        let at = self.at(expr.location());
        let ty = record.ty();
        let Some(shape) = self.user_types().tuple_desc_of(ty) else {
            return Err(match ty.oid {
                oid::RECORD => SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    "record type has not been registered",
                ),
                _ => SqlError::new(
                    SqlState::WRONG_OBJECT_TYPE,
                    format!("type {} is not composite", self.types().format_type(ty)),
                ),
            }
            .at(at));
        };
        let names = shape.iter().map(|(name, _)| Arc::clone(name));
        Ok(names
            .zip(super::expr::fields_of(&record, self.user_types()))
            .collect())
    }

    fn star(
        &mut self,
        columns: Vec<(Arc<str>, NsColumnSource)>,
        at: Option<usize>,
        out: &mut Vec<Output>,
    ) -> Result<()> {
        for (name, what) in columns {
            let expr = self.ns_expr(&what)?;
            if let NsColumnSource::Column(id) = what {
                self.frame()?.references.push((id, at));
            }
            self.output(name.to_string(), expr, out);
        }
        Ok(())
    }

    pub(crate) fn output(&mut self, name: String, expr: Expr, out: &mut Vec<Output>) {
        let ty = expr.ty();
        let origin = match &expr {
            Expr::Column(id, _) => self.info(*id).origin,
            _ => None,
        };
        let domain = match &expr {
            Expr::Domain(_, rules) => Some(rules.declared),
            _ => None,
        };
        let id = self.column("".into(), ty, origin, usize::MAX);
        out.push(Output {
            id,
            expr,
            column: OutputColumn {
                name,
                ty,
                domain,
                origin,
            },
        });
    }

    /// LIMIT and OFFSET, which see nothing of the block.
    fn limits_apart(&mut self, tail: &Tail<'_>) -> Result<(Option<Expr>, Option<Expr>)> {
        let hidden = std::mem::take(&mut self.frame()?.ns);
        let limits = self.limits(tail);
        self.frame()?.ns = hidden;
        limits
    }

    /// LIMIT and OFFSET.
    pub(crate) fn limits(&mut self, tail: &Tail<'_>) -> Result<(Option<Expr>, Option<Expr>)> {
        let mut bind = |expr: Option<&Ast>, clause: Clause| -> Result<Option<Expr>> {
            let Some(expr) = expr else { return Ok(None) };
            self.in_clause(clause, |b| {
                let at = b.at(expr.location());
                let bound = b.expr(expr).map_err(|e| {
                    if e.code() == SqlState::UNDEFINED_COLUMN {
                        SqlError::new(
                            SqlState::INVALID_COLUMN_REFERENCE,
                            format!("argument of {} must not contain variables", clause.words()),
                        )
                        .at(at)
                    } else {
                        e
                    }
                })?;
                let from = bound.ty();
                let int8 = SqlType::of(oid::INT8);
                match b.try_coerce(bound, int8, CastContext::Assignment, at)? {
                    Some(Expr::Const(Datum::Null, _)) => Ok(None),
                    Some(expr) => Ok(Some(expr)),
                    None => Err(SqlError::new(
                        SqlState::DATATYPE_MISMATCH,
                        format!(
                            "argument of {} must be type bigint, not type {}",
                            clause.words(),
                            b.types().format_type(from)
                        ),
                    )
                    .at(at)),
                }
            })
        };
        let offset = bind(tail.offset, Clause::Offset)?;
        let limit = bind(tail.limit, Clause::Limit)?;
        Ok((limit, offset))
    }

    /// FOR UPDATE and its kin: which items are locked, how strongly, and whether a lock is waited for. An item that
    /// several clauses name is locked as the strongest and least patient of them says.
    fn locks(
        &mut self,
        clauses: &[LockingClause],
        block: &Select,
        rels: &[usize],
    ) -> Result<Option<Vec<RowMark>>> {
        let mut marks: Vec<RowMark> = Vec::new();
        for clause in clauses {
            let name = clause.strength.words();
            check_locking(block, name)?;
            let wait = match clause.wait_policy {
                LockWaitPolicy::Block => LockWait::Block,
                LockWaitPolicy::SkipLocked => LockWait::Skip,
                LockWaitPolicy::NoWait => LockWait::NoWait,
            };
            let mut wanted = Vec::new();
            for listed in &clause.locked_rels {
                let at = self.at(listed.location);
                let names = listed.names();
                let [part] = names.as_slice() else {
                    return Err(SqlError::new(
                        SqlState::SYNTAX_ERROR,
                        format!("{name} must specify unqualified relation names"),
                    )
                    .at(at));
                };
                let table = &**part;
                let named = |rel: &&usize| *self.range.rels[**rel].shown == *table;
                let found: Vec<usize> = rels.iter().filter(named).copied().collect();
                if found.is_empty() {
                    return Err(SqlError::new(
                        SqlState::UNDEFINED_TABLE,
                        format!("relation \"{table}\" in {name} clause not found in FROM clause"),
                    )
                    .at(at));
                }
                let kind = found
                    .iter()
                    .find_map(|rel| match &self.range.rels[*rel].source {
                        RelSource::Query(Some(query)) if query.with => Some("WITH query"),
                        RelSource::Table(_)
                        | RelSource::Virtual(..)
                        | RelSource::Plan(_)
                        | RelSource::Query(_) => None,
                        RelSource::Cte { .. } => Some("WITH query"),
                        RelSource::Function { .. } => Some("function"),
                    });
                if let Some(what) = kind {
                    return Err(SqlError::new(
                        SqlState::FEATURE_NOT_SUPPORTED,
                        format!("{name} cannot be applied to a {what}"),
                    )
                    .at(at));
                }
                wanted.extend(found);
            }
            for &rel in rels {
                if !clause.locked_rels.is_empty() && !wanted.contains(&rel) {
                    continue;
                }
                let table = match &self.range.rels[rel].source {
                    RelSource::Table(table)
                        if matches!(table.kind, RelationKind::Materialized(..)) =>
                    {
                        return Err(SqlError::new(
                            SqlState::WRONG_OBJECT_TYPE,
                            format!("cannot lock rows in materialized view \"{}\"", table.name),
                        ));
                    }
                    RelSource::Table(table) => table.clone(),
                    RelSource::Query(Some(query)) if query.with => continue,
                    RelSource::Plan(_) | RelSource::Query(_) => {
                        return Err(SqlError::unsupported(format!(
                            "{name} over a subquery in FROM"
                        )));
                    }
                    // Rows of system relations are made when they are read; nobody else can lock them.
                    RelSource::Virtual(..) | RelSource::Cte { .. } | RelSource::Function { .. } => {
                        continue;
                    }
                };
                if nullable_side(&block.from, rel) {
                    return Err(SqlError::new(
                        SqlState::FEATURE_NOT_SUPPORTED,
                        format!("{name} cannot be applied to the nullable side of an outer join"),
                    ));
                }
                self.locks_rows(&table);
                self.note_lock(&table);
                // Once, whatever else the item's row ids are for.
                if marks.iter().all(|mark: &RowMark| mark.rel != rel) {
                    self.guard_locked(rel, &table)?;
                }
                self.give_row_id(rel);
                match marks.iter_mut().find(|m| m.rel == rel) {
                    Some(mark) => {
                        mark.lock = mark.lock.max(row_lock(clause.strength));
                        mark.wait = mark.wait.max(wait);
                    }
                    None => marks.push(RowMark {
                        rel,
                        lock: row_lock(clause.strength),
                        wait,
                    }),
                }
            }
        }
        marks.sort_by_key(|mark| mark.rel);
        Ok(Some(marks))
    }

    /// Makes the table's scan give row id and version token.
    pub(crate) fn give_row_id(&mut self, rel: usize) {
        if self.range.rels[rel].row_id.is_none() {
            let row_id = self.range.rels[rel].first + self.range.rels[rel].width;
            self.give_column(row_id);
            self.give_column(row_id + 1);
            self.range.rels[rel].row_id = Some(row_id);
        }
    }

    /// What the hidden columns are called: an ungrouped row in errors.
    pub(crate) fn hidden_name(&mut self) -> Arc<str> {
        Arc::clone(self.hidden_name.get_or_insert_with(|| "*".into()))
    }
}

/// Takes the set-returning calls out of `sets` that the keys are made of.
fn take_grouped(sets: &mut Vec<(ColId, Expr)>, keys: &[(ColId, Expr)]) -> Vec<(ColId, Expr)> {
    let mut read = Vec::new();
    keys.iter()
        .for_each(|(_, key)| walk::column_ids(key, &mut read));
    let mut taken: Vec<(ColId, Expr)> = Vec::new();
    // A call within another one comes before it.
    while let Some(at) = sets.iter().position(|(id, _)| read.contains(id)) {
        let (id, call) = sets.remove(at);
        walk::column_ids(&call, &mut read);
        taken.push((id, call));
    }
    taken
}

/// A block whose rows are not rows of tables cannot lock them.
fn check_locking(block: &Select, name: &str) -> Result<()> {
    let grouping = block.grouping.as_ref();
    let not_with = if !matches!(block.distinct, Distinct::No) {
        "DISTINCT clause"
    } else if grouping.is_some_and(|g| !g.keys.is_empty() || g.sets.is_some()) {
        "GROUP BY clause"
    } else if grouping.is_some_and(|g| !g.having.is_empty() || g.aggregates.is_empty()) {
        "HAVING clause"
    } else if grouping.is_some() {
        "aggregate functions"
    } else if !block.windows.is_empty() {
        "window functions"
    } else if !block.sets.is_empty() {
        "set-returning functions in the target list"
    } else {
        return Ok(());
    };
    Err(SqlError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        format!("{name} is not allowed with {not_with}"),
    ))
}

/// Whether an item may be filled with NULLs by an outer join.
fn nullable_side(list: &FromList, rel: usize) -> bool {
    use crate::JoinKind as K;
    let holds = |list: &FromList| {
        let mut rels = Vec::new();
        collect_rels(list, &mut rels);
        rels.contains(&rel)
    };
    list.items.iter().any(|item| match item {
        From::Rel(_) => false,
        From::Join {
            kind, left, right, ..
        } => {
            (matches!(kind, K::Left | K::Full) && holds(right))
                || (matches!(kind, K::Right | K::Full) && holds(left))
                || nullable_side(left, rel)
                || nullable_side(right, rel)
        }
    })
}

/// Splits a condition at its ANDs.
pub(crate) fn push_conjuncts(condition: Expr, out: &mut Vec<Expr>) {
    match condition {
        Expr::And(all) => all.into_iter().for_each(|e| push_conjuncts(e, out)),
        Expr::Const(Datum::Bool(true), _) => {}
        other => out.push(other),
    }
}

/// What the grammar takes in a query that is a statement alone.
fn refuse(select: &ast::SelectCore) -> Result<()> {
    if select.into_clause.is_some() {
        return Err(SqlError::new(
            SqlState::SYNTAX_ERROR,
            "SELECT ... INTO is not allowed here",
        ));
    }
    Ok(())
}
