//! The options of a sequence come in any order; the grammar library wants them in one. The name of an identity column's sequence, which
//! it does not know, travels with CACHE, as a placeholder that nobody can write.

use super::conflict_target::EXPRESSION_MARK;
use sqlparser::ast;

/// What `take_names` put into a CACHE: the number, if there was one, and the parts of the name.
pub fn sequence_name(cache: &ast::Expr) -> Option<(Option<ast::Expr>, Vec<String>)> {
    let ast::Expr::Value(value) = cache else {
        return None;
    };
    let ast::Value::Placeholder(text) = &value.value else {
        return None;
    };
    let mut parts = text.strip_prefix(EXPRESSION_MARK)?.split(EXPRESSION_MARK);
    let number = parts.next().filter(|number| !number.is_empty());
    let number = number.map(|n| ast::Expr::value(ast::Value::Number(n.to_owned(), false)));
    Some((number, parts.map(str::to_owned).collect()))
}
