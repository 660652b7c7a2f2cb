//! FROM in the shown form: tables by their present names, joins, functions, and what the columns of each are called.

use super::super::Source;
use super::super::explicit_types;
use super::super::from::join_kind;
use super::super::scope::{NsItem, NsWhat};
use super::columns::{Columns, Items};
use super::{Definer, Shown, ident};
use logstead_sql_catalog::{Relation, RelationKind};
use logstead_sql_parse::ast::{AnyName, Name, Value};
use logstead_sql_parse::lowered::{self as ast, TableFactor};
use logstead_sql_types::error::Result;
use logstead_sql_types::value::{SqlType, oid};
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;

impl Definer<'_, '_> {
    /// What the innermost frame's items are called: a table by its present name, each name once. And the columns that
    /// the joins merge.
    pub(super) fn names(
        &self,
        from: &[ast::TableWithJoins],
    ) -> (Vec<Shown>, VecDeque<Vec<String>>) {
        let mut aliases = Vec::new();
        for table in from {
            aliases_of(table, &mut aliases);
        }
        let mut aliases = aliases.into_iter();
        let mut items: Vec<Shown> = Vec::new();
        let ns = self.binder.frames.last().map(|f| f.ns.as_slice());
        for item in ns.unwrap_or_default() {
            if item.alias.is_empty() {
                items.push(Shown {
                    name: String::new(),
                    columns: item.columns.iter().map(|c| c.name.to_string()).collect(),
                    listed: Vec::new(),
                });
                continue;
            }
            // The alias of USING is no item: its columns are named by the items they come from.
            let Some(given) = aliases.next().unwrap_or(Some(None)) else {
                items.push(Shown {
                    name: String::new(),
                    columns: item.columns.iter().map(|c| c.name.to_string()).collect(),
                    listed: Vec::new(),
                });
                continue;
            };
            let relation = self.relation_of(item);
            let base = match (given, relation) {
                (None, Some(relation)) => relation.name.clone(),
                _ => item.alias.to_string(),
            };
            let mut name = base.clone();
            let mut pass = 0;
            let taken = |name: &str| {
                items.iter().any(|i| i.name == name)
                    || self.reserved.iter().any(|r| r == name)
                    || self
                        .levels
                        .iter()
                        .any(|l| l.items.iter().any(|i| i.name == name))
            };
            while taken(&name) {
                pass += 1;
                name = format!("{base}_{pass}");
            }
            let columns = item.columns.iter().map(|c| c.name.to_string());
            items.push(Shown {
                name,
                columns: columns.collect(),
                listed: Vec::new(),
            });
        }
        let ns = ns.unwrap_or_default();
        let relations = ns.iter().map(|item| self.relation_of(item).map(|r| &**r));
        let known = Items {
            ns,
            relations: relations.collect(),
        };
        let using = Columns::name(from, &known, &mut items);
        (items, using.into())
    }

    /// The relation that an item is.
    pub(super) fn relation_of(&self, item: &NsItem) -> Option<&Arc<Relation>> {
        // A join with a name has columns of relations, and is none.
        if !item.is_relation() {
            return None;
        }
        let first = item.columns.iter().find_map(|c| match c.what {
            NsWhat::Column(id) => Some(id),
            _ => None,
        })?;
        let info = self.binder.info(first);
        let rel = self.binder.range.rels.get(info.rel)?;
        let oid = info.origin.0;
        let found = self.catalog.relations.get(&oid)?;
        let is_view = matches!(found.kind, RelationKind::View(_));
        match &rel.source {
            Source::Table(table) => Some(table),
            Source::Virtual(relation, _) => Some(relation),
            Source::Function { .. } if matches!(found.kind, RelationKind::Sequence(_)) => {
                Some(found)
            }
            // A subquery's column may come from a table; the item is none.
            Source::Plan(_) | Source::Query(_) if is_view && item.is_relation() => Some(found),
            _ => None,
        }
    }

