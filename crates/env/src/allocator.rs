//! An allocator that gives large memory back to the system as soon as it is freed.
//!
//! Allocators for many threads keep what is freed for the next who asks. Of small memory that is little; of buffers of
//! many megabytes, each larger than the one before, it is as much again as the buffers themselves, and the process
//! takes more than `memory` allows it. So what is large is mapped by itself: unmapped when it is freed, and enlarged by
//! moving its pages, not their bytes, so that both sizes are never there at once.
//!
//! Much small memory that is freed at once (the elements of an array, the rows of a sort) stays with the allocator as
//! well, and the next statement's buffers come on top of it. Only who freed it knows that it was much: it says
//! [`release_free_memory`].

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_void;
use std::ptr;

use rustix::mm::{
    Advice, MapFlags, MremapFlags, ProtFlags, madvise, mmap_anonymous, mremap, munmap,
};

/// What is smaller comes from the other allocator: to fill so much takes longer than to map it.
const MAPPED_BYTES_MIN: usize = 4 << 20;
/// Every system's pages are at least so large, and mappings begin with a page.
const ALIGNMENT_MAX: usize = 4096;

/// Gives what the calling thread has freed, and mimalloc keeps for the next who asks, back to the system. It looks at
/// each page of the thread's heap: some milliseconds for each gigabyte there is. Does nothing where mimalloc is not the
/// allocator.
#[cold]
pub fn release_free_memory() {
    use libmimalloc_sys as _;
    unsafe extern "C" {
        fn mi_collect(force: bool);
    }
    // SAFETY: it may be called by any thread at any time, and looks at the allocator's own memory alone.
    unsafe { mi_collect(true) }
}

/// Allocates large memory from the system, and all other memory from `A`.
#[derive(Clone, Copy, Debug, Default)]
pub struct LargeMapped<A>(pub A);

/// Whether memory of this layout is mapped by itself. It depends on the layout alone, so that it can be asked when the
/// memory is freed.
#[inline]
fn is_mapped(layout: Layout) -> bool {
    layout.size() >= MAPPED_BYTES_MIN && layout.align() <= ALIGNMENT_MAX
}

#[cold]
fn map(bytes: usize) -> *mut u8 {
    // SAFETY: an anonymous mapping at an address that the kernel chooses replaces nothing.
    let mapped = unsafe {
        mmap_anonymous(
            ptr::null_mut(),
            bytes,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE,
        )
    };
    mapped.map_or(ptr::null_mut(), <*mut c_void>::cast)
}

