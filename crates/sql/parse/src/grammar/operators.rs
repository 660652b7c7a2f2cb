//! Operators that are words: IS, LIKE, IN, BETWEEN, AT TIME ZONE, ANY and ALL, OVERLAPS.

use super::Parser;
use super::expr::{Precedence, Rule, binary, operator};
use super::parentheses::ParenContents;
use crate::ast::{
    AExprKind, BetweenExpr, BoolTestKind, BooleanTest, Const, Expr, FuncArg, FuncCall, FuncFormat,
    FuncName, InExpr, LikeExpr, LikeKind, Location, NodeBox, NullTest, OperatorName, SubLink,
    SubLinkKind, Value, XmlExpr, XmlExprOp,
};
use crate::lexer::{Keyword as K, TokenKind as T};
use logstead_sql_types::error::Result;
use smallvec::smallvec;

/// IS NULL, ISNULL and their negations.
pub(super) fn null_test(arg: Expr, negated: bool, location: Location) -> Expr {
    Expr::NullTest(NodeBox::new(NullTest {
        arg,
        negated,
        location,
    }))
}

/// A call of a function in `pg_catalog` that words of SQL stand for.
pub(super) fn system_call(name: &str, args: Vec<Expr>, location: Location) -> FuncCall {
    let args = args.into_iter().map(|value| FuncArg { name: None, value });
    FuncCall {
        funcname: FuncName::Named(smallvec!["pg_catalog".into(), name.into()]),
        args: args.collect(),
        agg_order: Vec::new(),
        agg_filter: None,
        over: None,
        agg_within_group: false,
        agg_star: false,
        agg_distinct: false,
        func_variadic: false,
        funcformat: FuncFormat::SqlSyntax,
        location,
    }
}

/// The expression of such a call.
pub(super) fn system_expr(name: &str, args: Vec<Expr>, location: Location) -> Expr {
    Expr::FuncCall(NodeBox::new(system_call(name, args, location)))
}

/// The operator that LIKE and its like stand for.
fn like_operator(kind: LikeKind, negated: bool) -> OperatorName {
    operator(match (kind, negated) {
        (LikeKind::Like, false) => "~~",
        (LikeKind::Like, true) => "!~~",
        (LikeKind::ILike, false) => "~~*",
        (LikeKind::ILike, true) => "!~~*",
        (LikeKind::SimilarTo, false) => "~",
        (LikeKind::SimilarTo, true) => "!~",
    })
}

