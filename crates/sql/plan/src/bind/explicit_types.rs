//! Makes the types in an expression explicit before it is stored: literals take their types, operands their coercions.
//!
//! So the stored text means the same however it is read again, and it prints as PostgreSQL's does. What is not
//! understood here stays as written; the caller binds the result again and keeps the original if that fails.

mod call;
mod special;
mod xml;

use call::text_call;
use logstead_sql_catalog::context::partial::ContextAdapter;
use logstead_sql_catalog::name_lookup::NameLookup;
use logstead_sql_catalog::without_session::WithoutSession;
use logstead_sql_catalog::{Catalog, Relation};
use logstead_sql_func as func;
use logstead_sql_parse::ast::{
    self, AExpr, AExprKind, BoolOp, BoolTestKind, ColumnRef, Expr, LikeExpr, LikeKind, Location,
    Name, NodeBox, OperatorName, SubLink, SubLinkKind, Value,
};
use logstead_sql_parse::row_of;
use logstead_sql_types::value::user::TypeSpelling;
use logstead_sql_types::value::{OutputStyle, SqlType, info, oid, text_io};
use logstead_sql_types::{FunctionId, TypeId};

/// An expression and its type, if known.
type Typed = (Expr, Option<SqlType>);

/// What an expression's names stand for.
pub(crate) trait Names {
    /// The type of a column.
    fn column(&self, name: &[Name]) -> Option<SqlType>;
    /// `item.*` where a value stands: the row of an item.
    fn row(&self, item: &ColumnRef) -> Typed {
        (Expr::ColumnRef(Box::new(item.clone())), None)
    }
    /// The type of an expression that is not looked into here.
    fn type_of(&self, expr: &Expr) -> Option<SqlType>;
    /// What a function that is kept by its number takes and gives.
    fn kept_function(&self, _oid: FunctionId) -> Option<(Vec<SqlType>, SqlType)> {
        None
    }
}

/// What is in sight of an expression of a table.
struct TableNames<'a> {
    relation: &'a Relation,
    catalog: &'a Catalog,
}

impl Names for TableNames<'_> {
    fn column(&self, name: &[Name]) -> Option<SqlType> {
        let name = name.last()?;
        let found = self
            .relation
            .columns
            .iter()
            .find(|c| !c.dropped && *c.name == **name);
        // A domain's column is brought to the base type, which the text shows.
        found.map(|c| c.declared())
    }

    fn type_of(&self, _: &Expr) -> Option<SqlType> {
        None
    }

    fn kept_function(&self, oid: FunctionId) -> Option<(Vec<SqlType>, SqlType)> {
        let routine = self.catalog.routines.get(oid)?;
        let plain = |ty: TypeId| (!func::is_polymorphic(ty)).then(|| SqlType::of(ty));
        let types = routine.input_types().into_iter().map(plain);
        Some((types.collect::<Option<_>>()?, plain(routine.result)?))
    }
}

struct Typer<'a> {
    names: &'a dyn Names,
    lookup: NameLookup<'a>,
    /// Constants as they are shown now, or as they are kept: relations by number.
    style: OutputStyle<'a>,
    /// Types likewise.
    spelling: TypeSpelling<'a>,
}

/// `expr` over a table's row, with its types explicit, as it is kept.
pub fn explicit(expr: &Expr, relation: &Relation, lookup: NameLookup<'_>) -> Expr {
    let without_session = WithoutSession {
        types: Some(lookup.types()),
    };
    let kept_names = ContextAdapter(&without_session);
    let style = OutputStyle {
        names: Some(&kept_names),
        types_by_number: true,
        ..OutputStyle::of(lookup.session).for_storage()
    };
    let names = TableNames {
        relation,
        catalog: lookup.catalog,
    };
    typed(
        expr,
        &names,
        lookup,
        style,
        TypeSpelling::numbered(lookup.types()),
    )
}

/// `expr` with its types explicit, as it is shown.
pub(crate) fn explicit_in(expr: &Expr, names: &dyn Names, lookup: NameLookup<'_>) -> Expr {
    let spelling = TypeSpelling::named(lookup.types());
    typed(
        expr,
        names,
        lookup,
        OutputStyle::of(lookup.session),
        spelling,
    )
}

