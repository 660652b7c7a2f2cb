//! Locking clauses: FOR UPDATE, NO KEY UPDATE, SHARE, KEY SHARE with OF and a list.
//!
//! The grammar library knows two strengths and one name after OF. What it lacks travels in that name: its first part says
//! the strength, the others are the listed names. Parts made here begin with a NUL, which no text of a client contains.

use logstead_engine::RowLock;
use sqlparser::ast;

/// FOR NO KEY UPDATE, as the first part of a clause's name.
pub(super) const NO_KEY_UPDATE: &str = "\0no key update";
/// FOR KEY SHARE.
pub(super) const KEY_SHARE: &str = "\0key share";
/// FOR UPDATE.
pub(super) const UPDATE: &str = "\0update";
/// FOR SHARE.
pub(super) const SHARE: &str = "\0share";

/// (What follows FOR, what the grammar knows it as, the part that stands for it.)
const STRENGTHS: [(&[&str], usize, &str, RowLock); 4] = [
    (
        &["no", "key", "update"],
        2,
        NO_KEY_UPDATE,
        RowLock::NoKeyUpdate,
    ),
    (&["key", "share"], 1, KEY_SHARE, RowLock::KeyShare),
    (&["update"], 0, UPDATE, RowLock::Update),
    (&["share"], 0, SHARE, RowLock::Share),
];
/// Stands before a name that was written with a qualifier, which is an error that the binder tells.
pub(super) const QUALIFIED: &str = "\0qualified";

/// What a locking clause says.
pub struct LockingClause<'a> {
    /// The strength.
    pub lock: RowLock,
    /// The names after OF; empty: everything in FROM.
    pub of: &'a [ast::ObjectNamePart],
}

impl LockingClause<'_> {
    /// As error messages name it.
    pub fn name(&self) -> &'static str {
        match self.lock {
            RowLock::KeyShare => "FOR KEY SHARE",
            RowLock::Share => "FOR SHARE",
            RowLock::NoKeyUpdate => "FOR NO KEY UPDATE",
            RowLock::Update => "FOR UPDATE",
        }
    }

    /// Was this part written with a qualifier?
    pub fn is_qualified(part: &ast::Ident) -> bool {
        part.value == QUALIFIED
    }
}

/// Reads a clause of the tree.
pub fn locking_clause(clause: &ast::LockClause) -> LockingClause<'_> {
    let mut lock = match clause.lock_type {
        ast::LockType::Share => RowLock::Share,
        ast::LockType::Update => RowLock::Update,
    };
    let mut of = clause.of.as_ref().map_or(&[][..], |name| &name.0);
    if let Some((first, names)) = of.split_first()
        && let Some(first) = first.as_ident()
        && let Some((.., strength)) = STRENGTHS.iter().find(|(.., part, _)| first.value == *part)
    {
        lock = *strength;
        of = names;
    }
    LockingClause { lock, of }
}
