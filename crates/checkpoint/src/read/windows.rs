//! Stretches of objects in memory: what a reader has read, and reads ahead.
//!
//! Owns: [`ReadWindows`], the stretches that were read last and those of the pages that are wanted next.
//! Invariant: a stretch is at most as long as the reader was told, and no more than [`WINDOWS`] of them are kept
//! beside those read ahead.
//! Does not: check a frame; a stretch has whatever bytes the home gave.

use super::ReadStats;
use crate::page_ref::PageRef;
use logstead_home::{HomeError, ObjectId, ObjectReader};

/// The most that is read in one go.
pub(super) const WINDOW_BYTES_MAX: usize = 4 << 20;
/// The least that is read ahead, once it shows that pages are read in the order in which they lie.
const WINDOW_BYTES_MIN: usize = 64 << 10;
/// A gap in an object that is read over rather than around.
const GAP_BYTES_MAX: u64 = 256 << 10;
/// The same where pages that are not wanted lie between some that are, which are read ahead.
const AHEAD_GAP_BYTES_MAX: u64 = 32 << 10;
/// Windows kept.
const WINDOWS: usize = 8;

/// A stretch of an object in memory.
pub(super) struct ReadWindow {
    object: ObjectId,
    start: u64,
    pub(super) bytes: Vec<u8>,
    /// The length that was asked for.
    asked: usize,
}

impl ReadWindow {
    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    fn holds(&self, at: &PageRef) -> bool {
        self.object == at.object && self.part(at).is_some()
    }

    fn part(&self, at: &PageRef) -> Option<&[u8]> {
        let from = u64::from(at.offset).checked_sub(self.start)?;
        let from = usize::try_from(from).ok()?;
        self.bytes.get(from..from.checked_add(at.len as usize)?)
    }
}

/// The stretches that were read last, the newest first. Pages that lie one behind the other are read ahead, further
/// each time.
pub(crate) struct ReadWindows {
    pub(super) kept: Vec<ReadWindow>,
    /// Stretches that were asked for, each of several pages.
    pub(super) ahead: Vec<ReadWindow>,
    bytes_max: usize,
    /// Nothing is read ahead, and nothing used again but the buffer.
    pub(super) single: bool,
}

impl ReadWindows {
    /// None yet; none will be longer than this, at least [`WINDOW_BYTES_MIN`], but for a single page.
    pub(crate) fn new(bytes_max: usize) -> ReadWindows {
        ReadWindows {
            kept: Vec::new(),
            ahead: Vec::new(),
            bytes_max: bytes_max.max(WINDOW_BYTES_MIN),
            single: false,
        }
    }

    /// Brings the window with a frame to the front; true if it had to be read.
    pub(crate) fn load(
        &mut self,
        objects: &dyn ObjectReader,
        at: &PageRef,
    ) -> Result<bool, HomeError> {
        if self.ahead.iter().any(|window| window.holds(at)) {
            return Ok(false);
        }
        if self.single {
            self.kept.truncate(1);
            if let Some(window) = self.kept.first_mut() {
                // Behind every frame.
                (window.start, window.asked) = (u64::MAX, 0);
            }
        }
        if let Some(found) = self.kept.iter().position(|window| window.holds(at)) {
            self.kept[..=found].rotate_right(1);
            return Ok(false);
        }
        let offset = u64::from(at.offset);
        let len = at.len as usize;
        let before = self.kept.iter().position(|window| {
            window.object == at.object
                && window.start <= offset
                && offset.saturating_sub(window.end()) <= GAP_BYTES_MAX
        });
        let mut asked = len;
        if let Some(before) = before {
            let ahead = self.kept[before].asked.saturating_mul(2);
            asked = asked.max(ahead.clamp(WINDOW_BYTES_MIN, self.bytes_max));
            self.kept[..=before].rotate_right(1);
        } else if self.kept.len() < if self.single { 1 } else { WINDOWS } {
            self.kept.insert(
                0,
                ReadWindow {
                    object: at.object,
                    start: 0,
                    bytes: Vec::new(),
                    asked: 0,
                },
            );
        } else {
            self.kept.rotate_right(1);
        }
        let window = &mut self.kept[0];
        // Nothing is in it until all of it is.
        let mut bytes = std::mem::take(&mut window.bytes);
        // What is in it is overwritten: only what it grows by is cleared.
        bytes.resize(asked, 0);
        let got = objects.read_object(at.object, offset, &mut bytes)?;
        bytes.truncate(got);
        *window = ReadWindow {
            object: at.object,
            start: offset,
            bytes,
            asked,
        };
        Ok(true)
    }

    /// The bytes of the frame that was loaded last.
    pub(crate) fn front(&self, at: &PageRef) -> Option<&[u8]> {
        let ahead = self.ahead.iter().find(|window| window.holds(at));
        ahead
            .or(self.kept.first())
            .and_then(|window| window.part(at))
    }

    /// Reads stretches with several of these pages, in all `bytes_max` at most. What cannot be read is left to who
    /// needs it.
    pub(super) fn read_ahead(
        &mut self,
        objects: &dyn ObjectReader,
        mut pages: Vec<PageRef>,
        bytes_max: usize,
        reads: &mut ReadStats,
    ) {
        self.ahead.clear();
        pages.sort_unstable_by_key(|at| (at.object, at.offset));
        let mut left = bytes_max;
        let mut rest = &pages[..];
        while let Some(first) = rest.first() {
            let start = u64::from(first.offset);
            let (mut end, mut count) = (start, 0);
            for at in rest {
                let after = (u64::from(at.offset) + u64::from(at.len)).max(end);
                let fits = usize::try_from(after - start).is_ok_and(|length| length <= left);
                let lies_near = u64::from(at.offset).saturating_sub(end) <= AHEAD_GAP_BYTES_MAX;
                if at.object != first.object || !fits || !lies_near {
                    break;
                }
                (end, count) = (after, count + 1);
            }
            rest = rest.get(count.max(1)..).unwrap_or_default();
            let length = (end - start) as usize;
            // A single page is read when its turn comes.
            if count < 2 {
                continue;
            }
            left -= length;
            let mut bytes = vec![0; length];
            reads.requests += 1;
            let Ok(got) = objects.read_object(first.object, start, &mut bytes) else {
                continue;
            };
            bytes.truncate(got);
            reads.bytes += got as u64;
            self.ahead.push(ReadWindow {
                object: first.object,
                start,
                bytes,
                asked: length,
            });
        }
    }

    /// Puts a window of one frame at the front, found elsewhere.
    pub(super) fn put(&mut self, at: &PageRef, bytes: Vec<u8>) {
        self.ahead.retain(|window| !window.holds(at));
        self.kept.truncate(WINDOWS - 1);
        let window = ReadWindow {
            object: at.object,
            start: u64::from(at.offset),
            bytes,
            asked: at.len as usize,
        };
        self.kept.insert(0, window);
    }
}
