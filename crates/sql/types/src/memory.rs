//! Values that may become large: how they are built, and what they may take.
//!
//! Owns: the limit of one value ([`VALUE_BYTES_MAX`], PostgreSQL's `MaxAllocSize`), the `Builder` of texts and bytes,
//! `MemoryReservation`, which charges what is being built to the server's memory budget, and the list of the large
//! values that are alive.
//!
//! Invariants:
//! - Nothing of `SMALL_BYTES` or more is allocated before it is charged: who asks last gets 53200, and the allocation
//!   itself is asked for with `try_reserve`.
//! - The list holds weak references, so the memory of a value that is gone is given back, and its charge with it, when
//!   the list is swept: before something is refused, while much is added, and between statements.
//! - Much memory whose charge is given back goes to the system before more is charged, and between statements: the
//!   process has what is charged, not what once was.
//!
//! Does not: know values (`value::build` says which are large) or count what operators hold between rows
//! (`exec::held`), which charge it themselves.

use crate::error::{Result, SqlError, out_of_memory};
use crate::interrupt::check_for_interrupts;
use logstead_engine::{Charge, Memory};
use logstead_types::SqlState;
use parking_lot::Mutex;
use std::cell::Cell;
use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Weak};

/// Most bytes of one value: PostgreSQL's `MaxAllocSize`.
pub const VALUE_BYTES_MAX: usize = 0x3fff_ffff;
/// Most elements of an array, as PostgreSQL has them.
pub const ITEMS_MAX: usize = 134_217_727;
/// What is smaller is not charged.
pub const SMALL_BYTES: usize = 64 << 10;
/// Bytes that a loop goes through between two looks for interrupts.
pub const STRIDE_BYTES: usize = 64 << 10;
/// The list is swept when so many bytes have been added since it last was.
const SWEEP_BYTES: usize = 16 << 20;
/// A list of so many values is not swept for a statement that added none.
const SWEPT_ALWAYS: usize = 256;

thread_local! {
    /// What the statements of this thread charge to: the account of its engine.
    static MEMORY: Cell<Option<&'static Memory>> = const { Cell::new(None) };
}

/// From now on what is built in this thread is charged to this account.
#[inline]
pub fn charge_to(memory: &'static Memory) {
    MEMORY.set(Some(memory));
}

/// 54000, as PostgreSQL refuses to enlarge a buffer.
#[cold]
pub fn too_large(have: usize, more: usize) -> SqlError {
    SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "out of memory").detail(format!(
        "Cannot enlarge string buffer containing {have} bytes by {more} more bytes."
    ))
}

/// 54000 for an array of too many elements.
#[cold]
pub fn too_many_items() -> SqlError {
    SqlError::new(
        SqlState::PROGRAM_LIMIT_EXCEEDED,
        format!("array size exceeds the maximum allowed ({ITEMS_MAX})"),
    )
}

/// 53200 when the system has no memory, though the budget would.
#[cold]
fn no_memory(bytes: usize) -> SqlError {
    SqlError::new(SqlState::OUT_OF_MEMORY, "out of memory")
        .detail(format!("Failed on request of size {bytes}."))
}

/// What something that is being built is charged, until it is dropped.
#[derive(Debug, Default)]
pub struct MemoryReservation(Option<Charge>);

impl MemoryReservation {
    /// Charges `bytes` in all; 53200 if the budget has no room for them.
    #[inline]
    pub fn hold(&mut self, bytes: usize) -> Result<()> {
        if bytes < SMALL_BYTES && self.0.is_none() {
            return Ok(());
        }
        self.hold_large(bytes)
    }

    #[cold]
    fn hold_large(&mut self, bytes: usize) -> Result<()> {
        let Some(memory) = MEMORY.get() else {
            return Ok(());
        };
        give_back(memory);
        let charge = self.0.get_or_insert_with(|| memory.charge());
        if charge.set(bytes).is_ok() {
            return Ok(());
        }
        sweep();
        charge.set(bytes).map_err(|error| out_of_memory(&error))
    }

