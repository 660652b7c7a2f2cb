//! Frames of windows: what the grammar library does not know of them.

use super::conflict_target::EXPRESSION_MARK;
use sqlparser::ast;

/// What EXCLUDE says, as a window's name carries it, and in words.
pub const EXCLUSIONS: [(char, &str); 4] = [
    ('0', "NO OTHERS"),
    ('1', "CURRENT ROW"),
    ('2', "GROUP"),
    ('3', "TIES"),
];

/// The name in a name that carries EXCLUDE, as it is folded, and what is excluded; `None` if it carries nothing.
pub fn carried(ident: &ast::Ident) -> Option<(Option<&str>, char)> {
    let rest = ident.value.strip_prefix(EXPRESSION_MARK)?;
    let kind = rest.chars().next()?;
    let name = rest.get(kind.len_utf8()..).filter(|name| !name.is_empty());
    Some((name, kind))
}
