//! How the kernel's lock of a local home is come by.
//!
//! Rule: whoever is refused is refused by a server that is alive, or by the kernel that is not done with one that was
//! killed. A lock that is held is therefore looked at for a while: the rings of a process that is gone hold it until
//! their last write has landed ([`logstead_env::Ring`]), and the kernel takes them apart in its own time, also if
//! nothing is in flight. Whoever starts a server again right after its end must not be told that it is running.

use logstead_env::{FileLock, Files};
use std::io;
use std::time::Duration;

/// Looks at a lock that is held, and the pause between two of them: two seconds, for a device that is slow just then.
const LOOKS: usize = 200;
const PAUSE: Duration = Duration::from_millis(10);

/// What `take` gives, once somebody else's lock is known to be no passing one.
pub(super) fn with_retries(
    files: &dyn Files,
    take: impl Fn() -> io::Result<Option<Box<dyn FileLock>>>,
) -> io::Result<Option<Box<dyn FileLock>>> {
    // Nothing outlives a simulated process.
    let looks = if files.is_simulated() { 0 } else { LOOKS };
    for _ in 0..looks {
        if let Some(lock) = take()? {
            return Ok(Some(lock));
        }
        logstead_env::sleep(PAUSE);
    }
    take()
}
