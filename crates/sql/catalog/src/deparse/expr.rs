//! Expressions as text, as PostgreSQL prints the stored ones: every operation in parentheses, or (pretty) only where
//! needed.
//!
//! Works on syntax trees whose types are explicit (`bind::explicit_types` makes them so): prints, decides nothing.

use crate::deparse::bit_literal;
use crate::deparse::plain::arguments;
use crate::text::{quote_ident, quote_literal};
use logstead_sql_func::extensions;
use logstead_sql_func::extensions::stored_text_shown;
use logstead_sql_parse::ast::{
    self, AExprKind, BoolOp, Expr, FrameExclusion, FrameMode, FuncName, OperatorName, SubLinkKind,
    TypeName, Value,
};
use logstead_sql_types::value::user::{TypeLookup, TypeSpelling};

/// What an expression stands in: decides whether the pretty form needs parentheses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Parent {
    /// Nothing, a function's arguments, an array, CASE.
    Free,
    And,
    Or,
    Not,
    /// The left (true) or right operand of an arithmetic operator of this strength.
    Arithmetic(u8, bool),
    /// Any other operator, a test, a cast.
    Tight,
}

impl Parent {
    /// Is a query in parentheses of its own put into more of them?
    fn is_operator(self) -> bool {
        matches!(self, Parent::Arithmetic(..) | Parent::Tight)
    }
}

pub(super) struct Printer<'a> {
    types: TypeSpelling<'a>,
    pretty: bool,
    /// Of what begins a line of its own.
    indent: i32,
    /// Columns carry the names of their tables.
    qualified: bool,
}

/// The normal form.
pub fn normal(expr: &Expr, types: TypeSpelling<'_>) -> String {
    Printer::alone(false, types).print(expr, Parent::Free)
}

/// A condition over several rows, whose columns are named with their rows.
pub fn qualified(expr: &Expr, pretty: bool, types: TypeSpelling<'_>) -> String {
    Printer::of_query(pretty, 0, types).print(expr, Parent::Free)
}

/// The form for people, of a stored text; a text that does not parse is given back.
pub fn pretty(stored: &str, types: TypeLookup<'_>) -> String {
    let types = TypeSpelling::named(types);
    match logstead_sql_parse::parse_expr(stored) {
        Ok(expr) => Printer::alone(true, types).print(&expr, Parent::Free),
        Err(_) => stored_text_shown(stored, types),
    }
}

/// Strength of an arithmetic operator.
fn arithmetic(op: &OperatorName) -> Option<u8> {
    match op.sign()? {
        "+" | "-" => Some(1),
        "*" | "/" | "%" => Some(2),
        _ => None,
    }
}

/// Indentation of the arms of a CASE.
const ARM: i32 = 4;

