//! ALTER COLUMN ... DROP EXPRESSION, DROP IDENTITY, SET STORAGE, SET COMPRESSION and SET STATISTICS.

/// How a column is generated or kept, as it is said.
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

impl GeneratedChange {
    /// The words that say it.
    pub fn words(self) -> &'static str {
        match self {
            GeneratedChange::DropExpression(_) => "DROP EXPRESSION",
            GeneratedChange::DropIdentity(_) => "DROP IDENTITY",
            GeneratedChange::Storage(_) => "SET STORAGE",
            GeneratedChange::Compression(_) => "SET COMPRESSION",
            GeneratedChange::Statistics(_) => "SET STATISTICS",
        }
    }
}
