//! Expressions: constants, names, casts, subscripts, rows, CASE, subqueries.
//!
//! Operators are in `expr_operator`, calls in `expr_call`, XML in `expr_xml`.

use super::Lower;
use crate::ast::{
    AArrayExpr, AIndirection, CaseExpr, ColumnRef, CurrentOfExpr, Expr, Indirection, RowExpr,
    SubLink, SubLinkKind, TypeCast,
};
use crate::lowered::{self as library, Expr as L};
use logstead_fiber::with_stack;
use logstead_sql_types::error::{Result, too_deep};

/// Levels that go on one segment of stack.
const SEGMENT_LEVELS: usize = 32;
/// Stack for so many levels, where nothing is optimized.
const SEGMENT_BYTES: usize = 2 << 20;

impl Lower<'_> {
    /// Lowers an expression of any depth.
    pub(crate) fn expr(&self, expr: &Expr) -> Result<L> {
        let depth = self.depth.get() + 1;
        self.depth.set(depth);
        let lowered = match depth % SEGMENT_LEVELS {
            0 => with_stack(SEGMENT_BYTES, || self.expr_here(expr))
                .unwrap_or_else(|_| Err(too_deep())),
            _ => self.expr_here(expr),
        };
        self.depth.set(depth - 1);
        lowered
    }

    pub(super) fn exprs(&self, exprs: &[Expr]) -> Result<Vec<L>> {
        exprs.iter().map(|expr| self.expr(expr)).collect()
    }

    fn expr_here(&self, expr: &Expr) -> Result<L> {
        match expr {
            Expr::ColumnRef(node) => Ok(column(node)),
            Expr::ParamRef(node) => Ok(L::ParamRef(*node)),
            Expr::Const(node) => Ok(L::Const(node.clone())),
            Expr::TypeCast(node) => self.type_cast(node),
            Expr::CollateClause(node) => self.collate(node),
            Expr::AExpr(node) => self.operator_expr(node),
            Expr::Like(node) => self.like(node),
            Expr::In(node) => self.in_list(node),
            Expr::Between(node) => self.between(node),
            Expr::BoolExpr(node) => self.bool_expr(node),
            Expr::NullTest(node) => self.null_test(node),
            Expr::BooleanTest(node) => self.boolean_test(node),
            Expr::FuncCall(node) => Ok(L::FuncCall(Box::new(self.func_call(node)?))),
            Expr::Indirection(node) => self.indirection(node),
            Expr::ArrayExpr(node) => self.array(node),
            Expr::RowExpr(node) => self.row(node),
            Expr::CaseExpr(node) => self.case(node),
            Expr::CoalesceExpr(node) => Ok(L::CoalesceExpr(Box::new(library::CoalesceExpr {
                args: self.exprs(&node.args)?,
                location: node.location,
            }))),
            Expr::MinMaxExpr(node) => Ok(L::MinMaxExpr(Box::new(library::MinMaxExpr {
                is_least: node.is_least,
                args: self.exprs(&node.args)?,
                location: node.location,
            }))),
            Expr::SqlValueFunction(node) => Ok(L::SqlValueFunction(*node)),
            Expr::XmlExpr(node) => self.xml_expr(node),
            Expr::XmlSerialize(node) => self.xml_serialize(node),
            Expr::GroupingFunc(node) => Ok(L::GroupingFunc(Box::new(library::GroupingFunc {
                args: self.exprs(&node.args)?,
                location: node.location,
            }))),
            Expr::SubLink(node) => self.sub_link(node),
            Expr::CurrentOf(node) => Ok(L::CurrentOf(Box::new(CurrentOfExpr {
                cursor_name: node.cursor_name.clone(),
                location: node.location,
            }))),
            Expr::SetToDefault(location) => Ok(L::SetToDefault(*location)),
        }
    }

    fn type_cast(&self, node: &TypeCast) -> Result<L> {
        Ok(L::TypeCast(Box::new(library::TypeCast {
            arg: self.expr(&node.arg)?,
            type_name: node.type_name.clone(),
            location: node.location,
        })))
    }

    /// Fields and subscripts.
    fn indirection(&self, node: &AIndirection) -> Result<L> {
        let arg = self.expr(&node.arg)?;
        let mut indirection = Vec::with_capacity(node.indirection.len());
        for part in &node.indirection {
            indirection.push(self.access(part)?);
        }
        Ok(L::Indirection(Box::new(library::AIndirection {
            arg,
            indirection,
            location: node.location,
        })))
    }

    /// A field or a subscript.
    pub(super) fn access(&self, part: &Indirection) -> Result<library::Indirection> {
        use library::Indirection as I;
        Ok(match part {
            Indirection::Field(name) => I::Field(name.clone()),
            Indirection::Star => I::Star,
            Indirection::Index(index) => I::Index(self.expr(index)?),
            Indirection::Slice(lower, upper) => I::Slice(
                self.opt_expr(lower.as_ref())?,
                self.opt_expr(upper.as_ref())?,
            ),
        })
    }

    fn array(&self, node: &AArrayExpr) -> Result<L> {
        Ok(L::ArrayExpr(Box::new(library::AArrayExpr {
            elements: self.exprs(&node.elements)?,
            location: node.location,
        })))
    }

    fn row(&self, node: &RowExpr) -> Result<L> {
        Ok(L::RowExpr(Box::new(library::RowExpr {
            args: self.exprs(&node.args)?,
            is_explicit: node.is_explicit,
            location: node.location,
        })))
    }

    fn case(&self, node: &CaseExpr) -> Result<L> {
        let mut args = Vec::with_capacity(node.args.len());
        for when in &node.args {
            args.push(library::CaseWhen {
                expr: self.expr(&when.expr)?,
                result: self.expr(&when.result)?,
                location: when.location,
            });
        }
        Ok(L::CaseExpr(Box::new(library::CaseExpr {
            arg: self.opt_expr(node.arg.as_ref())?,
            args,
            defresult: self.opt_expr(node.defresult.as_ref())?,
            location: node.location,
            end: node.end,
        })))
    }

    fn sub_link(&self, node: &SubLink) -> Result<L> {
        use library::SubLinkKind as Kind;
        let kind = match &node.kind {
            SubLinkKind::Exists => Kind::Exists,
            SubLinkKind::Any { test, op } => Kind::Any {
                test: self.expr(test)?,
                op: op.clone(),
            },
            SubLinkKind::NotIn { test } => Kind::NotIn {
                test: self.expr(test)?,
            },
            SubLinkKind::All { test, op } => Kind::All {
                test: self.expr(test)?,
                op: op.clone(),
            },
            SubLinkKind::Expr => Kind::Expr,
            SubLinkKind::Array => Kind::Array,
        };
        Ok(L::SubLink(Box::new(library::SubLink {
            kind,
            subselect: self.query(&node.subselect)?,
            location: node.location,
        })))
    }
}

/// A column.
fn column(node: &ColumnRef) -> L {
    L::ColumnRef(Box::new(ColumnRef {
        fields: node.fields.clone(),
        star: node.star,
        location: node.location,
    }))
}
