//! Functions in FROM.

use super::Lower;
use crate::ast::{Alias, ColumnDefinition, Expr, FuncCall, FuncName, Name, RangeFunction, Value};
use crate::lowered::{self as library, Expr as L, FunctionArg, FunctionArguments, TableFactor};
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
            Expr::FuncCall(call) => match &call.funcname {
                FuncName::Named(names) => names.last(),
                FuncName::Stored { called, .. } => Some(called),
            },
            _ => None,
        };
        let alias = self.function_alias(node, called)?;
        if let Some(arrays) = self.unnested(function).filter(|_| !node.lateral) {
            return Ok(TableFactor::Unnest {
                alias,
                array_exprs: self.exprs_of(&arrays)?,
                with_ordinality: ordinality,
            });
        }
        let call = self.windowless_call(function)?;
        Ok(function_item(call, node.lateral, ordinality, alias))
    }

    fn exprs_of(&self, exprs: &[&Expr]) -> Result<Vec<L>> {
        exprs.iter().map(|expr| self.expr(expr)).collect()
    }

    /// The arrays of UNNEST.
    fn unnested<'e>(&self, function: &'e Expr) -> Option<Vec<&'e Expr>> {
        let Expr::FuncCall(call) = function else {
            return None;
        };
        let FuncName::Named(names) = &call.funcname else {
            return None;
        };
        let is_unnest = matches!(names.as_slice(), [name] if **name == *"unnest");
        let is_plain = !call.args.is_empty() && call.is_plain();
        if !is_unnest || !is_plain || self.is_quoted(call.location) {
            return None;
        }
        Some(call.args.iter().map(|arg| &arg.value).collect())
    }

    /// A call in FROM. Functions with words of their own are called by their names there.
    fn windowless_call(&self, function: &Expr) -> Result<library::Function> {
        let refused = || SqlError::unsupported("this function in FROM");
        if let Expr::FuncCall(call) = function {
            let call: &FuncCall = call;
            if call.agg_distinct || !call.agg_order.is_empty() {
                return Err(refused());
            }
            return self.plain_call(call);
        }
        match self.expr(function)? {
            L::Function(call) => Ok(call),
            // What is called without parentheses.
            L::SqlValueFunction(node) => {
                let call = self.call_of_word(node.op.word(), node.location);
                Ok(match node.typmod {
                    Some(precision) => {
                        let precision = L::value(Value::Integer(precision));
                        self.call_with(call, vec![precision])
                    }
                    None => call,
                })
            }
            _ => Err(refused()),
        }
    }

    /// The calls of ROWS FROM.
    fn rows_from(
        &self,
        node: &RangeFunction,
    ) -> Result<Vec<(library::Function, Vec<library::TableAliasColumnDef>)>> {
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

/// A call as an item of FROM.
fn function_item(
    call: library::Function,
    lateral: bool,
    with_ordinality: bool,
    alias: Option<library::TableAlias>,
) -> TableFactor {
    let name = call.name;
    let args: Option<Vec<FunctionArg>> = match call.args {
        FunctionArguments::List(list) => Some(list.args),
        FunctionArguments::None => None,
    };
    match lateral {
        true => TableFactor::Function {
            lateral,
            name,
            args: args.unwrap_or_default(),
            with_ordinality,
            alias,
        },
        false => TableFactor::Table {
            name,
            alias,
            args,
            with_ordinality,
            sample: None,
        },
    }
}
