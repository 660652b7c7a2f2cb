//! Expressions as text as they stand: no types but those that are written, and parentheses only where they are needed.

use crate::deparse::expr::Printer;
use crate::deparse::precedence::Precedence;
use crate::deparse::query::subquery;
use crate::deparse::special::sql_syntax;
use logstead_sql_parse::ast::{self, AExprKind, BoolOp, Expr, LikeKind, SubLinkKind, XmlExprOp};
use logstead_sql_parse::names_shown;
use logstead_sql_types::value::user::TypeSpelling;

fn not(negated: bool) -> &'static str {
    if negated { "NOT " } else { "" }
}

/// An expression as it stands; the types that print as more than they are written are printed by these.
pub fn plain(expr: &Expr, types: TypeSpelling<'_>) -> String {
    PlainPrinter { types }.plain(expr)
}

/// Prints expressions as they stand.
pub(super) struct PlainPrinter<'a> {
    pub(super) types: TypeSpelling<'a>,
}

impl PlainPrinter<'_> {
    fn list(&self, exprs: &[Expr]) -> String {
        exprs
            .iter()
            .map(|e| self.plain(e))
            .collect::<Vec<_>>()
            .join(", ")
    }

    fn query(&self, query: &ast::SelectStmt) -> String {
        subquery(query, 0, false, true, self.types)
    }

    /// What stands behind words that have it or not.
    fn behind(&self, words: &str, expr: Option<&Expr>) -> String {
        expr.map_or_else(String::new, |expr| format!("{words}{}", self.plain(expr)))
    }

    /// An expression as it stands.
    pub(super) fn plain(&self, expr: &Expr) -> String {
        match expr {
            Expr::ColumnRef(column) if column.star => format!("{}.*", names_shown(&column.fields)),
            Expr::ColumnRef(column) => names_shown(&column.fields),
            Expr::SetToDefault(_) => "DEFAULT".to_owned(),
            Expr::SqlValueFunction(node) => node.to_string(),
            Expr::ParamRef(node) => format!("${}", node.number),
            Expr::Const(node) => node.value.to_string(),
            Expr::NullTest(node) => {
                let arg = self.operand(&node.arg, Precedence::Is);
                format!("{arg} IS {}NULL", not(node.negated))
            }
            Expr::BooleanTest(node) => format!(
                "{} IS {}{}",
                self.operand(&node.arg, Precedence::Is),
                not(node.negated),
                node.kind.word()
            ),
            Expr::BoolExpr(node) => {
                let own = Precedence::of_bool(node.op);
                let mut args = node.args.iter();
                let first = args.next().map(|arg| self.operand(arg, own)).into_iter();
                let args: Vec<String> = first
                    .chain(args.map(|arg| self.tighter(arg, own)))
                    .collect();
                match node.op {
                    BoolOp::Not => format!("NOT {}", args.join(", ")),
                    BoolOp::And => args.join(" AND "),
                    BoolOp::Or => args.join(" OR "),
                }
            }
            Expr::AExpr(node) => self.operator(node),
            Expr::XmlExpr(node) if node.op == XmlExprOp::IsDocument => {
                super::xml::xml_expr(node, &|e| self.tighter(e, Precedence::Is), &|e| {
                    self.plain(e)
                })
            }
            Expr::XmlExpr(node) => {
                super::xml::xml_expr(node, &|e| self.plain(e), &|e| self.plain(e))
            }
            Expr::XmlSerialize(node) => {
                super::xml::xml_serialize(node, self.types, &|e| self.plain(e))
            }
            Expr::In(node) => format!(
                "{} {}IN ({})",
                self.tighter(&node.expr, Precedence::Like),
                not(node.negated),
                self.list(&node.list)
            ),
            Expr::Between(node) => format!(
                "{} {}BETWEEN {}{} AND {}",
                self.tighter(&node.expr, Precedence::Like),
                not(node.negated),
                if node.symmetric { "SYMMETRIC " } else { "" },
                self.tighter(&node.low, Precedence::Like),
                self.tighter(&node.high, Precedence::Like)
            ),
            Expr::Like(node) => {
                let words = match node.kind {
                    LikeKind::Like => "LIKE",
                    LikeKind::ILike => "ILIKE",
                    LikeKind::SimilarTo => "SIMILAR TO",
                };
                let escape = node.escape.as_ref();
                let escape =
                    escape.map(|e| format!(" ESCAPE {}", self.tighter(e, Precedence::Like)));
                format!(
                    "{} {}{words} {}{}",
                    self.tighter(&node.expr, Precedence::Like),
                    not(node.negated),
                    self.tighter(&node.pattern, Precedence::Like),
                    escape.unwrap_or_default()
                )
            }
            Expr::TypeCast(node) => {
                let arg = self.operand(&node.arg, Precedence::TypeCast);
                format!("{arg}::{}", node.type_name)
            }
            Expr::CollateClause(node) => {
                format!(
                    "{} COLLATE {}",
                    self.operand(&node.arg, Precedence::Collate),
                    names_shown(&node.collname)
                )
            }
            Expr::SubLink(node) => {
                let inner = self.query(&node.subselect);
                match &node.kind {
                    SubLinkKind::Exists => format!("EXISTS ({inner})"),
                    SubLinkKind::Expr => format!("({inner})"),
                    SubLinkKind::Array => format!("array({inner})"),
                    SubLinkKind::Any { test, op: None } => {
                        format!("{} IN ({inner})", self.tighter(test, Precedence::Like))
                    }
                    SubLinkKind::NotIn { test } => {
                        format!("{} NOT IN ({inner})", self.tighter(test, Precedence::Like))
                    }
                    SubLinkKind::Any { test, op: Some(op) } => {
                        format!(
                            "{} {op} ANY ({inner})",
                            self.operand(test, Precedence::Operator)
                        )
                    }
                    SubLinkKind::All { test, op } => {
                        format!(
                            "{} {op} ALL ({inner})",
                            self.operand(test, Precedence::Operator)
                        )
                    }
                }
            }
            Expr::RowExpr(node) => {
                let row = if node.is_explicit { "ROW" } else { "" };
                format!("{row}({})", self.list(&node.args))
            }
            Expr::CoalesceExpr(node) => format!("COALESCE({})", self.list(&node.args)),
            Expr::MinMaxExpr(node) => format!("{}({})", node.word(), self.list(&node.args)),
            Expr::GroupingFunc(node) => format!("GROUPING({})", self.list(&node.args)),
            Expr::ArrayExpr(array) => format!("ARRAY[{}]", self.list(&array.elements)),
            Expr::CurrentOf(node) => {
                format!(
                    "CURRENT OF {}",
                    names_shown(std::slice::from_ref(&node.cursor_name))
                )
            }
            Expr::FuncCall(node) => self.call(node),
            Expr::Indirection(node) => {
                let parts = node.indirection.iter().map(|step| self.access(step));
                let arg = self.plain(&node.arg);
                let is_field = matches!(
                    node.indirection.first(),
                    Some(ast::Indirection::Field(_) | ast::Indirection::Star)
                );
                // A field of a column would be one of a table.
                let bare = match &node.arg {
                    Expr::ColumnRef(_) => !is_field,
                    Expr::ParamRef(_) => true,
                    arg => arg.scalar_query().is_some(),
                };
                match bare {
                    true => format!("{arg}{}", parts.collect::<String>()),
                    false => format!("({arg}){}", parts.collect::<String>()),
                }
            }
            Expr::CaseExpr(node) => {
                let mut text = format!("CASE{}", self.behind(" ", node.arg.as_ref()));
                for arm in &node.args {
                    let (condition, result) = (self.plain(&arm.expr), self.plain(&arm.result));
                    text.push_str(&format!(" WHEN {condition} THEN {result}"));
                }
                format!(
                    "{text}{} END",
                    self.behind(" ELSE ", node.defresult.as_ref())
                )
            }
        }
    }

    /// An operand that binds at least as tight as this.
    fn operand(&self, expr: &Expr, least: Precedence) -> String {
        match Precedence::of(expr) < least {
            true => format!("({})", self.plain(expr)),
            false => self.plain(expr),
        }
    }

    /// An operand that binds tighter than this.
    fn tighter(&self, expr: &Expr, than: Precedence) -> String {
        match Precedence::of(expr) <= than {
            true => format!("({})", self.plain(expr)),
            false => self.plain(expr),
        }
    }

    /// An operator. A chain of them leans to the left, and is printed in a loop.
    pub(super) fn operator(&self, node: &ast::AExpr) -> String {
        let mut chain = vec![node];
        let mut first = node;
        while let Some(Expr::AExpr(left)) = &first.lexpr
            && first.kind == AExprKind::Op
            && left.kind == AExprKind::Op
            && left.lexpr.is_some()
            && Precedence::of_operator(&left.op) >= Precedence::of_operator(&first.op)
            && Precedence::of_operator(&first.op) != Precedence::Comparison
        {
            first = left;
            chain.push(left);
        }
        let Some(left) = &first.lexpr else {
            return self.prefix(first);
        };
        let own = match first.kind {
            AExprKind::Op => Precedence::of_operator(&first.op),
            AExprKind::OpAny | AExprKind::OpAll => Precedence::Operator,
            AExprKind::Distinct | AExprKind::NotDistinct => Precedence::Is,
            AExprKind::NullIf => {
                return format!("NULLIF({}, {})", self.plain(left), self.plain(&first.rexpr));
            }
        };
        let mut text = match own {
            Precedence::Comparison | Precedence::Is => self.tighter(left, own),
            own => self.operand(left, own),
        };
        for node in chain.into_iter().rev() {
            let (op, right) = (&node.op, &node.rexpr);
            text.push_str(&match node.kind {
                AExprKind::Op => {
                    format!(" {op} {}", self.tighter(right, Precedence::of_operator(op)))
                }
                AExprKind::OpAny => format!(" {op} ANY ({})", self.plain(right)),
                AExprKind::OpAll => format!(" {op} ALL ({})", self.plain(right)),
                AExprKind::Distinct => format!(" IS DISTINCT FROM {}", self.tighter(right, own)),
                AExprKind::NotDistinct => {
                    format!(" IS NOT DISTINCT FROM {}", self.tighter(right, own))
                }
                AExprKind::NullIf => format!(", {}", self.plain(right)),
            });
        }
        text
    }

    /// An operator in front of its operand. Two signs are no comment.
    fn prefix(&self, node: &ast::AExpr) -> String {
        let arg = self.operand(&node.rexpr, Precedence::of_prefix(&node.op));
        match (node.op.sign(), arg.starts_with(['+', '-'])) {
            (Some("+" | "-"), false) => format!("{}{arg}", node.op),
            _ => format!("{} {arg}", node.op),
        }
    }

    fn access(&self, access: &ast::Indirection) -> String {
        match access {
            ast::Indirection::Field(name) => {
                format!(".{}", names_shown(std::slice::from_ref(name)))
            }
            ast::Indirection::Star => ".*".to_owned(),
            ast::Indirection::Index(index) => format!("[{}]", self.plain(index)),
            ast::Indirection::Slice(lower, upper) => {
                format!(
                    "[{}:{}]",
                    self.behind("", lower.as_ref()),
                    self.behind("", upper.as_ref())
                )
            }
        }
    }

    /// A call.
    fn call(&self, call: &ast::FuncCall) -> String {
        if let Some(text) = sql_syntax(call, self.types, &|e| self.plain(e), &|e| {
            self.operand(e, Precedence::Collate)
        }) {
            return text;
        }
        let distinct = if call.agg_distinct { "DISTINCT " } else { "" };
        let mut text = format!(
            "{}({distinct}{}",
            call.funcname,
            arguments(call, &|e| self.plain(e))
        );
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
            text.push_str(&format!(" FILTER (WHERE {})", self.plain(filter)));
        }
        if let Some(window) = &call.over {
            match &window.name {
                Some(name) => {
                    text.push_str(&format!(
                        " OVER {}",
                        names_shown(std::slice::from_ref(name))
                    ));
                }
                None => {
                    let window = Printer::of_query(false, 0, self.types).window(window);
                    text.push_str(&format!(" OVER ({window})"));
                }
            }
        }
        text
    }

    fn sorted(&self, keys: &[ast::SortBy]) -> String {
        let keys = keys.iter().map(|key| {
            let shown = crate::deparse::sort_shown(key);
            format!("{}{shown}", self.plain(&key.node))
        });
        keys.collect::<Vec<_>>().join(", ")
    }
}

/// The arguments of a call, by what prints values.
pub(super) fn arguments(call: &ast::FuncCall, value: &dyn Fn(&Expr) -> String) -> String {
    let array = call.args.len().checked_sub(1);
    let array = array.filter(|_| call.func_variadic);
    let args = call.args.iter().enumerate().map(|(at, arg)| {
        let variadic = if array == Some(at) { "VARIADIC " } else { "" };
        let name = arg.name.as_ref().map(|(name, _)| {
            let name = names_shown(std::slice::from_ref(name));
            format!("{name} => ")
        });
        format!(
            "{variadic}{}{}",
            name.unwrap_or_default(),
            value(&arg.value)
        )
    });
    let star = call.agg_star.then(|| "*".to_owned());
    args.chain(star).collect::<Vec<_>>().join(", ")
}