    /// Brings a table with its joins to its shown form; `at` counts the binder's items.
    pub(super) fn joined(
        &mut self,
        table: &ast::TableWithJoins,
        shown: &mut ast::TableWithJoins,
        start: usize,
        at: &mut usize,
    ) -> Result<()> {
        self.factor(&table.relation, &mut shown.relation, at)?;
        for (join, shown) in table.joins.iter().zip(&mut shown.joins) {
            self.factor(&join.relation, &mut shown.relation, at)?;
            let Some(constraint) = constraint_of(&mut shown.join_operator) else {
                continue;
            };
            match constraint {
                ast::JoinConstraint::On(condition) => {
                    // Only what the join joins is in sight.
                    let frame = self.binder.frame()?;
                    let rest = frame.ns.split_off((*at).min(frame.ns.len()));
                    let mut flags = Vec::new();
                    for item in frame.ns.iter_mut().skip(start) {
                        flags.push(item.columns_visible);
                        item.columns_visible |= !item.alias.is_empty();
                    }
                    let done = self.expr(condition);
                    let frame = self.binder.frame()?;
                    for (item, flag) in frame.ns.iter_mut().skip(start).zip(flags) {
                        item.columns_visible = flag;
                    }
                    frame.ns.extend(rest);
                    *condition = done?;
                }
                ast::JoinConstraint::Natural => {
                    let names = self.merged();
                    *at += 1;
                    // Without a column in common there is nothing to name.
                    match (names.is_empty(), &mut shown.join_operator) {
                        (true, ast::JoinOperator::Join(_)) => {
                            shown.join_operator =
                                ast::JoinOperator::CrossJoin(ast::JoinConstraint::None);
                        }
                        (true, operator) => {
                            if let Some(constraint) = constraint_of(operator) {
                                *constraint = ast::JoinConstraint::None;
                            }
                        }
                        (false, operator) => {
                            if let Some(constraint) = constraint_of(operator) {
                                *constraint = ast::JoinConstraint::Using(names, None);
                            }
                        }
                    }
                }
                ast::JoinConstraint::Using(names, alias) => {
                    for (name, merged) in names.iter_mut().zip(self.merged()) {
                        *name = merged;
                    }
                    *at += 1 + usize::from(alias.is_some());
                }
                ast::JoinConstraint::None => {}
            }
        }
        Ok(())
    }

    /// The columns that the next join merges.
    fn merged(&mut self) -> Vec<ast::Ident> {
        let names = self.levels.last_mut().and_then(|l| l.using.pop_front());
        let names = names.unwrap_or_default();
        names.iter().map(|name| ident(name)).collect()
    }

