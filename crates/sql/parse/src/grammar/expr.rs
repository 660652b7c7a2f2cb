//! `a_expr` and `b_expr`: operators by their precedence.

use super::Parser;
use super::names::{is_all_op, is_col_id, is_type_function_name};
use crate::ast::{
    AExpr, AExprKind, BoolExpr, BoolOp, CollateClause, Const, Expr, Location, NodeBox,
    OperatorName, TypeCast, Value,
};
use crate::lexer::{Keyword as K, TokenKind as T};
use logstead_sql_types::error::Result;
use logstead_types::SqlState;
use std::cmp::Ordering;

/// A level of PostgreSQL's table of precedence, of those that operators have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Precedence {
    /// None: the expression is no operand.
    Lowest,
    Or,
    And,
    Not,
    Is,
    Comparison,
    Like,
    Operator,
    Add,
    Multiply,
    Power,
    At,
    Collate,
    Sign,
    TypeCast,
}

impl Precedence {
    /// Is `a op b op c` refused?
    fn is_nonassoc(self) -> bool {
        matches!(
            self,
            Precedence::Is | Precedence::Comparison | Precedence::Like
        )
    }
}

/// Which rule an expression is read by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// `a_expr`
    A,
    /// `b_expr`
    B,
}

/// What may stand behind an expression that some operators' words may begin as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Continuation {
    /// Nothing of the kind.
    Nothing,
    /// A name of an output column, without AS.
    Label,
    /// SIMILAR of SUBSTRING, without TO.
    Similar,
}

/// Can an `a_expr` begin with the token?
pub(super) fn begins_expr(kind: T) -> bool {
    match kind {
        T::Keyword(word) => {
            is_col_id(kind)
                || is_type_function_name(kind)
                || matches!(
                    word,
                    K::Not
                        | K::Case
                        | K::Cast
                        | K::True
                        | K::False
                        | K::Null
                        | K::Array
                        | K::Default
                        | K::Unique
                        | K::User
                        | K::SessionUser
                        | K::CurrentUser
                        | K::CurrentRole
                        | K::CurrentCatalog
                        | K::CurrentDate
                        | K::CurrentTime
                        | K::CurrentTimestamp
                        | K::Localtime
                        | K::Localtimestamp
                )
        }
        T::Op | T::Plus | T::Minus | T::NotLa | T::LParen | T::Param | T::Error => true,
        T::SConst | T::BConst | T::XConst | T::IConst | T::FConst => true,
        _ => is_col_id(kind),
    }
}

/// Can the token stand behind the label of an output column (what follows `BareColLabel`)?
fn follows_label(kind: T) -> bool {
    match kind {
        T::End | T::Comma | T::Semicolon | T::RParen | T::WithLa => true,
        T::Keyword(word) => matches!(
            word,
            K::Into
                | K::From
                | K::Where
                | K::Group
                | K::Having
                | K::Window
                | K::Union
                | K::Intersect
                | K::Except
                | K::Order
                | K::Limit
                | K::Offset
                | K::Fetch
                | K::For
                | K::With
                | K::On
                | K::Returning
        ),
        _ => false,
    }
}

/// One of the operators that the grammar knows by name.
pub(super) fn operator(name: &str) -> OperatorName {
    OperatorName {
        schema: Default::default(),
        name: name.into(),
    }
}