    /// Charges `bytes` for as long as what is returned lives.
    pub fn of(bytes: usize) -> Result<MemoryReservation> {
        let mut room = MemoryReservation::default();
        room.hold(bytes)?;
        Ok(room)
    }

    /// Makes room for `more` elements behind those of `items`, which this has been asked about alone.
    #[inline]
    pub fn reserve<T>(&mut self, items: &mut Vec<T>, more: usize) -> Result<()> {
        let enough = items.capacity() - items.len() >= more;
        if enough && items.capacity() * size_of::<T>() <= self.held_bytes() {
            return Ok(());
        }
        self.enlarge(items, more)
    }

    /// Bytes that are charged, or that need no charge.
    #[inline]
    fn held_bytes(&self) -> usize {
        self.0.as_ref().map_or(SMALL_BYTES, Charge::bytes)
    }

    #[cold]
    fn enlarge<T>(&mut self, items: &mut Vec<T>, more: usize) -> Result<()> {
        let width = size_of::<T>().max(1);
        let most = match width {
            1 => VALUE_BYTES_MAX,
            _ => ITEMS_MAX,
        };
        let needed = items.len().saturating_add(more);
        if needed > most {
            return Err(match width {
                1 => too_large(items.len(), more),
                _ => too_many_items(),
            });
        }
        let had = items.capacity();
        if had - items.len() >= more {
            // What was appended without asking has enlarged the vector.
            return self.hold(had * width);
        }
        // Twice as much, or half as much again if that is much.
        let grown = match had * width < 32 << 20 {
            true => had * 2,
            false => had + had / 2,
        };
        // What is appended without asking finds room behind it, so that the vector does not enlarge itself.
        let small_things = match width == 1 && needed >= SMALL_BYTES {
            true => STEP_BYTES.min(most - needed),
            false => 0,
        };
        let capacity = (needed + small_things).max(grown.min(most)).max(16);
        if capacity * width >= SMALL_BYTES {
            // Both are there while the elements move.
            self.hold((had + capacity) * width)?;
            check_for_interrupts()?;
        }
        items
            .try_reserve_exact(capacity - items.len())
            .map_err(|_| no_memory(capacity * width))?;
        self.hold(items.capacity() * width)
    }
}

/// Room behind what is in `out` for something of so many bytes, if it is large; what is small is appended as it is.
#[inline]
pub fn ready(out: &mut Vec<u8>, more: usize) -> Result<()> {
    match more < SMALL_BYTES {
        true => Ok(()),
        false => MemoryReservation::default().reserve(out, more),
    }
}

/// Appends bytes, however many they are.
#[inline]
pub fn append(out: &mut Vec<u8>, bytes: &[u8]) -> Result<()> {
    ready(out, bytes.len())?;
    if bytes.len() < SMALL_BYTES {
        out.extend_from_slice(bytes);
        return Ok(());
    }
    for part in bytes.chunks(STRIDE_BYTES) {
        out.extend_from_slice(part);
        check_for_interrupts()?;
    }
    Ok(())
}

/// The same where small things are appended one after the other: once there are many, there is room for the next.
#[inline]
pub fn step(out: &mut Vec<u8>) -> Result<()> {
    match out.len() < SMALL_BYTES {
        true => Ok(()),
        false => MemoryReservation::default().reserve(out, STEP_BYTES),
    }
}

/// A text or bytes being built: bounded, charged, and interruptible. It is the vector that it builds, so what appends
/// little at a time to a vector
/// appends to it, and says [`Builder::step`] then.
#[derive(Debug, Default)]
pub struct Builder {
    bytes: Vec<u8>,
    room: MemoryReservation,
    /// Where the next look for interrupts is due.
    due: usize,
}

/// There is room for so much, at least, behind a [`Builder::step`]: the longest that is appended without asking. A
/// number prints as 147,458 bytes at most.
const STEP_BYTES: usize = 160 << 10;

impl Builder {
    /// One with room for so many bytes.
    pub fn with_capacity(bytes: usize) -> Result<Builder> {
        let mut builder = Builder::default();
        builder.reserve(bytes)?;
        Ok(builder)
    }