impl<'a> Printer<'a> {
    fn alone(pretty: bool, types: TypeSpelling<'a>) -> Printer<'a> {
        Printer {
            types,
            pretty,
            indent: 0,
            qualified: false,
        }
    }

    /// For expressions of a query that stands `indent` deep.
    pub(super) fn of_query(pretty: bool, indent: i32, types: TypeSpelling<'a>) -> Printer<'a> {
        Printer {
            types,
            pretty,
            indent,
            qualified: true,
        }
    }

    pub(super) fn types(&self) -> TypeSpelling<'a> {
        self.types
    }

    /// A type as it is shown.
    pub(super) fn type_text(&self, name: &TypeName) -> String {
        type_text(name, self.types)
    }

    pub(super) fn is_pretty(&self) -> bool {
        self.pretty
    }

    fn query(&self, query: &ast::SelectStmt) -> String {
        crate::deparse::query::subquery(query, self.indent, self.pretty, false, self.types)
    }

    /// A constant; in a query that is shown a backslash stands for itself.
    fn constant(&self, value: &Value) -> String {
        match value {
            Value::String(text) if self.qualified => {
                format!("'{}'", self.types.shown(text).replace('\'', "''"))
            }
            value => constant(value, self.types),
        }
    }

    pub(super) fn wrap(&self, text: String, bare: bool) -> String {
        if self.pretty && bare {
            text
        } else {
            format!("({text})")
        }
    }

    /// Fields and elements: `((c).f).g`, `a[1]`, `(expression)[1:2]`.
    fn part_of(&self, node: &ast::AIndirection) -> String {
        let root = &node.arg;
        let mut text = self.print(root, Parent::Free);
        // What needs no parentheses in front of a bracket.
        let mut bare = matches!(root, Expr::ColumnRef(_));
        let bound = |bound: &Option<Expr>| {
            let bound = bound.as_ref();
            bound.map_or_else(String::new, |b| self.print(b, Parent::Free))
        };
        for access in &node.indirection {
            text = match access {
                ast::Indirection::Field(field) => {
                    bare = true;
                    format!("({text}).{}", quote_ident(field))
                }
                ast::Indirection::Star => format!("({text}).*"),
                ast::Indirection::Index(_) | ast::Indirection::Slice(..) => {
                    let inside = match access {
                        ast::Indirection::Index(index) => self.print(index, Parent::Free),
                        ast::Indirection::Slice(lower, upper) => {
                            format!("{}:{}", bound(lower), bound(upper))
                        }
                        _ => String::new(),
                    };
                    let wrap = !bare && !text.starts_with('(');
                    bare = true;
                    match wrap {
                        true => format!("({text})[{inside}]"),
                        false => format!("{text}[{inside}]"),
                    }
                }
            };
        }
        text
    }

    pub(super) fn print(&self, expr: &Expr, parent: Parent) -> String {
        let free = parent == Parent::Free;
        let tight = |e: &Expr| self.print(e, Parent::Tight);
        if let Some(text) = self.special(expr) {
            return text;
        }
        match expr {
            Expr::ColumnRef(column) if column.star => crate::deparse::plain(expr, self.types),
            Expr::ColumnRef(column) if self.qualified => {
                let names: Vec<_> = column.fields.iter().map(|name| quote_ident(name)).collect();
                names.join(".")
            }
            Expr::ColumnRef(column) => column
                .fields
                .last()
                .map(|name| quote_ident(name))
                .unwrap_or_default(),
            Expr::SqlValueFunction(node) => node.to_string(),
            Expr::Indirection(node) => self.part_of(node),
            Expr::Const(node) => self.constant(&node.value),
            Expr::CollateClause(node) => {
                let names: Vec<_> = node.collname.iter().map(|name| quote_ident(name)).collect();
                let text = format!("{} COLLATE {}", tight(&node.arg), names.join("."));
                self.wrap(text, free)
            }
            Expr::TypeCast(node) => self.cast(&node.arg, &self.type_text(&node.type_name)),
            Expr::BoolExpr(node) if node.op == BoolOp::Not => {
                let text = format!("NOT {}", self.negated(&node.args));
                self.wrap(
                    text,
                    matches!(parent, Parent::Free | Parent::And | Parent::Or),
                )
            }
            Expr::BoolExpr(node) => {
                let and = node.op == BoolOp::And;
                let own = if and { Parent::And } else { Parent::Or };
                let parts = node.args.iter().map(|arg| self.print(arg, own));
                let parts: Vec<String> = parts.collect();
                let bare = match parent {
                    Parent::Free | Parent::Or => true,
                    Parent::And => and,
                    _ => false,
                };
                self.wrap(parts.join(if and { " AND " } else { " OR " }), bare)
            }
            Expr::AExpr(node) => self.operator(node, parent),
            Expr::NullTest(node) => self.test(
                &node.arg,
                if node.negated {
                    "IS NOT NULL"
                } else {
                    "IS NULL"
                },
                parent,
            ),
            Expr::BooleanTest(node) => {
                let not = if node.negated { "NOT " } else { "" };
                self.test(&node.arg, &format!("IS {not}{}", node.kind.word()), parent)
            }
            Expr::XmlExpr(node) => self.xml_expr(node),
            Expr::XmlSerialize(node) => self.xml_serialize(node),
            Expr::ArrayExpr(array) => {
                let items: Vec<_> = array
                    .elements
                    .iter()
                    .map(|e| self.print(e, Parent::Free))
                    .collect();
                format!("ARRAY[{}]", items.join(", "))
            }
            Expr::FuncCall(node) => self.call(node),
            Expr::CaseExpr(node) => {
                // On lines of its own, as PostgreSQL lays it out in either form.
                let line = |indent: i32| {
                    let spaces = usize::try_from(indent).unwrap_or(0);
                    format!("\n{}", " ".repeat(spaces))
                };
                let arm = line(self.indent + ARM);
                let inner = Printer {
                    types: self.types,
                    indent: self.indent + ARM,
                    ..*self
                };
                let part = |e: &Expr| inner.print(e, Parent::Free);
                let mut text = format!("{}CASE", line(self.indent));
                if let Some(operand) = &node.arg {
                    text.push_str(&format!(" {}", part(operand)));
                }
                for when in &node.args {
                    let (condition, result) = (part(&when.expr), part(&when.result));
                    text.push_str(&format!("{arm}WHEN {condition} THEN {result}"));
                }
                let otherwise = node.defresult.as_ref().map(part);
                let otherwise = otherwise.unwrap_or_else(|| "NULL".to_owned());
                format!("{text}{arm}ELSE {otherwise}{}END", line(self.indent))
            }
            Expr::SubLink(node) => self.sub_link(node, parent),
            other => crate::deparse::expr_to_sql(other, self.types),
        }
    }

    /// A subquery, and what is asked of it.
    fn sub_link(&self, node: &ast::SubLink, parent: Parent) -> String {
        let query = self.query(&node.subselect);
        match &node.kind {
            SubLinkKind::Expr if self.pretty && parent.is_operator() => format!("(({query}))"),
            SubLinkKind::Expr => format!("({query})"),
            SubLinkKind::Array => format!("ARRAY({query})"),
            SubLinkKind::Exists => format!("(EXISTS ({query}))"),
            SubLinkKind::Any { test, op } => {
                let left = self.compared(test);
                match op.as_ref().filter(|op| op.sign() != Some("=")) {
                    None => format!("({left} IN ({query}))"),
                    Some(op) => format!("({left} {op} ANY ({query}))"),
                }
            }
            SubLinkKind::All { test, op } => {
                format!("({} {op} ALL ({query}))", self.compared(test))
            }
            SubLinkKind::NotIn { test } => self.wrap(
                format!("NOT ({} IN ({query}))", self.compared(test)),
                matches!(parent, Parent::Free | Parent::And | Parent::Or),
            ),
        }
    }

    /// What is compared with the rows of a query: a row is written in parentheses alone.
    fn compared(&self, expr: &Expr) -> String {
        match expr {
            Expr::RowExpr(node) if node.args.len() > 1 => format!("({})", self.listed(&node.args)),
            other => self.print(other, Parent::Tight),
        }
    }

    /// What NOT stands in front of.
    fn negated(&self, args: &[Expr]) -> String {
        let args = args.iter().map(|arg| self.print(arg, Parent::Not));
        args.collect::<Vec<_>>().join(", ")
    }

    /// An operator of any kind.
    fn operator(&self, node: &ast::AExpr, parent: Parent) -> String {
        let free = parent == Parent::Free;
        let tight = |e: &Expr| self.print(e, Parent::Tight);
        let in_list = matches!(parent, Parent::Free | Parent::And | Parent::Or);
        let op = &node.op;
        let Some(left) = &node.lexpr else {
            return self.wrap(format!("{op} {}", tight(&node.rexpr)), free);
        };
        let right = &node.rexpr;
        let quantifier = match node.kind {
            // Rows are compared in parentheses of their own, in the pretty form too.
            AExprKind::Op if Self::is_row(left) && Self::is_row(right) => {
                let part = |e: &Expr| self.print(e, Parent::Free);
                let text = format!("({} {op} {})", part(left), part(right));
                return match self.pretty && !free {
                    true => format!("({text})"),
                    false => text,
                };
            }
            AExprKind::NullIf => {
                let part = |e: &Expr| self.print(e, Parent::Free);
                return format!("NULLIF({}, {})", part(left), part(right));
            }
            AExprKind::Op => {
                let strength = arithmetic(op);
                let side =
                    |left: bool| strength.map_or(Parent::Tight, |s| Parent::Arithmetic(s, left));
                let text = format!(
                    "{} {op} {}",
                    self.print(left, side(true)),
                    self.print(right, side(false))
                );
                let bare = match (parent, strength) {
                    (Parent::Free | Parent::And | Parent::Or | Parent::Not, _) => true,
                    (Parent::Arithmetic(outer, left), Some(own)) => {
                        own > outer || (own == outer && left)
                    }
                    _ => false,
                };
                return self.wrap(text, bare);
            }
            AExprKind::Distinct => {
                let text = format!("{} IS DISTINCT FROM {}", tight(left), tight(right));
                return self.wrap(text, in_list || parent == Parent::Not);
            }
            AExprKind::NotDistinct => {
                let text = format!("{} IS DISTINCT FROM {}", tight(left), tight(right));
                let inner = self.wrap(text, true);
                return self.wrap(format!("NOT {inner}"), in_list);
            }
            AExprKind::OpAny => "ANY",
            AExprKind::OpAll => "ALL",
        };
        let right = self.print(right, Parent::Free);
        self.wrap(format!("{} {op} {quantifier} ({right})", tight(left)), free)
    }

    fn test(&self, expr: &Expr, what: &str, parent: Parent) -> String {
        let text = format!("{} {what}", self.print(expr, Parent::Tight));
        self.wrap(
            text,
            matches!(
                parent,
                Parent::Free | Parent::And | Parent::Or | Parent::Not
            ),
        )
    }

    fn cast(&self, inner: &Expr, ty: &str) -> String {
        if let Some(value) = inner.constant()
            && !matches!(
                value,
                Value::Integer(_) | Value::Float(_) | Value::Boolean(_)
            )
        {
            return format!("{}::{ty}", self.constant(value));
        }
        let text = self.print(inner, Parent::Tight);
        // A row and an array of nothing are said with their type.
        let empty = matches!(inner, Expr::ArrayExpr(array) if array.elements.is_empty());
        if self.pretty
            || empty
            || Self::is_row(inner)
            || text.starts_with('(') && text.ends_with(')')
        {
            format!("{text}::{ty}")
        } else {
            format!("({text})::{ty}")
        }
    }

    /// The name of a function. People are shown the schema of an extension's if it is not searched, and a stored text
    /// always has it, so that it means the same wherever it is read.
    pub(super) fn function_name(&self, name: &FuncName) -> String {
        let FuncName::Named(names) = name else {
            return name.to_string();
        };
        let extension = names.last().and_then(|name| {
            let function = logstead_sql_func::functions_named(name).next()?;
            self.types
                .types
                .extension(extensions::of_function(function)?)
        });
        let names = match (names.as_slice(), &extension) {
            ([.., name], Some((_, searched))) if self.pretty && *searched => {
                return quote_ident(name);
            }
            ([.., name], Some((extension, _))) => {
                return format!(
                    "{}.{}",
                    quote_ident(&extension.schema_name),
                    quote_ident(name)
                );
            }
            ([schema, rest @ ..], None) if **schema == *"pg_catalog" && !rest.is_empty() => rest,
            (names, _) => names,
        };
        let names = names.iter().map(|name| quote_ident(name));
        names.collect::<Vec<_>>().join(".")
    }

    fn call(&self, call: &ast::FuncCall) -> String {
        let name = self.function_name(&call.funcname);
        let distinct = if call.agg_distinct { "DISTINCT " } else { "" };
        let args = arguments(call, &|e| self.print(e, Parent::Free));
        let mut text = format!("{name}({distinct}{args}");
        let order = match call.agg_order.as_slice() {
            [] => String::new(),
            keys => format!("ORDER BY {}", self.sorted(keys)),
        };
        match (order.is_empty(), call.agg_within_group) {
            (true, _) => text.push(')'),
            (false, false) => text.push_str(&format!(" {order})")),
            (false, true) => text.push_str(&format!(") WITHIN GROUP ({order})")),
        }
        if let Some(filter) = &call.agg_filter {
            let condition = self.print(filter, Parent::Free);
            text.push_str(&format!(" FILTER (WHERE {condition})"));
        }
        if let Some(over) = &call.over {
            match &over.name {
                Some(name) => text.push_str(&format!(" OVER {}", quote_ident(name))),
                None => text.push_str(&format!(" OVER ({})", self.window(over))),
            }
        }
        text
    }

    fn sorted(&self, keys: &[ast::SortBy]) -> String {
        let keys = keys.iter().map(|key| {
            let mut text = self.print(&key.node, Parent::Free);
            // A call is in parentheses, and so is what casts by one.
            if is_call(&key.node) {
                text = format!("({text})");
            }
            text.push_str(&crate::deparse::sort_shown(key));
            text
        });
        keys.collect::<Vec<_>>().join(", ")
    }

    pub(super) fn window(&self, spec: &ast::WindowDef) -> String {
        let mut parts = Vec::new();
        if let Some(name) = &spec.refname {
            parts.push(quote_ident(name));
        }
        if !spec.partition_clause.is_empty() {
            let keys = spec.partition_clause.iter();
            let keys: Vec<_> = keys.map(|e| self.print(e, Parent::Free)).collect();
            parts.push(format!("PARTITION BY {}", keys.join(", ")));
        }
        if !spec.order_clause.is_empty() {
            parts.push(format!("ORDER BY {}", self.sorted(&spec.order_clause)));
        }
        if let Some(frame) = &spec.frame {
            let bound = |b: &ast::FrameBound| match b {
                ast::FrameBound::CurrentRow => "CURRENT ROW".to_owned(),
                ast::FrameBound::UnboundedPreceding => "UNBOUNDED PRECEDING".to_owned(),
                ast::FrameBound::UnboundedFollowing => "UNBOUNDED FOLLOWING".to_owned(),
                ast::FrameBound::Preceding(e) => {
                    format!("{} PRECEDING", self.print(e, Parent::Free))
                }
                ast::FrameBound::Following(e) => {
                    format!("{} FOLLOWING", self.print(e, Parent::Free))
                }
            };
            let mode = match frame.mode {
                FrameMode::Range => "RANGE",
                FrameMode::Rows => "ROWS",
                FrameMode::Groups => "GROUPS",
            };
            let start = bound(&frame.start);
            parts.push(match &frame.end {
                Some(end) => format!("{mode} BETWEEN {start} AND {}", bound(end)),
                None => format!("{mode} {start}"),
            });
        }
        let exclusion = spec.frame.as_ref().map(|frame| frame.exclusion);
        // NO OTHERS is what a frame says that says nothing.
        parts.extend(match exclusion {
            Some(FrameExclusion::CurrentRow) => Some("EXCLUDE CURRENT ROW".to_owned()),
            Some(FrameExclusion::Group) => Some("EXCLUDE GROUP".to_owned()),
            Some(FrameExclusion::Ties) => Some("EXCLUDE TIES".to_owned()),
            Some(FrameExclusion::NoOthers) | None => None,
        });
        parts.join(" ")
    }
}

/// Is it a call of a function, written as one or as a cast?
fn is_call(expr: &Expr) -> bool {
    match expr {
        Expr::TypeCast(cast) => !matches!(&cast.arg, Expr::Const(_)),
        Expr::FuncCall(_) => true,
        _ => false,
    }
}

/// A type as it is shown, or as it is written if there is none.
pub(super) fn type_text(name: &TypeName, types: TypeSpelling<'_>) -> String {
    match crate::type_name::sql_type(name, types.types) {
        Ok(ty) => types.format_type(ty),
        Err(_) => name.to_string(),
    }
}

fn constant(value: &Value, types: TypeSpelling<'_>) -> String {
    match value {
        // The name of a type may stand in it by number.
        Value::String(text) => quote_literal(&stored_text_shown(text, types)),
        bits @ (Value::Bits(_) | Value::HexBits(_)) => bit_literal(bits),
        value => negative(value).unwrap_or_else(|| value.to_string()),
    }
}

/// A negative number is a constant in quotes.
pub(super) fn negative(value: &Value) -> Option<String> {
    let number = value.digits().filter(|digits| digits.starts_with('-'))?;
    let ty = match number.parse::<i64>() {
        Ok(n) if i32::try_from(n).is_ok() => "integer",
        Ok(_) => "bigint",
        Err(_) => "numeric",
    };
    Some(format!("'{number}'::{ty}"))
}
