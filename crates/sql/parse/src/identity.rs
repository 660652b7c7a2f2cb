//! ALTER COLUMN ... SET GENERATED, SET of the sequence's options and RESTART, in one list.

/// What such an action says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityChange {
    /// SET GENERATED ALWAYS; or BY DEFAULT.
    pub always: Option<bool>,
    /// Options as behind ALTER SEQUENCE and its name.
    pub options: String,
}
