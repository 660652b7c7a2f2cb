//! Functions in FROM.

use super::Lower;
use crate::ast::{Alias, ColumnDefinition, Expr, FuncName, Name, RangeFunction, Value};
use crate::lowered::{self as library, Expr as L, TableFactor};
use logstead_sql_types::error::{Result, SqlError};

impl Lower<'_> {
    /// Functions in FROM.
    pub(super) fn range_function(&self, node: &RangeFunction) -> Result<TableFactor> {
        let ordinality = node.ordinality;
        if node.is_rowsfrom {
            return Ok(TableFactor::RowsFrom {
                lateral: node.lateral,
                functions: self.rows_from(node)?,
                with_ordinality: ordinality,
                alias: self.function_alias(node, None)?,
            });
        }
        let Some((function, _)) = node.functions.first() else {
            return Err(SqlError::internal("no function in FROM"));
        };
        let called = match function {
            Expr::FuncCall(call) => call.funcname.called(),
            _ => None,
        };
        Ok(TableFactor::Function {
            lateral: node.lateral,
            function: Box::new(self.windowless_call(function)?),
            with_ordinality: ordinality,
            alias: self.function_alias(node, called)?,
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

    /// The calls of ROWS FROM.
    fn rows_from(
        &self,
        node: &RangeFunction,
    ) -> Result<Vec<(library::FuncCall, Vec<library::TableAliasColumnDef>)>> {
        let mut functions = Vec::with_capacity(node.functions.len());
        for (function, columns) in &node.functions {
            let call = self.windowless_call(function)?;
            functions.push((call, self.column_definitions(columns)?));
        }
        Ok(functions)
    }

    /// A column definition list.
    fn column_definitions(
        &self,
        columns: &[ColumnDefinition],
    ) -> Result<Vec<library::TableAliasColumnDef>> {
        let mut defined = Vec::with_capacity(columns.len());
        for column in columns {
            refuse_collation(column)?;
            defined.push(library::TableAliasColumnDef {
                name: self.ident(&column.colname, column.location),
                data_type: Some(column.type_name.clone()),
            });
        }
        Ok(defined)
    }

    /// What a function is called, and its columns. With columns alone it is called by its own name.
    fn function_alias(
        &self,
        node: &RangeFunction,
        called: Option<&Name>,
    ) -> Result<Option<library::TableAlias>> {
        let alias = self.table_alias(node.alias.as_deref());
        if node.coldeflist.is_empty() {
            return Ok(alias);
        }
        let own = || {
            self.table_alias(Some(&Alias {
                name: called.cloned().unwrap_or_else(|| "rows from".into()),
                colnames: Vec::new(),
                location: node.location,
            }))
        };
        let Some(alias) = alias.or_else(own) else {
            return Ok(None);
        };
        Ok(Some(library::TableAlias {
            columns: self.column_definitions(&node.coldeflist)?,
            ..alias
        }))
    }
}

/// All texts are in one order, so nobody has needed it.
fn refuse_collation(column: &ColumnDefinition) -> Result<()> {
    match column.coll_clause {
        Some(_) => Err(SqlError::unsupported("COLLATE in a column definition list")),
        None => Ok(()),
    }
}
