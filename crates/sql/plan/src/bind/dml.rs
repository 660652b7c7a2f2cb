//! INSERT, and what all data-modifying statements share.

use super::assignment_target::AssignmentTarget;
use super::constraint_rules::Change;
use super::query::is_default;
use super::scope::NsItem;
use super::updatable::Verb;
use super::{Binder, Clause, ColId, Frame, RelSource};
use crate::query::expr::Expr;
use crate::query::{BoundChange, ChangeSource, Output, QueryTree};
use crate::{Check, Insert, Layout, Node, OutputColumn, Plan};
use logstead_sql_catalog::role::acl::privilege;
use logstead_sql_catalog::{Column, Relation, RelationKind, large_objects};
use logstead_sql_func::CastContext;
use logstead_sql_parse::ast::{
    self, Alias, Expr as Ast, InsertSource, Location, RangeVar, SelectBody,
};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, SqlType, oid};
use logstead_types::SqlState;
use std::sync::Arc;

/// 428C9: a value for GENERATED ALWAYS.
pub(crate) const GENERATED_ALWAYS: SqlState = SqlState::new(b"428C9");

pub(super) const TOO_MANY: &str = "INSERT has more expressions than target columns";
pub(super) const TOO_FEW: &str = "INSERT has more target columns than expressions";