impl Parser<'_> {
    /// `a_expr`
    pub(super) fn a_expr(&mut self) -> Result<Expr> {
        self.expr(Rule::A, Precedence::Lowest)
    }

    /// `b_expr`
    pub(super) fn b_expr(&mut self) -> Result<Expr> {
        self.expr(Rule::B, Precedence::Lowest)
    }

    /// `expr_list`
    pub(super) fn expr_list(&mut self) -> Result<Vec<Expr>> {
        self.list(Self::a_expr)
    }

    /// An expression that is the right operand of an operator of this level.
    pub(super) fn expr(&mut self, rule: Rule, left_of_it: Precedence) -> Result<Expr> {
        self.nested(|parser| {
            let first = parser.prefix(rule)?;
            parser.infix(rule, left_of_it, Continuation::Nothing, first)
        })
    }

    /// An `a_expr` behind which there may be what operators begin with too.
    pub(super) fn a_expr_before(&mut self, behind: Continuation) -> Result<Expr> {
        self.nested(|parser| {
            let first = parser.prefix(Rule::A)?;
            parser.infix(Rule::A, Precedence::Lowest, behind, first)
        })
    }

    /// The rest of an `a_expr` whose first operand has been read.
    pub(super) fn a_expr_from(&mut self, first: Expr) -> Result<Expr> {
        self.infix(Rule::A, Precedence::Lowest, Continuation::Nothing, first)
    }

    /// Operators in front of operands.
    fn prefix(&mut self, rule: Rule) -> Result<Expr> {
        let location = self.here();
        match self.kind() {
            T::Plus => {
                self.pass();
                let operand = self.expr(rule, Precedence::Sign)?;
                Ok(binary(
                    AExprKind::Op,
                    operator("+"),
                    None,
                    operand,
                    location,
                ))
            }
            T::Minus => {
                self.pass();
                let operand = self.expr(rule, Precedence::Sign)?;
                Ok(negated(operand, location))
            }
            T::Op => self.prefix_operator(rule),
            T::Keyword(K::Operator) if self.kind_at(1) == T::LParen => self.prefix_operator(rule),
            T::Keyword(K::Not) | T::NotLa if rule == Rule::A => {
                self.pass();
                let operand = self.expr(rule, Precedence::Not)?;
                Ok(Expr::BoolExpr(NodeBox::new(BoolExpr {
                    op: BoolOp::Not,
                    args: vec![operand],
                    location,
                })))
            }
            T::Keyword(K::Default) if rule == Rule::A => {
                self.pass();
                Ok(Expr::SetToDefault(location))
            }
            T::Keyword(K::Unique) if rule == Rule::A => {
                self.pass();
                self.opt_unique_null_treatment()?;
                self.select_with_parens()?;
                let message = "UNIQUE predicate is not yet implemented";
                Err(self.error(SqlState::FEATURE_NOT_SUPPORTED, message, location))
            }
            _ => self.c_expr(rule),
        }
    }

    /// `qual_Op a_expr`
    fn prefix_operator(&mut self, rule: Rule) -> Result<Expr> {
        let location = self.here();
        let op = self.qual_all_op()?;
        let operand = self.expr(rule, Precedence::Operator)?;
        Ok(binary(AExprKind::Op, op, None, operand, location))
    }

    /// Operators behind the first operand, and what belongs to them.
    fn infix(
        &mut self,
        rule: Rule,
        left_of_it: Precedence,
        behind: Continuation,
        first: Expr,
    ) -> Result<Expr> {
        let mut left = first;
        loop {
            let Some(precedence) = self.precedence(rule) else {
                return Ok(left);
            };
            match precedence.cmp(&left_of_it) {
                Ordering::Less => return Ok(left),
                Ordering::Equal if precedence.is_nonassoc() => return self.unexpected(),
                Ordering::Equal => return Ok(left),
                Ordering::Greater => {}
            }
            match behind {
                Continuation::Label if self.at_label_not_operator() => return Ok(left),
                Continuation::Similar if self.is(K::Similar) && !self.is_at(1, K::To) => {
                    return Ok(left);
                }
                _ => {}
            }
            let merges = match (&left, self.kind()) {
                (Expr::BoolExpr(node), T::Keyword(K::And)) => node.op == BoolOp::And,
                (Expr::BoolExpr(node), T::Keyword(K::Or)) => node.op == BoolOp::Or,
                _ => false,
            };
            left = self.operation(rule, precedence, left)?;
            match &left {
                Expr::BoolExpr(node) if merges => {
                    self.conjuncts = self.conjuncts.max(node.args.len());
                }
                _ => self.one_level_more(),
            }
        }
    }

    /// Is the next token a word that is an operator, but here a label?
    fn at_label_not_operator(&self) -> bool {
        match self.kind() {
            T::Keyword(word) => word.is_bare_label() && follows_label(self.kind_at(1)),
            _ => false,
        }
    }

    /// The level of the operator that the next token is or begins.
    fn precedence(&self, rule: Rule) -> Option<Precedence> {
        Some(match self.kind() {
            T::TypeCast => Precedence::TypeCast,
            T::Plus | T::Minus => Precedence::Add,
            T::Star | T::Slash | T::Percent => Precedence::Multiply,
            T::Caret => Precedence::Power,
            T::Less | T::Greater | T::Equals | T::LessEquals | T::GreaterEquals | T::NotEquals => {
                Precedence::Comparison
            }
            T::Op | T::Keyword(K::Operator) => Precedence::Operator,
            T::Keyword(K::Is) => Precedence::Is,
            _ if rule == Rule::B => return None,
            T::Keyword(K::Or) => Precedence::Or,
            T::Keyword(K::And) => Precedence::And,
            T::Keyword(K::Isnull | K::Notnull) => Precedence::Is,
            T::Keyword(K::Between | K::In | K::Like | K::Ilike | K::Similar) | T::NotLa => {
                Precedence::Like
            }
            T::Keyword(K::At) => Precedence::At,
            T::Keyword(K::Collate) => Precedence::Collate,
            _ => return None,
        })
    }

    /// An operator with its left operand, which the next token begins.
    fn operation(&mut self, rule: Rule, precedence: Precedence, left: Expr) -> Result<Expr> {
        let location = self.here();
        match self.kind() {
            T::TypeCast => {
                self.pass();
                let type_name = self.type_name()?;
                Ok(Expr::TypeCast(NodeBox::new(TypeCast {
                    arg: left,
                    type_name,
                    location,
                })))
            }
            T::Keyword(K::And) => {
                self.pass();
                let right = self.expr(rule, precedence)?;
                Ok(conjunction(BoolOp::And, left, right, location))
            }
            T::Keyword(K::Or) => {
                self.pass();
                let right = self.expr(rule, precedence)?;
                Ok(conjunction(BoolOp::Or, left, right, location))
            }
            T::Keyword(K::Is) => self.is_test(rule, left),
            T::Keyword(K::Isnull | K::Notnull) => {
                let negated = self.pass().kind == T::Keyword(K::Notnull);
                Ok(super::operators::null_test(left, negated, location))
            }
            T::Keyword(K::Collate) => {
                self.pass();
                let collname = self.any_name()?.names;
                Ok(Expr::CollateClause(NodeBox::new(CollateClause {
                    arg: left,
                    collname,
                    location,
                })))
            }
            T::Keyword(K::At) => self.at_time_zone(left),
            T::NotLa | T::Keyword(K::Between | K::In | K::Like | K::Ilike | K::Similar) => {
                self.like_level(left)
            }
            kind => {
                debug_assert!(is_all_op(kind) || kind == T::Keyword(K::Operator));
                let op = self.qual_all_op()?;
                if rule == Rule::A && self.at_sub_type() {
                    return self.with_sub_type(left, op, location);
                }
                let right = self.expr(rule, precedence)?;
                Ok(binary(AExprKind::Op, op, Some(left), right, location))
            }
        }
    }
}

