//! Nodes that no text has: what readers put into trees. They stand nowhere.

use super::{
    AArrayExpr, AExpr, AExprKind, BoolExpr, BoolOp, ColumnRef, Const, Expr, FuncArg, FuncCall,
    FuncFormat, FuncName, Location, Name, Names, NodeBox, NullTest, OperatorName, ResTarget,
    RowExpr, SelectBody, SelectStmt, TypeCast, TypeName, Value,
};

impl Expr {
    /// An operator between two operands, which stands nowhere.
    pub fn operator(lexpr: Expr, op: OperatorName, rexpr: Expr) -> Expr {
        Expr::compared(AExprKind::Op, lexpr, op, rexpr)
    }

    /// The same of an operator of any kind.
    pub fn compared(kind: AExprKind, lexpr: Expr, op: OperatorName, rexpr: Expr) -> Expr {
        Expr::AExpr(NodeBox::new(AExpr {
            kind,
            op,
            lexpr: Some(lexpr),
            rexpr,
            location: Location::UNKNOWN,
        }))
    }

    /// AND, OR or NOT, which stands nowhere.
    pub fn bool_expr(op: BoolOp, args: Vec<Expr>) -> Expr {
        Expr::BoolExpr(NodeBox::new(BoolExpr {
            op,
            args,
            location: Location::UNKNOWN,
        }))
    }

    /// IS NULL or IS NOT NULL, which stands nowhere.
    pub fn null_test(arg: Expr, negated: bool) -> Expr {
        Expr::NullTest(NodeBox::new(NullTest {
            arg,
            negated,
            location: Location::UNKNOWN,
        }))
    }

    /// A cast, which stands nowhere.
    pub fn type_cast(arg: Expr, type_name: TypeName) -> Expr {
        Expr::TypeCast(NodeBox::new(TypeCast {
            arg,
            type_name,
            location: Location::UNKNOWN,
        }))
    }

    /// ARRAY[...], which stands nowhere.
    pub fn array(elements: Vec<Expr>) -> Expr {
        Expr::ArrayExpr(NodeBox::new(AArrayExpr {
            elements,
            location: Location::UNKNOWN,
        }))
    }

    /// A row of fields, which stands nowhere.
    pub fn row(args: Vec<Expr>) -> Expr {
        Expr::RowExpr(NodeBox::new(RowExpr {
            args,
            is_explicit: true,
            location: Location::UNKNOWN,
        }))
    }

    /// A column, which stands nowhere.
    pub fn column_ref(fields: impl IntoIterator<Item = Name>) -> Expr {
        Expr::ColumnRef(Box::new(ColumnRef {
            fields: fields.into_iter().collect(),
            star: false,
            location: Location::UNKNOWN,
        }))
    }

    /// All columns of an item.
    pub fn all_columns(item: &str) -> Expr {
        Expr::ColumnRef(Box::new(ColumnRef {
            fields: [Name::from(item)].into_iter().collect(),
            star: true,
            location: Location::UNKNOWN,
        }))
    }

    /// A constant that stands nowhere.
    pub fn value(value: Value) -> Expr {
        Expr::Const(Const {
            value,
            location: Location::UNKNOWN,
        })
    }

    /// An operator in front of its operand, which stands nowhere.
    pub fn prefix(sign: &str, rexpr: Expr) -> Expr {
        Expr::AExpr(NodeBox::new(AExpr {
            kind: AExprKind::Op,
            op: OperatorName::of_sign(sign),
            lexpr: None,
            rexpr,
            location: Location::UNKNOWN,
        }))
    }

    /// A number, which may have a sign in front, and stands nowhere.
    pub fn number(digits: &str) -> Expr {
        Expr::value(Value::number(digits))
    }
}

impl From<Expr> for FuncArg {
    fn from(value: Expr) -> FuncArg {
        FuncArg { name: None, value }
    }
}

impl FuncCall {
    /// A call of a function with values, which stands nowhere.
    pub fn of(funcname: FuncName, args: impl IntoIterator<Item = Expr>) -> FuncCall {
        FuncCall {
            funcname,
            args: args.into_iter().map(FuncArg::from).collect(),
            agg_order: Vec::new(),
            agg_filter: None,
            over: None,
            agg_within_group: false,
            agg_star: false,
            agg_distinct: false,
            func_variadic: false,
            funcformat: FuncFormat::ExplicitCall,
            location: Location::UNKNOWN,
        }
    }
}

impl ResTarget {
    /// A value of a target list, which stands nowhere.
    pub fn of(name: Option<Name>, val: Expr) -> ResTarget {
        ResTarget {
            name,
            indirection: Vec::new(),
            val: Some(val),
            location: Location::UNKNOWN,
        }
    }

    /// All columns.
    pub fn star(location: Location) -> ResTarget {
        let all = ColumnRef {
            fields: Names::new(),
            star: true,
            location,
        };
        ResTarget::of(None, Expr::ColumnRef(Box::new(all)))
    }
}

impl SelectStmt {
    /// A query that is nothing but this, and stands nowhere.
    pub fn of(body: SelectBody) -> SelectStmt {
        SelectStmt {
            with_clause: None,
            body,
            sort_clause: Vec::new(),
            limit: None,
            locking_clause: Vec::new(),
            as_of: None,
            location: Location::UNKNOWN,
        }
    }
}
