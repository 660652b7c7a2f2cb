//! FROM: tables, queries, joins, functions.

use super::Lower;
use crate::ast::{
    Expr, FuncName, JoinExpr, JoinQual, RangeFunction, RangeSubselect, RangeTableSample, TableRef,
    Value,
};
use crate::lowered::{self as library, Expr as L};
use logstead_sql_types::error::{Result, SqlError};

impl Lower<'_> {
    /// Lowers an item of FROM. A chain of joins is lowered from its first table.
    pub(crate) fn table_ref(&self, item: &TableRef) -> Result<library::TableRef> {
        use library::TableRef as T;
        let mut chain: Vec<&JoinExpr> = Vec::new();
        let mut first = item;
        while let TableRef::Join(join) = first {
            chain.push(join);
            first = &join.larg;
        }
        let mut lowered = match first {
            TableRef::RangeVar(node) => T::RangeVar(node.clone()),
            TableRef::Subselect(node) => T::Subselect(Box::new(self.subselect(node)?)),
            TableRef::Function(node) => T::Function(Box::new(self.range_function(node)?)),
            TableRef::TableFunc(node) => T::TableFunc(Box::new(self.range_table_func(node)?)),
            TableRef::TableSample(node) => T::TableSample(Box::new(self.table_sample(node)?)),
            TableRef::Join(_) => return Err(SqlError::internal("a join without a first item")),
        };
        for join in chain.into_iter().rev() {
            lowered = T::Join(Box::new(library::JoinExpr {
                jointype: join.jointype,
                is_natural: join.is_natural,
                larg: lowered,
                rarg: self.table_ref(&join.rarg)?,
                quals: match &join.quals {
                    JoinQual::None => library::JoinQual::None,
                    JoinQual::On(condition) => library::JoinQual::On(self.expr(condition)?),
                    JoinQual::Using(columns, alias) => {
                        library::JoinQual::Using(columns.clone(), alias.clone())
                    }
                },
                alias: join.alias.clone(),
                location: join.location,
            }));
        }
        Ok(lowered)
    }

    fn subselect(&self, node: &RangeSubselect) -> Result<library::RangeSubselect> {
        Ok(library::RangeSubselect {
            lateral: node.lateral,
            subquery: self.query(&node.subquery)?,
            alias: node.alias.clone(),
            location: node.location,
        })
    }

    fn table_sample(&self, node: &RangeTableSample) -> Result<library::RangeTableSample> {
        Ok(library::RangeTableSample {
            relation: node.relation.clone(),
            method: node.method.clone(),
            args: self.exprs(&node.args)?,
            repeatable: self.opt_expr(node.repeatable.as_ref())?,
            location: node.location,
        })
    }

    fn range_function(&self, node: &RangeFunction) -> Result<library::RangeFunction> {
        let mut functions = Vec::with_capacity(node.functions.len());
        for (function, columns) in &node.functions {
            functions.push((self.windowless_call(function)?, columns.clone()));
        }
        Ok(library::RangeFunction {
            lateral: node.lateral,
            ordinality: node.ordinality,
            is_rowsfrom: node.is_rowsfrom,
            functions,
            alias: node.alias.clone(),
            coldeflist: node.coldeflist.clone(),
            location: node.location,
        })
    }

    /// A call in FROM.
    fn windowless_call(&self, function: &Expr) -> Result<library::FuncCall> {
        match function {
            Expr::FuncCall(call) if !call.agg_distinct && call.agg_order.is_empty() => {
                self.func_call(call)
            }
            // What is called without parentheses is PostgreSQL's own, whatever functions of the name there are.
            Expr::SqlValueFunction(node) => {
                let name = FuncName::of(["pg_catalog", node.op.word()]);
                let precision = node.typmod.map(|typmod| L::value(Value::Integer(typmod)));
                Ok(library::FuncCall {
                    location: node.location,
                    ..library::FuncCall::of(name, precision)
                })
            }
            _ => Err(SqlError::unsupported("this function in FROM")),
        }
    }
}
