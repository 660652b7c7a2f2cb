//! Conflicts of collations that an expression names (42P21).
//!
//! There is one order of texts here, so a collation changes nothing; but a statement that names two for one comparison
//! is wrong, and is told so, as by PostgreSQL. Collations that columns are declared with are not looked at.

use super::Binder;
use logstead_sql_parse::ast::{self, AExprKind, Expr, LikeKind};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;

/// Functions that give a text of their arguments' collation.
const TEXTS: [&str; 20] = [
    "btrim",
    "concat",
    "concat_ws",
    "format",
    "initcap",
    "left",
    "lower",
    "lpad",
    "ltrim",
    "max",
    "min",
    "overlay",
    "regexp_replace",
    "repeat",
    "replace",
    "right",
    "rpad",
    "rtrim",
    "substr",
    "upper",
];

/// The collation that an expression names for its value, if it does.
type Named = Option<String>;

fn merged(a: Named, b: Named) -> Result<Named> {
    match (a, b) {
        (Some(a), Some(b)) if a != b => Err(SqlError::new(
            SqlState::new(b"42P21"),
            format!("collation mismatch between explicit collations \"{a}\" and \"{b}\""),
        )),
        (a, b) => Ok(a.or(b)),
    }
}

fn all<'e>(exprs: impl IntoIterator<Item = &'e Expr>) -> Result<Named> {
    let mut found = None;
    for expr in exprs {
        found = merged(found, named(expr)?)?;
    }
    Ok(found)
}

/// Looks at an expression, its subqueries aside.
pub(super) fn named(expr: &Expr) -> Result<Named> {
    match expr {
        Expr::CollateClause(node) => {
            named(&node.arg)?;
            Ok(node.collname.last().map(ToString::to_string))
        }
        Expr::AExpr(node) if node.kind == AExprKind::Op => {
            // The left side may be a chain of thousands.
            let mut chain = vec![node];
            let mut head = &node.lexpr;
            while let Some(Expr::AExpr(left)) = head
                && left.kind == AExprKind::Op
            {
                chain.push(left);
                head = &left.lexpr;
            }
            let mut left = match head {
                Some(head) => named(head)?,
                None => None,
            };
            for node in chain.into_iter().rev() {
                let both = merged(left, named(&node.rexpr)?)?;
                left = both.filter(|_| node.lexpr.is_some() && node.op.sign() == Some("||"));
            }
            Ok(left)
        }
        Expr::BoolExpr(node) => {
            for arg in &node.args {
                named(arg)?;
            }
            Ok(None)
        }
        Expr::Like(node) if node.kind != LikeKind::SimilarTo => {
            all([&node.expr, &node.pattern]).map(|_| None)
        }
        Expr::In(node) => {
            let left = named(&node.expr)?;
            for item in &node.list {
                merged(left.clone(), named(item)?)?;
            }
            Ok(None)
        }
        Expr::Between(node) => {
            let left = named(&node.expr)?;
            merged(left.clone(), named(&node.low)?)?;
            merged(left, named(&node.high)?).map(|_| None)
        }
        Expr::CaseExpr(node) => {
            let asked = match &node.arg {
                Some(arg) => named(arg)?,
                None => None,
            };
            for when in &node.args {
                merged(asked.clone(), named(&when.expr)?)?;
            }
            let results = node.args.iter().map(|when| &when.result);
            all(results.chain(&node.defresult))
        }
        Expr::ArrayExpr(array) => all(&array.elements),
        // A row's fields have nothing to do with each other.
        Expr::RowExpr(node) => {
            for item in &node.args {
                named(item)?;
            }
            Ok(None)
        }
        Expr::CoalesceExpr(node) => all(&node.args),
        Expr::MinMaxExpr(node) => all(&node.args),
        Expr::AExpr(node) if node.kind == AExprKind::NullIf => {
            all(node.lexpr.iter().chain([&node.rexpr]))
        }
        Expr::GroupingFunc(node) => all(&node.args).map(|_| None),
        Expr::TypeCast(node) => named(&node.arg).map(|_| None),
        Expr::NullTest(node) => named(&node.arg).map(|_| None),
        Expr::FuncCall(call) => of_call(call),
        _ => Ok(None),
    }
}

fn of_call(call: &ast::FuncCall) -> Result<Named> {
    let found = all(call.args.iter().map(|arg| &arg.value))?;
    let name = call.funcname.called();
    Ok(found.filter(|_| name.is_some_and(|name| TEXTS.contains(&&**name))))
}

/// Does a statement name a collation?
pub(super) fn is_named_in(text: &str) -> bool {
    let wanted = b"collate";
    { text.as_bytes().windows(wanted.len()) }.any(|part| part.eq_ignore_ascii_case(wanted))
}

impl Binder<'_> {
    /// 42P21 for an expression that names two collations for one thing. What is in it is not looked at again.
    pub(super) fn refuse_collations<T>(
        &mut self,
        expr: &Expr,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        named(expr)?;
        self.collates = false;
        let bound = bind(self);
        self.collates = true;
        bound
    }
}
