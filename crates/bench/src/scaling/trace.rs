//! Reads what `valgrind --tool=lackey --trace-mem=yes` prints, as it comes: gigabytes that nobody keeps.
//!
//! A line is an instruction (`I  ADDRESS,SIZE`) or what the instruction before it does to memory (` L`, ` S`, ` M`:
//! loads, stores, both). The traced program prints one line of its own among them, with the address of its marks; from
//! there on stores to the marks say which worker runs.
//!
//! Invariants: what happens while nobody runs (between a pause and the next worker) changes nothing. A line is kept
//! from the moment when a second worker has touched it; until then its worker had it alone, which is what the recording
//! says of the line's beginning.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::io::{self, BufRead};

use super::baton::{Mark, WORKERS_MAX};
use super::recording::{Access, AccessKind, Line, Recording};

/// Bytes of a line, as a power of two.
const LINE_SHIFT: u32 = 6;
/// A load is left out if the same worker has touched the line so many instructions ago or fewer: about the time that
/// another core takes to fetch it. Stores are all kept, since one of them gives a lock back.
const REPEATED_WITHIN: u64 = 128;
/// A line of the trace is much shorter.
const TEXT_BYTES_MAX: u64 = 4096;

/// Where the marks are, in the traced program's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks {
    /// The first of them.
    pub address: u64,
}

impl Marks {
    fn of(self, address: u64) -> Option<Mark> {
        let offset = address.checked_sub(self.address)?;
        if offset % (1 << LINE_SHIFT) != 0 {
            return None;
        }
        Mark::at((offset >> LINE_SHIFT) as usize)
    }
}

/// Addresses are spread well by one multiplication.
#[derive(Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        let mixed = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 29);
    }
}

type Places<T> = HashMap<u64, T, BuildHasherDefault<AddressHasher>>;

/// What is known of a line of memory.
struct Seen {
    state: Line,
    /// Who touched it first; more than one have if this is none.
    only: Option<u16>,
    /// Its place in the recording.
    place: Option<u32>,
    /// The worker of the last access kept, and its instruction count.
    last: (u16, u64),
}

/// What a worker has done.
#[derive(Clone, Copy, Default)]
struct Progress {
    instructions: u64,
    /// `instructions` at its last access that was kept.
    kept_at: u64,
}

struct Reader {
    marks: Option<Marks>,
    running: Option<u16>,
    in_window: bool,
    instruction: u64,
    workers: Vec<Progress>,
    seen: Places<Seen>,
    places: Places<u32>,
    recording: Recording,
}

/// Reads a trace to its end. `bias` is what to take from an instruction's address to have the one in the program's
/// file, given the marks' address.
pub fn read_trace(
    mut from: impl BufRead,
    bias: impl FnOnce(Marks) -> u64,
) -> io::Result<Recording> {
    let mut reader = Reader {
        marks: None,
        running: None,
        in_window: false,
        instruction: 0,
        workers: vec![Progress::default(); WORKERS_MAX],
        seen: Places::default(),
        places: Places::default(),
        recording: Recording::default(),
    };
    let mut text = Vec::with_capacity(64);
    loop {
        text.clear();
        if io::Read::take(&mut from, TEXT_BYTES_MAX).read_until(b'\n', &mut text)? == 0 {
            break;
        }
        reader.line(&text);
    }
    let Some(marks) = reader.marks else {
        let why = "the trace has no marks: is it of another program?";
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    };
    Ok(reader.finish(bias(marks)))
}

/// A hexadecimal number, up to the first other byte.
fn hexadecimal(text: &[u8]) -> Option<u64> {
    let mut value = None;
    for byte in text {
        let Some(digit) = (*byte as char).to_digit(16) else {
            break;
        };
        value = Some(value.unwrap_or(0_u64) << 4 | u64::from(digit));
    }
    value
}

/// A decimal number after the comma.
fn size(text: &[u8]) -> u64 {
    let digits = text.split(|byte| *byte == b',').nth(1).unwrap_or_default();
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |value, digit| {
        (value * 10 + u64::from(digit - b'0')).min(1 << 20)
    })
}

impl Reader {
    fn line(&mut self, text: &[u8]) {
        let Some((head, rest)) = text.split_at_checked(3) else {
            return;
        };
        let kind = match head {
            b"I  " => {
                if let (Some(address), Some(worker)) = (hexadecimal(rest), self.running) {
                    self.instruction = address;
                    self.workers[usize::from(worker)].instructions += 1;
                    self.recording.total_instructions += u64::from(self.in_window);
                }
                return;
            }
            b" L " => AccessKind::Read,
            b" S " => AccessKind::Write,
            b" M " => AccessKind::ReadModifyWrite,
            _ => {
                if let Some(address) = text.strip_prefix(b"@marks ").and_then(hexadecimal) {
                    self.marks = Some(Marks { address });
                }
                return;
            }
        };
        let (Some(marks), Some(address)) = (self.marks, hexadecimal(rest)) else {
            return;
        };
        if kind != AccessKind::Read
            && let Some(mark) = marks.of(address)
        {
            self.mark(mark);
            return;
        }
        let Some(worker) = self.running else {
            return;
        };
        let last = address + size(rest).max(1) - 1;
        for line in address >> LINE_SHIFT..=last >> LINE_SHIFT {
            self.access(worker, kind, line);
        }
    }

