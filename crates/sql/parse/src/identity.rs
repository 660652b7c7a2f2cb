//! ALTER COLUMN ... SET GENERATED, SET of the sequence's options and RESTART, in one list: an action that the grammar library lacks.
//!
//! It travels as a SET DEFAULT of a name that nobody can write, in which the options stand as ALTER SEQUENCE has them.

use super::conflict_target::EXPRESSION_MARK;
use sqlparser::ast;

/// What the mark begins with; a letter for SET GENERATED and the options follow.
pub(super) const IDENTITY: &str = "identity options=";

/// What such an action says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityChange {
    /// SET GENERATED ALWAYS; or BY DEFAULT.
    pub always: Option<bool>,
    /// Options as behind ALTER SEQUENCE and its name.
    pub options: String,
}

/// Whether the value of a SET DEFAULT says this instead.
pub fn identity_change(value: &ast::Expr) -> Option<IdentityChange> {
    let ast::Expr::Identifier(name) = value else {
        return None;
    };
    let rest = name.value.strip_prefix(EXPRESSION_MARK)?;
    let mut rest = rest.strip_prefix(IDENTITY)?.chars();
    let always = match rest.next()? {
        'a' => Some(true),
        'd' => Some(false),
        _ => None,
    };
    Some(IdentityChange {
        always,
        options: rest.as_str().to_owned(),
    })
}