/// The same of a named window.
pub(super) fn explicit_window(
    window: &mut ast::WindowDef,
    names: &dyn Names,
    lookup: NameLookup<'_>,
) {
    let typer = Typer {
        names,
        lookup,
        style: OutputStyle::of(lookup.session),
        spelling: TypeSpelling::named(lookup.types()),
    };
    typer.window(window);
}

fn typed<'a>(
    expr: &Expr,
    names: &'a dyn Names,
    lookup: NameLookup<'a>,
    style: OutputStyle<'a>,
    spelling: TypeSpelling<'a>,
) -> Expr {
    let typer = Typer {
        names,
        lookup,
        style,
        spelling,
    };
    let (typed, ty) = typer.expr(expr);
    match ty {
        Some(ty) if ty.oid == oid::UNKNOWN => cast(typed, SqlType::of(oid::TEXT), spelling),
        _ => typed,
    }
}

/// The expression cast to a type, whose name is spelled so.
pub(super) fn cast(expr: Expr, ty: SqlType, spelling: TypeSpelling<'_>) -> Expr {
    match logstead_sql_parse::parse_type_name(&spelling.format_type(ty)) {
        Ok(type_name) => Expr::type_cast(expr, type_name),
        Err(_) => expr,
    }
}

fn string(expr: &Expr) -> Option<&str> {
    expr.literal()
}

fn is_null(expr: &Expr) -> bool {
    expr.is_null()
}

/// Conditions that one expression stands for.
fn joined(mut all: Vec<Expr>, op: BoolOp) -> Expr {
    match all.len() {
        0 => Expr::value(Value::Boolean(true)),
        1 => all.remove(0),
        _ => Expr::bool_expr(op, all),
    }
}

/// The operands of an operator; twice the same of anything else.
fn sides_of(expr: Expr) -> (Expr, Expr) {
    match expr {
        Expr::AExpr(node) => {
            let AExpr { lexpr, rexpr, .. } = node.into_inner();
            (lexpr.unwrap_or_else(|| rexpr.clone()), rexpr)
        }
        other => (other.clone(), other),
    }
}

/// A subquery that is for something else.
fn with_kind(node: &SubLink, kind: SubLinkKind) -> Expr {
    Expr::SubLink(NodeBox::new(SubLink {
        kind,
        subselect: node.subselect.clone(),
        location: node.location,
    }))
}

fn number_type(digits: &str) -> SqlType {
    SqlType::of(match (digits.parse::<i32>(), digits.parse::<i64>()) {
        (Ok(_), _) => oid::INT4,
        (_, Ok(_)) => oid::INT8,
        _ => oid::NUMERIC,
    })
}

