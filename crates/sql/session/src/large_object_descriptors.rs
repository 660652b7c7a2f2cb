//! What a transaction has opened of large objects.

use logstead_engine::CursorSnapshot;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Oid;
use logstead_types::SqlState;

/// An object that is open.
pub(super) struct Descriptor {
    pub(super) object: Oid,
    pub(super) at: u64,
    pub(super) reads: bool,
    pub(super) writes: bool,
    /// What it reads, unless that is what is newest.
    pub(super) view: Option<CursorSnapshot>,
    /// How many savepoints stood when it was opened.
    pub(super) level: usize,
}

/// Most that are open at the same time: each may hold a view of the data.
const OPEN_MAX: usize = 1 << 16;

/// What a transaction has opened, by number.
#[derive(Default)]
pub(crate) struct Descriptors {
    open: Vec<Option<Descriptor>>,
    /// Below it no number is free.
    free: usize,
}

impl Descriptors {
    pub(super) fn open(&mut self, descriptor: Descriptor) -> Result<i32> {
        let mut behind = self.open.iter().skip(self.free);
        let number = match behind.position(Option::is_none) {
            Some(place) => self.free + place,
            None => self.open.len(),
        };
        let told = i32::try_from(number).ok().filter(|_| number < OPEN_MAX);
        let told = told.ok_or_else(|| {
            SqlError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                "too many large objects are open",
            )
            .hint("Close those that are not needed any more (lo_close).")
        })?;
        match self.open.get_mut(number) {
            Some(place) => *place = Some(descriptor),
            None => self.open.push(Some(descriptor)),
        }
        self.free = number + 1;
        Ok(told)
    }

    pub(super) fn get(&mut self, number: i32) -> Result<&mut Descriptor> {
        let place = usize::try_from(number).ok();
        let found = place.and_then(|at| self.open.get_mut(at)?.as_mut());
        found.ok_or_else(|| {
            SqlError::new(
                SqlState::UNDEFINED_OBJECT,
                format!("invalid large-object descriptor: {number}"),
            )
        })
    }

    pub(super) fn close(&mut self, number: i32) -> Result<()> {
        self.get(number)?;
        if let Ok(at) = usize::try_from(number)
            && let Some(place) = self.open.get_mut(at)
        {
            *place = None;
            self.free = self.free.min(at);
        }
        Ok(())
    }

    pub(super) fn keep(&mut self, keep: impl Fn(&Descriptor) -> bool) {
        for place in &mut self.open {
            if place.as_ref().is_some_and(|open| !keep(open)) {
                *place = None;
            }
        }
        self.free = 0;
    }

    /// What was opened behind the savepoint in front of which `index` others stand is open no more.
    pub(crate) fn rolled_back_to(&mut self, index: usize) {
        self.keep(|open| open.level <= index);
    }

    /// It goes with what stands in front of that savepoint.
    pub(crate) fn released(&mut self, index: usize) {
        for open in self.open.iter_mut().flatten() {
            open.level = open.level.min(index);
        }
    }
}
