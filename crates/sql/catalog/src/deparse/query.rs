//! Queries as text, laid out as PostgreSQL lays out a view's definition.
//!
//! Works on trees that `bind::viewdef` has made explicit: prints, decides nothing. The layout is PostgreSQL's,
//! character by character: clauses on lines of their own, each item of a list too, indented by how deep they stand.

use crate::deparse::expr::{Parent, Printer};
use crate::text::quote_ident;
use logstead_sql_parse::ast::{
    self, Alias, ColumnDefinition, Expr, GroupingItem, JoinQual, JoinType, LockWaitPolicy,
    LockingClause, Name, RangeVar, ResTarget, SelectBody, SelectStmt, SetOperation, Stmt, TableRef,
};
use logstead_sql_types::value::user::TypeSpelling;

/// Indentation of what belongs to a clause.
const STANDARD: i32 = 8;
/// Of joins.
const JOIN: i32 = 4;
/// Of the items of a list.
const ITEM: i32 = 4;
/// Beyond this, indentation grows slowly and starts again.
const LIMIT: i32 = 40;

/// A view's query, its columns named `names`, without a semicolon.
pub fn definition(
    query: &ast::SelectStmt,
    names: &[String],
    pretty: bool,
    types: TypeSpelling<'_>,
) -> String {
    let mut out = String::new();
    let mut layout = Layout {
        out: &mut out,
        indent: 0,
        pretty,
        types,
    };
    layout.nested(query, Some(names), true);
    out
}

/// A query inside an expression.
pub(super) fn subquery(
    query: &ast::SelectStmt,
    indent: i32,
    pretty: bool,
    visible: bool,
    types: TypeSpelling<'_>,
) -> String {
    let mut out = String::new();
    let mut layout = Layout {
        out: &mut out,
        indent,
        pretty,
        types,
    };
    layout.nested(query, None, visible);
    out
}

struct Layout<'o> {
    out: &'o mut String,
    indent: i32,
    pretty: bool,
    types: TypeSpelling<'o>,
}