// SAFETY: each layout is served by one of two allocators, always the same one for the same layout: `A`, or mappings,
// which begin with a page and are at least as long as the layout says. Nothing here unwinds.
unsafe impl<A: GlobalAlloc> GlobalAlloc for LargeMapped<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match is_mapped(layout) {
            true => map(layout.size()),
            // SAFETY: the caller's promise about the layout.
            false => unsafe { self.0.alloc(layout) },
        }
    }

    // SAFETY: as `alloc`; a new mapping is zero.
    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match is_mapped(layout) {
            // New mappings are zero.
            true => map(layout.size()),
            // SAFETY: the caller's promise about the layout.
            false => unsafe { self.0.alloc_zeroed(layout) },
        }
    }

    // SAFETY: the layout says who gave the memory, as it did in `alloc`.
    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if !is_mapped(layout) {
            // SAFETY: `A` gave this memory for this layout.
            return unsafe { self.0.dealloc(memory, layout) };
        }
        // SAFETY: it is a mapping of this length, and its owner gives it up.
        if unsafe { munmap(memory.cast(), layout.size()) }.is_err() {
            // The system joins neighbours to one mapping, and may have no room to divide it again. Then the pages go
            // and the addresses stay. SAFETY: nobody uses the memory any more.
            let emptied = unsafe { madvise(memory.cast(), layout.size(), Advice::LinuxDontNeed) };
            debug_assert!(emptied.is_ok(), "pages of our own can be given back");
        }
    }

    // SAFETY: what moves between the two ways is copied before it is given back.
    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller promises that `bytes`, rounded up to the alignment, is no more than a layout may have.
        let wanted = unsafe { Layout::from_size_align_unchecked(bytes, layout.align()) };
        match (is_mapped(layout), is_mapped(wanted)) {
            // SAFETY: `A` gave this memory for this layout.
            (false, false) => unsafe { self.0.realloc(memory, layout, bytes) },
            (true, true) => {
                // SAFETY: it is a mapping of this length, and nobody uses its old address any more when it has moved.
                let moved =
                    unsafe { mremap(memory.cast(), layout.size(), bytes, MremapFlags::MAYMOVE) };
                moved.map_or(ptr::null_mut(), <*mut c_void>::cast)
            }
            _ => {
                // SAFETY: the caller's promise about the layout.
                let new = unsafe { self.alloc(wanted) };
                if !new.is_null() {
                    // SAFETY: both are as long as is copied, and the new memory overlaps nothing. The old memory is
                    // what its layout says.
                    unsafe {
                        ptr::copy_nonoverlapping(memory, new, layout.size().min(bytes));
                        self.dealloc(memory, layout);
                    }
                }
                new
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::alloc::System;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Counts what is not mapped.
    #[derive(Default)]
    struct Counting {
        alive: AtomicUsize,
        asked: AtomicUsize,
    }

    // SAFETY: all is the system's allocator's.
    unsafe impl GlobalAlloc for Counting {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            self.alive.fetch_add(layout.size(), Ordering::Relaxed);
            self.asked.fetch_add(1, Ordering::Relaxed);
            // SAFETY: the caller's promise.
            unsafe { System.alloc(layout) }
        }

        unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
            self.alive.fetch_sub(layout.size(), Ordering::Relaxed);
            // SAFETY: the caller's promise.
            unsafe { System.dealloc(memory, layout) }
        }
    }

    fn resident_pages(memory: *const u8, bytes: usize) -> bool {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
        let at = memory as usize;
        maps.lines().any(|line| {
            let (from, rest) = line.split_once('-').expect("a range");
            let to = rest.split(' ').next().expect("its end");
            let from = usize::from_str_radix(from, 16).expect("an address");
            let to = usize::from_str_radix(to, 16).expect("an address");
            from <= at && at + bytes <= to
        })
    }

    #[test]
    fn what_grows_and_shrinks_keeps_its_bytes_and_comes_from_the_right_allocator() {
        let allocator = LargeMapped(Counting::default());
        let layout = |bytes| Layout::from_size_align(bytes, 8).expect("a layout");
        let small = 1000;
        // SAFETY: each layout is the one that the memory has, and no byte beyond is touched.
        unsafe {
            let mut memory = allocator.alloc(layout(small));
            let mut have = small;
            for i in 0..small {
                memory.add(i).write((i % 251) as u8);
            }
            for bytes in [
                MAPPED_BYTES_MIN - 1,
                MAPPED_BYTES_MIN,
                3 * MAPPED_BYTES_MIN + 17,
                40 * MAPPED_BYTES_MIN,
                MAPPED_BYTES_MIN + 1,
                MAPPED_BYTES_MIN - 1,
                small,
            ] {
                memory = allocator.realloc(memory, layout(have), bytes);
                have = bytes;
                assert!((0..small).all(|i| memory.add(i).read() == (i % 251) as u8));
                memory.add(bytes - 1).write(7);
                memory.add(small - 1).write(((small - 1) % 251) as u8);
                let mapped = bytes >= MAPPED_BYTES_MIN;
                let alive = allocator.0.alive.load(Ordering::Relaxed);
                assert_eq!(alive, if mapped { 0 } else { bytes });
            }
            allocator.dealloc(memory, layout(have));
        }
        assert_eq!(allocator.0.alive.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn large_memory_is_gone_once_it_is_freed_and_zero_when_it_is_new() {
        let allocator = LargeMapped(Counting::default());
        let bytes = 9 * MAPPED_BYTES_MIN + 5;
        let layout = Layout::from_size_align(bytes, 64).expect("a layout");
        // SAFETY: the layout is the one that the memory has, and no byte beyond is touched.
        unsafe {
            let memory = allocator.alloc_zeroed(layout);
            assert_eq!(memory as usize % 64, 0);
            assert!((0..bytes).step_by(4096).all(|i| memory.add(i).read() == 0));
            memory.add(bytes - 1).write(1);
            assert!(resident_pages(memory, bytes));
            allocator.dealloc(memory, layout);
            assert!(!resident_pages(memory, bytes));
        }
        assert_eq!(allocator.0.asked.load(Ordering::Relaxed), 0);
    }
}
