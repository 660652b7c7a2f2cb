//! What a transaction has opened of large objects.

use crate::error::{Result, SqlError};
use crate::value::Oid;
use logstead_engine::View;
use logstead_types::SqlState;

/// An object that is open.
pub(super) struct Descriptor {
    pub(super) object: Oid,
    pub(super) at: u64,
    pub(super) reads: bool,
    pub(super) writes: bool,
    /// What it reads, unless that is what is newest.
    pub(super) view: Option<View>,
    /// How many savepoints stood when it was opened.
    pub(super) level: usize,
}

/// What a transaction has opened, by number.
#[derive(Default)]
pub(in crate::session) struct Descriptors(Vec<Option<Descriptor>>);

impl Descriptors {
    pub(super) fn open(&mut self, descriptor: Descriptor) -> Result<i32> {
        let free = self.0.iter().position(Option::is_none);
        let number = free.unwrap_or(self.0.len());
        match self.0.get_mut(number) {
            Some(place) => *place = Some(descriptor),
            None => self.0.push(Some(descriptor)),
        }
        i32::try_from(number).map_err(|_| {
            SqlError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                "too many large objects are open",
            )
        })
    }

    pub(super) fn get(&mut self, number: i32) -> Result<&mut Descriptor> {
        let place = usize::try_from(number).ok();
        let found = place.and_then(|at| self.0.get_mut(at)?.as_mut());
        found.ok_or_else(|| {
            SqlError::new(
                SqlState::UNDEFINED_OBJECT,
                format!("invalid large-object descriptor: {number}"),
            )
        })
    }

    pub(super) fn close(&mut self, number: i32) -> Result<()> {
        self.get(number)?;
        if let Some(place) = usize::try_from(number)
            .ok()
            .and_then(|at| self.0.get_mut(at))
        {
            *place = None;
        }
        Ok(())
    }

    pub(super) fn keep(&mut self, keep: impl Fn(&Descriptor) -> bool) {
        for place in &mut self.0 {
            if place.as_ref().is_some_and(|open| !keep(open)) {
                *place = None;
            }
        }
    }

    /// What was opened behind the savepoint in front of which `index` others stand is open no more.
    pub(in crate::session) fn rolled_back_to(&mut self, index: usize) {
        self.keep(|open| open.level <= index);
    }

    /// It goes with what stands in front of that savepoint.
    pub(in crate::session) fn released(&mut self, index: usize) {
        for open in self.0.iter_mut().flatten() {
            open.level = open.level.min(index);
        }
    }
}