    fn mark(&mut self, mark: Mark) {
        match mark {
            Mark::Runs(worker) => {
                self.running = Some(worker as u16);
                self.recording.workers = self.recording.workers.max(worker as u16 + 1);
            }
            Mark::Pause => self.running = None,
            Mark::TransactionEnd => {
                if let (true, Some(worker)) = (self.in_window, self.running) {
                    self.recording.transactions += 1;
                    self.keep(worker, AccessKind::TransactionEnd, 0);
                }
            }
            Mark::WindowBegin => {
                self.in_window = true;
                for worker in &mut self.workers {
                    worker.kept_at = worker.instructions;
                }
            }
            Mark::WindowEnd => {
                self.in_window = false;
                let rest = |worker: &Progress| worker.instructions - worker.kept_at;
                let workers = &self.workers[..usize::from(self.recording.workers)];
                self.recording.rest = workers.iter().map(rest).collect();
            }
        }
    }

    fn access(&mut self, worker: u16, kind: AccessKind, line: u64) {
        let count = self.workers[usize::from(worker)].instructions;
        let seen = self.seen.entry(line).or_insert_with(|| Seen {
            state: Line::default(),
            only: Some(worker),
            place: None,
            last: (u16::MAX, 0),
        });
        if seen.only.is_some_and(|only| only != worker) {
            seen.only = None;
        }
        let before = seen.state;
        let misses = match kind {
            AccessKind::Read => seen.state.read(worker),
            _ => seen.state.write(worker),
        };
        if !self.in_window || seen.only.is_some() {
            return;
        }
        let is_repeated = !misses
            && kind == AccessKind::Read
            && seen.last.0 == worker
            && count - seen.last.1 <= REPEATED_WITHIN;
        if is_repeated {
            return;
        }
        seen.last = (worker, count);
        let place = *seen.place.get_or_insert_with(|| {
            self.recording.lines.push(before);
            (self.recording.lines.len() - 1) as u32
        });
        self.keep(worker, kind, place);
    }

    fn keep(&mut self, worker: u16, kind: AccessKind, line: u32) {
        let instructions = &mut self.recording.instructions;
        let instruction = *self.places.entry(self.instruction).or_insert_with(|| {
            instructions.push(self.instruction);
            (instructions.len() - 1) as u32
        });
        let progress = &mut self.workers[usize::from(worker)];
        let gap = progress.instructions - progress.kept_at;
        progress.kept_at = progress.instructions;
        self.recording.accesses.push(Access {
            worker,
            kind,
            line,
            instruction,
            gap: u32::try_from(gap).unwrap_or(u32::MAX),
        });
    }

    fn finish(mut self, bias: u64) -> Recording {
        for address in &mut self.recording.instructions {
            *address = address.wrapping_sub(bias);
        }
        self.recording
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARKS: u64 = 0x10000;

    fn set(mark: usize) -> String {
        format!("I  500,4\n S {:x},8\n", MARKS + 64 * mark as u64)
    }

    fn read(text: &str) -> Recording {
        read_trace(text.as_bytes(), |marks| marks.address - MARKS + 0x100).expect("reads")
    }

    /// Two workers: a line of the first alone, one that both write, and one that both only read.
    #[test]
    fn lines_of_two_workers_are_kept_with_the_instructions_between() {
        let mut text = String::from("==1== Lackey\nI  400,4\n S 2000,8\n@marks 10000\n");
        // Before anybody runs nothing counts.
        text += "I  404,4\n S 2000,8\n";
        let window = WORKERS_MAX + 2;
        text += &(set(0) + "I  408,4\n S 2000,8\nI  409,4\n S 3000,8\n" + &set(window));
        text += "I  40c,4\nI  410,4\n M 3000,8\nI  414,4\n S 2000,8\n";
        // Passing on is nobody's.
        text += &(set(WORKERS_MAX) + "I  700,4\n M 3000,8\n S 4000,8\n" + &set(1));
        text += "I  414,4\n S 4000,8\n";
        // Loading what it has just had is left out.
        text += "I  418,4\n M 3000,8\nI  41c,4\nI  420,4\n L 3008,8\n";
        text += &(set(WORKERS_MAX + 1) + &set(WORKERS_MAX) + &set(0));
        text += "I  424,4\n L 3010,4\n";
        text += &(set(WORKERS_MAX + 1) + &set(WORKERS_MAX + 3));
        text += "I  428,4\n M 3000,8\n";
        let recording = read(&text);
        assert_eq!((recording.workers, recording.transactions), (2, 2));
        assert_eq!(
            recording.lines,
            [Line {
                holders: 1,
                is_dirty: true
            }]
        );
        let kinds: Vec<_> = recording
            .accesses
            .iter()
            .map(|access| (access.worker, access.kind))
            .collect();
        use AccessKind::{Read, ReadModifyWrite, TransactionEnd};
        // The first worker's own store came when it had the line alone.
        assert_eq!(
            kinds,
            [
                (1, ReadModifyWrite),
                (1, TransactionEnd),
                (0, Read),
                (0, TransactionEnd)
            ]
        );
        assert_eq!(
            recording.instructions[recording.accesses[0].instruction as usize],
            0x418 - 0x100
        );
        assert_eq!(recording.accesses[1].gap, 3);
    }

    #[test]
    fn what_crosses_a_border_is_two_lines() {
        let mut text = String::from("@marks 10000\n");
        text += &(set(0) + "I  400,4\n S 103c,8\n" + &set(WORKERS_MAX) + &set(1));
        text += &(set(WORKERS_MAX + 2) + "I  400,4\n S 103c,8\n" + &set(WORKERS_MAX + 3));
        assert_eq!(read(&text).lines.len(), 2);
    }

    #[test]
    fn what_is_no_trace_is_told() {
        for text in ["", "I  400,4\n L 1,1\n", "\u{ff}\u{0}nothing\n@marks\n"] {
            assert!(read_trace(text.as_bytes(), |_| 0).is_err(), "{text:?}");
        }
    }
}
