//! `c_expr`: operands.

use super::Parser;
use super::expr::Rule;
use super::names::is_type_function_name;
use super::parentheses::ParenContents;
use crate::ast::{
    AArrayExpr, AIndirection, CaseExpr, CaseWhen, ColumnRef, Const, Expr, GroupingFunc,
    Indirection, Location, Name, Names, NodeBox, ParamRef, RowExpr, SubLink, SubLinkKind, TypeCast,
    TypeName, Value,
};
use crate::lexer::{Category, Keyword as K, TokenKind as T};
use logstead_sql_types::error::Result;

impl Parser<'_> {
    /// `c_expr`, and in an `a_expr` also `row OVERLAPS row`.
    pub(super) fn c_expr(&mut self, rule: Rule) -> Result<Expr> {
        let location = self.here();
        match self.kind() {
            T::IConst => {
                let token = self.pass();
                Ok(constant(Value::Integer(self.integer_of(token)), location))
            }
            T::FConst => {
                let token = self.pass();
                Ok(constant(Value::Float(self.name_of(token)), location))
            }
            T::SConst => Ok(constant(Value::String(self.sconst()?), location)),
            T::BConst => {
                let token = self.pass();
                Ok(constant(Value::Bits(self.name_of(token)), location))
            }
            T::XConst => {
                let token = self.pass();
                Ok(constant(Value::HexBits(self.name_of(token)), location))
            }
            T::Param => {
                let token = self.pass();
                let written = self.tokens.written(token).get(1..).unwrap_or_default();
                let param = ParamRef {
                    number: written.parse().unwrap_or(u32::MAX),
                    location,
                };
                self.opt_indirection(Expr::ParamRef(param))
            }
            T::LParen => match self.in_parentheses(true)? {
                ParenContents::Select(select) => self.select_operand(*select, location),
                ParenContents::Exprs(exprs) => self.parenthesized(exprs, location, rule == Rule::A),
            },
            T::Ident | T::QuotedIdent => self.column_or_function(),
            T::Keyword(word) => self.keyword_expr(word, rule),
            _ => self.unexpected(),
        }
    }

    /// `'(' a_expr ')' opt_indirection`, `implicit_row`, and `row OVERLAPS row` where it may be.
    pub(super) fn parenthesized(
        &mut self,
        mut exprs: Vec<Expr>,
        location: Location,
        may_overlap: bool,
    ) -> Result<Expr> {
        if exprs.len() > 1 {
            if may_overlap && self.is(K::Overlaps) {
                return self.overlaps(exprs, location);
            }
            return Ok(Expr::RowExpr(NodeBox::new(RowExpr {
                args: exprs,
                is_explicit: false,
                location,
            })));
        }
        match exprs.pop() {
            Some(expr) => self.opt_indirection(expr),
            None => self.unexpected(),
        }
    }

    /// Operands that begin with a keyword.
    fn keyword_expr(&mut self, word: K, rule: Rule) -> Result<Expr> {
        let location = self.here();
        let next = self.kind_at(1);
        match word {
            K::True | K::False => {
                self.pass();
                return Ok(constant(Value::Boolean(word == K::True), location));
            }
            K::Null => {
                self.pass();
                return Ok(constant(Value::Null, location));
            }
            K::Case => return self.nested(Self::case_expr),
            K::Array => return self.array(),
            K::Exists if next == T::LParen => {
                self.pass();
                let subselect = self.select_with_parens()?;
                return Ok(Expr::SubLink(NodeBox::new(SubLink {
                    kind: SubLinkKind::Exists,
                    subselect,
                    location,
                })));
            }
            K::Row if next == T::LParen => return self.explicit_row(rule),
            K::Grouping if next == T::LParen => {
                self.pass();
                let args = self.parens(Self::expr_list)?;
                return Ok(Expr::GroupingFunc(NodeBox::new(GroupingFunc {
                    args,
                    location,
                })));
            }
            K::Interval if matches!(next, T::SConst | T::LParen) => return self.interval_const(),
            _ => {}
        }
        if self.at_const_type() {
            let type_name = self.const_type_name()?;
            return self.typed_literal(type_name);
        }
        if self.at_special_function() {
            return self.func_expr_common_subexpr();
        }
        match word.category() {
            Category::Unreserved | Category::ColName => self.column_or_function(),
            Category::TypeFuncName => {
                let name = self.type_function_name()?;
                match self.kind() {
                    T::LParen => self.function_or_typed_literal(name_only(name), location),
                    T::SConst => self.generic_literal(name_only(name), location),
                    _ => self.unexpected(),
                }
            }
            Category::Reserved => self.unexpected(),
        }
    }

    /// `columnref`, a function by its name, or a literal behind the name of its type.
    fn column_or_function(&mut self) -> Result<Expr> {
        let location = self.here();
        let is_function = is_type_function_name(self.kind());
        let name = self.col_id()?;
        match self.kind() {
            T::LParen if is_function => self.function_or_typed_literal(name_only(name), location),
            T::SConst if is_function => self.generic_literal(name_only(name), location),
            T::Dot | T::LBracket => self.qualified_column_or_function(name, location),
            _ => Ok(Expr::ColumnRef(Box::new(ColumnRef {
                fields: name_only(name),
                star: false,
                location,
            }))),
        }
    }

    fn qualified_column_or_function(&mut self, name: Name, location: Location) -> Result<Expr> {
        let indirection = self.indirection()?;
        if matches!(self.kind(), T::LParen | T::SConst) {
            let mut names = name_only(name);
            for part in indirection {
                match part {
                    Indirection::Field(name) => names.push(name),
                    // `check_func_name`
                    _ => return self.unexpected(),
                }
            }
            return match self.kind() {
                T::LParen => self.function_or_typed_literal(names, location),
                _ => self.generic_literal(names, location),
            };
        }
        self.column_ref(name, indirection, location)
    }

    /// `makeColumnRef`
    fn column_ref(
        &mut self,
        name: Name,
        indirection: Vec<Indirection>,
        location: Location,
    ) -> Result<Expr> {
        self.check_indirection(&indirection)?;
        let mut column = ColumnRef {
            fields: name_only(name),
            star: false,
            location,
        };
        let mut rest = indirection.into_iter().peekable();
        let is_name =
            |part: &Indirection| matches!(part, Indirection::Field(_) | Indirection::Star);
        while let Some(part) = rest.next_if(is_name) {
            match part {
                Indirection::Field(field) => column.fields.push(field),
                _ => column.star = true,
            }
        }
        let column = Expr::ColumnRef(Box::new(column));
        let indirection: Vec<Indirection> = rest.collect();
        if indirection.is_empty() {
            return Ok(column);
        }
        self.one_level_more();
        Ok(Expr::Indirection(NodeBox::new(AIndirection {
            arg: column,
            indirection,
            location: Location::UNKNOWN,
        })))
    }

    /// `indirection`, or nothing.
    pub(super) fn indirection(&mut self) -> Result<Vec<Indirection>> {
        let mut parts = Vec::new();
        loop {
            if self.take_token(T::Dot) {
                parts.push(match self.take_token(T::Star) {
                    true => Indirection::Star,
                    false => Indirection::Field(self.col_label()?),
                });
            } else if self.take_token(T::LBracket) {
                parts.push(self.subscript()?);
                self.expect_token(T::RBracket)?;
            } else {
                return Ok(parts);
            }
        }
    }

    /// What stands in brackets behind a value.
    fn subscript(&mut self) -> Result<Indirection> {
        let lower = match self.at(T::Colon) {
            true => None,
            false => Some(self.a_expr()?),
        };
        match lower {
            Some(index) if !self.at(T::Colon) => Ok(Indirection::Index(index)),
            lower => {
                self.expect_token(T::Colon)?;
                let upper = match self.at(T::RBracket) {
                    true => None,
                    false => Some(self.a_expr()?),
                };
                Ok(Indirection::Slice(lower, upper))
            }
        }
    }

    /// `check_indirection`: `*` stands at the end only.
    pub(super) fn check_indirection(&self, indirection: &[Indirection]) -> Result<()> {
        let before_last = indirection.iter().rev().skip(1);
        match before_last
            .into_iter()
            .any(|part| *part == Indirection::Star)
        {
            true => self.wrong_here("improper use of \"*\""),
            false => Ok(()),
        }
    }

    /// `opt_indirection` behind an operand.
    pub(super) fn opt_indirection(&mut self, arg: Expr) -> Result<Expr> {
        if !matches!(self.kind(), T::Dot | T::LBracket) {
            return Ok(arg);
        }
        let location = self.here();
        let indirection = self.indirection()?;
        self.check_indirection(&indirection)?;
        self.one_level_more();
        Ok(Expr::Indirection(NodeBox::new(AIndirection {
            arg,
            indirection,
            location,
        })))
    }

    /// `case_expr`
    fn case_expr(&mut self) -> Result<Expr> {
        let location = self.here();
        self.expect(K::Case)?;
        let arg = match self.is(K::When) {
            true => None,
            false => Some(self.a_expr()?),
        };
        let mut args = Vec::new();
        while args.is_empty() || self.is(K::When) {
            let location = self.here();
            self.expect(K::When)?;
            let expr = self.a_expr()?;
            self.expect(K::Then)?;
            let result = self.a_expr()?;
            args.push(CaseWhen {
                expr,
                result,
                location,
            });
        }
        let defresult = match self.take(K::Else) {
            true => Some(self.a_expr()?),
            false => None,
        };
        let end = self.here();
        self.expect(K::End)?;
        Ok(Expr::CaseExpr(NodeBox::new(CaseExpr {
            arg,
            args,
            defresult,
            location,
            end,
        })))
    }

    /// `ARRAY select_with_parens`, `ARRAY array_expr`
    fn array(&mut self) -> Result<Expr> {
        let location = self.here();
        self.pass();
        if self.at(T::LParen) {
            let subselect = self.select_with_parens()?;
            return Ok(Expr::SubLink(NodeBox::new(SubLink {
                kind: SubLinkKind::Array,
                subselect,
                location,
            })));
        }
        let mut array = self.array_expr()?;
        if let Expr::ArrayExpr(node) = &mut array {
            node.location = location;
        }
        Ok(array)
    }

    /// `array_expr`
    fn array_expr(&mut self) -> Result<Expr> {
        self.nested(|parser| {
            let location = parser.here();
            parser.expect_token(T::LBracket)?;
            let elements = match parser.kind() {
                T::RBracket => Vec::new(),
                T::LBracket => parser.list(Self::array_expr)?,
                _ => parser.expr_list()?,
            };
            parser.expect_token(T::RBracket)?;
            Ok(Expr::ArrayExpr(NodeBox::new(AArrayExpr {
                elements,
                location,
            })))
        })
    }

    /// `explicit_row`, and `row OVERLAPS row`.
    fn explicit_row(&mut self, rule: Rule) -> Result<Expr> {
        let location = self.here();
        self.pass();
        let args = self.parens(|parser| match parser.at(T::RParen) {
            true => Ok(Vec::new()),
            false => parser.expr_list(),
        })?;
        if rule == Rule::A && self.is(K::Overlaps) {
            return self.overlaps(args, location);
        }
        Ok(Expr::RowExpr(NodeBox::new(RowExpr {
            args,
            is_explicit: true,
            location,
        })))
    }

    /// `AexprConst`: what may stand in the place of a constant alone.
    pub(super) fn a_expr_const(&mut self) -> Result<Expr> {
        let is_name = matches!(self.kind(), T::Ident | T::QuotedIdent)
            || matches!(self.kind(), T::Keyword(_));
        let is_constant = matches!(
            self.kind(),
            T::IConst
                | T::FConst
                | T::SConst
                | T::BConst
                | T::XConst
                | T::Keyword(K::True | K::False | K::Null)
        );
        if is_constant {
            return self.c_expr(Rule::B);
        }
        if !is_name {
            return self.unexpected();
        }
        match self.kind() {
            T::Keyword(K::Interval) => return self.interval_const(),
            _ if self.at_const_type() => {
                let type_name = self.const_type_name()?;
                return self.typed_literal(type_name);
            }
            _ => {}
        }
        let name = self.func_name()?;
        match self.kind() {
            T::SConst => self.generic_literal(name.names, name.location),
            T::LParen => match self.function_or_typed_literal(name.names, name.location)? {
                literal @ Expr::TypeCast(_) => Ok(literal),
                _ => self.unexpected(),
            },
            _ => self.unexpected(),
        }
    }

    /// `func_name Sconst`
    fn generic_literal(&mut self, names: Names, location: Location) -> Result<Expr> {
        let type_name = self.type_named(names, location);
        self.typed_literal(type_name)
    }

    /// A literal behind its type (`makeStringConstCast`).
    pub(super) fn typed_literal(&mut self, type_name: TypeName) -> Result<Expr> {
        let location = self.here();
        let value = Value::String(self.sconst()?);
        Ok(Expr::TypeCast(NodeBox::new(TypeCast {
            arg: constant(value, location),
            type_name,
            location: Location::UNKNOWN,
        })))
    }

    /// `ConstInterval Sconst opt_interval`, `ConstInterval '(' Iconst ')' Sconst`
    fn interval_const(&mut self) -> Result<Expr> {
        let location = self.here();
        self.pass();
        let mut type_name = self.system_type("interval", location);
        if self.at(T::LParen) {
            type_name.typmods = self.interval_precision()?;
            return self.typed_literal(type_name);
        }
        let mut literal = self.typed_literal(type_name)?;
        let typmods = self.opt_interval()?;
        if let Expr::TypeCast(cast) = &mut literal {
            cast.type_name.typmods = typmods;
        }
        Ok(literal)
    }
}

/// A constant.
pub(super) fn constant(value: Value, location: Location) -> Expr {
    Expr::Const(Const { value, location })
}

/// A name that is not qualified.
pub(super) fn name_only(name: Name) -> Names {
    smallvec::smallvec![name]
}
