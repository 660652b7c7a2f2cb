//! Rows that are looked at by number, some of them again and again: those last looked at in memory, the others in a
//! temporary file.
//!
//! Rows are kept in *pages*. The last page is open: rows are added to it. A page that is full is written once, when
//! room is needed, and is only dropped from memory after that; looked at again, it is read. Which page goes is told by
//! a clock: one that was looked at since the hand passed it the last time stays for another round.
//!
//! Invariants: at least [`PAGES_LEAST`] pages stay in memory, so that whoever looks at a few rows side by side has them
//! all after a few calls of [`Pages::bring`]; numbers of rows do not change when others are dropped in front of them.

use super::file::SpillBlock;
use super::record::{self, RecordLayout};
use super::{Spill, TempFile};
use crate::batch::row_size_bytes;
use crate::spill_threads::SpillTicket;
use crate::wait::WaitReason;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::Datum;
use std::cell::Cell;
use std::collections::VecDeque;

/// Pages that are in memory whatever they hold.
const PAGES_LEAST: usize = 8;

struct Page {
    /// The number of its first row.
    start: u64,
    rows: usize,
    /// Its rows one after the other, while they are in memory, and what they hold there.
    data: Option<Vec<Datum>>,
    bytes: usize,
    /// Where it lies, once it is full and was written.
    block: Option<SpillBlock>,
    /// It was looked at since the hand passed.
    is_used: Cell<bool>,
}

impl Page {
    fn new(start: u64) -> Page {
        Page {
            start,
            rows: 0,
            data: Some(Vec::new()),
            bytes: 0,
            block: None,
            is_used: Cell::new(true),
        }
    }
}

/// See the module.
pub struct Pages {
    file: TempFile,
    /// What pages in memory may hold.
    memory_bytes: usize,
    width: usize,
    pages: VecDeque<Page>,
    /// The number of the first page, counted from the first there was.
    first_page: u64,
    /// Rows so far, dropped ones too.
    len: u64,
    /// Full pages in memory, by number, as the hand comes to them.
    clock: VecDeque<u64>,
    bytes: usize,
    /// A page that is being read.
    asked: Option<(u64, SpillTicket)>,
    /// The page that was looked at last, from the first on.
    last: Cell<usize>,
}

impl Pages {
    /// Rows of `width` columns, of which pages with so many bytes may be in memory.
    pub fn new(spill: &Spill, width: usize, memory_bytes: usize) -> Pages {
        Pages {
            file: TempFile::new(spill, memory_bytes),
            memory_bytes,
            width,
            pages: VecDeque::new(),
            first_page: 0,
            len: 0,
            clock: VecDeque::new(),
            bytes: 0,
            asked: None,
            last: Cell::new(0),
        }
    }

    /// Rows so far, dropped ones too.
    pub fn row_count(&self) -> u64 {
        self.len
    }

    /// Adds a copy of `row`. The caller looks at [`Pages::behind`] now and then.
    pub fn push(&mut self, row: &[Datum]) -> Result<()> {
        let full = self
            .pages
            .back()
            .is_none_or(|page| page.bytes >= self.file.block_bytes());
        if full {
            if let Some(number) = self.last_number() {
                self.clock.push_back(number);
            }
            self.pages.push_back(Page::new(self.len));
            self.make_room()?;
        }
        if let Some(page) = self.pages.back_mut()
            && let Some(data) = &mut page.data
        {
            let bytes = row_size_bytes(row);
            data.extend_from_slice(row);
            page.rows += 1;
            page.bytes += bytes;
            self.bytes += bytes;
            self.len += 1;
        }
        Ok(())
    }

    fn last_number(&self) -> Option<u64> {
        let pages = self.pages.len() as u64;
        (pages > 0).then(|| self.first_page + pages - 1)
    }

    fn page_mut(&mut self, number: u64) -> Option<&mut Page> {
        let at = usize::try_from(number.checked_sub(self.first_page)?).ok()?;
        self.pages.get_mut(at)
    }

    /// The place of the page that has a row.
    fn place(&self, row: u64) -> Option<usize> {
        let has = |at: usize| {
            let page = self.pages.get(at)?;
            (page.start..page.start + page.rows as u64)
                .contains(&row)
                .then_some(at)
        };
        let last = self.last.get();
        let found = has(last).or_else(|| has(last + 1)).or_else(|| {
            let after = self.pages.partition_point(|page| page.start <= row);
            has(after.checked_sub(1)?)
        })?;
        self.last.set(found);
        Some(found)
    }

    /// A row, if it is in memory.
    pub fn get(&self, row: u64) -> Option<&[Datum]> {
        let page = self.pages.get(self.place(row)?)?;
        page.is_used.set(true);
        let at = usize::try_from(row - page.start).ok()? * self.width;
        page.data.as_ref()?.get(at..at + self.width)
    }