impl Binder<'_> {
    /// The stored table a statement changes.
    pub(crate) fn target(&mut self, name: &RangeVar, verb: Verb) -> Result<Arc<Relation>> {
        let at = self.at(name.location);
        let relation = self.relation(name)?;
        match &relation.kind {
            RelationKind::Table => {
                let number = self.note_use(&relation, 0, false, Vec::new());
                self.uses.target = vec![number];
                Ok(relation)
            }
            RelationKind::Virtual(_) if large_objects::is_kept(&relation) => {
                let number = self.note_use(&relation, 0, false, Vec::new());
                self.uses.target = vec![number];
                Ok(relation)
            }
            RelationKind::Sequence(_) => Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("cannot change sequence \"{}\"", relation.name),
            )
            .at(at)),
            RelationKind::Materialized(..) => Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("cannot change materialized view \"{}\"", relation.name),
            )),
            RelationKind::View(_) if self.is_instead(&relation, verb) => {
                let number = self.note_use(&relation, 0, false, Vec::new());
                self.uses.target = vec![number];
                Ok(relation)
            }
            RelationKind::View(view) => {
                let view = Arc::clone(view);
                self.target_through(&relation, &view, verb)
            }
            RelationKind::Virtual(_) => Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!(
                    "changing the system catalog \"{}\" is not supported",
                    relation.name
                ),
            )
            .at(at)),
        }
    }

    /// The column of the table that a name where values are assigned stands for.
    pub(crate) fn attribute(
        &self,
        relation: &Relation,
        name: &str,
        location: Location,
    ) -> Result<usize> {
        let through = self.through(relation);
        let named = through.as_ref().map_or(relation, |t| &t.view);
        let found = named
            .columns
            .iter()
            .position(|c| !c.dropped && c.name == name)
            .ok_or_else(|| {
                SqlError::new(
                    SqlState::UNDEFINED_COLUMN,
                    format!(
                        "column \"{name}\" of relation \"{}\" does not exist",
                        named.name
                    ),
                )
                .at(self.at(location))
            })?;
        match through {
            Some(through) => through.base_position(found),
            None => Ok(found),
        }
    }

    /// The value of a column that the statement gives none: a view's default comes before its table's.
    pub(crate) fn target_default(&mut self, relation: &Relation, position: usize) -> Result<Expr> {
        if let Some(through) = self.through(relation)
            && let Some(own) = through.default_for(position)
        {
            return super::standalone::column_default(self, &through.view, own);
        }
        super::standalone::column_default(self, relation, position)
    }

    /// The same of a row that is inserted: a view's default is a value, which a generated column takes from nobody.
    fn inserted_default(
        &mut self,
        relation: &Relation,
        position: usize,
        overriding: Overriding,
    ) -> Result<Expr> {
        if relation.columns[position].generated
            && let Some(through) = self.through(relation)
            && through.default_for(position).is_some()
        {
            refuse_generated(&relation.columns[position], overriding)?;
        }
        self.target_default(relation, position)
    }

    /// What every row written must not make false: the table's checks, then what views ask.
    pub(crate) fn target_checks(&mut self, relation: &Relation) -> Result<Vec<Check>> {
        let mut checks = super::standalone::checks(self, relation)?;
        checks.extend(self.view_checks(relation)?);
        Ok(checks)
    }

    /// Brings a value to a column's type, as storing it does.
    pub(crate) fn assign(
        &mut self,
        expr: Expr,
        column: &Column,
        at: Option<usize>,
    ) -> Result<Expr> {
        let from = expr.ty();
        let declared = column.declared();
        match self.try_coerce(expr, declared, CastContext::Assignment, at)? {
            Some(expr) => Ok(expr),
            None => Err(SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!(
                    "column \"{}\" is of type {} but expression is of type {}",
                    column.name,
                    self.types().format_type(SqlType::of(declared.oid)),
                    self.types().format_type(SqlType::of(from.oid))
                ),
            )
            .hint("You will need to rewrite or cast the expression.")
            .at(at)),
        }
    }

    pub(super) fn insert_value(
        &mut self,
        relation: &Relation,
        target: &AssignmentTarget<'_>,
        expr: &Ast,
        overriding: Overriding,
    ) -> Result<Expr> {
        let position = target.position;
        let column = &relation.columns[position];
        if is_default(expr) && !target.path.is_empty() {
            return Err(
                SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, target.no_default())
                    .at(self.at(expr.location())),
            );
        }
        if is_default(expr) || (overriding == Overriding::User && column.identity.is_some()) {
            return self.inserted_default(relation, position, overriding);
        }
        let at = self.at(expr.location());
        refuse_generated(column, overriding)?;
        let ty = self.part(column, target.path)?.ty;
        let bound = self.value_for(expr, ty)?;
        self.assign_part(bound, column, target.path, at)
    }

    pub(crate) fn insert(&mut self, insert: &ast::InsertStmt) -> Result<BoundChange> {
        let relation = self.target(&insert.relation, Verb::Insert)?;
        let overriding = Overriding::from(insert.overriding);
        self.writes(&relation);
        let explicit = !insert.cols.is_empty();
        let mut targets: Vec<AssignmentTarget<'_>> = Vec::new();
        let mut beyond = None;
        if explicit {
            targets = self.insert_targets(&insert.cols, &relation)?;
        } else {
            match self.through(&relation) {
                None => targets.extend(live(&relation).map(AssignmentTarget::whole)),
                Some(through) => {
                    // Columns that cannot be written count only if there are values for them.
                    for position in live(&through.view) {
                        match through.base_position(position) {
                            Ok(base) => targets.push(AssignmentTarget::whole(base)),
                            Err(error) => {
                                beyond = Some(error);
                                break;
                            }
                        }
                    }
                }
            }
        }
        // A default of the view is a value for a column that nothing can be put into.
        if let Some(through) = self.through(&relation) {
            let columns = through.view.columns.iter().enumerate();
            let mut own = columns.filter(|(_, column)| column.default.is_some());
            own.try_for_each(|(at, _)| through.base_position(at).map(drop))?;
        }
        let mut values: Vec<Option<Expr>> = vec![None; relation.columns.len()];
        // Columns of a view may be one column of its table.
        let twice = |(at, target): (usize, &AssignmentTarget<'_>)| {
            let others = targets.get(..at).unwrap_or_default();
            others
                .iter()
                .any(|other| other.position == target.position && other.path.is_empty())
                .then_some(target.position)
        };
        if self.through(&relation).is_some()
            && let Some(position) = targets.iter().enumerate().find_map(twice)
            && let Some(column) = relation.columns.get(position)
        {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!("multiple assignments to same column \"{}\"", column.name),
            ));
        }
        let source = match &insert.source {
            InsertSource::DefaultValues => QueryTree::Select(Box::default()),
            InsertSource::Select(query) => self
                .insert_source(
                    query,
                    &relation,
                    &targets,
                    explicit,
                    overriding,
                    insert,
                    &mut values,
                )
                .map_err(|error| match beyond {
                    Some(beyond) if error.fields().message == TOO_MANY => beyond,
                    _ => error,
                })?,
        };
        let mut given: Vec<usize> = values
            .iter()
            .enumerate()
            .filter(|(_, value)| value.is_some())
            .map(|(position, _)| position)
            .collect();
        self.target_writes(&given, privilege::INSERT);
        let mut full = Vec::with_capacity(values.len());
        for (position, value) in values.into_iter().enumerate() {
            full.push(match value {
                Some(value) => value,
                None => self.inserted_default(&relation, position, overriding)?,
            });
        }
        let generated = super::standalone::generated(self, &relation)?;
        let checks = self.target_checks(&relation)?;
        let alias = insert.relation.alias.as_deref();
        let conflict = match &insert.on_conflict_clause {
            None => None,
            Some(_) if relation.view().is_some() => {
                return Err(SqlError::unsupported(
                    "ON CONFLICT on a view with INSTEAD OF triggers",
                ));
            }
            Some(on) => Some(self.on_conflict(on, &relation, alias)?),
        };
        let update = conflict.as_ref().and_then(|c| c.update.as_ref());
        let also_updated = match update {
            None => Vec::new(),
            Some(update) => {
                let assigned = update.assignments.len().saturating_sub(update.generated);
                let assigned = update.assignments.iter().take(assigned);
                let named: Vec<usize> = assigned.map(|(position, _)| *position).collect();
                given.extend_from_slice(&named);
                self.updated_positions(named, &relation)?
            }
        };
        let rules = self.rules(&relation, &Change::Insert(also_updated))?;
        let mut hidden = false;
        let (returning, columns) = match insert.returning_list.as_slice() {
            [] => (None, Vec::new()),
            items => {
                let (first, width) = self.target_frame(&relation, alias)?;
                let target = self.range.rels.iter_mut().find(|rel| rel.first == first);
                let target = target.filter(|rel| matches!(rel.source, RelSource::Table(_)));
                if let Some(target) = target {
                    target.scanned = true;
                }
                let unseen = self.unseen.len();
                self.unseen.extend(update.map(|_| "excluded".into()));
                let result = self.returning_items(items);
                self.unseen.truncate(unseen);
                self.frames.pop();
                let mut found = self.range.rels.iter().filter(|rel| rel.first == first);
                hidden = found.any(|rel| rel.row_id.is_some());
                let end = first + width + if hidden { 2 } else { 0 };
                let layout = Layout::new((first..end).collect());
                let (mut returning, columns) = result?.unzip();
                for expr in returning.iter_mut().flatten() {
                    self.put_over_row(expr, &layout)?;
                }
                (returning, columns.unwrap_or_default())
            }
        };
        let updates = conflict.as_ref().is_some_and(|c| c.update.is_some());
        let policies = self.insert_policies(&relation, updates)?;
        let mut conflict = conflict;
        if let Some(update) = conflict.as_mut().and_then(|c| c.update.as_mut()) {
            let wanted = std::mem::take(&mut update.wanted);
            update.wanted = wanted.behind(&relation, policies.conflicting);
            update.policies = policies.updated;
        }
        let node = Node::Insert(Box::new(Insert {
            table: relation,
            source: Plan::nothing(),
            values: full,
            generated,
            policies: policies.proposed,
            checks,
            conflict,
            rules,
            given,
            returning,
            hidden,
        }));
        Ok(BoundChange {
            node,
            columns,
            source: ChangeSource::Query(source),
        })
    }

    /// The positions of the columns that an INSERT names.
    pub(super) fn insert_targets<'t>(
        &self,
        columns: &'t [ast::ResTarget],
        relation: &Relation,
    ) -> Result<Vec<AssignmentTarget<'t>>> {
        let mut targets: Vec<AssignmentTarget<'t>> = Vec::with_capacity(columns.len());
        for (number, column) in columns.iter().enumerate() {
            let target = self.part_target(column, relation)?;
            let again = |other: &AssignmentTarget<'_>| {
                let partly = !other.path.is_empty() && !target.path.is_empty();
                other.position == target.position && !partly
            };
            if targets.iter().any(again) {
                let name = column.column();
                // Two columns of a view may be one of its table.
                if let Some(found) = relation.columns.get(target.position)
                    && self.through(relation).is_some()
                    && !columns
                        .iter()
                        .take(number)
                        .any(|other| other.column() == name)
                {
                    return Err(SqlError::new(
                        SqlState::SYNTAX_ERROR,
                        format!("multiple assignments to same column \"{}\"", found.name),
                    ));
                }
                return Err(SqlError::new(
                    SqlState::DUPLICATE_COLUMN,
                    format!("column \"{name}\" specified more than once"),
                )
                .at(self.at(column.location)));
            }
            targets.push(target);
        }
        Ok(targets)
    }

    /// Where an INSERT's rows come from. One row of VALUES may have set-returning functions: it is a SELECT then.
    #[allow(clippy::too_many_arguments, reason = "the parts of one INSERT")]
    fn insert_source(
        &mut self,
        query: &ast::SelectStmt,
        relation: &Arc<Relation>,
        targets: &[AssignmentTarget<'_>],
        explicit: bool,
        overriding: Overriding,
        insert: &ast::InsertStmt,
        values: &mut [Option<Expr>],
    ) -> Result<QueryTree> {
        let before = values.to_vec();
        let source = self.plain_source(
            query, relation, targets, explicit, overriding, insert, values,
        );
        let refused = |error: &SqlError| {
            error.code() == SqlState::FEATURE_NOT_SUPPORTED
                && error.fields().message == SETS_IN_VALUES
        };
        let SelectBody::Values(rows) = &query.body else {
            return source;
        };
        let [row] = rows.as_slice() else {
            return source;
        };
        if !source.as_ref().is_err_and(refused) || row.iter().any(super::query::is_default) {
            return source;
        }
        let select = one_row_as_select(query, row);
        values.clone_from_slice(&before);
        self.plain_source(
            &select, relation, targets, explicit, overriding, insert, values,
        )
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of one INSERT")]
    fn plain_source(
        &mut self,
        query: &ast::SelectStmt,
        relation: &Arc<Relation>,
        targets: &[AssignmentTarget<'_>],
        explicit: bool,
        overriding: Overriding,
        insert: &ast::InsertStmt,
        values: &mut [Option<Expr>],
    ) -> Result<QueryTree> {
        let too_few = |b: &Binder<'_>, found: usize| {
            let at = insert.cols.get(found).and_then(|c| b.at(c.location));
            SqlError::new(SqlState::SYNTAX_ERROR, TOO_FEW).at(at)
        };
        let too_many = || SqlError::new(SqlState::SYNTAX_ERROR, TOO_MANY);
        if let SelectBody::Values(rows) = &query.body
            && query.with_clause.is_none()
            && query.sort_clause.is_empty()
            && query.limit.is_none()
        {
            let given = rows.iter().map(|row| self.starred(row));
            let given = given.collect::<Result<Vec<_>>>()?;
            let width = given.first().map_or(0, |row| row.len());
            self.frames.push(Frame::new());
            let rows = self.within_query(|b| {
                b.in_clause(Clause::Values, |b| {
                    let mut rows = Vec::with_capacity(given.len());
                    for row in &given {
                        if row.len() != width {
                            return Err(SqlError::new(
                                SqlState::SYNTAX_ERROR,
                                "VALUES lists must all be the same length",
                            )
                            .at(row.first().and_then(|e| b.at(e.location()))));
                        }
                        if let Some(extra) = row.get(targets.len()) {
                            return Err(too_many().at(b.at(extra.location())));
                        }
                        if explicit && row.len() < targets.len() {
                            return Err(too_few(b, row.len()));
                        }
                        let mut out = Vec::with_capacity(width);
                        for (expr, target) in row.iter().zip(targets) {
                            out.push(b.insert_value(relation, target, expr, overriding)?);
                        }
                        rows.push(out);
                    }
                    Ok(rows)
                })
            });
            self.frames.pop();
            let rows = rows?;
            let mut columns = Vec::with_capacity(width);
            for (i, target) in targets.iter().take(width).enumerate() {
                let column = &relation.columns[target.position];
                let ty = self.part(column, target.path)?.ty;
                self.give_part(values, relation, target, Expr::Column(i, ty))?;
                columns.push(OutputColumn {
                    name: column.name.clone(),
                    ty,
                    domain: None,
                    origin: None,
                });
            }
            return Ok(QueryTree::Values(rows, columns));
        }
        let body = self.query_body(query, false)?;
        let mut types = body.types();
        if types.len() > targets.len() {
            let extra = query
                .core()
                .and_then(|core| core.target_list.get(targets.len()));
            let extra = extra.and_then(|target| self.at(target.val_location()));
            return Err(too_many().at(extra));
        }
        if explicit && types.len() < targets.len() {
            return Err(too_few(self, types.len()));
        }
        for (ty, target) in types.iter_mut().zip(targets) {
            if ty.oid == oid::UNKNOWN {
                let part = self.part(&relation.columns[target.position], target.path)?;
                *ty = SqlType::of(part.ty.oid);
            }
        }
        let source = self.body_as(body, &types)?;
        let columns = self.range.body_columns(&source);
        for (i, (goal, column)) in targets.iter().zip(&columns).enumerate() {
            let target = &relation.columns[goal.position];
            if overriding == Overriding::User && target.identity.is_some() {
                continue;
            }
            refuse_generated(target, overriding)?;
            let given = query.core().and_then(|core| core.target_list.get(i));
            let at = given.and_then(|given| self.at(given.val_location()));
            let value = Expr::Column(i, column.ty);
            let same = target.domain.is_some()
                && goal.path.is_empty()
                && column.domain_in(self.cx.catalog) == target.domain;
            let value = match same && column.ty == target.ty {
                // It is one of the domain's already.
                true => value,
                false => self.assign_part(value, target, goal.path, at)?,
            };
            self.give_part(values, relation, goal, value)?;
        }
        Ok(source)
    }

    /// Opens a frame in which the columns of what the statement names are in sight. The table's first identity and
    /// width.
    pub(super) fn target_frame(
        &mut self,
        relation: &Arc<Relation>,
        alias: Option<&Alias>,
    ) -> Result<(ColId, usize)> {
        let Some(through) = self.through(relation) else {
            let target = self.target_number();
            return self.attached(target, |b| match relation.view() {
                None => b.relation_frame(relation, alias),
                // Its rows are those that its triggers give.
                Some(_) => {
                    b.frames.push(Frame::new());
                    let rel = b.relation_item(relation, RelSource::Plan(None), None, None)?;
                    if let Some(alias) = alias {
                        b.rename_last((&*alias.name).into(), relation)?;
                    }
                    Ok((b.range.rels[rel].first, b.range.rels[rel].width))
                }
            });
        };
        self.frames.push(Frame::new());
        let (rel, _) = self.open_through(&through, None)?;
        if let Some(alias) = alias {
            self.rename_last((&*alias.name).into(), &through.view)?;
        }
        Ok((self.range.rels[rel].first, self.range.rels[rel].width))
    }

    /// Opens a frame in which `relation`'s columns are in sight. Its first identity and width.
    pub(crate) fn relation_frame(
        &mut self,
        relation: &Arc<Relation>,
        alias: Option<&Alias>,
    ) -> Result<(ColId, usize)> {
        self.frames.push(Frame::new());
        let rel = self.add_relation(relation, None)?;
        if let Some(alias) = alias {
            self.rename_last((&*alias.name).into(), relation)?;
        }
        Ok((self.range.rels[rel].first, self.range.rels[rel].width))
    }

    pub(crate) fn rename_last(&mut self, alias: Arc<str>, relation: &Relation) -> Result<()> {
        if let Some(item) = self.frame()?.ns.last_mut() {
            let item: &mut NsItem = item;
            item.alias = alias;
            item.schema = None;
            item.hidden_name = Some(relation.name.as_str().into());
        }
        Ok(())
    }

    /// RETURNING, over identities.
    pub(crate) fn returning_items(
        &mut self,
        items: &[ast::ResTarget],
    ) -> Result<Option<Returning>> {
        if items.is_empty() {
            return Ok(None);
        }
        let mut outputs: Vec<Output> = Vec::new();
        self.in_clause(Clause::Returning, |b| b.select_list(items, &mut outputs))?;
        let mut exprs = Vec::with_capacity(outputs.len());
        let mut columns = Vec::with_capacity(outputs.len());
        for output in outputs {
            let expr = self.settle(output.expr)?;
            columns.push(OutputColumn {
                ty: expr.ty(),
                ..output.column
            });
            exprs.push(expr);
        }
        Ok(Some((exprs, columns)))
    }
}

/// OVERRIDING ... VALUE.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Overriding {
    No,
    System,
    User,
}