    /// One that goes on behind what is in `bytes`, until [`Builder::give_back`].
    pub fn take(bytes: &mut Vec<u8>) -> Builder {
        Builder {
            bytes: std::mem::take(bytes),
            room: MemoryReservation::default(),
            due: 0,
        }
    }

    /// Ends what [`Builder::take`] began.
    pub fn give_back(self, bytes: &mut Vec<u8>) {
        *bytes = self.bytes;
    }

    /// Room for `more` bytes: what follows does not allocate before it has appended as much.
    #[inline]
    pub fn reserve(&mut self, more: usize) -> Result<()> {
        self.room.reserve(&mut self.bytes, more)
    }

    /// Appends bytes.
    #[inline]
    pub fn push_bytes(&mut self, mut bytes: &[u8]) -> Result<()> {
        self.reserve(bytes.len())?;
        while bytes.len() > STRIDE_BYTES {
            let (now, rest) = bytes.split_at(STRIDE_BYTES);
            self.bytes.extend_from_slice(now);
            bytes = rest;
            check_for_interrupts()?;
        }
        self.bytes.extend_from_slice(bytes);
        self.look()
    }

    /// Appends a text.
    #[inline]
    pub fn push_str(&mut self, text: &str) -> Result<()> {
        self.push_bytes(text.as_bytes())
    }

    /// Appends a byte.
    #[inline]
    pub fn push_byte(&mut self, byte: u8) -> Result<()> {
        self.reserve(1)?;
        self.bytes.push(byte);
        self.look()
    }

    /// Appends a character.
    #[inline]
    pub fn push_char(&mut self, c: char) -> Result<()> {
        let mut buffer = [0; 4];
        self.push_str(c.encode_utf8(&mut buffer))
    }

    /// Appends the same byte so many times.
    pub fn push_many(&mut self, byte: u8, count: usize) -> Result<()> {
        self.reserve(count)?;
        self.bytes.resize(self.bytes.len() + count, byte);
        self.look()
    }

    /// After something small was appended to the vector: once it is large, there is room for something small again, or
    /// an error.
    #[inline]
    pub fn step(&mut self) -> Result<()> {
        if self.bytes.len() < SMALL_BYTES {
            return Ok(());
        }
        self.reserve(STEP_BYTES.min(VALUE_BYTES_MAX.saturating_sub(self.bytes.len()).max(1)))?;
        self.look()
    }

    #[inline]
    fn look(&mut self) -> Result<()> {
        if self.bytes.len() < self.due + STRIDE_BYTES {
            return Ok(());
        }
        self.due = self.bytes.len();
        check_for_interrupts()
    }

    /// Charges for a copy of it beside itself.
    pub(crate) fn hold_copy(&mut self) -> Result<()> {
        self.room.hold(self.bytes.capacity() + self.bytes.len())
    }

    /// It as a string, for what needs one.
    pub fn finish_string(self) -> Result<String> {
        String::from_utf8(self.bytes)
            .map_err(|_| SqlError::internal("what a function gave is not UTF-8"))
    }
}

impl Deref for Builder {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.bytes
    }
}

impl DerefMut for Builder {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }
}

/// Elements of an array, or rows of a set, being made.
#[derive(Debug, Default)]
pub struct ItemsBuilder<T> {
    items: Vec<T>,
    places: MemoryReservation,
    /// What the elements hold.
    held_bytes: usize,
    charged_bytes: usize,
    held: MemoryReservation,
}

impl<T> ItemsBuilder<T> {
    /// Nothing yet.
    pub fn new() -> ItemsBuilder<T> {
        ItemsBuilder {
            items: Vec::new(),
            places: MemoryReservation::default(),
            held_bytes: 0,
            charged_bytes: 0,
            held: MemoryReservation::default(),
        }
    }

    /// None yet, and room for so many.
    pub fn with_capacity(count: usize) -> Result<ItemsBuilder<T>> {
        let mut items = ItemsBuilder::new();
        items.places.reserve(&mut items.items, count)?;
        Ok(items)
    }

