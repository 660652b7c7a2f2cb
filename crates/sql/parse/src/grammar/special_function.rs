//! `func_expr_common_subexpr`: functions whose arguments have words of their own.

use super::Parser;
use super::expr::{Continuation, operator};
use super::operators::{system_call, system_expr};
use super::primary::constant;
use crate::ast::{
    AExprKind, CoalesceExpr, Expr, FuncArg, FuncFormat, MinMaxExpr, NodeBox, SqlValueFunction,
    SqlValueFunctionOp as Op, TypeCast, TypeName, TypeRef, Value,
};
use crate::lexer::{Keyword as K, TokenKind as T};
use logstead_sql_types::error::Result;

impl Parser<'_> {
    /// Does a `func_expr_common_subexpr` begin here?
    pub(super) fn at_special_function(&self) -> bool {
        let T::Keyword(word) = self.kind() else {
            return false;
        };
        match word {
            K::CurrentDate
            | K::CurrentTime
            | K::CurrentTimestamp
            | K::Localtime
            | K::Localtimestamp
            | K::CurrentRole
            | K::CurrentUser
            | K::SessionUser
            | K::User
            | K::CurrentCatalog
            | K::Cast => true,
            // A function of that name may be called, or precede a literal.
            K::CurrentSchema => !matches!(self.kind_at(1), T::LParen | T::SConst),
            K::Collation => self.is_at(1, K::For),
            K::Extract
            | K::Normalize
            | K::Overlay
            | K::Position
            | K::Substring
            | K::Treat
            | K::Trim
            | K::Nullif
            | K::Coalesce
            | K::Greatest
            | K::Least
            | K::Xmlconcat
            | K::Xmlelement
            | K::Xmlexists
            | K::Xmlforest
            | K::Xmlparse
            | K::Xmlpi
            | K::Xmlroot
            | K::Xmlserialize => self.kind_at(1) == T::LParen,
            _ => false,
        }
    }

    /// `func_expr_common_subexpr`, whose first token has been looked at.
    pub(super) fn func_expr_common_subexpr(&mut self) -> Result<Expr> {
        self.nested(Self::special_function)
    }

    fn special_function(&mut self) -> Result<Expr> {
        let location = self.here();
        let T::Keyword(word) = self.pass().kind else {
            return self.unexpected();
        };
        let plain = |op| {
            Ok(Expr::SqlValueFunction(SqlValueFunction {
                op,
                typmod: None,
                location,
            }))
        };
        match word {
            K::CurrentDate => plain(Op::CurrentDate),
            K::CurrentRole => plain(Op::CurrentRole),
            K::CurrentUser => plain(Op::CurrentUser),
            K::SessionUser => plain(Op::SessionUser),
            K::User => plain(Op::User),
            K::CurrentCatalog => plain(Op::CurrentCatalog),
            K::CurrentSchema => plain(Op::CurrentSchema),
            K::CurrentTime | K::CurrentTimestamp | K::Localtime | K::Localtimestamp => {
                let typmod = match self.at(T::LParen) {
                    true => Some(self.parens(Self::iconst)?),
                    false => None,
                };
                let op = match word {
                    K::CurrentTime => Op::CurrentTime,
                    K::CurrentTimestamp => Op::CurrentTimestamp,
                    K::Localtime => Op::LocalTime,
                    _ => Op::LocalTimestamp,
                };
                Ok(Expr::SqlValueFunction(SqlValueFunction {
                    op,
                    typmod,
                    location,
                }))
            }
            K::Collation => {
                self.expect(K::For)?;
                let arg = self.parens(Self::a_expr)?;
                Ok(system_expr("pg_collation_for", vec![arg], location))
            }
            K::Cast => {
                let (arg, type_name) = self.parens(Self::cast_of)?;
                Ok(Expr::TypeCast(NodeBox::new(TypeCast {
                    arg,
                    type_name,
                    location,
                })))
            }
            K::Treat => {
                let (arg, type_name) = self.parens(Self::cast_of)?;
                let mut call = system_call(&last_name(&type_name), vec![arg], location);
                call.funcformat = FuncFormat::ExplicitCall;
                Ok(Expr::FuncCall(NodeBox::new(call)))
            }
            K::Nullif => {
                let (left, right) = self.parens(|parser| {
                    let left = parser.a_expr()?;
                    parser.expect_token(T::Comma)?;
                    Ok((left, parser.a_expr()?))
                })?;
                Ok(super::expr::binary(
                    AExprKind::NullIf,
                    operator("="),
                    Some(left),
                    right,
                    location,
                ))
            }
            K::Coalesce => {
                let args = self.parens(Self::expr_list)?;
                Ok(Expr::CoalesceExpr(NodeBox::new(CoalesceExpr {
                    args,
                    location,
                })))
            }
            K::Greatest | K::Least => {
                let args = self.parens(Self::expr_list)?;
                let is_least = word == K::Least;
                Ok(Expr::MinMaxExpr(NodeBox::new(MinMaxExpr {
                    is_least,
                    args,
                    location,
                })))
            }
            K::Extract => {
                let args = self.parens(Self::extract_list)?;
                Ok(system_expr("extract", args, location))
            }
            K::Normalize => {
                let args = self.parens(|parser| {
                    let mut args = vec![parser.a_expr()?];
                    if parser.take_token(T::Comma) {
                        match parser.unicode_normal_form() {
                            Some(form) => args.push(form),
                            None => return parser.unexpected(),
                        }
                    }
                    Ok(args)
                })?;
                Ok(system_expr("normalize", args, location))
            }
            K::Position => {
                let args = self.parens(|parser| {
                    let part = parser.b_expr()?;
                    parser.expect(K::In)?;
                    // The function has the whole first.
                    Ok(vec![parser.b_expr()?, part])
                })?;
                Ok(system_expr("position", args, location))
            }
            K::Trim => self.trim(location),
            K::Overlay => self.overlay(location),
            K::Substring => self.substring(location),
            _ => self.xml_function(word, location),
        }
    }

    /// `a_expr AS Typename`
    fn cast_of(&mut self) -> Result<(Expr, TypeName)> {
        let arg = self.a_expr()?;
        self.expect(K::As)?;
        Ok((arg, self.type_name()?))
    }

    /// `extract_list`
    fn extract_list(&mut self) -> Result<Vec<Expr>> {
        let location = self.here();
        let field = match self.kind() {
            T::Ident | T::QuotedIdent | T::SConst => {
                let token = self.pass();
                self.name_of(token)
            }
            T::Keyword(word @ (K::Year | K::Month | K::Day | K::Hour | K::Minute | K::Second)) => {
                self.pass();
                word.word().into()
            }
            _ => return self.unexpected(),
        };
        self.expect(K::From)?;
        let from = self.a_expr()?;
        Ok(vec![constant(Value::String(field), location), from])
    }

    /// TRIM
    fn trim(&mut self, location: crate::ast::Location) -> Result<Expr> {
        self.parens(|parser| {
            let name = match parser.kind() {
                T::Keyword(K::Leading) => "ltrim",
                T::Keyword(K::Trailing) => "rtrim",
                _ => "btrim",
            };
            if parser.is_any(&[K::Both, K::Leading, K::Trailing]) {
                parser.pass();
            }
            // `trim_list`
            let args = if parser.take(K::From) {
                parser.expr_list()?
            } else {
                let first = parser.a_expr()?;
                if parser.take(K::From) {
                    let mut args = parser.expr_list()?;
                    args.push(first);
                    args
                } else {
                    let mut args = vec![first];
                    while parser.take_token(T::Comma) {
                        args.push(parser.a_expr()?);
                    }
                    args
                }
            };
            Ok(system_expr(name, args, location))
        })
    }

    /// The rest of a `func_arg_list` whose first argument has been read.
    fn func_arg_list_from(&mut self, first: FuncArg) -> Result<Vec<FuncArg>> {
        let mut args = vec![first];
        while self.take_token(T::Comma) {
            args.push(self.func_arg_expr()?);
        }
        Ok(args)
    }

    /// A call of these functions that looks like any other.
    fn plain_call(
        &mut self,
        name: &str,
        args: Vec<FuncArg>,
        location: crate::ast::Location,
    ) -> Expr {
        let mut call = system_call(name, Vec::new(), location);
        // By its own name, so that users' functions of that name are found.
        call.funcname = crate::ast::FuncName::Named(super::primary::name_only(name.into()));
        call.funcformat = FuncFormat::ExplicitCall;
        call.args = args;
        Expr::FuncCall(NodeBox::new(call))
    }

    /// OVERLAY
    fn overlay(&mut self, location: crate::ast::Location) -> Result<Expr> {
        self.parens(|parser| {
            if parser.at(T::RParen) {
                return Ok(parser.plain_call("overlay", Vec::new(), location));
            }
            let first = parser.func_arg_expr()?;
            if first.name.is_some() || !parser.is(K::Placing) {
                let args = parser.func_arg_list_from(first)?;
                return Ok(parser.plain_call("overlay", args, location));
            }
            parser.pass();
            let placing = parser.a_expr()?;
            parser.expect(K::From)?;
            let from = parser.a_expr()?;
            let mut args = vec![first.value, placing, from];
            if parser.take(K::For) {
                args.push(parser.a_expr()?);
            }
            Ok(system_expr("overlay", args, location))
        })
    }

    /// SUBSTRING
    fn substring(&mut self, location: crate::ast::Location) -> Result<Expr> {
        self.parens(|parser| {
            if parser.at(T::RParen) {
                return Ok(parser.plain_call("substring", Vec::new(), location));
            }
            let is_named = matches!(parser.kind_at(1), T::ColonEquals | T::EqualsGreater);
            let first = match is_named {
                true => parser.func_arg_expr()?,
                false => FuncArg {
                    name: None,
                    value: parser.a_expr_before(Continuation::Similar)?,
                },
            };
            if first.name.is_some() || !parser.is_any(&[K::From, K::For, K::Similar]) {
                let args = parser.func_arg_list_from(first)?;
                return Ok(parser.plain_call("substring", args, location));
            }
            let text = first.value;
            if parser.take(K::Similar) {
                let pattern = parser.a_expr()?;
                parser.expect(K::Escape)?;
                let escape = parser.a_expr()?;
                return Ok(system_expr(
                    "substring",
                    vec![text, pattern, escape],
                    location,
                ));
            }
            if parser.take(K::From) {
                let mut args = vec![text, parser.a_expr()?];
                if parser.take(K::For) {
                    args.push(parser.a_expr()?);
                }
                return Ok(system_expr("substring", args, location));
            }
            parser.expect(K::For)?;
            let length = parser.a_expr()?;
            let from = match parser.take(K::From) {
                true => parser.a_expr()?,
                false => constant(Value::Integer(1), crate::ast::Location::UNKNOWN),
            };
            // A length alone is an integer, so that the function of patterns is not taken.
            let is_alone = matches!(&from, Expr::Const(node) if node.location.is_unknown());
            let length = match is_alone {
                true => {
                    let type_name = parser.system_type("int4", crate::ast::Location::UNKNOWN);
                    let location = crate::ast::Location::UNKNOWN;
                    Expr::TypeCast(NodeBox::new(TypeCast {
                        arg: length,
                        type_name,
                        location,
                    }))
                }
                false => length,
            };
            Ok(system_expr("substring", vec![text, from, length], location))
        })
    }
}

/// The function that TREAT calls has the name of the type.
fn last_name(type_name: &TypeName) -> String {
    match &type_name.name {
        TypeRef::Named(names) => names
            .last()
            .map(|name| name.to_string())
            .unwrap_or_default(),
        TypeRef::Stored(oid) => oid.to_string(),
    }
}