/// An `A_Expr`.
pub(super) fn binary(
    kind: AExprKind,
    op: OperatorName,
    lexpr: Option<Expr>,
    rexpr: Expr,
    location: Location,
) -> Expr {
    Expr::AExpr(NodeBox::new(AExpr {
        kind,
        op,
        lexpr,
        rexpr,
        location,
    }))
}

/// `makeAndExpr`, `makeOrExpr`: one list of all that are beside each other.
fn conjunction(op: BoolOp, left: Expr, right: Expr, location: Location) -> Expr {
    match left {
        Expr::BoolExpr(mut node) if node.op == op => {
            node.args.push(right);
            Expr::BoolExpr(node)
        }
        left => Expr::BoolExpr(NodeBox::new(BoolExpr {
            op,
            args: vec![left, right],
            location,
        })),
    }
}

/// `doNegate`: a number takes its sign.
fn negated(operand: Expr, location: Location) -> Expr {
    match operand {
        Expr::Const(Const {
            value: Value::Integer(number),
            ..
        }) => Expr::Const(Const {
            // The smallest is no integer yet: it is written with more digits than fit.
            value: Value::Integer(number.wrapping_neg()),
            location,
        }),
        Expr::Const(Const {
            value: Value::Float(number),
            ..
        }) => {
            let value = match number.strip_prefix('-') {
                Some(positive) => positive.into(),
                None => format!("-{number}").into(),
            };
            Expr::Const(Const {
                value: Value::Float(value),
                location,
            })
        }
        operand => binary(AExprKind::Op, operator("-"), None, operand, location),
    }
}
