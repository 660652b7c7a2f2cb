//! Operators, row comparisons, IN lists, ANY and ALL over arrays.
//!
//! Which operator of a name is meant, and that there is none or more than one, is decided in `resolve` of
//! [`logstead_sql_func`].

use super::Binder;
use crate::query::expr::Expr;
use logstead_sql_func as func;
use logstead_sql_func::{CastContext, FuncDetail, Function};
use logstead_sql_parse::ast::{
    self, AExpr, AExprKind, BoolExpr, BoolOp, Expr as Ast, OperatorName,
};
use logstead_sql_parse::row_of;
use logstead_sql_types::TypeId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::geometry::is_geometry;
use logstead_sql_types::value::user::TypeLookup;
use logstead_sql_types::value::{Datum, SqlType, info, oid, record};
use logstead_types::SqlState;

/// The operator's name.
pub(crate) fn operator_name(op: &OperatorName) -> Result<&str> {
    match op.schema.as_slice() {
        [] => Ok(&op.name),
        [schema, ..] if **schema == *"pg_catalog" => Ok(&op.name),
        schema => Err(SqlError::new(
            SqlState::UNDEFINED_FUNCTION,
            format!("operator does not exist: {}.{}", schema.join("."), op.name),
        )),
    }
}

/// The operator between two operands that an expression is.
fn binary_of(expr: &Ast) -> Option<(&AExpr, &Ast)> {
    match expr {
        Ast::AExpr(node) if node.kind == AExprKind::Op => Some((node, node.lexpr.as_ref()?)),
        _ => None,
    }
}

