//! Calls with the types of their arguments written out.
//!
//! Owns: functions, variadic calls and ordered-set aggregates as part of an expression whose every type is explicit.

use super::{Typed, Typer};
use logstead_sql_func as func;
use logstead_sql_parse::ast::AnyName;
use logstead_sql_parse::lowered::{self as ast, Expr};
use logstead_sql_types::value::{SqlType, oid};

impl Typer<'_> {
    /// Direct arguments and keys of an aggregate with WITHIN GROUP.
    fn within_group(&self, name: &str, all: Vec<Typed>, direct: usize) -> Vec<Expr> {
        let types: Option<Vec<SqlType>> = all.iter().map(|a| a.1).collect();
        let resolved = types.and_then(|types| func::resolve_aggregate(name, &types).ok());
        if let Some(resolved) = resolved {
            let typed = all.into_iter().enumerate();
            let typed = typed.map(|(at, arg)| match resolved.args.get(at) {
                Some(target) => self.to(arg, *target),
                None => arg.0,
            });
            return typed.collect();
        }
        // Of a row that is not there: each value is of the type of its key.
        let mut values = all;
        let keys = values.split_off(direct.min(values.len()));
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for (value, key) in values.into_iter().zip(keys) {
            let (both, _) = self.unify(vec![value, key]);
            let mut both = both.into_iter();
            left.extend(both.next());
            right.extend(both.next());
        }
        left.extend(right);
        left
    }

    /// A call whose last argument is VARIADIC.
    fn variadic_call(&self, written: &ast::Function) -> Typed {
        let ty = self.names.type_of(&Expr::Function(written.clone()));
        let mut function = written.clone();
        let name = function.name.names.last();
        let name = name.map(ToString::to_string).unwrap_or_default();
        if let ast::FunctionArguments::List(list) = &mut function.args {
            let typed: Vec<Option<Typed>> = list
                .args
                .iter()
                .map(|arg| match arg {
                    ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(e)) => Some(self.expr(e)),
                    marked => {
                        let (_, array) =
                            logstead_sql_parse::variadic(std::slice::from_ref(marked))?;
                        Some(self.expr(array))
                    }
                })
                .collect();
            let types: Option<Vec<SqlType>> = typed.iter().map(|t| t.as_ref()?.1).collect();
            let resolved = types.and_then(|types| func::resolve_variadic(None, &name, &types).ok());
            for (at, (slot, typed)) in list.args.iter_mut().zip(typed).enumerate() {
                let target = resolved.as_ref().and_then(|r| r.args.get(at));
                let Some(typed) = typed else { continue };
                let e = match target {
                    Some(target) if target.oid != oid::ANY => self.to(typed, *target),
                    _ => typed.0,
                };
                match slot {
                    ast::FunctionArg::Unnamed(arg) | ast::FunctionArg::Named { arg, .. } => {
                        *arg = ast::FunctionArgExpr::Expr(e);
                    }
                    ast::FunctionArg::Variadic(array, _) => **array = e,
                }
            }
        }
        (Expr::Function(function), ty)
    }

    pub(super) fn call(&self, written: &ast::Function) -> Typed {
        let mut function = written.clone();
        if let Some(spec) = &mut function.over
            && spec.name.is_none()
        {
            self.window(spec);
        }
        if let Some(filter) = &mut function.filter {
            **filter = self.to(self.expr(filter), SqlType::of(oid::BOOL));
        }
        let ast::FunctionArguments::List(list) = &mut function.args else {
            let ty = self.names.type_of(&Expr::Function(written.clone()));
            return (Expr::Function(function), ty);
        };
        if logstead_sql_parse::variadic(&list.args).is_some() {
            return self.variadic_call(written);
        }
        let mut args = Vec::new();
        for arg in &list.args {
            let ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(e)) = arg else {
                let ty = self.names.type_of(&Expr::Function(written.clone()));
                return (Expr::Function(function), ty);
            };
            args.push(self.expr(e));
        }
        let name = function
            .name
            .names
            .last()
            .map(ToString::to_string)
            .unwrap_or_default();
        if name == "normalize" && args.len() == 2 {
            // The form is a word.
            if let Some(ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(text))) =
                list.args.first_mut()
            {
                *text = *self.text_operand(text);
            }
            return (Expr::Function(function), Some(SqlType::of(oid::TEXT)));
        }
        if !function.within_group.is_empty() {
            let result = self.names.type_of(&Expr::Function(written.clone()));
            let direct = args.len();
            let keys = function.within_group.iter().map(|key| self.expr(&key.node));
            args.extend(keys);
            let mut typed = self.within_group(&name, args, direct).into_iter();
            let plain = |e| ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(e));
            list.args = typed.by_ref().take(direct).map(plain).collect();
            for (key, e) in function.within_group.iter_mut().zip(typed) {
                key.node = e;
            }
            return (Expr::Function(function), result);
        }
        let types: Option<Vec<SqlType>> = args.iter().map(|a| a.1).collect();
        let resolved = types.as_ref().and_then(|types| {
            let function = func::resolve_function(None, &name, types).ok();
            let function = function.map(|r| (r.args, Some(r.result)));
            function.or_else(|| {
                let aggregate = func::resolve_aggregate(&name, types).ok()?;
                Some((aggregate.args, Some(aggregate.result)))
            })
        });
        let kept = || { self.names.kept_function(&name) }.map(|(args, ty)| (args, Some(ty)));
        let resolved = resolved.or_else(kept);
        let (targets, result) = resolved.unwrap_or_default();
        let result = result.or_else(|| self.names.type_of(&Expr::Function(written.clone())));
        list.args = args
            .into_iter()
            .enumerate()
            .map(|(at, arg)| {
                let target = targets.get(at).copied();
                let e = match target {
                    Some(target) => self.to(arg, target),
                    None => arg.0,
                };
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(e))
            })
            .collect();
        (Expr::Function(function), result)
    }
}

/// A call of a function that gives text.
pub(super) fn text_call(name: &str, args: impl IntoIterator<Item = Box<Expr>>) -> Typed {
    let args: Vec<_> = args.into_iter().map(|e| (*e).into()).collect();
    let call = ast::Function {
        args: ast::FunctionArguments::from(args),
        ..ast::Function::of(AnyName::of([name]))
    };
    (Expr::Function(call), Some(SqlType::of(oid::TEXT)))
}
