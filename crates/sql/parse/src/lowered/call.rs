//! Calls.

use super::{Expr, SortBy, WindowDef};
use crate::ast::{FuncFormat, FuncName, Location, Name};

/// An argument of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct FuncArg {
    /// The parameter that it is for, and where the name is.
    pub name: Option<(Name, Location)>,
    /// Its value; `item.*` is the whole row.
    pub value: Expr,
}

impl From<Expr> for FuncArg {
    fn from(value: Expr) -> FuncArg {
        FuncArg { name: None, value }
    }
}

/// A call.
#[derive(Clone, Debug, PartialEq)]
pub struct FuncCall {
    /// Which function.
    pub funcname: FuncName,
    /// What it is given.
    pub args: Vec<FuncArg>,
    /// ORDER BY, also that of WITHIN GROUP.
    pub agg_order: Vec<SortBy>,
    /// FILTER
    pub agg_filter: Option<Expr>,
    /// OVER
    pub over: Option<Box<WindowDef>>,
    /// WITHIN GROUP
    pub agg_within_group: bool,
    /// `*`
    pub agg_star: bool,
    /// DISTINCT
    pub agg_distinct: bool,
    /// The last argument is VARIADIC.
    pub func_variadic: bool,
    /// How it is written.
    pub funcformat: FuncFormat,
    /// Where it begins.
    pub location: Location,
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

    /// The function that SQL's own words call.
    pub fn sql_syntax(&self) -> Option<&str> {
        match self.funcformat {
            FuncFormat::SqlSyntax => self.funcname.called().map(|name| &**name),
            FuncFormat::ExplicitCall => None,
        }
    }

    /// The arguments in front of one that is VARIADIC, and its array.
    pub fn variadic(&self) -> Option<(&[FuncArg], &Expr)> {
        let (array, rest) = self.args.split_last().filter(|_| self.func_variadic)?;
        Some((rest, &array.value))
    }

    /// Its arguments, if they are values without names, `*` and VARIADIC.
    pub fn values(&self) -> Option<Vec<&Expr>> {
        let is_plain = !self.agg_star && !self.func_variadic;
        let args = self.args.iter().filter(|_| is_plain);
        let values: Option<Vec<&Expr>> = args
            .map(|arg| arg.name.is_none().then_some(&arg.value))
            .collect();
        values.filter(|_| is_plain)
    }

    /// The arrays of UNNEST, if they are several: these are unnested side by side.
    pub fn unnested(&self) -> Option<Vec<&Expr>> {
        let is_unnest = match &self.funcname {
            FuncName::Named(names) => matches!(names.as_slice(), [name] if **name == *"unnest"),
            FuncName::Stored { .. } => false,
        };
        self.values().filter(|values| is_unnest && values.len() > 1)
    }
}
