//! ROWS FROM (f(...), g(...)), which the grammar library lacks: it travels as a call, by a name that nobody can
//! write, of these calls. A column
//! definition list travels behind its function, as a call by another such name: of each column's name, and of NULL
//! cast to its type.

use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use sqlparser::ast;

pub(crate) const MARK: &str = "\0rows from";
pub(crate) const COLUMNS: &str = "\0columns";

/// A function of ROWS FROM.
pub struct RowsFunction {
    /// The call.
    pub function: ast::Function,
    /// Its column definition list; empty if it has none.
    pub columns: Vec<ast::TableAliasColumnDef>,
}

/// The functions of ROWS FROM, if a call in FROM stands for it.
pub fn rows_from(
    name: &ast::ObjectName,
    args: &[ast::FunctionArg],
) -> Option<Result<Vec<RowsFunction>>> {
    is_named(name, MARK).then(|| functions(args))
}

fn is_named(name: &ast::ObjectName, mark: &str) -> bool {
    match name.0.as_slice() {
        [ast::ObjectNamePart::Identifier(name)] => name.value == mark,
        _ => false,
    }
}

fn functions(args: &[ast::FunctionArg]) -> Result<Vec<RowsFunction>> {
    let wrong = || SqlError::new(SqlState::SYNTAX_ERROR, "syntax error");
    let mut functions: Vec<RowsFunction> = Vec::new();
    for arg in args {
        let function = match arg {
            ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(ast::Expr::Function(
                function,
            ))) => function,
            _ => return Err(wrong()),
        };
        if !is_named(&function.name, COLUMNS) {
            functions.push(RowsFunction {
                function: function.clone(),
                columns: Vec::new(),
            });
            continue;
        }
        let defined = functions.last_mut().ok_or_else(wrong)?;
        defined.columns = definitions(function).ok_or_else(wrong)?;
    }
    Ok(functions)
}

/// The columns of a definition list.
fn definitions(list: &ast::Function) -> Option<Vec<ast::TableAliasColumnDef>> {
    let ast::FunctionArguments::List(list) = &list.args else {
        return None;
    };
    let pairs = list.args.chunks(2).map(|pair| match pair {
        [
            ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(ast::Expr::Identifier(name))),
            ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(ast::Expr::Cast {
                data_type,
                ..
            })),
        ] => Some(ast::TableAliasColumnDef {
            name: name.clone(),
            data_type: Some(data_type.clone()),
        }),
        _ => None,
    });
    pairs.collect()
}
