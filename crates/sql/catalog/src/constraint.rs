//! Constraints as the catalog keeps them: what they demand, and when they are checked.
//!
//! Does not: check them. CHECK and NOT NULL are `exec::operator::write`'s, unique keys the engine's, foreign keys
//! and what is deferred `exec::constraints`'.

pub use logstead_sql_parse::Timing;
use logstead_sql_types::RelationId;
use logstead_sql_types::value::Oid;

/// A table constraint.
#[derive(Clone, Debug)]
pub struct Constraint {
    /// `pg_constraint.oid`.
    pub oid: Oid,
    /// Name.
    pub name: String,
    /// What it demands.
    pub kind: ConstraintKind,
    /// When it is checked.
    pub timing: Timing,
    /// False after NOT VALID: rows stored before may break it.
    pub validated: bool,
}

impl Constraint {
    /// A constraint checked at once that every stored row fulfils.
    pub fn new(oid: Oid, name: impl Into<String>, kind: ConstraintKind) -> Constraint {
        Constraint {
            oid,
            name: name.into(),
            kind,
            timing: Timing::Immediate,
            validated: true,
        }
    }

    /// The condition, if it is a CHECK.
    pub fn check(&self) -> Option<&str> {
        match &self.kind {
            ConstraintKind::Check(text) => Some(text),
            _ => None,
        }
    }

    /// The foreign key, if it is one.
    pub fn foreign(&self) -> Option<&ForeignKey> {
        match &self.kind {
            ConstraintKind::Foreign(key) => Some(key),
            _ => None,
        }
    }
}

/// Kinds of constraint.
#[derive(Clone, Debug)]
pub enum ConstraintKind {
    /// CHECK, as SQL text.
    Check(String),
    /// PRIMARY KEY through this index.
    PrimaryKey(RelationId),
    /// UNIQUE through this index.
    Unique(RelationId),
    /// FOREIGN KEY.
    Foreign(Box<ForeignKey>),
}

/// A foreign key: it lives in the referencing table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignKey {
    /// Referencing attribute positions.
    pub columns: Vec<usize>,
    /// OID of the referenced table, which may be the same.
    pub table: RelationId,
    /// Referenced attribute positions, one for each of `columns`.
    pub referenced: Vec<usize>,
    /// OID of the unique index of exactly the referenced columns.
    pub index: RelationId,
    /// ON UPDATE.
    pub on_update: ReferentialAction,
    /// ON DELETE.
    pub on_delete: ReferentialAction,
    /// ON DELETE SET NULL (...) or SET DEFAULT (...): the attributes set; empty is all of `columns`.
    pub set_columns: Vec<usize>,
    /// MATCH FULL rather than SIMPLE.
    pub full: bool,
}

/// What happens to referencing rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferentialAction {
    /// NO ACTION: an error if they still reference it when the constraint is checked.
    NoAction,
    /// RESTRICT: an error if they reference it, another row with the key or not.
    Restrict,
    /// CASCADE: they go, or follow.
    Cascade,
    /// SET NULL.
    SetNull,
    /// SET DEFAULT.
    SetDefault,
}

impl ReferentialAction {
    /// `pg_constraint.confupdtype` and `confdeltype`.
    pub fn code(self) -> char {
        match self {
            ReferentialAction::NoAction => 'a',
            ReferentialAction::Restrict => 'r',
            ReferentialAction::Cascade => 'c',
            ReferentialAction::SetNull => 'n',
            ReferentialAction::SetDefault => 'd',
        }
    }

    /// The action of a code.
    pub fn of_code(code: u8) -> Option<ReferentialAction> {
        Some(match code {
            b'a' => ReferentialAction::NoAction,
            b'r' => ReferentialAction::Restrict,
            b'c' => ReferentialAction::Cascade,
            b'n' => ReferentialAction::SetNull,
            b'd' => ReferentialAction::SetDefault,
            _ => return None,
        })
    }

    /// SQL's words.
    pub fn words(self) -> &'static str {
        match self {
            ReferentialAction::NoAction => "NO ACTION",
            ReferentialAction::Restrict => "RESTRICT",
            ReferentialAction::Cascade => "CASCADE",
            ReferentialAction::SetNull => "SET NULL",
            ReferentialAction::SetDefault => "SET DEFAULT",
        }
    }

    /// Does it change referencing rows?
    pub fn changes_rows(self) -> bool {
        matches!(
            self,
            ReferentialAction::Cascade | ReferentialAction::SetNull | ReferentialAction::SetDefault
        )
    }
}
