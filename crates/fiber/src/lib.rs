//! Tasks that can stop in the middle of a synchronous computation.
//!
//! A task of an executor gives its thread back between two polls only. What is long within one poll (a function over a
//! large value, a subquery for each row) holds all other tasks of the thread. A future in [`on_stack`] is polled on a
//! stack of its own. Whatever it calls, however deep, may [`wait`] for another future: the stack is left as it stands,
//! the poll is [`Poll::Pending`], and the next poll goes on there.
//!
//! Owns: the stacks. A thread keeps some of them ready; entering one takes a few nanoseconds. A stack belongs to a task
//! only for the time of a poll, and for as long as it is suspended in the middle of one.
//!
//! Whoever is about to recurse deeper than a stack is long asks for as much as that takes ([`with_stack`]): it goes on
//! on a *segment*, which is given back to the system when it returns.
//!
//! Invariants:
//! - A task is resumed on the thread that it was suspended on: it cannot be sent to another one.
//! - Nothing is dropped while frames on a suspended stack may use it: a task that is dropped in that state is first
//!   resumed, and told by [`is_ending`], until its poll is over.
//! - No panic crosses a stack's end. One that the future does not catch goes on in whoever polls.
//! - A wake-up that comes while a task is suspended is not lost: the task is polled once more after the poll that was
//!   suspended.
//!
//! What holds something that other tasks of the thread may want (a lock, a borrow of a cell that they share) must not
//! be suspended meanwhile: it does so in [`no_suspend`]. Thread-local state that other tasks change is the caller's to
//! save around a [`wait`].
#![deny(unsafe_code)]

#[allow(
    unsafe_code,
    reason = "frames on another stack are out of the compiler's sight"
)]
mod stack;
#[cfg(test)]
mod tests;

pub use stack::{
    OnStack, StackAllocError, can_suspend, is_ending, no_suspend, on_stack, poll_with_stack,
    remaining_stack, stack_depth, wait, with_stack,
};
#[cfg(doc)]
use std::task::Poll;