impl Typer<'_> {
    fn cast(&self, expr: Expr, ty: SqlType) -> Expr {
        cast(expr, ty, self.spelling)
    }

    /// Brings a typed expression to a type.
    fn to(&self, (expr, from): Typed, target: SqlType) -> Expr {
        let target = SqlType::of(target.oid);
        let Some(from) = from else { return expr };
        let types = &self.lookup.catalog.types;
        let pseudo = types.type_info(target.oid).is_none_or(|t| t.kind == 'p');
        if pseudo || (from.oid == target.oid && from.oid != oid::UNKNOWN) {
            return match from.oid {
                // What takes anything takes it as it is.
                oid::UNKNOWN if target.oid == oid::ANY => expr,
                oid::UNKNOWN => self.cast(expr, SqlType::of(oid::TEXT)),
                _ => expr,
            };
        }
        if from.oid != oid::UNKNOWN {
            return self.cast(expr, target);
        }
        // A domain's constant is one of its base type.
        let base = SqlType::of(self.lookup.catalog.types.base_type(target).oid);
        if base != target {
            return self.cast(self.to((expr, Some(from)), base), target);
        }
        // A literal becomes a constant of the type, in the type's own spelling.
        let Some(text) = string(&expr) else {
            return self.cast(expr, target);
        };
        let Ok(value) = text_io::input(target, text, Some(self.lookup.session)) else {
            return self.cast(expr, target);
        };
        let Ok(text) = text_io::to_text(&value, target, &self.style) else {
            return self.cast(expr, target);
        };
        match target.oid {
            oid::BOOL => Expr::value(Value::Boolean(text == "t")),
            oid::INT4 if !text.starts_with('-') => Expr::number(&text),
            oid::NUMERIC
                if text.contains(['.', 'e', 'E'])
                    && text.starts_with(|c: char| c.is_ascii_digit()) =>
            {
                Expr::value(Value::Float(text.into()))
            }
            _ => self.cast(Expr::value(Value::String(text.into())), target),
        }
    }

    fn expr(&self, expr: &Expr) -> Typed {
        let boolean = Some(SqlType::of(oid::BOOL));
        let inner = |e: &Expr| Box::new(self.expr(e).0);
        let condition = |e: &Expr| Box::new(self.to(self.expr(e), SqlType::of(oid::BOOL)));
        match expr {
            Expr::ColumnRef(column) if column.star => self.names.row(column),
            Expr::ColumnRef(column) => (expr.clone(), self.names.column(&column.fields)),
            Expr::ParamRef(_) => (expr.clone(), None),
            Expr::Const(node) => {
                let ty = match &node.value {
                    Value::Integer(_) => Some(SqlType::of(oid::INT4)),
                    Value::Float(digits) => {
                        let ty = number_type(digits);
                        // A negative number is one constant.
                        if ty.oid == oid::INT4 || digits.starts_with('-') {
                            return (expr.clone(), Some(ty));
                        }
                        let literal = Expr::value(Value::String(digits.clone()));
                        let unknown = Some(SqlType::of(oid::UNKNOWN));
                        return (self.to((literal, unknown), ty), Some(ty));
                    }
                    Value::Boolean(_) => boolean,
                    Value::Null | Value::String(_) => Some(SqlType::of(oid::UNKNOWN)),
                    Value::Bits(_) | Value::HexBits(_) => None,
                };
                (expr.clone(), ty)
            }
            Expr::TypeCast(node) => {
                let e = &node.arg;
                let ty =
                    logstead_sql_catalog::type_name::sql_type(&node.type_name, self.lookup).ok();
                if let Some(ty) = ty
                    && let Some(array) = self.cast_array(e, ty)
                {
                    return (array, Some(ty));
                }
                let typed = match (string(e), ty) {
                    // A constant of the type, as the type spells it.
                    (Some(_), Some(ty)) if ty.typmod < 0 => {
                        let unknown = Some(SqlType::of(oid::UNKNOWN));
                        return (self.to((e.clone(), unknown), ty), Some(ty));
                    }
                    (Some(_), _) => e.clone(),
                    _ => match (self.expr(e), ty) {
                        // It is of that type: nothing is left of the cast.
                        ((inner, Some(from)), Some(to))
                            if from.oid == to.oid && to.typmod < 0 && from.typmod < 0 =>
                        {
                            return (inner, ty);
                        }
                        // A row without a type of its own is one of that already.
                        ((inner, Some(from)), Some(to))
                            if to.oid == oid::RECORD && from.oid == oid::RECORD =>
                        {
                            return (inner, ty);
                        }
                        ((inner, _), _) => inner,
                    },
                };
                (Expr::type_cast(typed, node.type_name.clone()), ty)
            }
            Expr::BoolExpr(node) => {
                let args = node.args.iter().map(|arg| *condition(arg));
                (Expr::bool_expr(node.op, args.collect()), boolean)
            }
            Expr::AExpr(node) => match &node.lexpr {
                Some(left) => self.operator(node, left),
                None => {
                    let (operand, ty) = self.expr(&node.rexpr);
                    (Expr::prefix(&node.op.name, operand), ty)
                }
            },
            Expr::XmlExpr(node) => self.xml_expr(node),
            Expr::XmlSerialize(node) => self.xml_serialize(node),
            Expr::NullTest(node) => (Expr::null_test(*inner(&node.arg), node.negated), boolean),
            Expr::BooleanTest(node) if node.kind != BoolTestKind::Unknown => (
                Expr::BooleanTest(NodeBox::new(ast::BooleanTest {
                    arg: *inner(&node.arg),
                    ..**node
                })),
                boolean,
            ),
            Expr::Between(node) => {
                let (e, low, high, negated) = (&node.expr, &node.low, &node.high, node.negated);
                let within = self.between(e, low, high, negated);
                if !node.symmetric {
                    return (within, boolean);
                }
                let op = if negated { BoolOp::And } else { BoolOp::Or };
                let other = self.between(e, high, low, negated);
                (joined(vec![within, other], op), boolean)
            }
            Expr::In(node) => (self.in_list(&node.expr, &node.list, node.negated), boolean),
            Expr::Like(node) => {
                let op = OperatorName::of_sign(node.kind.operator(node.negated));
                let pattern = self.pattern(node);
                self.binary(self.expr(&node.expr), &op, pattern)
            }
            Expr::FuncCall(node) => self.call(node, expr),
            Expr::CaseExpr(node) => self.case(node),
            Expr::SubLink(node) => match &node.kind {
                SubLinkKind::Any { test, op } => {
                    let kind = SubLinkKind::Any {
                        test: self.expr(test).0,
                        op: op.clone(),
                    };
                    (with_kind(node, kind), boolean)
                }
                SubLinkKind::NotIn { test } => {
                    let test = self.expr(test).0;
                    (with_kind(node, SubLinkKind::NotIn { test }), boolean)
                }
                SubLinkKind::All { test, op } => {
                    let kind = SubLinkKind::All {
                        test: self.expr(test).0,
                        op: op.clone(),
                    };
                    (with_kind(node, kind), boolean)
                }
                _ => (expr.clone(), self.names.type_of(expr)),
            },
            Expr::Indirection(node) => {
                if let Some(column) = self.column_of_row(node) {
                    return column;
                }
                let typed = ast::AIndirection {
                    arg: *inner(&node.arg),
                    indirection: node.indirection.clone(),
                    location: node.location,
                };
                let ty = self.names.type_of(expr);
                (Expr::Indirection(NodeBox::new(typed)), ty)
            }
            other => match self.special(other) {
                Some(typed) => typed,
                None => (other.clone(), self.names.type_of(other)),
            },
        }
    }

    /// A field of `item.*` is the item's column.
    fn column_of_row(&self, node: &ast::AIndirection) -> Option<Typed> {
        let Expr::ColumnRef(row) = &node.arg else {
            return None;
        };
        let (ast::Indirection::Field(field), rest) = node.indirection.split_first()? else {
            return None;
        };
        let names = row.fields.iter().chain([field]).cloned();
        let column = Expr::column_ref(names);
        let ty = self.names.type_of(&column).filter(|_| row.star)?;
        if rest.is_empty() {
            return Some((column, Some(ty)));
        }
        let of_column = ast::AIndirection {
            arg: column,
            indirection: rest.to_vec(),
            location: node.location,
        };
        Some(self.expr(&Expr::Indirection(NodeBox::new(of_column))))
    }

    /// An operand that is text, if its type is known to become that.
    fn text_operand(&self, expr: &Expr) -> Box<Expr> {
        let typed = self.expr(expr);
        Box::new(match typed.1 {
            Some(ty) if ty.oid != oid::BYTEA => self.to(typed, SqlType::of(oid::TEXT)),
            _ => typed.0,
        })
    }

    /// Brings operands to the type they have in common, if that is known.
    fn unify(&self, operands: Vec<Typed>) -> (Vec<Expr>, Option<SqlType>) {
        let types: Option<Vec<SqlType>> = operands.iter().map(|o| o.1).collect();
        let common = types.and_then(|types| func::common_type(&types, self.lookup.types()).ok());
        let common = common.map(|ty| SqlType::of(ty.oid));
        let exprs = operands.into_iter().map(|o| match common {
            Some(common) => self.to(o, common),
            None => o.0,
        });
        (exprs.collect(), common)
    }

    /// Expressions, brought to the type that they have in common.
    fn unified(&self, exprs: &[Expr]) -> (Vec<Expr>, Option<SqlType>) {
        self.unify(exprs.iter().map(|e| self.expr(e)).collect())
    }

    fn case(&self, node: &ast::CaseExpr) -> Typed {
        let mut case = node.clone();
        for when in &mut case.args {
            let condition = self.expr(&when.expr);
            when.expr = match case.arg {
                Some(_) => condition.0,
                None => self.to(condition, SqlType::of(oid::BOOL)),
            };
        }
        if let Some(arg) = &mut case.arg {
            *arg = self.expr(arg).0;
        }
        let otherwise = case.defresult.get_or_insert(Expr::value(Value::Null));
        let results = case.args.iter_mut().map(|when| &mut when.result);
        let results: Vec<&mut Expr> = results.chain([otherwise]).collect();
        let (typed, ty) = self.unify(results.iter().map(|e| self.expr(e)).collect());
        results
            .into_iter()
            .zip(typed)
            .for_each(|(place, e)| *place = e);
        (Expr::CaseExpr(NodeBox::new(case)), ty)
    }

    /// An operator of any kind between two operands.
    fn operator(&self, node: &AExpr, left: &Expr) -> Typed {
        let boolean = Some(SqlType::of(oid::BOOL));
        let right = &node.rexpr;
        match node.kind {
            AExprKind::Op => match self.rows(left, &node.op, right) {
                Some(compared) => (compared, boolean),
                None => self.binary(self.expr(left), &node.op, self.expr(right)),
            },
            AExprKind::NullIf => {
                let (left, right) = (self.expr(left), self.expr(right));
                let ty = left.1;
                let (left, right) = sides_of(self.binary(left, &node.op, right).0);
                (Expr::compared(node.kind, left, node.op.clone(), right), ty)
            }
            AExprKind::OpAny | AExprKind::OpAll => {
                let (left, right) = self.array_operands(left, right);
                let compared = Expr::compared(node.kind, *left, node.op.clone(), *right);
                (compared, boolean)
            }
            AExprKind::Distinct | AExprKind::NotDistinct => {
                let is_not = node.kind == AExprKind::NotDistinct;
                let other = match (is_null(left), is_null(right)) {
                    (_, true) => Some(left),
                    (true, false) => Some(right),
                    (false, false) => None,
                };
                if let Some(other) = other {
                    return (Expr::null_test(self.expr(other).0, !is_not), boolean);
                }
                let distinct = match self.distinct(left, right) {
                    Expr::AExpr(mut node) if is_not => {
                        node.kind = AExprKind::NotDistinct;
                        Expr::AExpr(node)
                    }
                    // Of rows.
                    several if is_not => Expr::bool_expr(BoolOp::Not, vec![several]),
                    distinct => distinct,
                };
                (distinct, boolean)
            }
        }
    }

    fn binary(&self, left: Typed, op: &OperatorName, right: Typed) -> Typed {
        let resolved = match (left.1, right.1) {
            (Some(l), Some(r)) => {
                func::resolve_operator(&op.to_string(), Some(l), r, self.lookup.types()).ok()
            }
            _ => None,
        };
        let (a, b) = match resolved.as_ref().map(|resolved| resolved.args.as_slice()) {
            Some([a, b]) => (self.to(left, *a), self.to(right, *b)),
            _ => (left.0, right.0),
        };
        let result = resolved.map(|resolved| resolved.result);
        (Expr::operator(a, op.clone(), b), result)
    }

    fn between(&self, e: &Expr, low: &Expr, high: &Expr, negated: bool) -> Expr {
        let (below, above, join) = if negated {
            ("<", ">", BoolOp::Or)
        } else {
            (">=", "<=", BoolOp::And)
        };
        let pair = |op: &str, end: &Expr| {
            let op = OperatorName::of_sign(op);
            self.binary(self.expr(e), &op, self.expr(end)).0
        };
        joined(vec![pair(below, low), pair(above, high)], join)
    }

    /// A pattern with its ESCAPE.
    fn pattern(&self, node: &LikeExpr) -> Typed {
        let function = match (node.kind, &node.escape) {
            (LikeKind::SimilarTo, _) => "similar_to_escape",
            (_, Some(_)) => "like_escape",
            (_, None) => return self.expr(&node.pattern),
        };
        let args = std::iter::once(&node.pattern).chain(&node.escape);
        let args: Vec<_> = args.map(|arg| self.text_operand(arg)).collect();
        text_call(function, args)
    }

    /// A comparison of two rows; `None` if they are none.
    fn rows(&self, left: &Expr, op: &OperatorName, right: &Expr) -> Option<Expr> {
        let (left, right) = (row_of(left)?, row_of(right)?);
        if left.len() != right.len() || left.len() < 2 {
            return None;
        }
        let pair = |(l, r): (&Expr, &Expr)| self.binary(self.expr(l), op, self.expr(r)).0;
        let pairs: Vec<Expr> = left.iter().zip(right).map(pair).collect();
        match op.sign()? {
            "=" => Some(joined(pairs, BoolOp::And)),
            "<>" => Some(joined(pairs, BoolOp::Or)),
            "<" | "<=" | ">" | ">=" => {
                // As a whole, each pair of one type.
                let (lefts, rights) = pairs.into_iter().map(sides_of).unzip();
                let (left, right) = (Expr::row(lefts), Expr::row(rights));
                Some(Expr::operator(left, op.clone(), right))
            }
            _ => None,
        }
    }

    /// IS DISTINCT FROM, of rows field by field.
    fn distinct(&self, left: &Expr, right: &Expr) -> Expr {
        let equal = OperatorName::of_sign("=");
        let one = |l: &Expr, r: &Expr| {
            let (l, r) = sides_of(self.binary(self.expr(l), &equal, self.expr(r)).0);
            Expr::compared(AExprKind::Distinct, l, equal.clone(), r)
        };
        match (row_of(left), row_of(right)) {
            (Some(lefts), Some(rights)) if lefts.len() == rights.len() && !lefts.is_empty() => {
                let pairs = lefts.iter().zip(rights).map(|(l, r)| one(l, r));
                joined(pairs.collect(), BoolOp::Or)
            }
            _ => one(left, right),
        }
    }

    /// `x IN (...)` is stored as `x = ANY (ARRAY[...])`, of rows as the comparisons that it stands for.
    fn in_list(&self, e: &Expr, list: &[Expr], negated: bool) -> Expr {
        let op = OperatorName::of_sign(if negated { "<>" } else { "=" });
        let rows: Option<Vec<Expr>> = list.iter().map(|item| self.rows(e, &op, item)).collect();
        if let Some(rows) = rows {
            return joined(rows, if negated { BoolOp::And } else { BoolOp::Or });
        }
        if let [one] = list {
            return self.binary(self.expr(e), &op, self.expr(one)).0;
        }
        let (left, ty) = self.expr(e);
        let items: Vec<Typed> = list.iter().map(|item| self.expr(item)).collect();
        let known: Option<Vec<SqlType>> = items.iter().map(|i| i.1).chain([ty]).collect();
        let common = known
            .and_then(|types| func::common_type(&types, self.lookup.types()).ok())
            .map(|t| SqlType::of(t.oid));
        let (Some(ty), Some(common)) = (ty, common) else {
            return Expr::In(NodeBox::new(ast::InExpr {
                expr: left,
                list: items.into_iter().map(|i| i.0).collect(),
                negated,
                location: Location::UNKNOWN,
            }));
        };
        let elem = items
            .into_iter()
            .map(|item| self.to(item, common))
            .collect();
        let mut right = Expr::array(elem);
        let operand = func::resolve_operator("=", Some(common), common, self.lookup.types())
            .ok()
            .and_then(|r| r.args.first().copied());
        let operand = operand.map_or(common, |o| SqlType::of(o.oid));
        if operand.oid != common.oid
            && let Some(array) = info::array_of(operand.oid)
        {
            right = self.cast(right, SqlType::of(array));
        }
        let left = self.to((left, Some(ty)), operand);
        let kind = match negated {
            true => AExprKind::OpAll,
            false => AExprKind::OpAny,
        };
        Expr::compared(kind, left, op, right)
    }
}
