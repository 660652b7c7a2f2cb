//! Names of the system's users.

use std::ffi::{CStr, c_char};

/// Longest entry of the system's list of users.
const ENTRY_BYTES_MAX: usize = 1 << 20;

/// The name of the user with this number; none if the system knows none, or cannot be asked.
pub fn user_name(number: u32) -> Option<String> {
    let mut buffer: Vec<c_char> = vec![0; 1024];
    loop {
        // SAFETY: all zeros is a value of this structure: numbers and pointers that nobody follows before they are set.
        let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
        let mut found = std::ptr::null_mut();
        // SAFETY: entry, buffer and found are this function's own and live until it has returned; the buffer's length
        // is its length.
        let code = unsafe {
            libc::getpwuid_r(
                number,
                &mut entry,
                buffer.as_mut_ptr(),
                buffer.len(),
                &mut found,
            )
        };
        match code {
            0 if found.is_null() || entry.pw_name.is_null() => return None,
            0 => {
                // SAFETY: what was found points into the buffer, which is alive, at a text that ends with a zero.
                let name = unsafe { CStr::from_ptr(entry.pw_name) };
                return name.to_str().ok().map(str::to_owned);
            }
            libc::ERANGE if buffer.len() < ENTRY_BYTES_MAX => {
                let more = 2 * buffer.len();
                buffer.resize(more, 0);
            }
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_user_is_root() {
        assert_eq!(user_name(0).as_deref(), Some("root"));
        assert_eq!(user_name(u32::MAX - 7), None);
    }
}
