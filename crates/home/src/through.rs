//! What homes around another home, also those of tests, hand through to it. A new method of [`LogHome`](crate::LogHome) is added here, or its default would answer
//! instead of the home inside.

/// Methods that the field `$inner` answers.
#[doc(hidden)]
#[macro_export]
macro_rules! handed_through {
    ($inner:ident $(fn $name:ident(&self $(, $argument:ident: $type:ty)* $(,)?) $(-> $out:ty)?;)*) => {
        $(fn $name(&self $(, $argument: $type)*) $(-> $out)? {
            self.$inner.$name($($argument),*)
        })*
    };
}

/// What a home is, its lanes and their side segments, but for appends.
#[doc(hidden)]
#[macro_export]
macro_rules! lanes_through {
    ($inner:ident) => {
        $crate::handed_through! { $inner
            fn facts(&self) -> $crate::Facts;
            fn describe(&self) -> String;
            fn report(&self) -> Vec<(String, String)>;
            fn usage(&self) -> Vec<$crate::HomeUsage>;
            fn fence(&self, lane: $crate::LaneId, first_segment: u64, by: &str) -> Result<(), $crate::HomeError>;
            fn copies(&self) -> usize;
            fn read_copy(&self, copy: usize, lane: $crate::LaneId, at: $crate::Position, into: &mut $crate::Buffer) -> Result<usize, $crate::HomeError>;
            fn limit_segments(&self, rollover: $crate::Rollover) -> Result<(), $crate::HomeError>;
            fn has_copy(&self, copy: usize) -> bool;
            fn copies_behind(&self) -> Vec<usize>;
            fn rewrite_copy(&self, copy: usize, lane: $crate::LaneId, at: $crate::Position, block: &$crate::Buffer, len: usize) -> Result<(), $crate::HomeError>;
            fn copies_completed(&self, epoch: $crate::Epoch) -> Result<(), $crate::HomeError>;
            fn open_lane(&self, lane: $crate::LaneId, first_segment: u64) -> Result<(), $crate::NoRoom>;
            fn set_room_listener(&self, lane: $crate::LaneId, listener: $crate::RoomListener);
            fn ensure_room(&self, lane: $crate::LaneId, bytes: u64, asked: &mut $crate::RoomRequest) -> Result<(), $crate::NoRoom>;
            fn is_short_of_space(&self) -> bool;
            fn free_bytes(&self) -> Option<u64>;
            fn place(&self, lane: $crate::LaneId, len: u64) -> Result<$crate::Position, $crate::HomeError>;
            fn rewrite(&self, lane: $crate::LaneId, at: $crate::Position, block: &$crate::Buffer, len: usize) -> Result<(), $crate::HomeError>;
            fn lanes(&self) -> Result<Vec<$crate::LaneId>, $crate::HomeError>;
            fn segments(&self, lane: $crate::LaneId) -> Result<Vec<$crate::SegmentInfo>, $crate::HomeError>;
            fn read(&self, lane: $crate::LaneId, at: $crate::Position, into: &mut $crate::Buffer) -> Result<usize, $crate::HomeError>;
            fn seal(&self, lane: $crate::LaneId, at: $crate::Position) -> Result<(), $crate::HomeError>;
            fn trim(&self, lane: $crate::LaneId, segment: u64) -> Result<(), $crate::HomeError>;
            fn limit_name_requests(&self, first: std::time::Duration);
            fn begin_side(&self, lane: $crate::LaneId, id: u64) -> Box<dyn $crate::SideWriter>;
            fn get_side(&self, lane: $crate::LaneId, id: u64, offset: u64, into: &mut [u8]) -> Result<usize, $crate::HomeError>;
            fn get_side_copy(&self, copy: usize, lane: $crate::LaneId, id: u64, offset: u64, into: &mut [u8]) -> Result<usize, $crate::HomeError>;
            fn replace_side_copy(&self, damaged: usize, good: usize, lane: $crate::LaneId, id: u64) -> Result<(), $crate::HomeError>;
            fn sides(&self, lane: $crate::LaneId) -> Result<Vec<u64>, $crate::HomeError>;
            fn remove_side(&self, lane: $crate::LaneId, id: u64) -> Result<(), $crate::HomeError>;
            fn give_up_side(&self, lane: $crate::LaneId, id: u64);
        }
    };
}

/// Appends.
#[doc(hidden)]
#[macro_export]
macro_rules! appends_through {
    ($inner:ident) => {
        $crate::handed_through! { $inner
            fn append(&self, lane: $crate::LaneId, at: $crate::Position, block: $crate::Buffer, len: usize, done: $crate::Completion);
            fn append_inline(&self, lane: $crate::LaneId, at: $crate::Position, block: &$crate::Buffer, len: usize) -> Result<(), $crate::HomeError>;
        }
    };
}

/// Named things.
#[doc(hidden)]
#[macro_export]
macro_rules! names_through {
    ($inner:ident) => {
        $crate::handed_through! { $inner
            fn get(&self, name: &str) -> Result<Option<(Vec<u8>, $crate::Tag)>, $crate::HomeError>;
            fn put_if_absent(&self, name: &str, bytes: &[u8]) -> Result<$crate::Tag, $crate::HomeError>;
            fn compare_and_swap(&self, name: &str, expected: $crate::Tag, bytes: &[u8]) -> Result<$crate::Tag, $crate::HomeError>;
        }
    };
}