impl Binder<'_> {
    /// Resolves an operator and brings both operands to its types.
    pub(crate) fn operator(
        &mut self,
        op: &str,
        left: Expr,
        right: Expr,
        at: Option<usize>,
    ) -> Result<Expr> {
        let resolved = func::resolve_operator(op, Some(left.ty()), right.ty(), self.types())
            .map_err(|e| e.at(at))?;
        self.apply_operator(op, &resolved, left, right, at)
    }

    fn apply_operator(
        &mut self,
        op: &str,
        resolved: &FuncDetail,
        left: Expr,
        right: Expr,
        at: Option<usize>,
    ) -> Result<Expr> {
        let left = self.coerce(left, arg(resolved, 0), CastContext::Implicit, at)?;
        let right = self.coerce(right, arg(resolved, 1), CastContext::Implicit, at)?;
        let compares = matches!(
            op,
            "=" | "<>" | "<" | "<=" | ">" | ">=" | "@>" | "<@" | "&&"
        );
        let of_shapes = |ty: SqlType| {
            self.user_types()
                .element_of(ty.oid)
                .is_some_and(is_unordered)
        };
        if compares && of_shapes(arg(resolved, 0))
            || matches!(arg(resolved, 0).oid, oid::RECORD | oid::RECORD_ARRAY)
        {
            comparable(op, left.ty(), right.ty(), self.types()).map_err(|e| e.at(at))?;
        }
        self.call(resolved.function, vec![left, right], resolved.result)
    }

    pub(crate) fn prefix_operator(
        &mut self,
        op: &str,
        arg0: Expr,
        at: Option<usize>,
    ) -> Result<Expr> {
        let resolved = func::resolve_operator(op, None, arg0.ty(), self.types()).map_err(|mut e| {
            if e.code() == SqlState::UNDEFINED_FUNCTION {
                e.fields_mut().hint = Some(
                    "No operator matches the given name and argument type. You might need to add an explicit type cast."
                        .to_owned(),
                );
            }
            e.at(at)
        })?;
        let operand = self.coerce(arg0, arg(&resolved, 0), CastContext::Implicit, at)?;
        self.call(resolved.function, vec![operand], resolved.result)
    }

    /// An operator of any kind.
    pub(super) fn a_expr(&mut self, node: &AExpr) -> Result<Expr> {
        let Some(left) = &node.lexpr else {
            return self.sign(node);
        };
        let at = self.at(node.location);
        match node.kind {
            AExprKind::Op => self.binary(node, left),
            AExprKind::OpAny => self.array_compare(left, &node.op, &node.rexpr, false, at),
            AExprKind::OpAll => self.array_compare(left, &node.op, &node.rexpr, true, at),
            AExprKind::Distinct => self.distinct_from(left, &node.rexpr, false, at),
            AExprKind::NotDistinct => self.distinct_from(left, &node.rexpr, true, at),
            AExprKind::NullIf => self.null_if(left, &node.rexpr, at),
        }
    }

    /// A chain of binary operators, leaning left: walked in a loop.
    fn binary(&mut self, node: &AExpr, left: &Ast) -> Result<Expr> {
        let mut chain = Vec::new();
        let (mut first, mut left) = (node, left);
        while let Some((inner, operand)) = binary_of(left) {
            chain.push(first);
            (first, left) = (inner, operand);
        }
        let right = &first.rexpr;
        let compares = first.op.sign() == Some("=") && (left.is_null() || right.is_null());
        let mut so_far = if compares && self.cx.session.scans().transform_null_equals {
            let other = if right.is_null() { left } else { right };
            self.is_null(other, false)?
        } else {
            self.binary_pair(left, first)?
        };
        for node in chain.into_iter().rev() {
            let at = self.at(node.location);
            let name = operator_name(&node.op)?;
            let right = self.expr(&node.rexpr)?;
            so_far = self.operator(name, so_far, right, at)?;
        }
        Ok(so_far)
    }

    fn binary_pair(&mut self, left: &Ast, node: &AExpr) -> Result<Expr> {
        let at = self.at(node.location);
        let name = operator_name(&node.op)?;
        let right = &node.rexpr;
        if let Some(left_items) = row_of(left) {
            if let Some(link) = right.scalar_query() {
                return self.row_subquery(left_items, name, &link.subselect, at);
            }
            let Some(right_items) = row_of(right) else {
                // A record beside one that is written out.
                let left = left_items
                    .iter()
                    .map(|e| self.expr(e))
                    .collect::<Result<Vec<_>>>()?;
                let left = self.row(left)?;
                let right = self.expr(right)?;
                return self.operator(name, left, right, at);
            };
            let left = left_items
                .iter()
                .map(|e| self.expr(e))
                .collect::<Result<Vec<_>>>()?;
            let right = right_items
                .iter()
                .map(|e| self.expr(e))
                .collect::<Result<Vec<_>>>()?;
            return self.row_comparison(name, left, right, at);
        }
        let left = self.expr(left)?;
        let right = self.expr(right)?;
        self.operator(name, left, right, at)
    }

    /// AND, OR and NOT.
    pub(super) fn bool_expr(&mut self, node: &BoolExpr) -> Result<Expr> {
        let neutral = match (node.op, node.args.as_slice()) {
            (BoolOp::And, _) => true,
            (BoolOp::Or, _) => false,
            (BoolOp::Not, [operand]) => return self.not(operand),
            (BoolOp::Not, _) => return Err(SqlError::internal("NOT of several")),
        };
        let what = if neutral { "AND" } else { "OR" };
        let mut bound = Vec::with_capacity(node.args.len());
        for operand in &node.args {
            let at = self.at(operand.location());
            let expr = self.expr(operand)?;
            match self.condition(expr, what, at)? {
                Expr::And(inner) if neutral => bound.extend(inner),
                Expr::Or(inner) if !neutral => bound.extend(inner),
                other => bound.push(other),
            }
        }
        // Constants that decide or change nothing fold away.
        bound.retain(|e| !matches!(e, Expr::Const(Datum::Bool(value), _) if *value == neutral));
        let bool_ty = SqlType::of(oid::BOOL);
        let decides =
            |e: &Expr| matches!(e, Expr::Const(Datum::Bool(value), _) if *value != neutral);
        if let Some(at) = bound.iter().position(decides) {
            bound.truncate(at + 1);
            // What stands before it, and may be a constant that cannot be computed, is looked at.
            if !bound.iter().any(crate::may_be_failing) {
                return Ok(Expr::Const(Datum::Bool(!neutral), bool_ty));
            }
        }
        Ok(match bound.len() {
            0 => Expr::Const(Datum::Bool(neutral), bool_ty),
            1 => bound.remove(0),
            _ if neutral => Expr::And(bound),
            _ => Expr::Or(bound),
        })
    }

    fn not(&mut self, operand: &Ast) -> Result<Expr> {
        let at = self.at(operand.location());
        // NOT EXISTS and NOT IN keep their shape for the planner; NOT NOT folds.
        let bound = self.expr(operand)?;
        Ok(match self.condition(bound, "NOT", at)? {
            Expr::Not(inner) => *inner,
            Expr::Const(Datum::Bool(value), ty) => Expr::Const(Datum::Bool(!value), ty),
            other => Expr::Not(Box::new(other)),
        })
    }

    /// (a, b) op (c, d).
    pub(crate) fn row_comparison(
        &mut self,
        op: &str,
        left: Vec<Expr>,
        right: Vec<Expr>,
        at: Option<usize>,
    ) -> Result<Expr> {
        if left.len() != right.len() {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                "unequal number of entries in row expressions",
            )
            .at(at));
        }
        if left.is_empty() {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cannot compare rows of zero length",
            )
            .at(at));
        }
        let pairs: Vec<(Expr, Expr)> = left.into_iter().zip(right).collect();
        match op {
            "=" => {
                let all = pairs
                    .into_iter()
                    .map(|(l, r)| self.operator("=", l, r, at))
                    .collect::<Result<Vec<_>>>()?;
                Ok(join(all, Expr::And))
            }
            "<>" => {
                let all = pairs
                    .into_iter()
                    .map(|(l, r)| self.operator("<>", l, r, at))
                    .collect::<Result<Vec<_>>>()?;
                Ok(join(all, Expr::Or))
            }
            "<" | "<=" | ">" | ">=" => {
                // a < c OR (a = c AND (b < d OR ...)); only the last pair may be equal.
                let strict = &op[..1];
                let last = pairs.len() - 1;
                let mut result: Option<Expr> = None;
                for (i, (l, r)) in pairs.into_iter().enumerate().rev() {
                    result = Some(match result {
                        None => {
                            debug_assert_eq!(i, last, "pairs are walked from the last");
                            self.operator(op, l, r, at)?
                        }
                        Some(rest) => {
                            let before = self.operator(strict, l.clone(), r.clone(), at)?;
                            let equal = self.operator("=", l, r, at)?;
                            Expr::Or(vec![before, Expr::And(vec![equal, rest])])
                        }
                    });
                }
                result.ok_or_else(|| SqlError::internal("empty row comparison"))
            }
            _ => {
                for (l, r) in pairs {
                    let one = self.operator(op, l, r, at)?.ty();
                    if one.oid != oid::BOOL {
                        return Err(SqlError::new(
                            SqlState::DATATYPE_MISMATCH,
                            format!(
                                "row comparison operator must yield type boolean, not type {}",
                                self.types().format_type(one)
                            ),
                        )
                        .at(at));
                    }
                }
                Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    format!("could not determine interpretation of row comparison operator {op}"),
                )
                .hint("Row comparison operators must be associated with btree operator families.")
                .at(at))
            }
        }
    }

    /// x [NOT] IN (list).
    pub(crate) fn in_list(&mut self, node: &ast::InExpr) -> Result<Expr> {
        let (left, list, negated) = (&node.expr, &node.list, node.negated);
        let at = self.at(node.location);
        if let Some(items) = row_of(left) {
            let left = items
                .iter()
                .map(|e| self.expr(e))
                .collect::<Result<Vec<_>>>()?;
            let mut all = Vec::new();
            for item in list {
                let Some(right) = row_of(item) else {
                    let row = self.row(left.clone())?;
                    let item = self.expr(item)?;
                    all.push(self.operator("=", row, item, at)?);
                    continue;
                };
                let right = right
                    .iter()
                    .map(|e| self.expr(e))
                    .collect::<Result<Vec<_>>>()?;
                all.push(self.row_comparison("=", left.clone(), right, at)?);
            }
            let any = join(all, Expr::Or);
            return Ok(if negated {
                Expr::Not(Box::new(any))
            } else {
                any
            });
        }
        let left = self.expr(left)?;
        let items = list
            .iter()
            .map(|e| self.expr(e))
            .collect::<Result<Vec<_>>>()?;
        if items.len() == 1 {
            let op = if negated { "<>" } else { "=" };
            let item = items
                .into_iter()
                .next()
                .ok_or_else(|| SqlError::internal("empty IN list"))?;
            return self.operator(op, left, item, at);
        }
        let types: Vec<SqlType> = std::iter::once(left.ty())
            .chain(items.iter().map(Expr::ty))
            .collect();
        let records = types.iter().any(|ty| record::is_record(ty.oid));
        if !records && let Ok(common) = func::common_type(&types, self.types()) {
            let common = SqlType::of(common.oid);
            let resolved = func::resolve_operator("=", Some(left.ty()), common, self.types())
                .map_err(|e| e.at(at))?;
            let left = self.coerce(left, arg(&resolved, 0), CastContext::Implicit, at)?;
            let target = arg(&resolved, 1);
            let mut coerced = Vec::with_capacity(items.len());
            for (item, ast) in items.into_iter().zip(list) {
                let place = self.at(ast.location());
                let item = self.coerce(item, common, CastContext::Implicit, place)?;
                coerced.push(self.coerce(item, target, CastContext::Implicit, place)?);
            }
            return Ok(Expr::InList {
                left: Box::new(left),
                list: coerced,
                op: resolved.function,
                negated,
            });
        }
        let op = if negated { "<>" } else { "=" };
        let all = items
            .into_iter()
            .map(|item| self.operator(op, left.clone(), item, at))
            .collect::<Result<Vec<_>>>()?;
        Ok(join(all, if negated { Expr::And } else { Expr::Or }))
    }

    /// x op ANY/ALL (array).
    pub(crate) fn array_compare(
        &mut self,
        left: &Ast,
        op: &OperatorName,
        right: &Ast,
        all: bool,
        at: Option<usize>,
    ) -> Result<Expr> {
        let name = operator_name(op)?;
        let left = self.expr(left)?;
        let array = self.expr(right)?;
        let element = match array.ty().oid {
            oid::UNKNOWN => SqlType::of(oid::UNKNOWN),
            _ => match self.user_types().element_type(array.ty()) {
                Some(element) => element,
                None => {
                    return Err(SqlError::new(
                        SqlState::WRONG_OBJECT_TYPE,
                        "op ANY/ALL (array) requires array on right side",
                    )
                    .at(at));
                }
            },
        };
        let resolved = func::resolve_operator(name, Some(left.ty()), element, self.types())
            .map_err(|e| e.at(at))?;
        if resolved.result.oid != oid::BOOL {
            return Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                "op ANY/ALL (array) requires operator to yield boolean",
            )
            .at(at));
        }
        let left = self.coerce(left, arg(&resolved, 0), CastContext::Implicit, at)?;
        let wanted = arg(&resolved, 1);
        let array = if wanted.oid == element.oid || super::coerce::is_pseudo(wanted.oid) {
            array
        } else {
            let target = info::array_of(wanted.oid).ok_or_else(|| {
                SqlError::unsupported(format!("an array of {}", self.types().format_type(wanted)))
            })?;
            if matches!(
                func::find_cast(element.oid, wanted.oid, CastContext::Implicit),
                Some(func::Cast::Relabel)
            ) && element.oid != oid::UNKNOWN
            {
                Expr::Relabel(Box::new(array), SqlType::of(target))
            } else {
                self.coerce(array, SqlType::of(target), CastContext::Implicit, at)?
            }
        };
        Ok(Expr::ArrayCompare {
            left: Box::new(left),
            array: Box::new(array),
            op: resolved.function,
            all,
        })
    }

    /// IS [NOT] DISTINCT FROM.
    fn distinct_from(
        &mut self,
        left: &Ast,
        right: &Ast,
        negated: bool,
        at: Option<usize>,
    ) -> Result<Expr> {
        if let (Some(l), Some(r)) = (row_of(left), row_of(right)) {
            if l.len() != r.len() {
                return Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    "unequal number of entries in row expressions",
                )
                .at(at));
            }
            let mut all = Vec::new();
            for (l, r) in l.iter().zip(r) {
                all.push(self.distinct_from(l, r, negated, at)?);
            }
            return Ok(join(all, if negated { Expr::And } else { Expr::Or }));
        }
        let left = self.expr(left)?;
        let right = self.expr(right)?;
        let resolved = func::resolve_operator("=", Some(left.ty()), right.ty(), self.types())
            .map_err(|e| e.at(at))?;
        let (mut a, mut b) = (arg(&resolved, 0), arg(&resolved, 1));
        if a.oid != b.oid {
            // A cross-type equality: both sides meet in their common type.
            let common = func::common_type(&[a, b], self.types()).map_err(|e| e.at(at))?;
            a = SqlType::of(common.oid);
            b = a;
        }
        let left = self.coerce(left, a, CastContext::Implicit, at)?;
        let right = self.coerce(right, b, CastContext::Implicit, at)?;
        Ok(Expr::IsDistinct {
            left: Box::new(left),
            right: Box::new(right),
            negated,
        })
    }

    /// The equality function over two columns of a subquery comparison: operands coerced, operator checked.
    pub(crate) fn comparison_function(
        &mut self,
        op: &str,
        left: Expr,
        right: SqlType,
        at: Option<usize>,
    ) -> Result<(Expr, &'static Function, SqlType)> {
        let resolved = func::resolve_operator(op, Some(left.ty()), right, self.types())
            .map_err(|e| e.at(at))?;
        if resolved.result.oid != oid::BOOL {
            return Err(SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!(
                    "row comparison operator must yield type boolean, not type {}",
                    self.types().format_type(resolved.result)
                ),
            )
            .at(at));
        }
        let left = self.coerce(left, arg(&resolved, 0), CastContext::Implicit, at)?;
        Ok((left, resolved.function, arg(&resolved, 1)))
    }
}

