//! Calls of functions by their names.

use super::Parser;
use super::names::is_type_function_name;
use super::primary::name_only;
use crate::ast::{Expr, FuncArg, FuncCall, FuncFormat, Location, Names, NodeBox};
use crate::lexer::{Keyword as K, TokenKind as T};
use logstead_sql_types::error::Result;

/// A call, and what its parentheses held that a type's modifiers cannot.
struct Application {
    call: FuncCall,
    /// It may be the modifiers of a type in front of a literal.
    may_be_type: bool,
    /// Where ORDER BY is.
    order_at: Option<Location>,
}

impl Parser<'_> {
    /// `func_expr`, or `func_name '(' func_arg_list opt_sort_clause ')' Sconst`, behind the name.
    pub(super) fn function_or_typed_literal(
        &mut self,
        names: Names,
        location: Location,
    ) -> Result<Expr> {
        let application = self.func_application_of(names, location)?;
        if application.may_be_type && self.at(T::SConst) {
            return self.literal_of_type_with_modifiers(application);
        }
        self.func_expr_behind(application.call)
    }

    fn literal_of_type_with_modifiers(&mut self, application: Application) -> Result<Expr> {
        let Application { call, order_at, .. } = application;
        let names = match call.funcname {
            crate::ast::FuncName::Named(names) => names,
            crate::ast::FuncName::Stored { called, .. } => name_only(called),
        };
        let mut type_name = self.type_named(names, call.location);
        // The literal belongs to the rule: it is read before the rule's action refuses.
        let literal_at = self.at;
        for arg in call.args {
            if let Some((_, location)) = arg.name {
                let message = "type modifier cannot have parameter name";
                return Err(self.syntax_error(message, location));
            }
            type_name.typmods.push(arg.value);
        }
        debug_assert_eq!(literal_at, self.at);
        if let Some(location) = order_at {
            let message = "type modifier cannot have ORDER BY";
            return Err(self.syntax_error(message, location));
        }
        self.typed_literal(type_name)
    }

    /// `func_application`
    pub(super) fn func_application(&mut self) -> Result<FuncCall> {
        let name = self.func_name()?;
        if !self.at(T::LParen) {
            return self.unexpected();
        }
        Ok(self.func_application_of(name.names, name.location)?.call)
    }

    fn func_application_of(&mut self, names: Names, location: Location) -> Result<Application> {
        self.nested(|parser| parser.func_application_nested(names, location))
    }

    fn func_application_nested(&mut self, names: Names, location: Location) -> Result<Application> {
        let mut call = FuncCall {
            funcname: self.func_name_of(names),
            args: Vec::new(),
            agg_order: Vec::new(),
            agg_filter: None,
            over: None,
            agg_within_group: false,
            agg_star: false,
            agg_distinct: false,
            func_variadic: false,
            funcformat: FuncFormat::ExplicitCall,
            location,
        };
        self.expect_token(T::LParen)?;
        if self.take_token(T::RParen) {
            return Ok(Application {
                call,
                may_be_type: false,
                order_at: None,
            });
        }
        if self.take_token(T::Star) {
            self.expect_token(T::RParen)?;
            call.agg_star = true;
            return Ok(Application {
                call,
                may_be_type: false,
                order_at: None,
            });
        }
        call.agg_distinct = self.take(K::Distinct);
        let is_all = !call.agg_distinct && self.take(K::All);
        let is_plain = !call.agg_distinct && !is_all;
        loop {
            if is_plain && self.take(K::Variadic) {
                call.func_variadic = true;
                call.args.push(self.func_arg_expr()?);
                break;
            }
            call.args.push(self.func_arg_expr()?);
            if !self.take_token(T::Comma) {
                break;
            }
        }
        let order_at = self.is(K::Order).then(|| self.here());
        call.agg_order = self.opt_sort_clause()?;
        self.expect_token(T::RParen)?;
        let may_be_type = is_plain && !call.func_variadic;
        Ok(Application {
            call,
            may_be_type,
            order_at,
        })
    }

    /// `func_arg_expr`
    pub(super) fn func_arg_expr(&mut self) -> Result<FuncArg> {
        let is_named = is_type_function_name(self.kind())
            && matches!(self.kind_at(1), T::ColonEquals | T::EqualsGreater);
        let name = match is_named {
            true => {
                let location = self.here();
                let name = self.type_function_name()?;
                self.pass();
                Some((name, location))
            }
            false => None,
        };
        let value = self.a_expr()?;
        Ok(FuncArg { name, value })
    }

    /// `within_group_clause filter_clause over_clause`
    fn func_expr_behind(&mut self, mut call: FuncCall) -> Result<Expr> {
        if self.is(K::Within) {
            let location = self.here();
            self.pass();
            self.expect(K::Group)?;
            let order = self.parens(Self::sort_clause)?;
            let refused = if !call.agg_order.is_empty() {
                Some("cannot use multiple ORDER BY clauses with WITHIN GROUP")
            } else if call.agg_distinct {
                Some("cannot use DISTINCT with WITHIN GROUP")
            } else if call.func_variadic {
                Some("cannot use VARIADIC with WITHIN GROUP")
            } else {
                None
            };
            if let Some(message) = refused {
                return Err(self.syntax_error(message, location));
            }
            call.agg_order = order;
            call.agg_within_group = true;
        }
        if self.take(K::Filter) {
            call.agg_filter = Some(self.parens(|parser| {
                parser.expect(K::Where)?;
                parser.a_expr()
            })?);
        }
        if self.take(K::Over) {
            call.over = Some(Box::new(self.over_window()?));
        }
        Ok(Expr::FuncCall(NodeBox::new(call)))
    }

    /// `func_expr_windowless`
    pub(super) fn func_expr_windowless(&mut self) -> Result<Expr> {
        match self.at_special_function() {
            true => self.func_expr_common_subexpr(),
            false => Ok(Expr::FuncCall(NodeBox::new(self.func_application()?))),
        }
    }

    /// Does a `func_expr_windowless` begin here, where a name may stand as well?
    pub(super) fn at_func_expr_windowless(&self) -> bool {
        if self.at_special_function() {
            return true;
        }
        let kind = self.kind();
        if !super::names::is_col_id(kind) {
            return is_type_function_name(kind);
        }
        let mut ahead = 1;
        while self.kind_at(ahead) == T::Dot && super::names::is_col_label(self.kind_at(ahead + 1)) {
            ahead += 2;
        }
        self.kind_at(ahead) == T::LParen && (ahead > 1 || is_type_function_name(kind))
    }
}