impl Layout<'_> {
    /// What prints expressions here.
    fn printer(&self) -> Printer<'_> {
        Printer::of_query(self.pretty, self.indent, self.types)
    }

    /// A keyword on a line of its own.
    fn keyword(&mut self, text: &str, before: i32, after: i32, plus: i32) {
        self.indent += before;
        let kept = self.out.trim_end_matches(' ').len();
        self.out.truncate(kept);
        self.out.push('\n');
        let amount = if self.indent < LIMIT {
            self.indent.max(0) + plus
        } else {
            (LIMIT + (self.indent - LIMIT) / (STANDARD / 2)) % LIMIT + plus
        };
        self.out.extend(std::iter::repeat_n(
            ' ',
            usize::try_from(amount).unwrap_or(0),
        ));
        self.out.push_str(text);
        self.indent = (self.indent + after).max(0);
    }

    fn expr(&self, expr: &Expr) -> String {
        self.printer().print(expr, Parent::Free)
    }

    /// An item of a list of values.
    fn item(&self, expr: &Expr) -> String {
        self.printer().item(expr)
    }

    /// A query that stands as deep as this; the indentation afterwards is what it was.
    fn nested(&mut self, query: &ast::SelectStmt, names: Option<&[String]>, visible: bool) {
        let mut inner = Layout {
            out: &mut *self.out,
            ..*self
        };
        inner.query(query, names, visible);
    }

    fn query(&mut self, query: &ast::SelectStmt, names: Option<&[String]>, visible: bool) {
        if let Some(with) = &query.with_clause {
            self.with(with);
        }
        self.body(&query.body, names, visible);
        if !query.sort_clause.is_empty() {
            self.keyword(" ORDER BY ", -STANDARD, STANDARD, 1);
            let items = query.sort_clause.iter();
            let items: Vec<String> = items.map(|item| self.sort_item(item)).collect();
            self.out.push_str(&items.join(", "));
        }
        let limit = query.limit.as_deref();
        if let Some(offset) = limit.and_then(|limit| limit.offset.as_ref()) {
            self.keyword(" OFFSET ", -STANDARD, STANDARD, 0);
            let text = self.expr(offset);
            self.out.push_str(&text);
        }
        let ties = limit.is_some_and(|limit| limit.with_ties);
        if limit.is_some_and(|limit| matches!(limit.count, Some(ast::LimitCount::All(_)))) {
            self.keyword(" LIMIT ALL", -STANDARD, STANDARD, 0);
        }
        if let Some(count) = limit.and_then(ast::SelectLimit::count) {
            let word = if ties { " FETCH FIRST " } else { " LIMIT " };
            self.keyword(word, -STANDARD, STANDARD, 0);
            let text = self.expr(count);
            self.out.push_str(&match ties {
                true => format!("({text}) ROWS WITH TIES"),
                false => text,
            });
        }
        self.locks(&query.locking_clause);
    }

    fn sort_item(&self, item: &ast::SortBy) -> String {
        let mut text = self.key(&item.node);
        text.push_str(&crate::deparse::sort_shown(item));
        text
    }

    /// Something to sort or group by: anything but a column in parentheses.
    fn key(&self, expr: &Expr) -> String {
        let text = self.expr(expr);
        let call = matches!(expr, Expr::FuncCall(_));
        let bare =
            matches!(expr, Expr::ColumnRef(_) | Expr::Const(_)) || Printer::is_whole_row(expr);
        if bare || !(self.pretty || call) {
            text
        } else {
            format!("({text})")
        }
    }

    /// An element of GROUP BY.
    fn grouping_item(&self, item: &GroupingItem) -> String {
        let each = |exprs: &[Expr]| {
            let exprs = exprs.iter().map(|expr| self.group(expr, true));
            exprs.collect::<Vec<_>>().join(", ")
        };
        match item {
            GroupingItem::Expr(expr) => self.group(expr, false),
            GroupingItem::Empty(_) => "()".to_owned(),
            GroupingItem::Rollup(exprs, _) => format!("ROLLUP({})", each(exprs)),
            GroupingItem::Cube(exprs, _) => format!("CUBE({})", each(exprs)),
            GroupingItem::Sets(items, _) => {
                let items = items.iter().map(|item| self.grouping_item(item));
                format!("GROUPING SETS ({})", items.collect::<Vec<_>>().join(", "))
            }
        }
    }

    /// A key of GROUP BY, or several in parentheses; a column alone is in no parentheses where they say nothing.
    fn group(&self, expr: &Expr, alone: bool) -> String {
        match expr {
            Expr::RowExpr(node) if !node.is_explicit => format!("({})", self.keys(&node.args)),
            expr if alone => self.key(expr),
            expr => format!("({})", self.key(expr)),
        }
    }

    fn keys(&self, exprs: &[Expr]) -> String {
        let keys = exprs.iter().map(|expr| self.key(expr));
        keys.collect::<Vec<_>>().join(", ")
    }

    /// FOR UPDATE and its kin, one for each item of FROM.
    fn locks(&mut self, locks: &[LockingClause]) {
        for lock in locks {
            let words = lock.strength.words();
            self.keyword(&format!(" {words}"), -STANDARD, STANDARD, 0);
            for name in lock.locked_rels.iter().filter_map(RangeVar::bare_name) {
                self.out.push_str(&format!(" OF {}", quote_ident(name)));
            }
            self.out.push_str(match lock.wait_policy {
                LockWaitPolicy::NoWait => " NOWAIT",
                LockWaitPolicy::SkipLocked => " SKIP LOCKED",
                LockWaitPolicy::Block => "",
            });
        }
    }

    fn with(&mut self, with: &ast::WithClause) {
        self.indent += STANDARD;
        self.out.push(' ');
        let mut separator = if with.recursive {
            "WITH RECURSIVE "
        } else {
            "WITH "
        };
        for cte in &with.ctes {
            self.out.push_str(separator);
            self.out.push_str(&quote_ident(&cte.ctename));
            if !cte.aliascolnames.is_empty() {
                let names = name_list(&cte.aliascolnames);
                self.out.push_str(&format!("({names})"));
            }
            self.out.push_str(" AS ");
            match cte.materialized {
                Some(true) => self.out.push_str("MATERIALIZED "),
                Some(false) => self.out.push_str("NOT MATERIALIZED "),
                None => {}
            }
            self.out.push('(');
            self.keyword("", 0, 0, 0);
            // No query that is kept changes anything.
            if let Stmt::Select(query) = &*cte.ctequery {
                self.nested(query, None, true);
            }
            self.keyword("", 0, 0, 0);
            self.out.push(')');
            separator = ", ";
        }
        self.indent -= STANDARD;
        self.keyword("", 0, 0, 0);
    }

    fn body(&mut self, body: &SelectBody, names: Option<&[String]>, visible: bool) {
        match body {
            SelectBody::Select(core) => self.select(core, names, visible),
            SelectBody::Values(values) => {
                self.indent += STANDARD;
                let renamed = names.is_some_and(|names| {
                    (1_usize..)
                        .zip(names)
                        .any(|(i, name)| *name != format!("column{i}"))
                });
                if !renamed {
                    self.out.push(' ');
                    self.values(values);
                    return;
                }
                self.out.push_str(" SELECT ");
                let items = names.unwrap_or_default().iter().enumerate();
                for (i, name) in items {
                    if i > 0 {
                        self.out.push_str(", ");
                        self.keyword("", -STANDARD, STANDARD, ITEM);
                    }
                    let column = format!("column{}", i + 1);
                    self.out.push_str(&format!("\"*VALUES*\".{column}"));
                    if *name != column {
                        self.out.push_str(&format!(" AS {}", quote_ident(name)));
                    }
                }
                self.keyword(" FROM ", -STANDARD, STANDARD, 2);
                self.out.push('(');
                self.values(values);
                self.out.push_str(") \"*VALUES*\"");
            }
            SelectBody::SetOp(operation) => {
                let own = (operation.op, operation.all);
                self.side(&operation.larg, Some(own), names, visible);
                let word = match operation.op {
                    SetOperation::Union => "UNION ",
                    SetOperation::Intersect => "INTERSECT ",
                    SetOperation::Except => "EXCEPT ",
                };
                self.out.push_str(word);
                if operation.all {
                    self.out.push_str("ALL ");
                }
                self.side(&operation.rarg, None, names, false);
            }
        }
    }

    /// A side of a set operation; the left one is told which operation that is.
    fn side(
        &mut self,
        side: &SelectStmt,
        operation: Option<(SetOperation, bool)>,
        names: Option<&[String]>,
        visible: bool,
    ) {
        // With clauses of its own it stands in parentheses.
        let clauses =
            side.with_clause.is_some() || !side.sort_clause.is_empty() || side.limit.is_some();
        let set = match &side.body {
            SelectBody::SetOp(inner) if !clauses => Some((inner.op, inner.all)),
            _ => None,
        };
        let parentheses = set.is_some() && (operation.is_none() || set != operation);
        let deeper = if parentheses { STANDARD } else { 0 };
        if parentheses {
            self.out.push('(');
        }
        if operation.is_none() || parentheses {
            self.keyword("", deeper, 0, 0);
        }
        if set.is_some() {
            self.body(&side.body, names, visible);
        } else if clauses {
            self.out.push('(');
            self.nested(side, names, visible);
            self.out.push(')');
        } else {
            let mut inner = Layout {
                types: self.types,
                out: self.out,
                indent: self.indent,
                pretty: self.pretty,
            };
            inner.body(&side.body, names, visible);
        }
        match (operation, parentheses) {
            (Some(_), true) => self.keyword(") ", -deeper, 0, 0),
            (Some(_), false) => self.keyword("", 0, 0, 0),
            (None, _) => {
                self.indent -= deeper;
                if parentheses {
                    self.keyword(")", 0, 0, 0);
                }
            }
        }
    }

    fn values(&mut self, rows: &[Vec<Expr>]) {
        let rows: Vec<String> = rows
            .iter()
            .map(|row| {
                let cells: Vec<String> = row.iter().map(|e| self.item(e)).collect();
                format!("({})", cells.join(","))
            })
            .collect();
        self.out.push_str("VALUES ");
        self.out.push_str(&rows.join(", "));
    }

    fn select(&mut self, select: &ast::SelectCore, names: Option<&[String]>, visible: bool) {
        self.indent += STANDARD;
        self.out.push_str(" SELECT");
        match &select.distinct {
            ast::Distinct::All => self.out.push_str(" DISTINCT"),
            ast::Distinct::On(keys) => {
                let keys: Vec<String> = keys.iter().map(|e| self.key(e)).collect();
                self.out
                    .push_str(&format!(" DISTINCT ON ({})", keys.join(", ")));
            }
            ast::Distinct::No => {}
        }
        self.list(&select.target_list, names, visible);
        for (i, item) in select.from_clause.iter().enumerate() {
            if i == 0 {
                self.keyword(" FROM ", -STANDARD, STANDARD, 2);
            } else {
                self.out.push_str(", ");
                self.keyword("", -STANDARD, STANDARD, ITEM);
            }
            self.table_ref(item);
        }
        if let Some(condition) = &select.where_clause {
            self.keyword(" WHERE ", -STANDARD, STANDARD, 1);
            let text = self.expr(condition);
            self.out.push_str(&text);
        }
        if !select.group_clause.is_empty() {
            self.keyword(" GROUP BY ", -STANDARD, STANDARD, 1);
            if select.group_distinct {
                self.out.push_str("DISTINCT ");
            }
            let items = select.group_clause.iter().map(|item| match item {
                // A list of columns says nothing here; within grouping sets it is one of them.
                GroupingItem::Expr(Expr::RowExpr(node)) if !node.is_explicit => {
                    self.keys(&node.args)
                }
                GroupingItem::Expr(expr) => self.key(expr),
                item => self.grouping_item(item),
            });
            let items = items.collect::<Vec<_>>().join(", ");
            self.out.push_str(&items);
        }
        if let Some(having) = &select.having_clause {
            self.keyword(" HAVING ", -STANDARD, STANDARD, 0);
            let text = self.expr(having);
            self.out.push_str(&text);
        }
        for (i, window) in select.window_clause.iter().enumerate() {
            match i {
                0 => self.keyword(" WINDOW ", -STANDARD, STANDARD, 1),
                _ => self.out.push_str(", "),
            }
            let text = self.printer().window(window);
            let name = window.name.as_ref().map(|name| quote_ident(name));
            self.out
                .push_str(&format!("{} AS ({text})", name.unwrap_or_default()));
        }
    }

    fn list(&mut self, items: &[ResTarget], names: Option<&[String]>, visible: bool) {
        let mut separator = " ";
        for (i, item) in items.iter().enumerate() {
            self.out.push_str(separator);
            separator = ", ";
            let Some(expr) = &item.val else {
                continue;
            };
            let Some(own) = &item.name else {
                let text = match expr {
                    Expr::ColumnRef(column) if column.star && column.fields.is_empty() => {
                        "*".to_owned()
                    }
                    expr => self.item(expr),
                };
                self.out.push_str(&text);
                continue;
            };
            let mut text = self.item(expr);
            let shown = match expr {
                Expr::ColumnRef(column) => column.fields.last().map(ToString::to_string),
                _ if visible => None,
                _ => Some("?column?".to_owned()),
            };
            let name = names.and_then(|n| n.get(i));
            let name = name.map_or(&**own, String::as_str);
            if shown.as_deref() != Some(name) {
                text.push_str(&format!(" AS {}", quote_ident(name)));
            }
            if text.starts_with('\n') {
                let kept = self.out.trim_end_matches(' ').len();
                self.out.truncate(kept);
            } else if i > 0 {
                self.keyword("", -STANDARD, STANDARD, ITEM);
            }
            self.out.push_str(&text);
        }
    }

    fn joins(&mut self, item: &TableRef) {
        let (first, joins) = item.join_chain();
        // Every join is in parentheses of its own, but for the pretty form.
        if !self.pretty {
            self.out.push_str(&"(".repeat(joins.len()));
        }
        self.table_ref(first);
        for join in joins {
            let word = match join.jointype {
                JoinType::Inner => " JOIN ",
                JoinType::Cross => " CROSS JOIN ",
                JoinType::Left => " LEFT JOIN ",
                JoinType::Right => " RIGHT JOIN ",
                JoinType::Full => " FULL JOIN ",
            };
            self.keyword(word, -STANDARD, STANDARD, JOIN);
            let nested = matches!(&join.rarg, TableRef::Join(inner) if inner.alias.is_none());
            if nested && self.pretty {
                self.out.push('(');
            }
            self.table_ref(&join.rarg);
            if nested && self.pretty {
                self.out.push(')');
            }
            match &join.quals {
                JoinQual::Using(names, alias) => {
                    let names = name_list(names);
                    self.out.push_str(&format!(" USING ({names})"));
                    if let Some(alias) = alias {
                        let alias = quote_ident(&alias.name);
                        self.out.push_str(&format!(" AS {alias}"));
                    }
                }
                JoinQual::On(condition) => {
                    let text = self.expr(condition);
                    self.out.push_str(&if self.pretty {
                        format!(" ON {text}")
                    } else {
                        format!(" ON ({text})")
                    });
                }
                // A natural join without a column in common.
                JoinQual::None if join.jointype != JoinType::Cross && !join.is_natural => {
                    self.out.push_str(" ON TRUE");
                }
                JoinQual::None => {}
            }
            if !self.pretty {
                self.out.push(')');
            }
        }
    }

    /// A call in FROM.
    fn call(&self, call: &ast::FuncCall) -> String {
        let printer = self.printer();
        printer.sql_syntax(call).unwrap_or_else(|| {
            let args = crate::deparse::arguments(call, &|e| self.expr(e));
            match call.unnested() {
                Some(_) => format!("UNNEST({args})"),
                None => format!("{}({args})", printer.function_name(&call.funcname)),
            }
        })
    }

    fn functions(&mut self, node: &ast::RangeFunction) {
        self.out.push_str(lateral(node.lateral));
        let calls = node.functions.iter().map(|(function, columns)| {
            let text = match function {
                Expr::FuncCall(call) => self.call(call),
                // FROM has no other spelling of a cast.
                Expr::TypeCast(cast) => {
                    let ty = self.printer().type_text(&cast.type_name);
                    format!("CAST({} AS {ty})", self.expr(&cast.arg))
                }
                other => self.expr(other),
            };
            match columns.is_empty() {
                true => text,
                false => format!("{text} AS ({})", column_definitions(columns, self.types)),
            }
        });
        let calls = calls.collect::<Vec<_>>().join(", ");
        self.out.push_str(&match node.is_rowsfrom {
            true => format!("ROWS FROM({calls})"),
            false => calls,
        });
        if node.ordinality {
            self.out.push_str(" WITH ORDINALITY");
        }
        self.alias(node.alias.as_deref());
        if !node.coldeflist.is_empty() {
            let columns = column_definitions(&node.coldeflist, self.types);
            self.out.push_str(&format!("({columns})"));
        }
    }

    fn alias(&mut self, alias: Option<&Alias>) {
        let Some(alias) = alias else { return };
        self.out.push_str(&format!(" {}", quote_ident(&alias.name)));
        if !alias.colnames.is_empty() {
            let names = name_list(&alias.colnames);
            self.out.push_str(&format!("({names})"));
        }
    }

    fn table_ref(&mut self, item: &TableRef) {
        match item {
            TableRef::RangeVar(node) => {
                let parts = node.names();
                let parts = parts.iter().map(|part| quote_ident(part));
                self.out.push_str(&parts.collect::<Vec<_>>().join("."));
            }
            TableRef::Function(node) => return self.functions(node),
            TableRef::Subselect(node) => {
                self.out.push_str(lateral(node.lateral));
                self.out.push('(');
                self.nested(&node.subquery, None, true);
                self.out.push(')');
            }
            TableRef::Join(node) => {
                let parentheses = node.alias.is_some() && self.pretty;
                if parentheses {
                    self.out.push('(');
                }
                self.joins(item);
                if parentheses {
                    self.out.push(')');
                }
            }
            TableRef::TableFunc(node) => {
                self.out.push_str(lateral(node.lateral));
                let text = self.printer().xml_table(node);
                self.out.push_str(&text);
            }
            // None is kept.
            TableRef::TableSample(_) => {}
        }
        self.alias(item.alias());
    }
}

fn lateral(is_said: bool) -> &'static str {
    if is_said { "LATERAL " } else { "" }
}

fn name_list(names: &[Name]) -> String {
    let names = names.iter().map(|name| quote_ident(name));
    names.collect::<Vec<_>>().join(", ")
}

/// A column definition list.
fn column_definitions(columns: &[ColumnDefinition], types: TypeSpelling<'_>) -> String {
    let columns = columns.iter().map(|column| {
        let name = quote_ident(&column.colname);
        let ty = crate::deparse::expr::type_text(&column.type_name, types);
        format!("{name} {ty}")
    });
    columns.collect::<Vec<_>>().join(", ")
}
