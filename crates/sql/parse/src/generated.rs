//! ALTER COLUMN ... DROP EXPRESSION, DROP IDENTITY and others, which the grammar library lacks: they travel as a SET DEFAULT of a
//! name that nobody can write.

use super::conflict_target::EXPRESSION_MARK;
use sqlparser::ast;

/// What was said of how a column is generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GeneratedChange {
    /// DROP EXPRESSION; IF EXISTS.
    DropExpression(bool),
    /// DROP IDENTITY; IF EXISTS.
    DropIdentity(bool),
    /// SET STORAGE: `attstorage`.
    Storage(char),
    /// SET COMPRESSION: `attcompression`; none is the default.
    Compression(Option<char>),
    /// SET STATISTICS: `attstattarget` as it was said.
    Statistics(i32),
}

/// The forms, each with its words and mark.
pub(super) const FORMS: [(&[&str], &str, GeneratedChange); 11] = [
    (
        &["drop", "expression", "if", "exists"],
        "skip",
        GeneratedChange::DropExpression(true),
    ),
    (
        &["drop", "expression"],
        "",
        GeneratedChange::DropExpression(false),
    ),
    (
        &["drop", "identity", "if", "exists"],
        "identity?",
        GeneratedChange::DropIdentity(true),
    ),
    (
        &["drop", "identity"],
        "identity",
        GeneratedChange::DropIdentity(false),
    ),
    (
        &["set", "storage", "plain"],
        "plain",
        GeneratedChange::Storage('p'),
    ),
    (
        &["set", "storage", "external"],
        "external",
        GeneratedChange::Storage('e'),
    ),
    (
        &["set", "storage", "extended"],
        "extended",
        GeneratedChange::Storage('x'),
    ),
    (
        &["set", "storage", "main"],
        "main",
        GeneratedChange::Storage('m'),
    ),
    (
        &["set", "compression", "pglz"],
        "pglz",
        GeneratedChange::Compression(Some('p')),
    ),
    (
        &["set", "compression", "lz4"],
        "lz4",
        GeneratedChange::Compression(Some('l')),
    ),
    (
        &["set", "compression", "default"],
        "compression",
        GeneratedChange::Compression(None),
    ),
];

/// What the mark of SET STATISTICS begins with; the number follows.
pub(super) const STATISTICS: &str = "statistics=";

/// Whether the value of a SET DEFAULT says one of these things instead.
pub fn generated_change(value: &ast::Expr) -> Option<GeneratedChange> {
    let ast::Expr::Identifier(name) = value else {
        return None;
    };
    let rest = name.value.strip_prefix(EXPRESSION_MARK)?;
    if let Some(number) = rest.strip_prefix(STATISTICS) {
        return number.parse().ok().map(GeneratedChange::Statistics);
    }
    let form = FORMS.iter().find(|(_, mark, _)| *mark == rest);
    form.map(|(.., change)| *change)
}