fn arg(resolved: &FuncDetail, i: usize) -> SqlType {
    resolved
        .args
        .get(i)
        .copied()
        .unwrap_or(SqlType::of(oid::ANY))
}

fn join(mut all: Vec<Expr>, make: fn(Vec<Expr>) -> Expr) -> Expr {
    match all.len() {
        1 => all.remove(0),
        _ => make(all),
    }
}

/// Fails for records that cannot be compared: they must have as many fields, of the same types, and those an order.
/// PostgreSQL finds out when it meets the first pair.
fn comparable(op: &str, left: SqlType, right: SqlType, known: TypeLookup<'_>) -> Result<()> {
    let types = known.types;
    // So it does with arrays whose elements have no order, which it looks at one by one.
    if let (Some(element), Some(_)) = (types.element_of(left.oid), types.element_of(right.oid))
        && is_unordered(element)
    {
        return Err(no_comparison(op, SqlType::of(element), known));
    }
    let one = |ty: SqlType| match ty.oid {
        oid::RECORD_ARRAY => types.element_type(ty).unwrap_or(ty),
        _ => ty,
    };
    let (left, right) = (one(left), one(right));
    let (Some(l), Some(r)) = (types.tuple_desc_of(left), types.tuple_desc_of(right)) else {
        return Ok(());
    };
    for (((_, a), (_, b)), number) in l.iter().zip(r.iter()).zip(1..) {
        if a.oid != b.oid {
            return Err(SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!(
                    "cannot compare dissimilar column types {} and {} at record column {number}",
                    known.format_type(SqlType::of(a.oid)),
                    known.format_type(SqlType::of(b.oid))
                ),
            ));
        }
        // Forms have an order, whatever the type.
        if let Some(ty) = super::order_by::unordered(*a, types)
            && !op.starts_with('*')
        {
            return Err(no_comparison(op, ty, known));
        }
    }
    match l.len() == r.len() {
        true => Ok(()),
        false => Err(SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            "cannot compare record types with different numbers of columns",
        )),
    }
}

/// Have the elements of an array no order?
fn is_unordered(element: TypeId) -> bool {
    is_geometry(element) || super::order_by::is_incomparable(SqlType::of(element))
}

fn no_comparison(op: &str, ty: SqlType, known: TypeLookup<'_>) -> SqlError {
    SqlError::new(
        SqlState::UNDEFINED_FUNCTION,
        format!(
            "could not identify {} for type {}",
            match op {
                "=" | "<>" | "@>" | "<@" | "&&" => "an equality operator",
                _ => "a comparison function",
            },
            known.format_type(ty)
        ),
    )
}