impl Parser<'_> {
    /// IS with what follows it; the word is the next token.
    pub(super) fn is_test(&mut self, rule: Rule, left: Expr) -> Result<Expr> {
        let location = self.here();
        self.pass();
        let negated = self.take(K::Not);
        if self.take(K::Distinct) {
            self.expect(K::From)?;
            let right = self.expr(rule, Precedence::Is)?;
            let kind = match negated {
                false => AExprKind::Distinct,
                true => AExprKind::NotDistinct,
            };
            return Ok(binary(kind, operator("="), Some(left), right, location));
        }
        if self.take(K::Document) {
            let test = Expr::XmlExpr(NodeBox::new(XmlExpr {
                args: vec![left],
                ..super::xml::xml_expr(XmlExprOp::IsDocument, location)
            }));
            return Ok(self.unless(negated, test, location));
        }
        if rule == Rule::B {
            return self.unexpected();
        }
        let boolean = match self.kind() {
            T::Keyword(K::Null) => {
                self.pass();
                return Ok(null_test(left, negated, location));
            }
            T::Keyword(K::True) => BoolTestKind::True,
            T::Keyword(K::False) => BoolTestKind::False,
            T::Keyword(K::Unknown) => BoolTestKind::Unknown,
            _ => {
                let mut args = vec![left];
                args.extend(self.unicode_normal_form());
                self.expect(K::Normalized)?;
                let test = system_expr("is_normalized", args, location);
                return Ok(self.unless(negated, test, location));
            }
        };
        self.pass();
        Ok(Expr::BooleanTest(NodeBox::new(BooleanTest {
            arg: left,
            kind: boolean,
            negated,
            location,
        })))
    }

    /// NOT around a test whose own words say so.
    fn unless(&mut self, negated: bool, test: Expr, location: Location) -> Expr {
        if !negated {
            return test;
        }
        self.one_level_more();
        Expr::BoolExpr(NodeBox::new(crate::ast::BoolExpr {
            op: crate::ast::BoolOp::Not,
            args: vec![test],
            location,
        }))
    }

    /// `unicode_normal_form`, as a literal.
    pub(super) fn unicode_normal_form(&mut self) -> Option<Expr> {
        let location = self.here();
        match self.kind() {
            T::Keyword(form @ (K::Nfc | K::Nfd | K::Nfkc | K::Nfkd)) => {
                self.pass();
                let form = form.word().to_ascii_uppercase();
                Some(Expr::Const(Const {
                    value: Value::String(form.into()),
                    location,
                }))
            }
            _ => None,
        }
    }

    /// `AT TIME ZONE`
    pub(super) fn at_time_zone(&mut self, left: Expr) -> Result<Expr> {
        let location = self.here();
        self.pass();
        self.expect_all(&[K::Time, K::Zone])?;
        let zone = self.expr(Rule::A, Precedence::At)?;
        Ok(system_expr("timezone", vec![zone, left], location))
    }

    /// `[NOT]` LIKE, ILIKE, SIMILAR TO, IN, BETWEEN.
    pub(super) fn like_level(&mut self, left: Expr) -> Result<Expr> {
        let location = self.here();
        let negated = self.take_token(T::NotLa);
        let kind = match self.pass().kind {
            T::Keyword(K::Between) => return self.between(left, negated, location),
            T::Keyword(K::In) => return self.in_expr(left, negated, location),
            T::Keyword(K::Like) => LikeKind::Like,
            T::Keyword(K::Ilike) => LikeKind::ILike,
            _ => {
                self.expect(K::To)?;
                LikeKind::SimilarTo
            }
        };
        if kind != LikeKind::SimilarTo && self.at_sub_type() {
            return self.with_sub_type(left, like_operator(kind, negated), location);
        }
        let pattern = self.expr(Rule::A, Precedence::Like)?;
        let escape = match self.take(K::Escape) {
            true => Some(self.expr(Rule::A, Precedence::Like)?),
            false => None,
        };
        Ok(Expr::Like(NodeBox::new(LikeExpr {
            kind,
            negated,
            expr: left,
            pattern,
            escape,
            location,
        })))
    }

    fn between(&mut self, left: Expr, negated: bool, location: Location) -> Result<Expr> {
        let symmetric = self.take(K::Symmetric);
        if !symmetric {
            self.take(K::Asymmetric);
        }
        let low = self.b_expr()?;
        self.expect(K::And)?;
        let high = self.expr(Rule::A, Precedence::Like)?;
        Ok(Expr::Between(NodeBox::new(BetweenExpr {
            negated,
            symmetric,
            expr: left,
            low,
            high,
            location,
        })))
    }

    /// `in_expr`
    fn in_expr(&mut self, left: Expr, negated: bool, location: Location) -> Result<Expr> {
        Ok(match self.in_parentheses(true)? {
            ParenContents::Select(subselect) => {
                let kind = match negated {
                    true => SubLinkKind::NotIn { test: left },
                    false => SubLinkKind::Any {
                        test: left,
                        op: None,
                    },
                };
                Expr::SubLink(NodeBox::new(SubLink {
                    kind,
                    subselect: *subselect,
                    location,
                }))
            }
            ParenContents::Exprs(list) => Expr::In(NodeBox::new(InExpr {
                negated,
                expr: left,
                list,
                location,
            })),
        })
    }

    /// Is the next token a `sub_type`?
    pub(super) fn at_sub_type(&self) -> bool {
        self.is_any(&[K::Any, K::Some, K::All])
    }

    /// `a_expr subquery_Op sub_type (...)`, behind the operator.
    pub(super) fn with_sub_type(
        &mut self,
        test: Expr,
        op: OperatorName,
        location: Location,
    ) -> Result<Expr> {
        // All operators are PostgreSQL's own: its schema says nothing.
        let op = match op.schema.as_slice() {
            [schema] if **schema == *"pg_catalog" => operator(&op.name),
            _ => op,
        };
        let is_all = self.pass().kind == T::Keyword(K::All);
        match self.in_parentheses(false)? {
            ParenContents::Select(subselect) => {
                let kind = match is_all {
                    true => SubLinkKind::All { test, op },
                    false => SubLinkKind::Any { test, op: Some(op) },
                };
                Ok(Expr::SubLink(NodeBox::new(SubLink {
                    kind,
                    subselect: *subselect,
                    location,
                })))
            }
            ParenContents::Exprs(array) => {
                let kind = match is_all {
                    true => AExprKind::OpAll,
                    false => AExprKind::OpAny,
                };
                let Some(array) = array.into_iter().next() else {
                    return self.unexpected();
                };
                Ok(binary(kind, op, Some(test), array, location))
            }
        }
    }

    /// `row OVERLAPS row`, behind the first row; the word is the next token.
    pub(super) fn overlaps(&mut self, left: Vec<Expr>, left_at: Location) -> Result<Expr> {
        let location = self.here();
        self.pass();
        let right_at = self.here();
        let is_explicit = self.take(K::Row);
        let right = self.parens(|parser| {
            if is_explicit && parser.at(T::RParen) {
                return Ok(Vec::new());
            }
            let mut fields = vec![parser.a_expr()?];
            if !is_explicit && !parser.at(T::Comma) {
                return parser.unexpected();
            }
            while parser.take_token(T::Comma) {
                fields.push(parser.a_expr()?);
            }
            Ok(fields)
        })?;
        for (side, fields, at) in [("left", &left, left_at), ("right", &right, right_at)] {
            if fields.len() != 2 {
                let message =
                    format!("wrong number of parameters on {side} side of OVERLAPS expression");
                return Err(self.syntax_error(message, at));
            }
        }
        let args = left.into_iter().chain(right).collect();
        Ok(system_expr("overlaps", args, location))
    }
}