    /// Brings a row into memory; what to wait for before it is called again. A row that is not kept is nothing to wait
    /// for.
    pub fn bring(&mut self, row: u64) -> Result<Option<WaitReason>> {
        let Some(at) = self.place(row) else {
            return Ok(None);
        };
        let number = self.first_page + at as u64;
        let Some(page) = self.pages.get(at) else {
            return Ok(None);
        };
        let (None, Some(block)) = (&page.data, page.block) else {
            return Ok(None);
        };
        let ticket = match self.asked.take() {
            Some((asked, ticket)) if asked == number => ticket,
            _ => self.file.read(block),
        };
        if !ticket.is_done() {
            let waits = WaitReason::Spill(ticket.clone());
            self.asked = Some((number, ticket));
            return Ok(Some(waits));
        }
        let bytes = self.file.finish_read(&ticket)?;
        let mut data = Vec::with_capacity(page.rows * self.width);
        let mut from = 0;
        while from < bytes.len() {
            let RecordLayout { row, .. } = record::place(&bytes, from)?;
            from = row.end;
            record::decode(bytes.get(row).unwrap_or_default(), &mut data)?;
        }
        if let Some(page) = self.pages.get_mut(at) {
            page.data = Some(data);
            page.is_used.set(true);
            self.bytes += page.bytes;
            self.clock.push_back(number);
        }
        self.make_room()?;
        // Rows are gone through in their order more often than not.
        let next = self.pages.get(at + 1).filter(|page| page.data.is_none());
        if let Some(block) = next.and_then(|page| page.block) {
            self.asked = Some((number + 1, self.file.read(block)));
        }
        Ok(None)
    }

    /// Drops pages until what is in memory is no more than may be.
    fn make_room(&mut self) -> Result<()> {
        while self.bytes > self.memory_bytes && self.clock.len() >= PAGES_LEAST {
            let Some(number) = self.clock.pop_front() else {
                return Ok(());
            };
            let width = self.width;
            let Some(page) = self.page_mut(number) else {
                // Its rows were dropped.
                continue;
            };
            if page.is_used.replace(false) {
                self.clock.push_back(number);
                continue;
            }
            let Some(data) = page.data.take() else {
                continue;
            };
            let (bytes, is_written) = (page.bytes, page.block.is_some());
            self.bytes = self.bytes.saturating_sub(bytes);
            if is_written {
                continue;
            }
            let mut encoded = Vec::new();
            for row in data.chunks(width.max(1)) {
                record::encode(&[], row, &mut encoded)?;
            }
            let block = self.file.write(encoded)?;
            if let Some(page) = self.page_mut(number) {
                page.block = Some(block);
            }
        }
        Ok(())
    }

    /// Forgets the rows before `row`, a page at a time.
    pub fn drop_before(&mut self, row: u64) {
        // The open page stays.
        while self.pages.len() > 1
            && let Some(page) = self.pages.front()
            && page.start + page.rows as u64 <= row
        {
            if page.data.is_some() {
                self.bytes = self.bytes.saturating_sub(page.bytes);
            }
            if let Some(page) = self.pages.pop_front()
                && let Some(block) = page.block
            {
                self.file.free(block);
            }
            if self.clock.front() == Some(&self.first_page) {
                self.clock.pop_front();
            }
            self.first_page += 1;
            self.last.set(self.last.get().saturating_sub(1));
        }
    }

    /// What to wait for before more is pushed.
    pub fn behind(&self) -> Result<Option<WaitReason>> {
        self.file.behind()
    }

    /// Memory held, roughly.
    pub fn size_bytes(&self) -> usize {
        self.bytes + self.file.unwritten_bytes() + self.pages.len() * size_of::<Page>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spill::SpillSpace;
    use logstead_env::Env;

    fn number(pages: &mut Pages, row: u64) -> Option<i64> {
        while let Some(obstacle) = pages.bring(row).unwrap() {
            let WaitReason::Spill(ticket) = obstacle else {
                panic!("pages wait for their blocks only")
            };
            ticket.wait_here(|| Ok::<_, ()>(())).unwrap();
        }
        match pages.get(row)? {
            [Datum::Int8(number), Datum::Text(_)] => Some(*number),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn rows_are_found_by_number_and_dropped_from_the_front() {
        let spill = Spill::new(SpillSpace::new(Env::real(), std::env::temp_dir()));
        let mut pages = Pages::new(&spill, 2, 1 << 14);
        let text = |i: i64| Datum::Text("x".repeat(i as usize % 300).into());
        for i in 0..5000 {
            pages.push(&[Datum::Int8(i), text(i)]).unwrap();
            // The newest and one from long ago, side by side.
            assert_eq!(number(&mut pages, i as u64), Some(i));
            assert_eq!(number(&mut pages, i as u64 / 2), Some(i / 2));
            assert!(pages.get(i as u64).is_some());
        }
        assert!(spill.used_bytes() > 500_000, "{}", spill.used_bytes());
        assert!(pages.size_bytes() < 1 << 20, "{}", pages.size_bytes());
        assert_eq!(number(&mut pages, 5000), None);
        pages.drop_before(3000);
        assert_eq!(number(&mut pages, 2000), None);
        for row in [3000, 4999, 3001, 4000, 3000] {
            assert_eq!(number(&mut pages, row), Some(row as i64));
        }
        pages.drop_before(5000);
        assert_eq!(number(&mut pages, 4999), Some(4999));
        drop(pages);
        assert_eq!(spill.used_bytes(), 0);
    }
}
