//! Since when somebody asks for room.

/// Since when somebody asks for room: made when somebody begins to want some, and handed in again each time they ask
/// for the same, of whatever lane. By it a home tells an attempt to make room that began after the wish, whose outcome
/// is an answer to it, from one that began before and may have missed room that came up meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoomRequest {
    /// How many attempts had begun at the home when it was asked first.
    attempts_before: Option<u64>,
}

impl RoomRequest {
    /// For who wants room only if there is some anyway: whatever was found last is an answer, however long ago.
    pub fn long_ago() -> RoomRequest {
        RoomRequest {
            attempts_before: Some(0),
        }
    }

    /// For homes: attempts with higher numbers than this one (they count from 1, in the order in which they begin)
    /// count for who asks. `begun` is the newest that has begun.
    pub(crate) fn attempts_before(&mut self, begun: u64) -> u64 {
        *self.attempts_before.get_or_insert(begun)
    }
}