    /// Charges for what the next element holds, before it is made.
    #[inline]
    pub fn hold(&mut self, bytes: usize) -> Result<()> {
        // Each is an allocation of its own, with two counters before it.
        self.held_bytes += bytes + 32;
        if self.held_bytes - self.charged_bytes >= SMALL_BYTES {
            check_for_interrupts()?;
            self.held.hold(self.held_bytes)?;
            self.charged_bytes = self.held_bytes;
        }
        Ok(())
    }

    /// Appends an element.
    #[inline]
    pub fn push(&mut self, item: T) -> Result<()> {
        self.places.reserve(&mut self.items, 1)?;
        self.items.push(item);
        Ok(())
    }

    /// What they have become.
    pub fn finish(self) -> Vec<T> {
        self.items
    }
}

impl<T: Clone> ItemsBuilder<T> {
    /// Appends copies of elements.
    pub fn extend(&mut self, from: &[T]) -> Result<()> {
        self.places.reserve(&mut self.items, from.len())?;
        for part in from.chunks(STRIDE_BYTES) {
            self.items.extend_from_slice(part);
            check_for_interrupts()?;
        }
        Ok(())
    }
}

/// A large value that is alive, or was when the list was last swept.
trait LiveValue: Send {
    fn is_gone(&self) -> bool;
}

impl<T: ?Sized + Send + Sync> LiveValue for Weak<T> {
    fn is_gone(&self) -> bool {
        self.strong_count() == 0
    }
}

/// What the list has of one: what shows whether it is gone, and what it is charged.
type LiveEntry = (Box<dyn LiveValue>, MemoryReservation);

/// Large values by their addresses, which are not used again as long as they are here.
static ALIVE: LazyLock<Mutex<HashMap<usize, LiveEntry>>> = LazyLock::new(Mutex::default);
/// How many there are, and what was added since the list was last swept.
static ALIVE_COUNT: AtomicUsize = AtomicUsize::new(0);
static ADDED_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Gives back what values take that are gone.
fn sweep() {
    ADDED_BYTES.store(0, Ordering::Relaxed);
    let mut alive = ALIVE.lock();
    let gone: Vec<(usize, LiveEntry)> = alive.extract_if(|_, entry| entry.0.is_gone()).collect();
    ALIVE_COUNT.store(alive.len(), Ordering::Relaxed);
    drop(alive);
    // The memory goes before the charge, and nobody waits for it.
    for (_, (value, room)) in gone {
        drop(value);
        drop(room);
    }
}

/// Between statements: what the last one left is given back.
#[inline]
pub fn release_dropped() {
    let count = ALIVE_COUNT.load(Ordering::Relaxed);
    if count > 0 && (count <= SWEPT_ALWAYS || ADDED_BYTES.load(Ordering::Relaxed) > 0) {
        sweep();
    }
    if let Some(memory) = MEMORY.get() {
        give_back(memory);
    }
}

/// What was much, and is not charged any more, is not kept by the allocator either: what is charged next would come on
/// top of it.
#[inline]
fn give_back(memory: &Memory) {
    if memory.gave_much_back() {
        logstead_env::release_free_memory();
    }
}

/// Whether the list has a value.
pub(crate) fn is_charged(address: usize) -> bool {
    ALIVE.lock().contains_key(&address)
}

/// Charges a value for as long as it is alive; 53200 if the budget has no room for it.
pub(crate) fn charge_while_alive<T>(address: usize, value: Weak<T>, bytes: usize) -> Result<()>
where
    T: ?Sized + Send + Sync + 'static,
{
    check_for_interrupts()?;
    if ADDED_BYTES.fetch_add(bytes, Ordering::Relaxed) + bytes >= SWEEP_BYTES {
        sweep();
    }
    let room = MemoryReservation::of(bytes)?;
    let mut list = ALIVE.lock();
    list.insert(address, (Box::new(value), room));
    ALIVE_COUNT.store(list.len(), Ordering::Relaxed);
    Ok(())
}
