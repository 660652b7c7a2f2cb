//! What homes around another home hand through to it: everything but how objects are stored and read. A new method of [`LogHome`](crate::LogHome)
//! is added here, or its default would answer instead of the home inside.

/// Methods that `self.inner` answers.
macro_rules! handed_through {
    ($(fn $name:ident(&self $(, $argument:ident: $type:ty)* $(,)?) $(-> $out:ty)?;)*) => {
        $(fn $name(&self $(, $argument: $type)*) $(-> $out)? {
            self.inner.$name($($argument),*)
        })*
    };
}

/// All methods of `LogHome` but those about objects and the cache, and the list of objects.
macro_rules! all_but_objects {
    () => {
        handed_through! {
            fn facts(&self) -> $crate::Facts;
            fn describe(&self) -> String;
            fn report(&self) -> Vec<(String, String)>;
            fn usage(&self) -> Vec<$crate::HomeUsage>;
            fn fence(&self, lane: logstead_types::LaneId, first_segment: u64, by: &str) -> Result<(), $crate::HomeError>;
            fn copies(&self) -> usize;
            fn read_copy(&self, copy: usize, lane: logstead_types::LaneId, at: $crate::Position, into: &mut logstead_env::Buffer) -> Result<usize, $crate::HomeError>;
            fn limit_segments(&self, rollover: $crate::Rollover) -> Result<(), $crate::HomeError>;
            fn has_copy(&self, copy: usize) -> bool;
            fn copies_behind(&self) -> Vec<usize>;
            fn rewrite_copy(&self, copy: usize, lane: logstead_types::LaneId, at: $crate::Position, block: &logstead_env::Buffer, len: usize) -> Result<(), $crate::HomeError>;
            fn copies_completed(&self, epoch: logstead_types::Epoch) -> Result<(), $crate::HomeError>;
            fn open_lane(&self, lane: logstead_types::LaneId, first_segment: u64) -> Result<(), $crate::NoRoom>;
            fn set_room_listener(&self, lane: logstead_types::LaneId, listener: $crate::RoomListener);
            fn ensure_room(&self, lane: logstead_types::LaneId, bytes: u64) -> Result<(), $crate::NoRoom>;
            fn place(&self, lane: logstead_types::LaneId, len: u64) -> Result<$crate::Position, $crate::HomeError>;
            fn append(&self, lane: logstead_types::LaneId, at: $crate::Position, block: logstead_env::Buffer, len: usize, done: $crate::Completion);
            fn append_inline(&self, lane: logstead_types::LaneId, at: $crate::Position, block: &logstead_env::Buffer, len: usize) -> Result<(), $crate::HomeError>;
            fn rewrite(&self, lane: logstead_types::LaneId, at: $crate::Position, block: &logstead_env::Buffer, len: usize) -> Result<(), $crate::HomeError>;
            fn lanes(&self) -> Result<Vec<logstead_types::LaneId>, $crate::HomeError>;
            fn segments(&self, lane: logstead_types::LaneId) -> Result<Vec<$crate::SegmentInfo>, $crate::HomeError>;
            fn read(&self, lane: logstead_types::LaneId, at: $crate::Position, into: &mut logstead_env::Buffer) -> Result<usize, $crate::HomeError>;
            fn seal(&self, lane: logstead_types::LaneId, at: $crate::Position) -> Result<(), $crate::HomeError>;
            fn trim(&self, lane: logstead_types::LaneId, segment: u64) -> Result<(), $crate::HomeError>;
            fn get(&self, name: &str) -> Result<Option<(Vec<u8>, $crate::Tag)>, $crate::HomeError>;
            fn put_if_absent(&self, name: &str, bytes: &[u8]) -> Result<$crate::Tag, $crate::HomeError>;
            fn compare_and_swap(&self, name: &str, expected: $crate::Tag, bytes: &[u8]) -> Result<$crate::Tag, $crate::HomeError>;
            fn limit_name_requests(&self, first: std::time::Duration);
            fn begin_side(&self, lane: logstead_types::LaneId, id: u64) -> Box<dyn $crate::SideWriter>;
            fn get_side(&self, lane: logstead_types::LaneId, id: u64, offset: u64, into: &mut [u8]) -> Result<usize, $crate::HomeError>;
            fn get_side_copy(&self, copy: usize, lane: logstead_types::LaneId, id: u64, offset: u64, into: &mut [u8]) -> Result<usize, $crate::HomeError>;
            fn replace_side_copy(&self, damaged: usize, good: usize, lane: logstead_types::LaneId, id: u64) -> Result<(), $crate::HomeError>;
            fn sides(&self, lane: logstead_types::LaneId) -> Result<Vec<u64>, $crate::HomeError>;
            fn remove_side(&self, lane: logstead_types::LaneId, id: u64) -> Result<(), $crate::HomeError>;
            fn give_up_side(&self, lane: logstead_types::LaneId, id: u64);
            fn objects(&self) -> Result<Vec<$crate::ObjectInfo>, $crate::HomeError>;
        }
    };
}
