//! FROM in the shown form: tables by their present names, joins, functions, and what the columns of each are called.

use super::super::Source;
use super::super::names::fold_ident;
use super::super::scope::{NsItem, NsWhat};
use super::super::xml_table::is_xml_table;
use super::{Definer, Shown, ident};
use crate::catalog::{Relation, RelationKind, calls};
use crate::error::Result;
use sqlparser::ast::{self, TableFactor};
use std::ops::ControlFlow;
use std::sync::Arc;

impl Definer<'_, '_> {
    /// What the innermost frame's items are called: a table by its present name, each name once.
    pub(super) fn names(&self, from: &[ast::TableWithJoins]) -> Vec<Shown> {
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
                });
                continue;
            }
            let given: Option<&ast::TableAlias> = aliases.next().flatten();
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
            let renamed = given.map_or(0, |a| a.columns.len());
            let mut live = 0;
            let columns = item.columns.iter().enumerate().map(|(at, c)| {
                let passed = matches!(c.what, NsWhat::Gone { counts: false });
                let by_alias = !passed && live < renamed;
                live += usize::from(!passed);
                match relation.and_then(|r| r.columns.get(at)) {
                    Some(column) if !by_alias => column.name.clone(),
                    _ => c.name.to_string(),
                }
            });
            let columns = columns.collect();
            items.push(Shown { name, columns });
        }
        items
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
        let rel = self.binder.rels.get(info.rel)?;
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
            let middle = *at;
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
                    let names = self.common(start, middle, *at);
                    // Without a column in common there is nothing to name.
                    *constraint = if names.is_empty() {
                        ast::JoinConstraint::On(ast::Expr::value(ast::Value::Boolean(true)))
                    } else {
                        let names = names.iter().map(|n| ast::ObjectName::from(vec![ident(n)]));
                        ast::JoinConstraint::Using(names.collect())
                    };
                    *at += 1;
                }
                ast::JoinConstraint::Using(names) => {
                    let aliased = crate::parse::using_alias(names).1.is_some();
                    let named = names.len() - usize::from(aliased);
                    for name in names.iter_mut().take(named) {
                        if let Some(part) = name.0.last().and_then(|p| p.as_ident()) {
                            *name = ast::ObjectName::from(vec![ident(&fold_ident(part))]);
                        }
                    }
                    *at += 1 + usize::from(aliased);
                }
                ast::JoinConstraint::None => {}
            }
        }
        Ok(())
    }

    /// Columns that the two sides of a natural join have in common.
    fn common(&self, start: usize, middle: usize, end: usize) -> Vec<String> {
        let ns = self.binder.frames.last().map(|f| f.ns.as_slice());
        let ns = ns.unwrap_or_default();
        let names = |from: usize, to: usize| -> Vec<String> {
            let mut all: Vec<String> = Vec::new();
            for item in ns.get(from..to).unwrap_or_default() {
                for column in &item.columns {
                    let name = column.name.to_string();
                    if !matches!(column.what, NsWhat::Gone { .. }) && !all.contains(&name) {
                        all.push(name);
                    }
                }
            }
            all
        };
        let right = names(middle, end);
        let mut left = names(start, middle);
        left.retain(|name| right.contains(name));
        left
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
            if let Some(alias) = alias {
                *shown_alias = Some(self.alias_of(alias, *at));
                *at += 1;
            }
            return Ok(());
        }
        let index = *at;
        *at += 1;
        let item = self.levels.last().and_then(|l| l.items.get(index)).cloned();
        let item = item.unwrap_or_default();
        match shown {
            TableFactor::Table {
                name,
                alias,
                args: None,
                ..
            } => {
                let ns = self.binder.frames.last().and_then(|f| f.ns.get(index));
                let relation = ns.and_then(|i| self.relation_of(i)).cloned();
                if let Some(relation) = relation {
                    let text = calls::relation_text(self.catalog, relation.oid, self.path);
                    let parts = match text {
                        Some(text) => crate::catalog::text::split_qualified(&text)?,
                        None => vec![relation.name.clone()],
                    };
                    *name =
                        ast::ObjectName::from(parts.iter().map(|p| ident(p)).collect::<Vec<_>>());
                    *alias = match alias.take() {
                        Some(alias) => Some(self.alias_of(&alias, index)),
                        None if item.name != relation.name => Some(plain_alias(&item.name)),
                        None => None,
                    };
                } else {
                    // A WITH query.
                    let own = name.0.last().and_then(|p| p.as_ident()).map(fold_ident);
                    let own = own.unwrap_or_default();
                    *name = ast::ObjectName::from(vec![ident(&own)]);
                    *alias = match alias.take() {
                        Some(alias) => Some(self.alias_of(&alias, index)),
                        None if item.name != own => Some(plain_alias(&item.name)),
                        None => None,
                    };
                }
            }
            TableFactor::Table {
                name,
                args: Some(ast::TableFunctionArgs { args, .. }),
                alias,
                ..
            }
            | TableFactor::Function {
                name, args, alias, ..
            } if is_xml_table(name) => {
                let lateral = self.xml_table(args, alias, &item)?;
                *shown = TableFactor::Function {
                    lateral,
                    name: name.clone(),
                    args: std::mem::take(args),
                    with_ordinality: false,
                    alias: alias.take(),
                };
            }
            TableFactor::Table {
                args: Some(args),
                alias,
                ..
            } => {
                self.arguments(&mut args.args)?;
                *alias = Some(self.function_alias(alias.as_ref(), index));
            }
            TableFactor::Function { args, alias, .. } => {
                self.arguments(args)?;
                *alias = Some(self.function_alias(alias.as_ref(), index));
            }
            TableFactor::UNNEST {
                alias, array_exprs, ..
            } => {
                for e in array_exprs {
                    *e = self.expr(e)?;
                }
                *alias = Some(self.function_alias(alias.as_ref(), index));
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
                if let Some(given) = alias.take() {
                    *alias = Some(self.alias_of(&given, index));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// XMLTABLE, whose columns no alias names. Whether it names columns of other items.
    fn xml_table(
        &mut self,
        args: &mut [ast::FunctionArg],
        alias: &mut Option<ast::TableAlias>,
        item: &Shown,
    ) -> Result<bool> {
        if let Some(ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(document))) =
            args.get_mut(1)
            && matches!(document, ast::Expr::Value(_))
        {
            let literal = std::mem::replace(document, ast::Expr::value(ast::Value::Null));
            *document = ast::Expr::Cast {
                kind: ast::CastKind::DoubleColon,
                expr: Box::new(literal),
                data_type: ast::DataType::Custom(
                    ast::ObjectName::from(vec![ast::Ident::new("xml")]),
                    Vec::new(),
                ),
                format: None,
            };
        }
        self.arguments(args)?;
        *alias = match alias.is_some() || item.name != "xmltable" {
            true => Some(plain_alias(&item.name)),
            false => None,
        };
        let names = |expr: &ast::Expr| match expr {
            ast::Expr::Identifier(_) | ast::Expr::CompoundIdentifier(_) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        };
        Ok(args
            .iter()
            .any(|arg| ast::visit_expressions(arg, names).is_break()))
    }

    fn arguments(&mut self, args: &mut [ast::FunctionArg]) -> Result<()> {
        for arg in args {
            if let ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(e)) = arg {
                *e = self.expr(e)?;
            }
        }
        Ok(())
    }

    /// An alias with its columns as they are called now.
    fn alias_of(&self, alias: &ast::TableAlias, index: usize) -> ast::TableAlias {
        let item = self.levels.last().and_then(|l| l.items.get(index));
        let mut shown = plain_alias(item.map_or("", |i| i.name.as_str()));
        if !alias.columns.is_empty() {
            shown.columns = self.column_aliases(index);
        }
        shown
    }

    /// A function's: its columns are always told.
    fn function_alias(&self, _: Option<&ast::TableAlias>, index: usize) -> ast::TableAlias {
        let item = self.levels.last().and_then(|l| l.items.get(index));
        let mut shown = plain_alias(item.map_or("", |i| i.name.as_str()));
        shown.columns = self.column_aliases(index);
        shown
    }

    fn column_aliases(&self, index: usize) -> Vec<ast::TableAliasColumnDef> {
        let item = self.levels.last().and_then(|l| l.items.get(index));
        let ns = self.binder.frames.last().and_then(|f| f.ns.get(index));
        let (Some(item), Some(ns)) = (item, ns) else {
            return Vec::new();
        };
        item.columns
            .iter()
            .zip(&ns.columns)
            .filter(|(_, c)| !matches!(c.what, NsWhat::Gone { .. }))
            .map(|(name, _)| ast::TableAliasColumnDef {
                name: ident(name),
                data_type: None,
            })
            .collect()
    }
}

