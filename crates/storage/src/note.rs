//! What work in the background tells of a volume.

use logstead_env::Instant;

/// What is to be told of a volume beside what the node knows itself.
#[derive(Clone, Debug, Default)]
pub struct VolumeNote {
    /// Names and values.
    pub lines: Vec<(String, String)>,
    /// The name of a line that says how many seconds ago something was, and when that was.
    pub age: Option<(String, Instant)>,
}
