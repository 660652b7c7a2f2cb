//! FROM: tables, subqueries, functions, joins.

use super::scope::{InvalidReference, NsColumn, NsColumnSource, NsItem};
use super::{Binder, Clause, Rel, RelSource};
use crate::JoinKind;
use crate::permissions::SchemaLookup;
use crate::query::QueryTree;
use crate::query::expr::Expr;
use crate::query::{From, FromList};
use logstead_sql_catalog::{ColumnOrigin, Relation, RelationKind, ViewSource, large_objects};
use logstead_sql_parse::ast::{
    self, Alias, JoinExpr, JoinQual, JoinType, Location, Name, RangeVar, TableRef,
};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, SqlType, oid};
use logstead_types::SqlState;
use std::sync::Arc;

impl Binder<'_> {
    /// Binds the whole FROM list; the innermost frame's names grow as it goes.
    pub(crate) fn bind_from(&mut self, from: &[TableRef]) -> Result<FromList> {
        let mut list = FromList::default();
        for item in from {
            let before = self.frame()?.ns.len();
            let bound = self.table_ref(item)?;
            self.check_aliases(0, before)?;
            list.items.extend(bound.items);
            list.conditions.extend(bound.conditions);
        }
        Ok(list)
    }

    /// 42712 when the name of an item from `middle` on is taken by one from `start` on.
    fn check_aliases(&mut self, start: usize, middle: usize) -> Result<()> {
        let ns = &self.frame()?.ns;
        for item in ns.iter().skip(middle) {
            let clash = ns[start..middle].iter().any(|other| {
                other.alias == item.alias
                    && other.rel_visible
                    && item.rel_visible
                    && !item.alias.is_empty()
                    // Two tables of one name in different schemas may stand side by side.
                    && (other.schema == item.schema || other.schema.is_none() || item.schema.is_none())
            });
            if clash {
                return Err(SqlError::new(
                    SqlState::DUPLICATE_ALIAS,
                    format!("table name \"{}\" specified more than once", item.alias),
                ));
            }
        }
        Ok(())
    }

    /// Joins, in a loop as far as they lean to the left.
    fn joins(&mut self, item: &TableRef) -> Result<FromList> {
        let (first, joins) = item.join_chain();
        let outer = joins
            .iter()
            .any(|join| join_kind(join.jointype) != JoinKind::Inner);
        self.outer_joins += usize::from(outer);
        let bound = self.joined(first, &joins);
        self.outer_joins -= usize::from(outer);
        bound
    }

    fn joined(&mut self, first: &TableRef, joins: &[&JoinExpr]) -> Result<FromList> {
        let start = self.frame()?.ns.len();
        let mut left = self.table_ref(first)?;
        for join in joins {
            let middle = self.frame()?.ns.len();
            let kind = join_kind(join.jointype);
            let is_outer = matches!(kind, JoinKind::Right | JoinKind::Full);
            let bar =
                |item: &mut NsItem| item.barred = is_outer.then_some(InvalidReference::ByJoin);
            self.frame()?.ns[start..middle].iter_mut().for_each(bar);
            let right = self.table_ref(&join.rarg)?;
            let lefts = &mut self.frame()?.ns[start..middle];
            lefts.iter_mut().for_each(|item| item.barred = None);
            self.check_aliases(start, middle)?;
            left = self.join(join, left, right, start, middle)?;
        }
        Ok(left)
    }

    fn join(
        &mut self,
        join: &JoinExpr,
        mut left: FromList,
        right: FromList,
        start: usize,
        middle: usize,
    ) -> Result<FromList> {
        let end = self.frame()?.ns.len();
        let kind = join_kind(join.jointype);
        let conditions = match &join.quals {
            JoinQual::On(expr) => {
                // Only the two sides of the join are in sight (and, as everywhere, enclosing queries).
                let hidden: Vec<NsItem> = self.frame()?.ns.drain(..start).collect();
                let bound = self.in_clause(Clause::JoinOn, |b| b.condition_of(expr, "JOIN/ON"));
                self.frame()?.ns.splice(0..0, hidden);
                match bound? {
                    Expr::And(all) => all,
                    one => vec![one],
                }
            }
            JoinQual::Using(names, alias) => {
                let alias = alias.as_ref().map(|alias| &*alias.name);
                self.using(kind, names, alias, start, middle)?
            }
            JoinQual::None if !join.is_natural => Vec::new(),
            JoinQual::None => {
                let ns = &self.frame()?.ns;
                let names = |items: &[NsItem]| -> Vec<Name> {
                    let visible = items.iter().filter(|i| i.columns_visible);
                    let columns = visible.flat_map(|i| &i.columns);
                    columns
                        .filter(|c| !matches!(c.what, NsColumnSource::Gone { .. }))
                        .map(|c| Name::from(&*c.name))
                        .collect()
                };
                let rights = names(&ns[middle..]);
                let mut columns = names(&ns[start..middle]);
                columns.retain(|name| rights.contains(name));
                self.using(kind, &columns, None, start, middle)?
            }
        };
        let ns = &mut self.frame()?.ns;
        let (lefts, rights) = ns[start..end].split_at_mut(middle - start);
        if matches!(kind, JoinKind::Right | JoinKind::Full) {
            lefts.iter_mut().for_each(|item| item.nullable = true);
        }
        if matches!(kind, JoinKind::Left | JoinKind::Full) {
            rights.iter_mut().for_each(|item| item.nullable = true);
        }
        if kind == JoinKind::Inner {
            left.items.extend(right.items);
            left.conditions.extend(right.conditions);
            left.conditions.extend(conditions);
            return Ok(left);
        }
        Ok(FromList {
            items: vec![From::Join {
                kind,
                left: Box::new(left),
                right: Box::new(right),
                on: conditions,
            }],
            conditions: Vec::new(),
        })
    }

    /// JOIN ... USING: equalities, and one merged column for each pair in front of all others. An alias names these
    /// alone.
    fn using(
        &mut self,
        kind: JoinKind,
        columns: &[Name],
        alias: Option<&str>,
        start: usize,
        middle: usize,
    ) -> Result<Vec<Expr>> {
        let mut pairs = Vec::with_capacity(columns.len());
        let mut merged = Vec::new();
        // That the types match is asked of all columns before operators are looked for.
        for name in columns {
            let l = self.using_column(name, start, middle, "left")?;
            let end = self.frame()?.ns.len();
            let r = self.using_column(name, middle, end, "right")?;
            let left = self.ns_expr(&l)?;
            let right = self.ns_expr(&r)?;
            pairs.push((left.clone(), right.clone()));
            let types = (left.ty().oid, right.ty().oid);
            let (mut both, ty) = self.unify(vec![(left, None), (right, None)], "JOIN/USING")?;
            // A column that is of the common type by itself goes before one that is cast.
            let plain = (types.0 == ty.oid, types.1 == ty.oid);
            let cast = |both: &mut Vec<Expr>, side: usize| {
                NsColumnSource::Merged(both.swap_remove(side), None)
            };
            let what = match kind {
                JoinKind::Full => NsColumnSource::Merged(Expr::Coalesce(both, ty), None),
                JoinKind::Right if plain.1 => r,
                JoinKind::Right => cast(&mut both, 1),
                _ if plain.0 => l,
                JoinKind::Inner if plain.1 => r,
                _ => cast(&mut both, 0),
            };
            merged.push(NsColumn {
                name: (&**name).into(),
                what,
                in_row: None,
            });
        }
        let mut conditions = Vec::with_capacity(pairs.len());
        for (left, right) in pairs {
            conditions.push(self.operator("=", left, right, None)?);
        }
        let ns = &mut self.frame()?.ns;
        let named = alias.map(|alias| NsItem {
            alias: alias.into(),
            schema: None,
            hidden_name: None,
            columns: merged.clone(),
            rel_visible: true,
            columns_visible: false,
            table: None,
            rel: None,
            row: None,
            composite: None,
            nullable: false,
            scalar: false,
            barred: None,
        });
        for item in ns[start..].iter_mut().filter(|i| i.columns_visible) {
            for column in &item.columns {
                let is_merged = columns.iter().any(|name| **name == *column.name);
                if !is_merged && !matches!(column.what, NsColumnSource::Gone { counts: false }) {
                    merged.push(column.clone());
                }
            }
            item.columns_visible = false;
        }
        ns.push(NsItem {
            alias: "".into(),
            schema: None,
            hidden_name: None,
            columns: merged,
            rel_visible: false,
            columns_visible: true,
            table: None,
            rel: None,
            row: None,
            composite: None,
            nullable: false,
            scalar: false,
            barred: None,
        });
        if named.is_some() {
            let last = ns.len();
            ns.extend(named);
            self.check_aliases(start, last)?;
        }
        Ok(conditions)
    }

    fn using_column(
        &mut self,
        name: &str,
        from: usize,
        to: usize,
        side: &str,
    ) -> Result<NsColumnSource> {
        let mut hit = None;
        for item in self.frame()?.ns[from..to]
            .iter()
            .filter(|i| i.columns_visible)
        {
            for column in item
                .columns
                .iter()
                .filter(|c| *c.name == *name && !matches!(c.what, NsColumnSource::Gone { .. }))
            {
                if hit.is_some() {
                    return Err(SqlError::new(
                        SqlState::AMBIGUOUS_COLUMN,
                        format!(
                            "common column name \"{name}\" appears more than once in {side} table"
                        ),
                    ));
                }
                hit = Some(column.what.clone());
            }
        }
        hit.ok_or_else(|| {
            SqlError::new(
                SqlState::UNDEFINED_COLUMN,
                format!(
                    "column \"{name}\" specified in USING clause does not exist in {side} table"
                ),
            )
        })
    }

    /// An item of FROM.
    pub(crate) fn table_ref(&mut self, item: &TableRef) -> Result<FromList> {
        match item {
            TableRef::RangeVar(item) => self.table(item),
            TableRef::Subselect(item) => {
                self.derived(item.lateral, &item.subquery, item.alias.as_deref())
            }
            TableRef::Function(item) => self.range_function(item),
            TableRef::TableFunc(item) => self.xml_table(item),
            TableRef::TableSample(_) => Err(SqlError::unsupported("TABLESAMPLE")),
            TableRef::Join(join) => {
                let start = self.frame()?.ns.len();
                let list = self.joins(item)?;
                if let Some(alias) = &join.alias {
                    self.join_alias(start, alias)?;
                }
                Ok(list)
            }
        }
    }

    /// `(a JOIN b ...) AS alias`: only the alias is in sight.
    fn join_alias(&mut self, start: usize, alias: &Alias) -> Result<()> {
        let name: Arc<str> = (&*alias.name).into();
        let ns = &mut self.frame()?.ns;
        let mut columns = Vec::new();
        for item in ns[start..].iter_mut() {
            if item.columns_visible {
                columns.extend(
                    item.columns
                        .iter()
                        .filter(|c| !matches!(c.what, NsColumnSource::Gone { counts: false }))
                        .cloned(),
                );
            }
            item.columns_visible = false;
            item.rel_visible = false;
        }
        if alias.colnames.len() > columns.len() {
            return Err(SqlError::new(
                SqlState::INVALID_COLUMN_REFERENCE,
                format!(
                    "join expression \"{name}\" has {} columns available but {} columns specified",
                    columns.len(),
                    alias.colnames.len()
                ),
            ));
        }
        for (column, new) in columns.iter_mut().zip(&alias.colnames) {
            column.name = (&**new).into();
        }
        ns.push(NsItem {
            alias: name,
            schema: None,
            hidden_name: None,
            columns,
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
        Ok(())
    }

    fn table(&mut self, item: &RangeVar) -> Result<FromList> {
        let alias = item.alias.as_deref();
        let view = self.view.clone();
        let frozen = view.as_ref().and_then(|view| view.source(item));
        let relation = match frozen {
            Some(source) => self.source_relation(source)?,
            None => {
                let (schema, table) = item.schema_and_name(&self.cx.catalog.database_name)?;
                if schema.is_none()
                    && let Some(rel) = self
                        .cte_reference(table, alias)
                        .map_err(|error| error.at(self.at(item.location)))?
                {
                    return Ok(FromList {
                        items: vec![From::Rel(rel)],
                        conditions: Vec::new(),
                    });
                }
                if schema.is_none()
                    && self.cx.variables.is_some()
                    && let Some(rows) = self.body_table(table, alias)?
                {
                    return Ok(rows);
                }
                self.relation_called(schema, table, item.location)?
            }
        };
        let location = item.location;
        if let RelationKind::View(view) = &relation.kind {
            return self.view_item(&relation, view, alias, frozen, location);
        }
        if let Some(view) = large_objects::view_of(&relation) {
            return self.view_body_item(&relation, view, alias, frozen, location);
        }
        let rel = self.add_relation_as(&relation, alias, frozen)?;
        self.guard_item(rel, &relation)?;
        let first = self.range.rels[rel].first;
        self.record(location, &relation, first);
        Ok(FromList {
            items: vec![From::Rel(rel)],
            conditions: Vec::new(),
        })
    }

    /// Finds a table, view or sequence by name.
    pub(crate) fn relation(&mut self, name: &RangeVar) -> Result<Arc<Relation>> {
        let location = name.location;
        let (schema, table) = name
            .schema_and_name(&self.cx.catalog.database_name)
            .map_err(|e| e.at(self.at(location)))?;
        self.relation_called(schema, table, location)
    }

    /// The same, of a name that is taken apart.
    fn relation_called(
        &mut self,
        schema: Option<&str>,
        table: &str,
        location: Location,
    ) -> Result<Arc<Relation>> {
        if let Some(schema) = schema {
            self.lookup()
                .explicit(schema)
                .map_err(|e| e.at(self.at(location)))?;
        }
        if let Some(relation) = self.cx.catalog.relation(schema, table, self.search_path()) {
            self.refuse_settings_shown(&relation.name)?;
            self.cx.catalog.check_types_of_own(relation)?;
            if !matches!(relation.kind, RelationKind::Virtual(_)) {
                self.uses.schemas.push(SchemaLookup {
                    schema: relation.schema,
                    unqualified: schema.is_none().then(|| table.to_owned()),
                });
            }
            return Ok(relation.clone());
        }
        let at = self.at(location);
        let shown = match schema {
            Some(schema) => format!("{schema}.{table}"),
            None => table.to_owned(),
        };
        // An index is a relation too, but no table.
        let is_index = self.cx.catalog.schemas.values().any(|s| {
            (schema.map_or_else(
                || self.search_path().contains(&s.name),
                |wanted| wanted == s.name,
            )) && self
                .cx
                .catalog
                .names
                .get(&(s.oid, table.to_owned()))
                .is_some_and(|oid| self.cx.catalog.index_tables.contains_key(oid))
        });
        if is_index {
            return Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("\"{table}\" is an index"),
            )
            .at(at));
        }
        Err(SqlError::new(
            SqlState::UNDEFINED_TABLE,
            format!("relation \"{shown}\" does not exist"),
        )
        .at(at))
    }

    /// Adds a relation as a FROM item.
    pub(crate) fn add_relation(
        &mut self,
        relation: &Arc<Relation>,
        alias: Option<&Alias>,
    ) -> Result<usize> {
        let rel = self.add_relation_as(relation, alias, None)?;
        self.range.rels[rel].scanned = false;
        Ok(rel)
    }

    /// Adds a relation as a FROM item, as a view knew it.
    fn add_relation_as(
        &mut self,
        relation: &Arc<Relation>,
        alias: Option<&Alias>,
        frozen: Option<&ViewSource>,
    ) -> Result<usize> {
        let source = match &relation.kind {
            RelationKind::Materialized(_, false) if self.recorded.is_none() => {
                return Err(SqlError::new(
                    SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                    format!(
                        "materialized view \"{}\" has not been populated",
                        relation.name
                    ),
                )
                .hint("Use the REFRESH MATERIALIZED VIEW command."));
            }
            RelationKind::Table | RelationKind::Materialized(..) => {
                RelSource::Table(relation.clone())
            }
            RelationKind::View(_) => {
                return Err(SqlError::internal("a view is no plain FROM item"));
            }
            RelationKind::Virtual(_) if large_objects::is_kept(relation) => {
                RelSource::Table(relation.clone())
            }
            RelationKind::Virtual(table) => RelSource::Virtual(relation.clone(), table),
            RelationKind::Sequence(_) => RelSource::Function {
                function: &logstead_sql_catalog::SEQUENCE_ROW,
                args: vec![Expr::Const(
                    Datum::Oid(relation.oid.get()),
                    SqlType::of(oid::OID),
                )],
                ordinality: false,
                asked: Vec::new(),
            },
        };
        if matches!(source, RelSource::Table(_)) {
            self.reads(relation);
        }
        self.relation_item(relation, source, alias, frozen)
    }

    /// Adds an item with computed columns.
    pub(crate) fn add_item(
        &mut self,
        source: RelSource,
        columns: Vec<(Arc<str>, SqlType, Option<ColumnOrigin>)>,
        default_name: &str,
        alias: Option<&Alias>,
    ) -> Result<usize> {
        let name: Arc<str> =
            alias.map_or_else(|| default_name.into(), |alias| (&*alias.name).into());
        let index = self.range.rels.len();
        let first = super::COLUMN_BASE + self.range.columns.len();
        let width = columns.len();
        let mut named = Vec::with_capacity(width);
        for (column, ty, origin) in columns {
            let id = self.column(column.clone(), ty, origin, index);
            named.push(NsColumn {
                name: column,
                what: NsColumnSource::Column(id),
                in_row: None,
            });
        }
        if let Some(alias) = alias {
            rename(named.iter_mut(), width, alias)?;
        }
        self.frame()?.ns.push(NsItem {
            alias: name.clone(),
            schema: None,
            hidden_name: None,
            columns: named,
            rel_visible: !name.is_empty(),
            columns_visible: true,
            table: None,
            rel: None,
            row: None,
            composite: None,
            nullable: false,
            scalar: false,
            barred: None,
        });
        self.range.rels.push(Rel {
            shown: name.clone(),
            alias: name,
            source,
            first,
            width,
            row_id: None,
            scanned: false,
            current_of: None,
            guard: Vec::new(),
            as_role: None,
        });
        Ok(index)
    }

    pub(super) fn derived(
        &mut self,
        lateral: bool,
        query: &ast::SelectStmt,
        alias: Option<&Alias>,
    ) -> Result<FromList> {
        let Some(alias) = alias else {
            let what = if matches!(query.body, ast::SelectBody::Values(_)) {
                "VALUES"
            } else {
                "subquery"
            };
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!("{what} in FROM must have an alias"),
            )
            .hint(if what == "VALUES" {
                "For example, FROM (VALUES ...) [AS] foo."
            } else {
                "For example, FROM (SELECT ...) [AS] foo."
            }));
        };
        // Without LATERAL the items to the left are not in sight.
        let hidden = if lateral {
            Vec::new()
        } else {
            std::mem::take(&mut self.frame()?.ns)
        };
        let unseen = self.unseen.len();
        self.unseen
            .extend(hidden.iter().map(|item| Arc::clone(&item.alias)));
        let bound = self.with_own(|b| b.deeper(|b| b.query_body(query, true)));
        self.unseen.truncate(unseen);
        if !lateral {
            self.frame()?.ns = hidden;
        }
        let (body, own) = bound?;
        let columns = self.range.body_columns(&body);
        let body = match body {
            QueryTree::Select(select) if !lateral && self.locks_within(&select) => {
                return self.merge_derived(*select, columns, alias);
            }
            body => body,
        };
        let columns = columns
            .into_iter()
            .map(|c| (c.name.as_str().into(), c.ty, c.origin))
            .collect();
        let source = self.subquery_source(body, own, false, false)?;
        let rel = self.add_item(source, columns, "", Some(alias))?;
        Ok(FromList {
            items: vec![From::Rel(rel)],
            conditions: Vec::new(),
        })
    }
}

pub(crate) fn rename<'c>(
    columns: impl Iterator<Item = &'c mut NsColumn>,
    count: usize,
    alias: &Alias,
) -> Result<()> {
    if alias.colnames.len() > count {
        return Err(SqlError::new(
            SqlState::INVALID_COLUMN_REFERENCE,
            format!(
                "table \"{}\" has {count} columns available but {} columns specified",
                alias.name,
                alias.colnames.len()
            ),
        ));
    }
    for (column, new) in columns.zip(&alias.colnames) {
        column.name = (&**new).into();
    }
    Ok(())
}

pub(super) fn join_kind(jointype: JoinType) -> JoinKind {
    match jointype {
        JoinType::Inner | JoinType::Cross => JoinKind::Inner,
        JoinType::Left => JoinKind::Left,
        JoinType::Right => JoinKind::Right,
        JoinType::Full => JoinKind::Full,
    }
}