impl From<Option<logstead_sql_parse::ast::Overriding>> for Overriding {
    fn from(said: Option<logstead_sql_parse::ast::Overriding>) -> Overriding {
        match said {
            None => Overriding::No,
            Some(logstead_sql_parse::ast::Overriding::System) => Overriding::System,
            Some(logstead_sql_parse::ast::Overriding::User) => Overriding::User,
        }
    }
}

pub(crate) type Returning = (Vec<Expr>, Vec<OutputColumn>);

fn refuse_generated(column: &Column, overriding: Overriding) -> Result<()> {
    if column.generated {
        return Err(SqlError::new(
            GENERATED_ALWAYS,
            format!(
                "cannot insert a non-DEFAULT value into column \"{}\"",
                column.name
            ),
        )
        .detail(format!("Column \"{}\" is a generated column.", column.name)));
    }
    if column.identity == Some(true) && overriding == Overriding::No {
        return Err(SqlError::new(
            GENERATED_ALWAYS,
            format!(
                "cannot insert a non-DEFAULT value into column \"{}\"",
                column.name
            ),
        )
        .detail(format!(
            "Column \"{}\" is an identity column defined as GENERATED ALWAYS.",
            column.name
        ))
        .hint("Use OVERRIDING SYSTEM VALUE to override."));
    }
    Ok(())
}

/// Positions of columns that are not dropped.
pub(crate) fn live(relation: &Relation) -> impl Iterator<Item = usize> + '_ {
    relation
        .columns
        .iter()
        .enumerate()
        .filter(|(_, c)| !c.dropped)
        .map(|(i, _)| i)
}

/// NULL of a dropped column.
pub(crate) fn null_of(column: &Column) -> Expr {
    Expr::Const(Datum::Null, column.ty)
}

/// What is said of a set-returning function in VALUES.
const SETS_IN_VALUES: &str = "set-returning functions are not allowed in VALUES";

/// `VALUES (a, b)` as `SELECT a, b`.
fn one_row_as_select(query: &ast::SelectStmt, row: &[Ast]) -> ast::SelectStmt {
    let targets = row
        .iter()
        .map(|value| ast::ResTarget::of(None, value.clone()));
    ast::SelectStmt {
        body: SelectBody::Select(Box::new(ast::SelectCore {
            target_list: targets.collect(),
            ..ast::SelectCore::default()
        })),
        ..query.clone()
    }
}
