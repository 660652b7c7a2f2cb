//! Marks in names, by which the library's tree says what it has no node for: VARIADIC, all fields of a record.

use sqlparser::ast;

/// The name that an argument has which is VARIADIC.
pub(crate) const VARIADIC_MARK: &str = "\0variadic";

/// The arguments in front of one that is VARIADIC, which is the last, and its array.
pub fn variadic(args: &[ast::FunctionArg]) -> Option<(&[ast::FunctionArg], &ast::Expr)> {
    let (last, rest) = args.split_last()?;
    match last {
        ast::FunctionArg::Named {
            name,
            arg: ast::FunctionArgExpr::Expr(array),
            ..
        }
        | ast::FunctionArg::ExprNamed {
            name: ast::Expr::Identifier(name),
            arg: ast::FunctionArgExpr::Expr(array),
            ..
        } if name.value == VARIADIC_MARK => Some((rest, array)),
        _ => None,
    }
}

/// The field that stands for all fields of a record, `(record).*`: the grammar has it of names only.
pub(crate) const STAR_MARK: &str = "\0*";

/// The record whose fields an expression stands for, if it is `(record).*`.
pub fn all_fields(expr: &ast::Expr) -> Option<ast::Expr> {
    let ast::Expr::CompoundFieldAccess { root, access_chain } = expr else {
        return None;
    };
    let (last, rest) = access_chain.split_last()?;
    match last {
        ast::AccessExpr::Dot(ast::Expr::Identifier(field)) if field.value == STAR_MARK => {}
        _ => return None,
    }
    Some(match rest {
        [] => ast::Expr::clone(root),
        rest => ast::Expr::CompoundFieldAccess {
            root: root.clone(),
            access_chain: rest.to_vec(),
        },
    })
}
