//! What parts of an expression's tree mean: rows, all fields of a record, directions of ORDER BY.

use crate::ast::{self, Expr as Ast, NodeBox, OperatorName, SortByDir, SortByNulls};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;

/// The items of a row constructor, unless all columns of another row are among them.
pub fn row_of(expr: &Ast) -> Option<&[Ast]> {
    let has_star = |item: &Ast| matches!(item, Ast::ColumnRef(column) if column.star);
    match expr {
        Ast::RowExpr(node) if !node.args.iter().any(has_star) => Some(&node.args),
        _ => None,
    }
}

/// The record whose fields an expression stands for, if it is `(record).*`.
pub fn all_fields(expr: &Ast) -> Option<Ast> {
    let Ast::Indirection(node) = expr else {
        return None;
    };
    let (ast::Indirection::Star, rest) = node.indirection.split_last()? else {
        return None;
    };
    Some(match rest {
        [] => node.arg.clone(),
        rest => Ast::Indirection(NodeBox::new(ast::AIndirection {
            arg: node.arg.clone(),
            indirection: rest.to_vec(),
            location: node.location,
        })),
    })
}

/// Does a key of ORDER BY sort in descending order, and do NULLs come first?
pub fn sort_direction(dir: &SortByDir, nulls: SortByNulls) -> Result<(bool, bool)> {
    let desc = match dir {
        SortByDir::Default | SortByDir::Asc => false,
        SortByDir::Desc => true,
        SortByDir::Using(operator) => {
            match sort_operator(operator) {
                // All text is in the order of its bytes, which is that of patterns too.
                Some("<" | "~<~") => false,
                Some(">" | "~>~") => true,
                _ => {
                    let names = operator.schema.iter().chain([&operator.name]);
                    let name = names.map(|name| &**name).collect::<Vec<_>>().join(".");
                    return Err(SqlError::new(
                    SqlState::WRONG_OBJECT_TYPE,
                    format!("operator {name} is not a valid ordering operator"),
                )
                .hint("Ordering operators must be \"<\" or \">\" members of btree operator families."));
                }
            }
        }
    };
    Ok((desc, nulls_first(nulls).unwrap_or(desc)))
}

/// NULLS FIRST or LAST, if it is said.
pub fn nulls_first(nulls: SortByNulls) -> Option<bool> {
    match nulls {
        SortByNulls::Default => None,
        SortByNulls::First => Some(true),
        SortByNulls::Last => Some(false),
    }
}

/// The operator of ORDER BY ... USING, without the schema of PostgreSQL's own.
pub fn sort_operator(operator: &OperatorName) -> Option<&str> {
    match operator.schema.as_slice() {
        [] => Some(&operator.name),
        [schema] if **schema == *"pg_catalog" => Some(&operator.name),
        _ => None,
    }
}

/// The one column of a query that stands for an expression.
pub fn policy_expr(query: &ast::SelectStmt) -> Option<&ast::Expr> {
    match query.core()?.target_list.as_slice() {
        [target] => target.val.as_ref(),
        _ => None,
    }
}
