//! Calls of functions, their windows and their keys of sorting.

use super::Lower;
use super::name::cut;
use crate::ast::{
    AnyName, Expr, FrameBound, FuncArg, FuncCall, FuncFormat, FuncName, Location, SortBy, WindowDef,
};
use crate::lowered::{self as library, Expr as L, FunctionArg, FunctionArgExpr, FunctionArguments};
use logstead_sql_types::error::Result;

/// What the name of a function begins with that is named by its OID.
const STORED_FUNCTION: char = '\u{3}';

impl FuncCall {
    /// The function that SQL's own words call.
    pub(super) fn words(&self) -> Option<&str> {
        match (&self.funcname, self.funcformat) {
            (FuncName::Named(names), FuncFormat::SqlSyntax) => names.last().map(|name| &**name),
            _ => None,
        }
    }

    /// Is it nothing but a name and values?
    pub(super) fn is_plain(&self) -> bool {
        self.agg_order.is_empty()
            && self.agg_filter.is_none()
            && self.over.is_none()
            && !self.agg_star
            && !self.agg_distinct
            && !self.func_variadic
            && self.args.iter().all(|arg| arg.name.is_none())
    }
}

impl Lower<'_> {
    /// A call.
    pub(super) fn func_call(&self, node: &FuncCall) -> Result<L> {
        if node.words().is_some() {
            return self.call_by_words(node);
        }
        if let Some(special) = self.special_by_name(node)? {
            return Ok(special);
        }
        self.plain_call(node).map(L::Function)
    }

    /// A call by a function's name.
    pub(super) fn plain_call(&self, node: &FuncCall) -> Result<library::Function> {
        let mut clauses = Vec::new();
        let order = self.sort_keys(&node.agg_order)?;
        let within_group = match node.agg_within_group {
            true => order,
            false => {
                if !order.is_empty() {
                    clauses.push(library::FunctionArgumentClause::OrderBy(order));
                }
                Vec::new()
            }
        };
        let list = library::FunctionArgumentList {
            agg_distinct: node.agg_distinct,
            args: self.call_args(node)?,
            clauses,
        };
        Ok(library::Function {
            funcformat: node.funcformat,
            args: FunctionArguments::List(list),
            filter: self.boxed_if(node.agg_filter.as_ref())?,
            over: match &node.over {
                Some(over) => Some(Box::new(self.window(over)?)),
                None => None,
            },
            within_group,
            ..library::Function::of(self.function_name(&node.funcname, node.location))
        })
    }

    /// The name of a function.
    pub(crate) fn function_name(&self, name: &FuncName, location: Location) -> AnyName {
        match name {
            FuncName::Named(names) => self.object_name(names, location),
            FuncName::Stored { oid, called } => {
                let mark = format!("{STORED_FUNCTION}{oid}:{called}");
                self.object_name(&[mark.into()], location)
            }
        }
    }

    /// What a call is given.
    pub(super) fn call_args(&self, node: &FuncCall) -> Result<Vec<FunctionArg>> {
        if node.agg_star {
            return Ok(vec![FunctionArg::Unnamed(FunctionArgExpr::Wildcard)]);
        }
        let mut args = Vec::with_capacity(node.args.len());
        for (at, arg) in node.args.iter().enumerate() {
            let is_variadic = node.func_variadic && at + 1 == node.args.len();
            args.push(self.call_arg(arg, is_variadic)?);
        }
        Ok(args)
    }

    fn call_arg(&self, arg: &FuncArg, is_variadic: bool) -> Result<FunctionArg> {
        if is_variadic {
            let location = arg.value.location();
            return Ok(FunctionArg::Variadic(self.boxed(&arg.value)?, location));
        }
        let value = self.arg_value(&arg.value)?;
        Ok(match &arg.name {
            Some((name, location)) => FunctionArg::Named {
                name: self.ident(name, *location),
                arg: value,
            },
            None => FunctionArg::Unnamed(value),
        })
    }

    /// An argument; `row.*` stays what it is.
    fn arg_value(&self, value: &Expr) -> Result<FunctionArgExpr> {
        Ok(match value {
            Expr::ColumnRef(column) if column.star => FunctionArgExpr::QualifiedWildcard(
                self.object_name(&column.fields, column.location),
            ),
            value => FunctionArgExpr::Expr(self.expr(value)?),
        })
    }

    /// A call of a word, without parentheses.
    pub(super) fn call_of_word(&self, word: &str, location: Location) -> library::Function {
        library::Function {
            funcformat: FuncFormat::SqlSyntax,
            ..library::Function::of(self.object_name(&[word.into()], location))
        }
    }

    /// A call with values.
    pub(super) fn call_with(&self, call: library::Function, args: Vec<L>) -> library::Function {
        let args: Vec<FunctionArg> = args.into_iter().map(FunctionArg::from).collect();
        library::Function {
            args: FunctionArguments::from(args),
            ..call
        }
    }

    /// Keys of sorting.
    pub(crate) fn sort_keys(&self, keys: &[SortBy]) -> Result<Vec<library::SortBy>> {
        let key = |key: &SortBy| {
            Ok(library::SortBy {
                node: self.expr(&key.node)?,
                dir: key.dir.clone(),
                nulls: key.nulls,
                location: key.location,
            })
        };
        keys.iter().map(key).collect()
    }

    /// A window.
    pub(super) fn window(&self, window: &WindowDef) -> Result<library::WindowDef> {
        Ok(library::WindowDef {
            name: window.name.as_ref().map(cut),
            refname: window.refname.as_ref().map(cut),
            partition_clause: self.exprs(&window.partition_clause)?,
            order_clause: self.sort_keys(&window.order_clause)?,
            frame: match &window.frame {
                Some(frame) => Some(library::WindowFrame {
                    mode: frame.mode,
                    start: self.frame_bound(&frame.start)?,
                    end: match &frame.end {
                        Some(end) => Some(self.frame_bound(end)?),
                        None => None,
                    },
                    exclusion: frame.exclusion,
                }),
                None => None,
            },
            location: window.location,
        })
    }

    fn frame_bound(&self, bound: &FrameBound) -> Result<library::FrameBound> {
        use library::FrameBound as Bound;
        Ok(match bound {
            FrameBound::UnboundedPreceding => Bound::UnboundedPreceding,
            FrameBound::Preceding(offset) => Bound::Preceding(self.expr(offset)?),
            FrameBound::CurrentRow => Bound::CurrentRow,
            FrameBound::Following(offset) => Bound::Following(self.expr(offset)?),
            FrameBound::UnboundedFollowing => Bound::UnboundedFollowing,
        })
    }

    /// CEIL, FLOOR, SUBSTRING and SUBSTR, which have nodes of their own.
    fn special_by_name(&self, node: &FuncCall) -> Result<Option<L>> {
        let FuncName::Named(names) = &node.funcname else {
            return Ok(None);
        };
        let [name] = names.as_slice() else {
            return Ok(None);
        };
        let count = match &**name {
            "ceil" | "floor" => 1..=1,
            "substring" | "substr" => 1..=3,
            _ => return Ok(None),
        };
        if !count.contains(&node.args.len()) || !node.is_plain() || self.is_quoted(node.location) {
            return Ok(None);
        }
        let mut args = Vec::with_capacity(node.args.len());
        for arg in &node.args {
            args.push(self.boxed(&arg.value)?);
        }
        let mut args = args.into_iter();
        let Some(expr) = args.next() else {
            return Ok(None);
        };
        Ok(Some(match &**name {
            "ceil" => L::Ceil(expr),
            "floor" => L::Floor(expr),
            _ => L::Substring {
                expr,
                substring_from: args.next(),
                substring_for: args.next(),
                special: node.args.len() > 1,
                shorthand: &**name == "substr",
            },
        }))
    }
}