fn plain_alias(name: &str) -> ast::TableAlias {
    ast::TableAlias {
        explicit: false,
        name: ident(name),
        columns: Vec::new(),
        at: None,
    }
}

fn constraint_of(operator: &mut ast::JoinOperator) -> Option<&mut ast::JoinConstraint> {
    use ast::JoinOperator as J;
    match operator {
        J::Join(c)
        | J::Inner(c)
        | J::CrossJoin(c)
        | J::Left(c)
        | J::LeftOuter(c)
        | J::Right(c)
        | J::RightOuter(c)
        | J::FullOuter(c) => Some(c),
        _ => None,
    }
}

/// The aliases of the named items of FROM, in the order in which the binder has them.
fn aliases_of<'t>(table: &'t ast::TableWithJoins, out: &mut Vec<Option<&'t ast::TableAlias>>) {
    let factors = std::iter::once(&table.relation).chain(table.joins.iter().map(|j| &j.relation));
    for factor in factors {
        match factor {
            TableFactor::NestedJoin {
                table_with_joins,
                alias,
            } => {
                aliases_of(table_with_joins, out);
                if let Some(alias) = alias {
                    out.push(Some(alias));
                }
            }
            TableFactor::Table { alias, .. }
            | TableFactor::Derived { alias, .. }
            | TableFactor::Function { alias, .. }
            | TableFactor::UNNEST { alias, .. } => out.push(alias.as_ref()),
            _ => out.push(None),
        }
    }
}
