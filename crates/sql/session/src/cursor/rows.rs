//! Rows that a cursor keeps: in memory, and beyond `work_mem` in a temporary file.
//!
//! Invariant: rows have numbers, which do not change when others in front of them are forgotten; those in memory come
//! before those in pages.

use crate::cursor::Scrollability;
use logstead_sql_exec::spill::Pages;
use logstead_sql_exec::wait::WaitReason;
use logstead_sql_exec::{OperatorMemory, Spill};
use logstead_sql_types::error::Result;
use logstead_sql_types::value::{self, Datum};
use std::collections::VecDeque;

/// Rows of a cursor that have come, those already given first.
#[derive(Default)]
pub(crate) struct CursorRows {
    rows: VecDeque<(Vec<Datum>, usize)>,
    /// Rows from that number on: beyond what there is memory for.
    paged: Option<(u64, Pages)>,
    /// Rows in front of these that have been forgotten.
    pub(crate) first: u64,
    bytes: usize,
    /// Rows that have been given so far, and the bytes of those still kept.
    behind: u64,
    behind_bytes: usize,
    pub(crate) held: OperatorMemory,
}

impl CursorRows {
    /// What is kept when so many rows have been given already and none of them is to be given again.
    pub(crate) fn after(given: u64) -> CursorRows {
        CursorRows {
            first: given,
            behind: given,
            ..CursorRows::default()
        }
    }

    /// Rows that have come so far.
    pub(crate) fn end(&self) -> u64 {
        match &self.paged {
            Some((start, pages)) => start + pages.row_count(),
            None => self.first + self.rows.len() as u64,
        }
    }

    /// A row by its number, from 0, if it is in memory.
    pub(crate) fn get(&self, number: u64) -> Option<&[Datum]> {
        if number < self.first {
            return None;
        }
        if let Some((start, pages)) = &self.paged
            && let Some(number) = number.checked_sub(*start)
        {
            return pages.get(number);
        }
        let at = usize::try_from(number - self.first).ok()?;
        self.rows.get(at).map(|(row, _)| row.as_slice())
    }

    /// Brings a row into memory; what to wait for before it is called again.
    pub(crate) fn bring(&mut self, number: u64) -> Result<Option<WaitReason>> {
        match &mut self.paged {
            Some((start, pages)) if number >= *start => pages.bring(number - *start),
            _ => Ok(None),
        }
    }

    /// What to wait for before more are added.
    pub(crate) fn behind(&self) -> Result<Option<WaitReason>> {
        match &self.paged {
            Some((_, pages)) => pages.behind(),
            None => Ok(None),
        }
    }

    /// Memory held, roughly.
    pub(crate) fn size_bytes(&self) -> usize {
        let pages = self.paged.as_ref();
        self.bytes + pages.map_or(0, |(_, pages)| pages.size_bytes())
    }

    /// Adds rows; beyond `memory_bytes` of rows that are to be given still, or again, they go to pages.
    pub(crate) fn extend(
        &mut self,
        rows: impl IntoIterator<Item = Vec<Datum>>,
        back: Scrollability,
        memory_bytes: usize,
        spill: impl Fn() -> Option<Spill>,
    ) -> Result<()> {
        for row in rows {
            let counted = match back {
                Scrollability::Always => self.bytes,
                Scrollability::Never | Scrollability::Bytes(_) => {
                    self.bytes.saturating_sub(self.behind_bytes)
                }
            };
            if self.paged.is_none()
                && counted > memory_bytes
                && let Some(spill) = spill()
            {
                let pages = Pages::new(&spill, row.len(), memory_bytes / 4);
                self.paged = Some((self.end(), pages));
            }
            match &mut self.paged {
                Some((_, pages)) => pages.push(&row)?,
                None => self.push(row),
            }
        }
        Ok(())
    }

    fn push(&mut self, row: Vec<Datum>) {
        let bytes = std::mem::size_of::<(Vec<Datum>, usize)>()
            + row.iter().map(value::size_bytes).sum::<usize>();
        self.bytes += bytes;
        self.rows.push_back((row, bytes));
    }

