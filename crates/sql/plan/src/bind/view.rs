//! Views in FROM, and what a view's definition keeps of the query it is made from.
//!
//! A view that only picks rows and columns is put into the query that reads it: its tables become FROM items there, its
//! conditions join the others, and the names of its columns stand for its expressions. Any other view is a subquery.
//!
//! Invariants: a view's query is bound outside of every scope of the statement, so that nothing there can change what
//! it means; places in its text are never told to the client.

use super::scope::{NsColumn, NsColumnSource, NsItem};
use super::{Binder, ColId, RelSource};
use crate::permissions::Bound;
use crate::query::QueryTree;
use crate::query::collect_rels;
use crate::query::expr::Expr;
use crate::query::{Distinct, From, FromList, Output, Select};
use crate::{OutputColumn, Plan, PlanContext, walk};
use logstead_sql_catalog::role::acl::privilege;
use logstead_sql_catalog::{Catalog, Relation, RelationKind, View, ViewSource};
use logstead_sql_parse::ast::{self, Alias, Location};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, Oid, SqlType, oid};
use logstead_sql_types::{FunctionId, RelationId, RoleId};
use logstead_types::SqlState;
use std::collections::HashMap;
use std::sync::Arc;

/// Views on views on views.
const NESTING_MAX: usize = 1_000;

/// A table in FROM of the query that a view is made from.
pub(crate) struct ViewSourceUse {
    /// Where its name stands.
    location: Location,
    relation: Arc<Relation>,
    first: ColId,
}

/// What a view is made from.
pub struct ViewQuery {
    /// It changes something.
    pub writes: bool,
    /// Its columns.
    pub columns: Vec<OutputColumn>,
    /// The tables it names: where, and which of their columns it uses.
    pub sources: Vec<(Location, Arc<Relation>, Vec<usize>)>,
    /// Literals that the session's settings or the clock gave their meaning: where, and what they came to.
    pub fixed: Vec<(Location, SqlType, Datum)>,
    /// Users' functions that it calls: where, which, and by which name.
    pub routines: Vec<(Location, FunctionId, String)>,
    /// Primary keys, by constraint, that its GROUP BY relies on.
    pub relied: Vec<Oid>,
}

impl ViewQuery {
    /// The relations that constants in the query name, as `'s'::regclass` does: they stay as long as the view.
    pub fn constants<'c>(&self, catalog: &'c Catalog) -> Vec<&'c Relation> {
        let mut found: Vec<&Relation> = Vec::new();
        for (_, ty, value) in &self.fixed {
            if let (oid::REGCLASS, Datum::Oid(named)) = (ty.oid, value)
                && let Some(relation) = catalog.relations.get(&RelationId::new(*named))
                && !matches!(relation.kind, RelationKind::Virtual(_))
                && !found.iter().any(|known| known.oid == relation.oid)
            {
                found.push(relation);
            }
        }
        found
    }

    /// Does it read anything temporary, or name it in a constant? What is made of it is gone with that.
    pub fn reads_temporary(&self, catalog: &Catalog) -> bool {
        self.sources.iter().any(|(_, r, _)| r.is_temporary())
            || self.constants(catalog).iter().any(|r| r.is_temporary())
    }
}

/// Binds the query of CREATE VIEW. `text` is what its locations count in.
pub fn bind_view_query(
    query: &ast::SelectStmt,
    text: &str,
    cx: &PlanContext<'_>,
) -> Result<Bound<ViewQuery>> {
    let mut binder = Binder::new(cx, text);
    // Policies are asked when it is read.
    binder.secures = false;
    binder.recorded = Some(Vec::new());
    binder.inlines = false;
    // Who makes the view refuses what changes something in its own words.
    binder.top = query.with_clause.is_some();
    let plan = binder.planned_query(query)?;
    let made = binder.view_query(&plan)?;
    Ok(binder.into_bound_expression(made))
}

