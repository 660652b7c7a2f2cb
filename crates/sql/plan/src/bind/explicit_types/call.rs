//! Calls with the types of their arguments written out.
//!
//! Owns: functions, variadic calls and ordered-set aggregates as part of an expression whose every type is explicit.

use super::{Typed, Typer};
use logstead_sql_func as func;
use logstead_sql_parse::ast::{Expr, FuncArg, FuncCall, FuncName, NodeBox};
use logstead_sql_types::FunctionId;
use logstead_sql_types::value::{SqlType, oid};

impl Typer<'_> {
    /// Direct arguments and keys of an aggregate with WITHIN GROUP.
    fn within_group(&self, name: &str, all: Vec<Typed>, direct: usize) -> Vec<Expr> {
        let types: Option<Vec<SqlType>> = all.iter().map(|a| a.1).collect();
        let resolved =
            types.and_then(|types| func::resolve_aggregate(name, &types, self.lookup.types()).ok());
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
    fn variadic_call(&self, mut call: FuncCall, written: &Expr) -> Typed {
        let name = call.funcname.called();
        let name = name.map(ToString::to_string).unwrap_or_default();
        let typed: Vec<Typed> = call.args.iter().map(|arg| self.expr(&arg.value)).collect();
        let types: Option<Vec<SqlType>> = typed.iter().map(|t| t.1).collect();
        let resolved = types.and_then(|types| {
            func::resolve_variadic(None, &name, &types, self.lookup.types()).ok()
        });
        for (at, (arg, typed)) in call.args.iter_mut().zip(typed).enumerate() {
            let target = resolved.as_ref().and_then(|r| r.args.get(at));
            arg.value = match target {
                Some(target) if target.oid != oid::ANY => self.to(typed, *target),
                _ => typed.0,
            };
        }
        (
            Expr::FuncCall(NodeBox::new(call)),
            self.names.type_of(written),
        )
    }

    pub(super) fn call(&self, node: &FuncCall, written: &Expr) -> Typed {
        if let Some(typed) = self.sql_syntax(node, written) {
            return typed;
        }
        let mut call = node.clone();
        if let Some(spec) = &mut call.over
            && spec.name.is_none()
        {
            self.window(spec);
        }
        if let Some(filter) = &mut call.agg_filter {
            *filter = self.to(self.expr(filter), SqlType::of(oid::BOOL));
        }
        if call.func_variadic {
            return self.variadic_call(call, written);
        }
        let is_star = |e: &Expr| matches!(e, Expr::ColumnRef(column) if column.star);
        if call
            .values()
            .is_none_or(|values| values.into_iter().any(is_star))
        {
            return (
                Expr::FuncCall(NodeBox::new(call)),
                self.names.type_of(written),
            );
        }
        let mut args: Vec<Typed> = call.args.iter().map(|arg| self.expr(&arg.value)).collect();
        let name = call.funcname.called();
        let name = name.map(ToString::to_string).unwrap_or_default();
        if call.agg_within_group {
            let direct = args.len();
            args.extend(call.agg_order.iter().map(|key| self.expr(&key.node)));
            let mut typed = self.within_group(&name, args, direct).into_iter();
            call.args = typed.by_ref().take(direct).map(FuncArg::from).collect();
            for (key, e) in call.agg_order.iter_mut().zip(typed) {
                key.node = e;
            }
            return (
                Expr::FuncCall(NodeBox::new(call)),
                self.names.type_of(written),
            );
        }
        let types: Option<Vec<SqlType>> = args.iter().map(|a| a.1).collect();
        let resolved = match &call.funcname {
            FuncName::Stored { oid, .. } => {
                let kept = self.names.kept_function(FunctionId::new(*oid));
                kept.map(|(args, ty)| (args, Some(ty)))
            }
            FuncName::Named(_) => types.as_ref().and_then(|types| {
                let function = func::resolve_function(None, &name, types, self.lookup.types()).ok();
                let function = function.map(|r| (r.args, Some(r.result)));
                function.or_else(|| {
                    let aggregate =
                        func::resolve_aggregate(&name, types, self.lookup.types()).ok()?;
                    Some((aggregate.args, Some(aggregate.result)))
                })
            }),
        };
        let (targets, result) = resolved.unwrap_or_default();
        let result = result.or_else(|| self.names.type_of(written));
        let args = args.into_iter().enumerate();
        let args = args.map(|(at, arg)| match targets.get(at) {
            Some(target) => self.to(arg, *target),
            None => arg.0,
        });
        call.args = args.map(FuncArg::from).collect();
        (Expr::FuncCall(NodeBox::new(call)), result)
    }
}

/// A call of a function that gives text.
pub(super) fn text_call(name: &str, args: impl IntoIterator<Item = Box<Expr>>) -> Typed {
    let call = FuncCall::of(FuncName::of([name]), args.into_iter().map(|e| *e));
    (
        Expr::FuncCall(NodeBox::new(call)),
        Some(SqlType::of(oid::TEXT)),
    )
}
