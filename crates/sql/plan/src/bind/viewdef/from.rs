//! FROM in the shown form: tables by their present names, joins, functions, and what the columns of each are called.

use super::super::RelSource;
use super::super::scope::{NsColumnSource, NsItem};
use super::columns::{Columns, Items};
use super::{Definer, Shown};
use logstead_sql_catalog::{Relation, RelationKind};
use logstead_sql_parse::ast::{
    self, Alias, JoinExpr, JoinQual, JoinType, Name, NodeBox, RelationName, TableRef, Value,
};
use logstead_sql_types::error::Result;
use logstead_sql_types::value::{SqlType, oid};
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;

impl Definer<'_, '_> {
    /// What the innermost frame's items are called: a table by its present name, each name once. And the columns that
    /// the joins merge.
    pub(super) fn names(&self, from: &[TableRef]) -> (Vec<Shown>, VecDeque<Vec<String>>) {
        let mut aliases = Vec::new();
        for item in from {
            aliases_of(item, &mut aliases);
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
            NsColumnSource::Column(id) => Some(id),
            _ => None,
        })?;
        let info = self.binder.info(first);
        let rel = self.binder.range.rels.get(info.rel)?;
        let (oid, _) = info.origin?;
        let found = self.catalog.relations.get(&oid)?;
        let is_view = matches!(found.kind, RelationKind::View(_));
        match &rel.source {
            RelSource::Table(table) => Some(table),
            RelSource::Virtual(relation, _) => Some(relation),
            RelSource::Function { .. } if matches!(found.kind, RelationKind::Sequence(_)) => {
                Some(found)
            }
            // A subquery's column may come from a table; the item is none.
            RelSource::Plan(_) | RelSource::Query(_) if is_view && item.is_relation() => {
                Some(found)
            }
            _ => None,
        }
    }

    /// Brings an item of FROM to its shown form; `at` counts the binder's items.
    pub(super) fn table_ref(
        &mut self,
        item: &TableRef,
        shown: &mut TableRef,
        at: &mut usize,
    ) -> Result<()> {
        match (item, shown) {
            (TableRef::Join(join), TableRef::Join(shown)) => self.join(join, shown, at),
            (_, shown) => {
                let index = *at;
                *at += 1;
                self.item(shown, index)
            }
        }
    }

    fn join(&mut self, join: &JoinExpr, shown: &mut JoinExpr, at: &mut usize) -> Result<()> {
        let start = *at;
        self.table_ref(&join.larg, &mut shown.larg, at)?;
        self.table_ref(&join.rarg, &mut shown.rarg, at)?;
        match &mut shown.quals {
            JoinQual::On(condition) => {
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
            JoinQual::Using(names, alias) => {
                for (name, merged) in names.iter_mut().zip(self.merged()) {
                    *name = merged;
                }
                *at += 1 + usize::from(alias.is_some());
            }
            JoinQual::None if !join.is_natural => {}
            JoinQual::None => {
                let names = self.merged();
                *at += 1;
                shown.is_natural = false;
                // Without a column in common there is nothing to name.
                match names.is_empty() {
                    true if shown.jointype == JoinType::Inner => shown.jointype = JoinType::Cross,
                    true => {}
                    false => shown.quals = JoinQual::Using(names, None),
                }
            }
        }
        if join.alias.is_some() {
            let item = self.levels.last().and_then(|l| l.items.get(*at));
            shown.alias = item.map(alias_of);
            *at += 1;
        }
        Ok(())
    }

    /// The columns that the next join merges.
    fn merged(&mut self) -> Vec<Name> {
        let names = self.levels.last_mut().and_then(|l| l.using.pop_front());
        let names = names.unwrap_or_default();
        names.into_iter().map(Name::from).collect()
    }

    /// An item that is no join.
    fn item(&mut self, shown: &mut TableRef, index: usize) -> Result<()> {
        let item = self.levels.last().and_then(|l| l.items.get(index)).cloned();
        let item = item.unwrap_or_default();
        match shown {
            TableRef::RangeVar(node) => {
                let ns = self.binder.frames.last().and_then(|f| f.ns.get(index));
                let relation = ns.and_then(|i| self.relation_of(i)).cloned();
                let own = match relation {
                    Some(relation) => {
                        let text = logstead_sql_catalog::text::relation_text(
                            self.catalog,
                            relation.oid,
                            self.lookup.search_path,
                        );
                        let parts = match text {
                            Some(text) => logstead_sql_catalog::text::split_qualified(&text)?,
                            None => vec![relation.name.clone()],
                        };
                        if let Some((name, schema)) = parts.split_last() {
                            let schema = schema.last().map(String::as_str);
                            node.name = RelationName::of(schema, name);
                        }
                        relation.name.clone()
                    }
                    // A WITH query.
                    None => node
                        .bare_name()
                        .map_or_else(String::new, ToString::to_string),
                };
                let is_called = node.alias.is_some() || item.name != own || !item.listed.is_empty();
                node.alias = is_called.then(|| alias_of(&item));
            }
            TableRef::TableFunc(node) => self.xml_table(node, &item)?,
            TableRef::Function(node) => {
                let node = &mut **node;
                if let [(function, _)] = node.functions.as_mut_slice()
                    && !node.is_rowsfrom
                {
                    node.lateral = self.reads_before(function, index);
                    match function {
                        ast::Expr::FuncCall(call) if call.unnested().is_some() => {
                            self.arguments(&mut call.args)?;
                        }
                        ast::Expr::FuncCall(call) => self.call(call)?,
                        other => *other = self.value(other)?,
                    }
                    let mut alias = alias_of(&item);
                    // With its type a column is told once.
                    for column in &mut node.coldeflist {
                        if !alias.colnames.is_empty() {
                            column.colname = alias.colnames.remove(0);
                        }
                    }
                    node.alias = Some(alias);
                }
            }
            TableRef::Subselect(node) => {
                let hidden = match node.lateral {
                    true => Vec::new(),
                    false => std::mem::take(&mut self.binder.frame()?.ns),
                };
                let done = self.query(&node.subquery);
                if !node.lateral {
                    self.binder.frame()?.ns = hidden;
                }
                node.subquery = done?;
                if node.alias.is_some() {
                    node.alias = Some(alias_of(&item));
                }
            }
            TableRef::TableSample(_) | TableRef::Join(_) => {}
        }
        Ok(())
    }

    /// What SQL's own words call in FROM. There only what looks like a call can stand without CAST around it, though
    /// the value inside be cast already (`get_rule_expr_funccall`).
    fn value(&mut self, value: &ast::Expr) -> Result<ast::Expr> {
        let shown = self.expr(value)?;
        Ok(match value {
            ast::Expr::TypeCast(cast) if !looks_like_function(&shown) => {
                ast::Expr::type_cast(shown, cast.type_name.clone())
            }
            _ => shown,
        })
    }

    /// XMLTABLE, whose columns no alias names: LATERAL where it names columns of other items.
    fn xml_table(&mut self, table: &mut ast::RangeTableFunc, item: &Shown) -> Result<()> {
        if matches!(table.docexpr, ast::Expr::Const(_)) {
            let literal = std::mem::replace(&mut table.docexpr, ast::Expr::value(Value::Null));
            table.docexpr = self.cast(literal, SqlType::of(oid::XML));
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
                let ty = logstead_sql_catalog::type_name::sql_type(type_name, self.lookup)?;
                *default = self.of_type(default, ty)?;
            }
        }
        table.alias = match table.alias.is_some() || item.name != "xmltable" {
            true => Some(Box::new(Alias::of(item.name.as_str()))),
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
            Some(_) => self.cast(value.clone(), SqlType::of(ty.oid)),
            None => value.clone(),
        };
        self.expr(&self.cast(value, ty))
    }

    /// Does a function read items in front of the one at `index`?
    fn reads_before(&self, function: &ast::Expr, index: usize) -> bool {
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
            self.expr(&ast::Expr::FuncCall(NodeBox::new(call.clone())))?
        {
            *call = shown.into_inner();
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

/// An alias, with the names of columns where these have to be told.
fn alias_of(item: &Shown) -> Box<Alias> {
    Box::new(Alias {
        colnames: item
            .listed
            .iter()
            .map(|name| name.as_str().into())
            .collect(),
        ..Alias::of(item.name.as_str())
    })
}

/// The aliases of the named items of FROM, in the order in which the binder has them; none at all for an alias of
/// USING.
fn aliases_of<'t>(item: &'t TableRef, out: &mut Vec<Option<Option<&'t Alias>>>) {
    if let TableRef::Join(join) = item {
        aliases_of(&join.larg, out);
        aliases_of(&join.rarg, out);
        if let JoinQual::Using(_, Some(_)) = &join.quals {
            out.push(None);
        }
        if let Some(alias) = &join.alias {
            out.push(Some(Some(alias)));
        }
        return;
    }
    out.push(Some(item.alias()));
}

/// Is it written as a call, in the grammar of FROM (`looks_like_function`)?
fn looks_like_function(expr: &ast::Expr) -> bool {
    match expr {
        ast::Expr::FuncCall(_)
        | ast::Expr::CoalesceExpr(_)
        | ast::Expr::MinMaxExpr(_)
        | ast::Expr::SqlValueFunction(_)
        | ast::Expr::XmlExpr(_)
        | ast::Expr::XmlSerialize(_) => true,
        ast::Expr::AExpr(node) => node.kind == ast::AExprKind::NullIf,
        _ => false,
    }
}