/// Plans the query of a view that keeps rows.
pub fn plan_view(
    relation: &Relation,
    view: &Arc<View>,
    cx: &PlanContext<'_>,
) -> Result<Bound<Plan>> {
    let mut binder = Binder::new(cx, "");
    let plan = binder.view_body(relation, view, |b, tree| b.planned_query(tree))?;
    Ok(binder.into_bound_expression(plan))
}

/// Whether what reads a view may learn of no other rows than it shows.
pub(super) fn is_barrier(catalog: &Catalog, view: &Relation) -> bool {
    let options = catalog.notes.options.get(&view.oid);
    options.is_some_and(|options| {
        options.iter().any(|option| {
            let on = option.strip_prefix("security_barrier=");
            on.is_some_and(|on| logstead_sql_catalog::settings::parse_bool(on) == Some(true))
        })
    })
}

/// A stored text's places mean nothing to the client.
fn without_position(mut error: SqlError) -> SqlError {
    error.fields_mut().position = None;
    error
}

impl Binder<'_> {
    /// What a query to be kept was found to be made from.
    pub(super) fn view_query(&mut self, plan: &Plan) -> Result<ViewQuery> {
        if !self.params.is_empty() {
            return Err(SqlError::new(
                SqlState::UNDEFINED_PARAMETER,
                "there is no parameter $1",
            ));
        }
        let recorded = self.recorded.take().unwrap_or_default();
        let mut sources: Vec<(Location, Arc<Relation>, Vec<usize>)> = Vec::new();
        let mut known: HashMap<Option<usize>, usize> = HashMap::new();
        for item in recorded {
            let uses = |i: &usize| self.info(item.first + i).used;
            let columns = 0..item.relation.columns.len();
            let place = *known.entry(item.location.byte()).or_insert(sources.len());
            match sources.get_mut(place) {
                // What is bound again stands where it stood, and uses what either has used.
                Some((_, _, used)) => {
                    let more: Vec<usize> = columns.filter(uses).collect();
                    used.extend(more);
                    used.sort_unstable();
                    used.dedup();
                }
                None => {
                    sources.push((item.location, item.relation, columns.filter(uses).collect()))
                }
            }
        }
        Ok(ViewQuery {
            columns: plan.columns.clone(),
            sources,
            writes: plan.writes(),
            fixed: std::mem::take(&mut self.fixed),
            routines: std::mem::take(&mut self.routines_kept),
            relied: std::mem::take(&mut self.relied),
        })
    }

    /// Remembers a table of the query that a view is made from.
    pub(crate) fn record(&mut self, location: Location, relation: &Arc<Relation>, first: ColId) {
        if let Some(recorded) = &mut self.recorded {
            recorded.push(ViewSourceUse {
                location,
                relation: Arc::clone(relation),
                first,
            });
        }
    }

    /// Remembers what a literal of the query that a view is made from means: it is kept so, whoever reads it with
    /// whatever settings.
    pub(crate) fn fix_literal(
        &mut self,
        text: &Arc<str>,
        ty: SqlType,
        value: &Datum,
    ) -> Result<()> {
        let location = self.literals.get(&text.as_ptr().addr()).copied();
        let (Some(_), Some(location)) = (&self.recorded, location) else {
            return Ok(());
        };
        if ty.oid == oid::REGROLE {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "constant of the type regrole cannot be used here",
            ));
        }
        self.fixed
            .retain(|(known, ..)| known.byte() != location.byte());
        self.fixed.push((location, ty, value.clone()));
        Ok(())
    }

    /// Remembers a function that the query of a new view, or another expression that is to be kept, calls.
    pub(crate) fn record_routine(&mut self, location: Location, routine: FunctionId, name: &str) {
        if self.recorded.is_some() || self.fresh {
            // What is bound again stands where it stood.
            self.routines_kept
                .retain(|(known, ..)| known.byte() != location.byte());
            self.routines_kept
                .push((location, routine, name.to_owned()));
        }
    }

    /// Remembers a primary key that GROUP BY of the query that a view is made from relies on.
    pub(crate) fn rely_on(&mut self, constraint: Oid) {
        if self.recorded.is_some() && !self.relied.contains(&constraint) {
            self.relied.push(constraint);
        }
    }

    /// The relation of a source of the view that is being bound.
    pub(crate) fn source_relation(&self, source: &ViewSource) -> Result<Arc<Relation>> {
        let relation = source.relation();
        let found = relation.and_then(|oid| self.cx.catalog.relations.get(&oid));
        // It is a temporary view, of whose sources others do not know; a replica's primary least of all.
        let found = found.ok_or_else(|| {
            SqlError::new(
                SqlState::UNDEFINED_TABLE,
                format!(
                    "relation \"{}\" that a view reads does not exist any more",
                    source.name
                ),
            )
        })?;
        self.cx.catalog.check_types_of_own(found)?;
        let mut used = source.columns.iter();
        let gone = used.find(|(position, _)| {
            let column = found.columns.get(*position);
            source.used.contains(position) && column.is_none_or(|column| column.dropped)
        });
        match gone {
            None => Ok(Arc::clone(found)),
            Some((_, column)) => Err(SqlError::new(
                SqlState::UNDEFINED_COLUMN,
                format!(
                    "column \"{column}\" of relation \"{}\", which a view reads, does not exist any more",
                    source.name
                ),
            )),
        }
    }

    /// 55000 unless the query of a temporary view still gives the columns that the view has. The types of what it reads
    /// may have been changed by who does not know of it.
    fn check_view_columns(&self, relation: &Relation, query: &QueryTree) -> Result<()> {
        if !relation.is_temporary() {
            return Ok(());
        }
        let now = query.types().into_iter().map(|ty| match ty.oid {
            oid::UNKNOWN => oid::TEXT,
            oid => oid,
        });
        let made = relation.columns.iter().filter(|column| !column.dropped);
        if now.eq(made.map(|column| column.ty.oid)) {
            return Ok(());
        }
        let message = format!(
            "the columns that view \"{}\" reads have been changed since it was made",
            relation.name
        );
        let error = SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message);
        Err(error.hint("Drop the view and create it again."))
    }

    /// Binds a view's query, outside of everything that is in sight here.
    pub(crate) fn view_body<T>(
        &mut self,
        relation: &Relation,
        view: &Arc<View>,
        bind: impl FnOnce(&mut Self, &ast::SelectStmt) -> Result<T>,
    ) -> Result<T> {
        if self.expanding.contains(&relation.oid) {
            return Err(SqlError::new(
                SqlState::new(b"42P17"),
                format!(
                    "infinite recursion detected in rules for relation \"{}\"",
                    relation.name
                ),
            ));
        }
        let role = self.view_role(relation);
        self.stored_body(relation.oid, view, role, bind)
    }

    /// Binds a query that is kept, of the view or of a policy of the table `owner`, outside of everything that is in
    /// sight here.
    pub(super) fn stored_body<T>(
        &mut self,
        owner: RelationId,
        view: &Arc<View>,
        role: Option<RoleId>,
        bind: impl FnOnce(&mut Self, &ast::SelectStmt) -> Result<T>,
    ) -> Result<T> {
        if self.expanding.len() >= NESTING_MAX {
            return Err(logstead_sql_types::error::too_deep());
        }
        let tree = view.tree()?;
        self.expanding.push(owner);
        let frames = std::mem::take(&mut self.frames);
        let recorded = self.recorded.take();
        let text = std::mem::take(&mut self.text);
        let as_role = std::mem::replace(&mut self.uses.as_role, role);
        let attach = self.uses.attach.take();
        let outer = self.view.replace(Arc::clone(view));
        let result = self.deeper(|b| bind(b, &tree));
        self.view = outer;
        self.uses.attach = attach;
        self.uses.as_role = as_role;
        self.text = text;
        self.recorded = recorded;
        self.frames = frames;
        self.expanding.pop();
        result.map_err(without_position)
    }

    /// A view in FROM.
    pub(crate) fn view_target(
        &mut self,
        relation: &Arc<Relation>,
        alias: Option<&Alias>,
    ) -> Result<usize> {
        let Some(view) = relation.view().map(Arc::clone) else {
            return Err(SqlError::internal("a view that is none"));
        };
        let noted = self.uses_noted();
        let barrier = is_barrier(self.cx.catalog, relation);
        let (body, own) =
            self.with_own(|b| b.view_body(relation, &view, |b, tree| b.query_body(tree, true)))?;
        self.check_view_columns(relation, &body)?;
        self.settle_uses(noted);
        let rows = self.subquery_source(body, own, barrier, false)?;
        let target = self.target_number();
        self.attached(target, |b| b.relation_item(relation, rows, alias, None))
    }

    pub(crate) fn view_item(
        &mut self,
        relation: &Arc<Relation>,
        view: &Arc<View>,
        alias: Option<&Alias>,
        source: Option<&ViewSource>,
        location: Location,
    ) -> Result<FromList> {
        self.reads(relation);
        self.view_body_item(relation, view, alias, source, location)
    }

    /// The same of one that has nothing to be locked by.
    pub(crate) fn view_body_item(
        &mut self,
        relation: &Arc<Relation>,
        view: &Arc<View>,
        alias: Option<&Alias>,
        source: Option<&ViewSource>,
        location: Location,
    ) -> Result<FromList> {
        let noted = self.uses_noted();
        let barrier = is_barrier(self.cx.catalog, relation);
        let (body, own) =
            self.with_own(|b| b.view_body(relation, view, |b, tree| b.query_body(tree, true)))?;
        self.check_view_columns(relation, &body)?;
        self.settle_uses(noted);
        match body {
            QueryTree::Select(select)
                if (!barrier || self.stays_barrier(&select))
                    && self.recorded.is_none()
                    && self.can_merge(&select) =>
            {
                self.merge(relation, *select, alias, source)
            }
            body => {
                let query = self.subquery_source(body, own, barrier, false)?;
                let rel = self.relation_item(relation, query, alias, source)?;
                let first = self.range.rels[rel].first;
                self.record(location, relation, first);
                Ok(FromList {
                    items: vec![From::Rel(rel)],
                    conditions: Vec::new(),
                })
            }
        }
    }

    /// Rows that are locked are rows of tables, so that a barrier's query is merged there if it reads one table: a scan
    /// asks its conditions in the order in which they stand, and the view's stand first.
    fn stays_barrier(&self, select: &Select) -> bool {
        let table = |rel: &usize| matches!(self.range.rels[*rel].source, RelSource::Table(_));
        self.whole_conditions
            && self.outer_joins == 0
            && matches!(select.from.items.as_slice(), [From::Rel(rel)] if table(rel))
    }

    /// Is a subquery in FROM put into the query that reads it, because that locks rows, and so those of the subquery's
    /// tables? Outside of other queries: it names none of their columns.
    pub(crate) fn locks_within(&self, select: &Select) -> bool {
        let typed = |output: &Output| output.expr.ty().oid != oid::UNKNOWN;
        self.whole_conditions
            && self.frames.len() == 1
            && select.outputs.iter().all(typed)
            && self.can_merge(select)
    }

    /// Puts such a subquery there.
    pub(crate) fn merge_derived(
        &mut self,
        select: Select,
        columns: Vec<OutputColumn>,
        alias: &Alias,
    ) -> Result<FromList> {
        let mut rels = Vec::new();
        collect_rels(&select.from, &mut rels);
        let mut named = Vec::with_capacity(columns.len());
        for (column, output) in columns.iter().zip(&select.outputs) {
            named.push(NsColumn {
                name: column.name.as_str().into(),
                what: self.view_column(&output.expr),
                in_row: None,
            });
        }
        let width = named.len();
        super::from::rename(named.iter_mut(), width, alias)?;
        let name: Arc<str> = (&*alias.name).into();
        for rel in rels {
            self.range.rels[rel].shown = Arc::clone(&name);
        }
        self.frame()?.ns.push(NsItem {
            alias: name,
            schema: None,
            hidden_name: None,
            columns: named,
            rel_visible: true,
            columns_visible: true,
            table: None,
            rel: None,
            row: None,
            composite: None,
            nullable: false,
            scalar: false,
            barred: None,
        });
        Ok(select.from)
    }

    /// Does a view's query only pick rows and columns? Under an outer join a computed column would have to become NULL
    /// with its row.
    fn can_merge(&self, select: &Select) -> bool {
        let plain = |e: &Expr| matches!(e, Expr::Column(..));
        let picks = select.grouping.is_none()
            && select.windows.is_empty()
            && select.sets.is_empty()
            && matches!(select.distinct, Distinct::No)
            && select.order.is_empty()
            && select.limit.is_none()
            && select.offset.is_none()
            && select.locks.is_none()
            && !select.from.items.is_empty();
        picks
            && select
                .outputs
                .iter()
                .all(|o| plain(&o.expr) || (self.outer_joins == 0 && !walk::is_volatile(&o.expr)))
    }

    /// Puts a view's query into the one that reads it.
    fn merge(
        &mut self,
        relation: &Arc<Relation>,
        mut select: Select,
        alias: Option<&Alias>,
        source: Option<&ViewSource>,
    ) -> Result<FromList> {
        // Where the view stands its conditions may be looked at no more: under an outer join, or in a change.
        self.range.pull_up_sublinks(&mut select);
        let mut rels = Vec::new();
        collect_rels(&select.from, &mut rels);
        let mut what: Vec<NsColumnSource> = Vec::with_capacity(select.outputs.len());
        for (i, output) in select.outputs.iter().enumerate() {
            let number = i16::try_from(i + 1).unwrap_or(0);
            let column = self.view_column(&output.expr);
            if let NsColumnSource::Column(id) = column {
                self.range.columns[id - super::COLUMN_BASE].origin = Some((relation.oid, number));
            }
            what.push(column);
        }
        self.note_use(relation, privilege::SELECT, true, Self::slots_of(&what));
        let item = self.relation_names(relation, what, alias, source)?;
        for rel in rels {
            self.range.rels[rel].shown = item.alias.clone();
        }
        for column in &item.columns {
            if let NsColumnSource::Column(id) = column.what {
                self.view_columns.insert(id, column.name.clone());
            }
        }
        self.frame()?.ns.push(item);
        Ok(select.from)
    }

    /// A relation as names see it: under its own name or an alias, or as a view knew it.
    pub(crate) fn relation_names(
        &self,
        relation: &Relation,
        what: Vec<NsColumnSource>,
        alias: Option<&Alias>,
        source: Option<&ViewSource>,
    ) -> Result<NsItem> {
        let mut columns: Vec<NsColumn> = Vec::with_capacity(what.len());
        for (position, (column, what)) in relation.columns.iter().zip(what).enumerate() {
            let known = source.map(|s| s.columns.iter().find(|(p, _)| *p == position));
            let (name, there) = match known {
                None => (column.name.as_str(), true),
                Some(Some((_, name))) => (name.as_str(), true),
                Some(None) => (column.name.as_str(), false),
            };
            // Mostly its identity has that name.
            let identity = match what {
                NsColumnSource::Column(id) => self.range.columns.get(id - super::COLUMN_BASE),
                _ => None,
            };
            let name = match identity {
                Some(identity) if *identity.name == *name => Arc::clone(&identity.name),
                _ => name.into(),
            };
            let (what, in_row) = match (column.dropped, there) {
                (false, true) => (what, None),
                (dropped, _) => (
                    NsColumnSource::Gone {
                        counts: known.is_some() && there,
                    },
                    (!dropped).then_some(what),
                ),
            };
            columns.push(NsColumn { name, what, in_row });
        }
        if let Some(alias) = alias {
            let passed = |c: &NsColumn| matches!(c.what, NsColumnSource::Gone { counts: false });
            let count = columns.iter().filter(|c| !passed(c)).count();
            let counted = columns.iter_mut().filter(|c| !passed(c));
            super::from::rename(counted, count, alias)?;
        }
        let (schema, own) = match source {
            Some(source) => (source.schema.as_str(), source.name.as_str()),
            None => (relation.schema_name.as_str(), relation.name.as_str()),
        };
        let is_view = matches!(relation.kind, RelationKind::View(_));
        Ok(NsItem {
            alias: alias.map_or_else(|| own.into(), |alias| (&*alias.name).into()),
            schema: alias.is_none().then(|| Arc::from(schema)),
            hidden_name: alias.map(|_| Arc::from(own)),
            columns,
            rel_visible: true,
            columns_visible: true,
            table: (!is_view).then_some(relation.oid),
            rel: None,
            row: Some(relation.oid),
            composite: None,
            nullable: false,
            scalar: false,
            barred: None,
        })
    }

    /// Adds a relation whose rows come from `source_of_rows` as a FROM item; its column identities are its attributes.
    pub(crate) fn relation_item(
        &mut self,
        relation: &Arc<Relation>,
        rows: RelSource,
        alias: Option<&Alias>,
        source: Option<&ViewSource>,
    ) -> Result<usize> {
        // Views of views can come to more items than anybody waits for.
        self.cx.session.interrupted()?;
        let index = self.range.rels.len();
        let first = super::COLUMN_BASE + self.range.columns.len();
        let mut what = Vec::with_capacity(relation.columns.len());
        // And those of some outputs.
        self.range.columns.reserve(relation.columns.len() + 8);
        for (i, column) in relation.columns.iter().enumerate() {
            let number = i16::try_from(i + 1).unwrap_or(0);
            let origin = Some((relation.oid, number));
            let id = self.column(relation.shared_name(i), column.ty, origin, index);
            what.push(NsColumnSource::Column(id));
        }
        let scanned = matches!(rows, RelSource::Table(_));
        if scanned || matches!(rows, RelSource::Virtual(..)) {
            // What an ungrouped row is called in errors.
            for _ in 0..2 {
                let name = self.hidden_name();
                self.column(
                    name,
                    SqlType::of(logstead_sql_types::value::oid::INT8),
                    None,
                    index,
                );
            }
        }
        let mut item = self.relation_names(relation, what, alias, source)?;
        item.rel = Some(index);
        self.note_item(relation, first);
        let (name, width) = (item.alias.clone(), item.columns.len());
        self.frame()?.ns.push(item);
        self.range.rels.push(super::Rel {
            shown: name.clone(),
            alias: name,
            source: rows,
            first,
            width,
            row_id: None,
            scanned,
            current_of: None,
            guard: Vec::new(),
            as_role: None,
        });
        Ok(index)
    }

    /// The name of a column in an error: as the statement names it, though a view's query may call it otherwise.
    pub(crate) fn column_label(&self, id: ColId, rel: usize) -> String {
        let rel = &self.range.rels[rel];
        match self.view_columns.get(&id) {
            Some(name) => format!("{}.{name}", rel.shown),
            None => format!("{}.{}", rel.alias, self.info(id).name),
        }
    }
}

/// The type of a view's column as it is kept.
pub fn view_column_type(ty: SqlType) -> SqlType {
    if ty.oid == logstead_sql_types::value::oid::UNKNOWN {
        SqlType::of(logstead_sql_types::value::oid::TEXT)
    } else {
        ty
    }
}