    fn pop(&mut self) {
        if let Some((_, bytes)) = self.rows.pop_front() {
            self.bytes = self.bytes.saturating_sub(bytes);
            self.first += 1;
            if self.first <= self.behind {
                self.behind_bytes = self.behind_bytes.saturating_sub(bytes);
            }
        } else if let Some((start, pages)) = &mut self.paged
            && self.first < *start + pages.row_count()
        {
            self.first += 1;
            pages.drop_before(self.first.saturating_sub(*start));
        }
    }

    /// All rows below `number` have been given: forgets what is not to be given again. The row before `number` stays if
    /// any does: it is the current one.
    pub(crate) fn given(&mut self, number: u64, back: Scrollability) {
        while self.behind < number {
            let at = usize::try_from(self.behind.saturating_sub(self.first));
            let row = at.ok().and_then(|at| self.rows.get(at));
            self.behind_bytes += row.map_or(0, |(_, bytes)| *bytes);
            self.behind += 1;
        }
        match back {
            Scrollability::Always => {}
            Scrollability::Never => {
                while self.first < number {
                    self.pop();
                }
            }
            Scrollability::Bytes(bytes) => {
                while self.behind_bytes > bytes && self.first + 1 < number && !self.rows.is_empty()
                {
                    self.pop();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use logstead_env::Env;
    use logstead_sql_exec::SpillSpace;

    fn kept(rows: i32) -> CursorRows {
        let mut kept = CursorRows::default();
        for i in 0..rows {
            kept.push(vec![Datum::Int4(i)]);
        }
        kept
    }

    #[test]
    fn rows_that_are_not_given_again_are_forgotten() {
        let one = kept(1).bytes;
        let mut never = kept(10);
        never.given(4, Scrollability::Never);
        assert_eq!((never.first, never.end(), never.bytes), (4, 10, 6 * one));
        assert!(never.get(3).is_none() && never.get(4).is_some());

        let mut always = kept(10);
        always.given(10, Scrollability::Always);
        assert_eq!((always.first, always.bytes), (0, 10 * one));

        // What lies ahead does not count, and the current row stays whatever the limit.
        let mut some = kept(10);
        some.given(6, Scrollability::Bytes(3 * one));
        assert_eq!(
            (some.first, some.end(), some.behind_bytes),
            (3, 10, 3 * one)
        );
        some.given(7, Scrollability::Bytes(0));
        assert_eq!(some.first, 6);
        assert!(some.get(6).is_some());
    }

    #[test]
    fn rows_beyond_memory_are_found_by_number() {
        let spill = Spill::new(SpillSpace::new(Env::real(), std::env::temp_dir()));
        for back in [
            Scrollability::Never,
            Scrollability::Bytes(2000),
            Scrollability::Always,
        ] {
            let mut kept = CursorRows::default();
            let rows = |from: i32| (from..from + 2000).map(|i| vec![Datum::Int4(i)]);
            kept.extend(rows(0), back, 10_000, || Some(spill.clone()))
                .unwrap();
            kept.extend(rows(2000), back, 10_000, || Some(spill.clone()))
                .unwrap();
            assert_eq!(kept.end(), 4000);
            assert!(kept.bytes < 20_000, "{}", kept.bytes);
            for number in (0..4000).step_by(7) {
                while let Some(WaitReason::Spill(ticket)) = kept.bring(number).unwrap() {
                    ticket.wait_here(|| Ok::<_, ()>(())).unwrap();
                }
                match kept.get(number) {
                    Some([Datum::Int4(found)]) => assert_eq!(*found as u64, number),
                    other => panic!("{number}: {other:?}"),
                }
            }
            kept.given(3500, back);
            match back {
                Scrollability::Never => assert_eq!(kept.first, 3500),
                Scrollability::Bytes(_) => assert!((1..3500).contains(&kept.first)),
                Scrollability::Always => assert_eq!(kept.first, 0),
            }
            assert_eq!(kept.end(), 4000);
        }
        assert_eq!(spill.used_bytes(), 0);
    }
}
