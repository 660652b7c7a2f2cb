//! A byte buffer whose memory is aligned for direct I/O.
//!
//! Invariant: `as_slice().as_ptr()` is a multiple of [`DIRECT_ALIGNMENT`] for the buffer's whole life, also after moves
//! (the memory is on the heap and never reallocated).

use std::fmt;

/// Alignment that direct I/O needs on every file system we support.
pub const DIRECT_ALIGNMENT: usize = 4096;

/// Aligned memory of fixed capacity.
pub struct Buffer {
    storage: Box<[u8]>,
    start: usize,
    capacity: usize,
}

impl Buffer {
    /// A buffer of `capacity` zero bytes.
    pub fn zeroed(capacity: usize) -> Buffer {
        let storage = vec![0; capacity + DIRECT_ALIGNMENT].into_boxed_slice();
        let address = storage.as_ptr().addr();
        let start = address.next_multiple_of(DIRECT_ALIGNMENT) - address;
        Buffer {
            storage,
            start,
            capacity,
        }
    }

    /// Number of bytes.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// All bytes.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        &self.storage[self.start..self.start + self.capacity]
    }

    /// All bytes, to write.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.storage[self.start..self.start + self.capacity]
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}
