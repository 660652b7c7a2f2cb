//! What is kept of a traced run.
//!
//! Accesses stand in the order of the trace, those of all workers together; each says how many instructions its worker
//! has run since its access before. Only lines that at least two workers have touched are in it: what one worker alone
//! touches stays in its cache, whatever the others do, and is part of the instructions' time.

use serde::{Deserialize, Serialize};

/// What an instruction does to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AccessKind {
    /// Loads.
    Read,
    /// Stores.
    Write,
    /// Both at once: what takes locks and draws numbers.
    ReadModifyWrite,
    /// A transaction has ended, the line says nothing.
    TransactionEnd,
}

/// An access, or the end of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// Whose.
    pub worker: u16,
    /// What.
    pub kind: AccessKind,
    /// The line, as a place in [`Recording::lines`].
    pub line: u32,
    /// The instruction, as a place in [`Recording::instructions`].
    pub instruction: u32,
    /// Instructions of this worker since its access before.
    pub gap: u32,
}

/// A line of 64 bytes: who had it when the window began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// The workers whose caches have it, by bits; at most 128 of them.
    pub holders: u128,
    /// Its only holder has written to it.
    pub is_dirty: bool,
}

impl Line {
    /// A worker loads; has it to be fetched?
    pub(super) fn read(&mut self, worker: u16) -> bool {
        let own = 1_u128 << worker;
        let misses = self.holders & own == 0;
        if misses {
            self.is_dirty = false;
            self.holders |= own;
        }
        misses
    }

    /// A worker stores; has it to be taken from others?
    pub(super) fn write(&mut self, worker: u16) -> bool {
        let own = 1_u128 << worker;
        let misses = self.holders != own;
        self.holders = own;
        self.is_dirty = true;
        misses
    }
}

/// See the module's documentation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recording {
    /// Workers, each of which is a core.
    pub workers: u16,
    /// Instructions of all workers.
    pub total_instructions: u64,
    /// Transactions that ended.
    pub transactions: u64,
    /// Lines that more than one worker touched.
    pub lines: Vec<Line>,
    /// Addresses of instructions in the program's file.
    pub instructions: Vec<u64>,
    /// In the order of the trace.
    pub accesses: Vec<Access>,
    /// Of each worker: instructions after its last access.
    pub rest: Vec<u64>,
}
