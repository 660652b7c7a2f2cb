//! ALTER LARGE OBJECT and COMMENT ON LARGE OBJECT.

use super::roles::RoleName;
use logstead_sql_types::value::Oid;

/// A statement about one large object.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum LargeObjectCommand {
    Owner { object: Oid, owner: RoleName },
    Comment { object: Oid, text: Option<String> },
}

impl LargeObjectCommand {
    /// The command tag.
    pub fn tag(&self) -> &'static str {
        match self {
            LargeObjectCommand::Owner { .. } => "ALTER LARGE OBJECT",
            LargeObjectCommand::Comment { .. } => "COMMENT",
        }
    }

    /// Which object.
    pub fn object(&self) -> Oid {
        match self {
            LargeObjectCommand::Owner { object, .. }
            | LargeObjectCommand::Comment { object, .. } => *object,
        }
    }
}
