//! Unicode escapes in texts.

use crate::error::{Result, SqlError};
use crate::interrupt::check_for_interrupts;
use crate::memory::STRIDE_BYTES;
use logstead_types::SqlState;

/// The code that `digits` hexadecimal digits give behind `from`.
fn code_at(t: &[char], from: usize, digits: usize) -> Option<u32> {
    let part = t.get(from..from + digits)?;
    part.iter().try_fold(0u32, |code, c| {
        code.checked_mul(16)?.checked_add(c.to_digit(16)?)
    })
}

/// Where digits begin behind the escape character, how many there are, and what stands in front of them.
pub type EscapeForm = (usize, usize, Option<char>);

/// A text with the code points that its escapes name.
pub fn unescaped(written: &str, escape: char, forms: &[EscapeForm], hint: &str) -> Result<String> {
    let bad_pair = || SqlError::new(SqlState::SYNTAX_ERROR, "invalid Unicode surrogate pair");
    let t: Vec<char> = written.chars().collect();
    let mut out = String::with_capacity(t.len());
    let mut first: Option<u32> = None;
    let (mut at, mut due) = (0, STRIDE_BYTES);
    while let Some(c) = t.get(at) {
        if out.len() >= due {
            due = out.len() + STRIDE_BYTES;
            check_for_interrupts()?;
        }
        if *c != escape || t.get(at + 1) == Some(&escape) {
            if first.is_some() {
                return Err(bad_pair());
            }
            out.push(*c);
            at += if *c == escape { 2 } else { 1 };
            continue;
        }
        let found = forms.iter().find_map(|(offset, digits, mark)| {
            if mark.is_some() && t.get(at + 1) != mark.as_ref() {
                return None;
            }
            let code = code_at(&t, at + offset, *digits)?;
            Some((code, offset + digits))
        });
        let Some((code, len)) = found else {
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, "invalid Unicode escape").hint(hint));
        };
        if code == 0 || code > 0x10_ffff {
            return Err(SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("invalid Unicode code point: {code:04X}"),
            ));
        }
        at += len;
        let code = match (first.take(), code) {
            (Some(high), 0xdc00..=0xdfff) => 0x1_0000 + ((high & 0x3ff) << 10) + (code & 0x3ff),
            (Some(_), _) | (None, 0xdc00..=0xdfff) => return Err(bad_pair()),
            (None, 0xd800..=0xdbff) => {
                first = Some(code);
                continue;
            }
            (None, code) => code,
        };
        out.push(char::from_u32(code).ok_or_else(bad_pair)?);
    }
    if first.is_some() {
        return Err(bad_pair());
    }
    Ok(out)
}