    fn factor(
        &mut self,
        factor: &TableFactor,
        shown: &mut TableFactor,
        at: &mut usize,
    ) -> Result<()> {
        if let (
            TableFactor::NestedJoin {
                table_with_joins,
                alias,
            },
            TableFactor::NestedJoin {
                table_with_joins: shown_joins,
                alias: shown_alias,
            },
        ) = (factor, &mut *shown)
        {
            let start = *at;
            self.joined(table_with_joins, shown_joins, start, at)?;
            if alias.is_some() {
                let item = self.levels.last().and_then(|l| l.items.get(*at));
                *shown_alias = item.map(alias_of);
                *at += 1;
            }
            return Ok(());
        }
        let index = *at;
        *at += 1;
        let item = self.levels.last().and_then(|l| l.items.get(index)).cloned();
        let item = item.unwrap_or_default();
        match shown {
            TableFactor::Table { name, alias, .. } => {
                let ns = self.binder.frames.last().and_then(|f| f.ns.get(index));
                let relation = ns.and_then(|i| self.relation_of(i)).cloned();
                if let Some(relation) = relation {
                    let text = logstead_sql_catalog::text::relation_text(
                        self.catalog,
                        relation.oid,
                        self.path,
                    );
                    let parts = match text {
                        Some(text) => logstead_sql_catalog::text::split_qualified(&text)?,
                        None => vec![relation.name.clone()],
                    };
                    *name = AnyName::of(parts.iter().map(String::as_str));
                    *alias =
                        (alias.is_some() || item.name != relation.name || !item.listed.is_empty())
                            .then(|| alias_of(&item));
                } else {
                    // A WITH query.
                    let own = name.names.last().map(ToString::to_string);
                    let own = own.unwrap_or_default();
                    *name = AnyName::of([own.as_str()]);
                    *alias = (alias.is_some() || item.name != own || !item.listed.is_empty())
                        .then(|| alias_of(&item));
                }
            }
            TableFactor::RangeTableFunc(table) => self.xml_table(table, &item)?,
            TableFactor::Function {
                lateral,
                function,
                alias,
                ..
            } => {
                *lateral = self.reads_before(function, index);
                match function.unnested() {
                    Some(_) => {
                        self.arguments(&mut function.args)?;
                        *alias = Some(alias_of(&item));
                    }
                    None => self.function(function, alias, &item)?,
                }
            }
            TableFactor::Derived {
                lateral,
                subquery,
                alias,
                ..
            } => {
                let hidden = match lateral {
                    true => Vec::new(),
                    false => std::mem::take(&mut self.binder.frame()?.ns),
                };
                let done = self.query(subquery);
                if !*lateral {
                    self.binder.frame()?.ns = hidden;
                }
                **subquery = done?;
                if alias.is_some() {
                    *alias = Some(alias_of(&item));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// XMLTABLE, whose columns no alias names: LATERAL where it names columns of other items.
    fn xml_table(&mut self, table: &mut ast::RangeTableFunc, item: &Shown) -> Result<()> {
        if matches!(table.docexpr, ast::Expr::Const(_)) {
            let literal = std::mem::replace(&mut table.docexpr, ast::Expr::value(Value::Null));
            table.docexpr = explicit_types::cast(literal, SqlType::of(oid::XML));
        }
        table.rowexpr = self.expr(&table.rowexpr)?;
        table.docexpr = self.expr(&table.docexpr)?;
        let text = SqlType::of(oid::TEXT);
        for (_, uri) in &mut table.namespaces {
            *uri = self.of_type(uri, text)?;
        }
        for column in &mut table.columns {
            if let Some(path) = &mut column.colexpr {
                *path = self.of_type(path, text)?;
            }
            if let (Some(default), Some(type_name)) = (&mut column.coldefexpr, &column.type_name)
                && !default.is_null()
            {
                let ty = logstead_sql_catalog::type_name::sql_type(type_name)?;
                *default = self.of_type(default, ty)?;
            }
        }
        table.alias = match table.alias.is_some() || item.name != "xmltable" {
            true => Some(plain_alias(&item.name)),
            false => None,
        };
        let names = |expr: &ast::Expr| match expr {
            ast::Expr::ColumnRef(_) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        };
        table.lateral = ast::visit_expressions(table, names).is_break();
        Ok(())
    }

    /// A value that is brought to a type. What brings a literal to a modifier is shown, too.
    fn of_type(&mut self, value: &ast::Expr, ty: SqlType) -> Result<ast::Expr> {
        let value = match value.literal() {
            Some(_) => explicit_types::cast(value.clone(), SqlType::of(ty.oid)),
            None => value.clone(),
        };
        self.expr(&explicit_types::cast(value, ty))
    }

    /// A function, with the types of its columns where the query gives them.
    fn function(
        &mut self,
        function: &mut ast::FuncCall,
        alias: &mut Option<ast::TableAlias>,
        item: &Shown,
    ) -> Result<()> {
        self.call(function)?;
        let given = alias.take().map(|given| given.columns).unwrap_or_default();
        let mut shown = alias_of(item);
        for (column, defined) in shown.columns.iter_mut().zip(given) {
            column.data_type = defined.data_type;
        }
        *alias = Some(shown);
        Ok(())
    }

    /// Does a function read items in front of the one at `index`?
    fn reads_before(&self, function: &ast::FuncCall, index: usize) -> bool {
        let reads = |expr: &ast::Expr| match expr {
            ast::Expr::ColumnRef(column) if self.is_before(index, &column.fields) => {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        };
        ast::visit_expressions(function, reads).is_break()
    }

    /// Is it a column, or the row, of an item in front of the item at `index`?
    fn is_before(&self, index: usize, names: &[Name]) -> bool {
        let ns = self.binder.frames.last().map(|f| f.ns.as_slice());
        let mut items = ns.unwrap_or_default().iter().take(index);
        items.any(|item| match names {
            [name] => {
                (item.columns_visible && item.columns.iter().any(|c| *c.name == **name))
                    || (item.rel_visible && *item.alias == **name)
            }
            [.., item_name, _] => item.rel_visible && *item.alias == **item_name,
            [] => false,
        })
    }

    /// The arguments of a function, each of the type that it takes.
    fn call(&mut self, call: &mut ast::FuncCall) -> Result<()> {
        if call.values().is_none() {
            return self.arguments(&mut call.args);
        }
        if let ast::Expr::FuncCall(shown) =
            self.expr(&ast::Expr::FuncCall(Box::new(call.clone())))?
        {
            *call = *shown;
        }
        Ok(())
    }

    fn arguments(&mut self, args: &mut [ast::FuncArg]) -> Result<()> {
        for arg in args {
            if arg.name.is_none() {
                arg.value = self.expr(&arg.value)?;
            }
        }
        Ok(())
    }
}

/// VALUES as an operand, which the parser has made a query that reads it.
pub(super) fn bare_values(select: &ast::Select) -> Option<&ast::SetExpr> {
    let [ast::TableWithJoins { relation, joins }] = select.from.as_slice() else {
        return None;
    };
    match (relation, select.projection.as_slice()) {
        (
            TableFactor::Derived {
                subquery,
                alias: Some(alias),
                ..
            },
            [ast::SelectItem::Wildcard(_)],
        ) if *alias.name.value == *"*VALUES*"
            && joins.is_empty()
            && select.selection.is_none()
            && matches!(&*subquery.body, ast::SetExpr::Values(_)) =>
        {
            Some(&subquery.body)
        }
        _ => None,
    }
}

/// An alias, with the names of columns where these have to be told.
fn alias_of(item: &Shown) -> ast::TableAlias {
    let mut shown = plain_alias(&item.name);
    let columns = item.listed.iter().map(|name| ast::TableAliasColumnDef {
        name: ident(name),
        data_type: None,
    });
    shown.columns = columns.collect();
    shown
}

fn plain_alias(name: &str) -> ast::TableAlias {
    ast::TableAlias {
        name: ident(name),
        columns: Vec::new(),
    }
}

fn constraint_of(operator: &mut ast::JoinOperator) -> Option<&mut ast::JoinConstraint> {
    use ast::JoinOperator as J;
    match operator {
        J::Join(c) | J::CrossJoin(c) | J::Left(c) | J::Right(c) | J::FullOuter(c) => Some(c),
    }
}

/// The aliases of the named items of FROM, in the order in which the binder has them; none at all for an alias of
/// USING.
fn aliases_of<'t>(
    table: &'t ast::TableWithJoins,
    out: &mut Vec<Option<Option<&'t ast::TableAlias>>>,
) {
    factor_aliases(&table.relation, out);
    for join in &table.joins {
        factor_aliases(&join.relation, out);
        if let Ok((_, ast::JoinConstraint::Using(_, Some(_)))) = join_kind(&join.join_operator) {
            out.push(None);
        }
    }
}

fn factor_aliases<'t>(factor: &'t TableFactor, out: &mut Vec<Option<Option<&'t ast::TableAlias>>>) {
    match factor {
        TableFactor::NestedJoin {
            table_with_joins,
            alias,
        } => {
            aliases_of(table_with_joins, out);
            if let Some(alias) = alias {
                out.push(Some(Some(alias)));
            }
        }
        TableFactor::Table { alias, .. }
        | TableFactor::Derived { alias, .. }
        | TableFactor::Function { alias, .. } => out.push(Some(alias.as_ref())),
        TableFactor::RangeTableFunc(table) => out.push(Some(table.alias.as_ref())),
        _ => out.push(Some(None)),
    }
}
