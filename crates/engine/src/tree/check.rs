//! A look at the whole tree: are the invariants kept?

use std::fmt;
use std::sync::atomic::Ordering::Relaxed;

use super::Tree;
use super::blob::Blobs;
use super::cell::EpochGuard;
use super::edit::links_end;
use super::page::{HEAP_END, INLINE_BYTES_MAX, Page, head_of};

/// What a walk over a whole index has found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeReport {
    /// Entries in memory, surplus ones included.
    pub entries: usize,
    /// Pages with entries, in memory.
    pub leaves: usize,
    /// Pages with entries that are not in memory.
    pub absent_leaves: usize,
    /// Pages above them.
    pub inner_pages: usize,
    /// Levels of pages.
    pub levels: usize,
    /// Bytes in use within the leaves.
    pub leaf_bytes: usize,
    /// Entries kept outside of pages.
    pub blobs: usize,
}

/// A page, its bounds and what is asked of it.
struct Checker<'p> {
    pin: &'p EpochGuard,
    divided: bool,
    report: TreeReport,
}

/// Why a tree is not as it must be.
type Fault = String;

/// Fails with a message that names the page.
fn must(kept: bool, page: &Page, what: impl fmt::Display) -> Result<(), Fault> {
    if kept {
        Ok(())
    } else {
        Err(format!("page {page:p} of level {}: {what}", page.level))
    }
}

impl Checker<'_> {
    /// Checks a page that must cover what is from `low` to below `high`, and all below it.
    fn page(&mut self, page: &Page, low: Option<&[u8]>, high: Option<&[u8]>) -> Result<(), Fault> {
        must(page.latch.is_idle(), page, "locked or obsolete")?;
        let mut fence = Vec::new();
        let has_low = page.copy_fence(&page.low, self.pin, &mut fence);
        must(
            has_low.then_some(&fence[..]) == low,
            page,
            "wrong low fence",
        )?;
        fence.clear();
        let has_high = page.copy_fence(&page.high, self.pin, &mut fence);
        must(
            has_high.then_some(&fence[..]) == high,
            page,
            "wrong high fence",
        )?;

        let meta = page.meta();
        must(meta.count * 8 <= meta.heap, page, "slots run into the heap")?;
        must(meta.heap <= HEAP_END, page, "the heap ends beyond the page")?;
        let mut prefix = Vec::new();
        page.copy_prefix(meta, &mut prefix);
        let mut entries: Vec<Vec<u8>> = Vec::with_capacity(meta.count);
        let (mut heap_bytes, mut blobs) = (0, 0);
        for at in 0..meta.count {
            let slot = page.slot(at);
            let mut entry = Vec::new();
            if slot.is_blob() {
                must(
                    page.slot_blob(slot, self.pin).is_some(),
                    page,
                    format_args!("the blob of slot {at} is missing"),
                )?;
                blobs += 1;
            }
            page.copy_entry(meta, slot, self.pin, &mut entry);
            must(
                slot.is_blob() == (entry.len() > INLINE_BYTES_MAX),
                page,
                format_args!("entry {at} of {} bytes in the wrong place", entry.len()),
            )?;
            must(
                entry.starts_with(&prefix) && slot.head() == head_of(&entry[prefix.len()..]),
                page,
                format_args!("prefix or head of entry {at}"),
            )?;
            heap_bytes += slot.heap_bytes();
            entries.push(entry);
        }
        must(
            heap_bytes + meta.garbage + meta.prefix <= HEAP_END - meta.heap,
            page,
            "more bytes in use than the heap has",
        )?;
        let known = page.blobs.load(self.pin).map_or(0, Blobs::len);
        must(
            (blobs..=blobs + 2).contains(&known),
            page,
            format_args!("{known} blobs kept for {blobs}"),
        )?;
        let ordered = entries.windows(2).all(|pair| pair[0] < pair[1]);
        must(ordered, page, "entries out of order")?;
        if let (Some(first), Some(last)) = (entries.first(), entries.last()) {
            // An inner page's separators are strictly inside: at a fence there is nothing to separate.
            let above_low = low.is_none_or(|low| {
                if page.is_leaf() {
                    low <= &first[..]
                } else {
                    low < &first[..]
                }
            });
            let below_high = high.is_none_or(|high| &last[..] < high);
            must(
                above_low && below_high,
                page,
                "entries outside of the fences",
            )?;
        }
        self.report.blobs += blobs;
        if page.is_leaf() {
            let firsts =
                [entries.first(), entries.last()].map(|entry| entry.and_then(|e| e.first()));
            must(
                !self.divided || firsts[0] == firsts[1],
                page,
                "entries of several virtual partitions",
            )?;
            must(
                page.first_byte(meta).as_ref() == firsts[0],
                page,
                "another first byte than the first entry's",
            )?;
            self.report.leaves += 1;
            self.report.entries += meta.count;
            self.report.leaf_bytes += meta.used();
            return Ok(());
        }
        self.report.inner_pages += 1;
        must(
            links_end(page.links(), meta.count + 1, self.pin),
            page,
            "links beyond the last separator",
        )?;
        for at in 0..=meta.count {
            let Some(child) = page.links()[at].load(self.pin) else {
                must(page.level == 1, page, format_args!("link {at} is missing"))?;
                self.report.absent_leaves += 1;
                continue;
            };
            must(
                child.level + 1 == page.level,
                page,
                format_args!("link {at} leads to level {}", child.level),
            )?;
            let low = if at == 0 {
                low
            } else {
                Some(&entries[at - 1][..])
            };
            let high = entries.get(at).map_or(high, |entry| Some(&entry[..]));
            self.page(child, low, high)?;
        }
        Ok(())
    }
}

impl Tree {
    /// Looks at every page and verifies the invariants. Nobody may change the tree meanwhile.
    pub(crate) fn check(&self) -> Result<TreeReport, Fault> {
        let pin = EpochGuard::new();
        let root = self.root.load(&pin).ok_or("no root")?;
        let mut checker = Checker {
            pin: &pin,
            divided: self.divided,
            report: TreeReport {
                levels: usize::from(root.level) + 1,
                ..TreeReport::default()
            },
        };
        checker.page(root, None, None)?;
        let report = checker.report;
        let counted = (
            self.leaves.load(Relaxed),
            self.absent_leaves.load(Relaxed),
            self.inner_pages.load(Relaxed),
        );
        if counted != (report.leaves, report.absent_leaves, report.inner_pages) {
            return Err(format!("{counted:?} pages counted, {report:?} found"));
        }
        Ok(report)
    }
}
