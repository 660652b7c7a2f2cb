//! Names of FROM items that the grammar library has no place for: `JOIN ... USING (a, b) AS name`, and `FROM call(...) AS (a int, b text)`.
//!
//! The first travels as a last column of USING whose name nobody can write; the second gets the name that PostgreSQL gives it, the call's.

use sqlparser::ast;

/// What the name of such a column begins with; the alias follows, folded.
pub(crate) const ALIAS_MARK: &str = "\0as ";

/// The columns of USING, and what they are called together.
pub fn using_alias(names: &[ast::ObjectName]) -> (&[ast::ObjectName], Option<String>) {
    let alias = |name: &ast::ObjectName| match name.0.as_slice() {
        [ast::ObjectNamePart::Identifier(ident)] => {
            ident.value.strip_prefix(ALIAS_MARK).map(str::to_owned)
        }
        _ => None,
    };
    match names.split_last() {
        Some((last, rest)) if alias(last).is_some() => (rest, alias(last)),
        _ => (names, None),
    }
}
