//! Where a node is told to be, as PostgreSQL's `exprLocation`.

use super::{Expr, FuncArg};
use crate::ast::Location;

impl Expr {
    /// Where it is told to be: the leftmost of what it consists of, for operators that of their first operand.
    pub fn location(&self) -> Location {
        let mut expr = self;
        let mut found = Location::UNKNOWN;
        loop {
            let (own, inner) = expr.own_location();
            found = found.leftmost(own);
            match inner {
                Some(inner) => expr = inner,
                None => return found,
            }
        }
    }

    /// Its own location, and what may begin further left.
    fn own_location(&self) -> (Location, Option<&Expr>) {
        let nowhere = Location::UNKNOWN;
        match self {
            Expr::ColumnRef(node) => (node.location, None),
            Expr::SetToDefault(location) => (*location, None),
            Expr::SqlValueFunction(node) => (node.location, None),
            Expr::CurrentOf(node) => (node.location, None),
            Expr::Indirection(node) => (nowhere, Some(&node.arg)),
            Expr::BoolExpr(node) => (node.location, node.args.first()),
            Expr::AExpr(node) => (node.location, node.lexpr.as_ref()),
            Expr::NullTest(node) => (node.location, Some(&node.arg)),
            Expr::BooleanTest(node) => (node.location, Some(&node.arg)),
            Expr::Like(node) => (node.location, Some(&node.expr)),
            Expr::In(node) => (node.location, Some(&node.expr)),
            Expr::Between(node) => (node.location, Some(&node.expr)),
            // `::` stands behind what it casts.
            Expr::TypeCast(node) => (
                node.location.leftmost(node.type_name.location),
                Some(&node.arg),
            ),
            Expr::CollateClause(node) => (node.location, Some(&node.arg)),
            Expr::SubLink(node) => (node.location, node.kind.test()),
            Expr::ParamRef(node) => (node.location, None),
            Expr::Const(node) => (node.location, None),
            Expr::FuncCall(node) => (node.location, node.args.first().map(|arg| &arg.value)),
            Expr::CaseExpr(node) => (node.location, None),
            Expr::RowExpr(node) => (node.location, None),
            Expr::CoalesceExpr(node) => (node.location, None),
            Expr::MinMaxExpr(node) => (node.location, None),
            Expr::XmlExpr(node) => (node.location, node.args.first()),
            Expr::XmlSerialize(node) => (node.location, None),
            Expr::GroupingFunc(node) => (node.location, None),
            Expr::ArrayExpr(node) => (node.location, None),
        }
    }
}

impl FuncArg {
    /// Where it is told to be.
    pub fn location(&self) -> Location {
        match &self.name {
            Some((_, location)) => *location,
            None => self.value.location(),
        }
    }
}
