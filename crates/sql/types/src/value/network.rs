//! Values of `inet`, `cidr`, `macaddr` and `macaddr8`: how they read, print and order.
//!
//! Owns: [`Inet`] and its text in PostgreSQL's spellings, whole and abbreviated; the text of hardware addresses. Their
//! stored and wire forms are with those of all types. Invariant: a `cidr` has no bit set behind its mask; whoever makes
//! one sees to it.

use super::text_io::invalid_syntax;
use crate::error::{Result, SqlError};
use logstead_types::SqlState;
use std::cmp::Ordering;

/// An `inet` or `cidr` value: an address and the length of its network's mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inet {
    /// An IPv6 address.
    pub v6: bool,
    /// The value was made as a `cidr`: what prints values without their type shows its mask always.
    pub cidr: bool,
    /// Length of the mask in bits.
    pub bits: u8,
    /// The address as a number; an IPv4 address is below 2^32.
    pub address: u128,
}

impl Inet {
    /// Bits of an address of this family.
    pub fn width(&self) -> u8 {
        if self.v6 { 128 } else { 32 }
    }

    /// What an address of a family can be at most.
    pub fn address_max(&self) -> u128 {
        u128::MAX >> (128 - u32::from(self.width()))
    }

    /// The mask of the first `bits` bits.
    pub fn mask(&self, bits: u8) -> u128 {
        match u32::from(self.width() - bits.min(self.width())) {
            128 => 0,
            rest => self.address_max() & (self.address_max() << rest),
        }
    }

    /// The network: the address with nothing behind its mask.
    pub fn network(&self) -> u128 {
        self.address & self.mask(self.bits)
    }

    /// The address's bytes, the highest first.
    pub fn bytes(&self) -> Vec<u8> {
        let bytes = self.address.to_be_bytes();
        bytes[bytes.len() - usize::from(self.width() / 8)..].to_vec()
    }

    /// An address of so many bytes; `None` if no family has that many.
    pub fn of_bytes(bytes: &[u8], bits: u8) -> Option<Inet> {
        if !matches!(bytes.len(), 4 | 16) {
            return None;
        }
        let mut address = [0; 16];
        address[16 - bytes.len()..].copy_from_slice(bytes);
        let inet = Inet {
            v6: bytes.len() == 16,
            cidr: false,
            bits,
            address: u128::from_be_bytes(address),
        };
        (bits <= inet.width()).then_some(inet)
    }

    /// A `cidr` of the first `bits` bits.
    pub fn to_cidr(self, bits: u8) -> Inet {
        Inet {
            cidr: true,
            bits,
            address: self.address & self.mask(bits),
            ..self
        }
    }

    /// True if the two are of one family and their first `bits` bits are alike.
    pub fn same_prefix(&self, other: &Inet, bits: u8) -> bool {
        self.v6 == other.v6 && (self.address ^ other.address) & self.mask(bits) == 0
    }

    /// PostgreSQL's order: by family, by network, by length of the mask, by address.
    pub fn compare(&self, other: &Inet) -> Ordering {
        let common = self.bits.min(other.bits);
        self.v6
            .cmp(&other.v6)
            .then_with(|| {
                let mask = self.mask(common);
                (self.address & mask).cmp(&(other.address & mask))
            })
            .then_with(|| self.bits.cmp(&other.bits))
            .then_with(|| self.address.cmp(&other.address))
    }

    /// The text of an `inet` (`cidr`: of a `cidr`): the mask is left out where it is all of the address.
    pub fn write(&self, cidr: bool, out: &mut Vec<u8>) {
        self.write_address(out);
        if cidr || self.bits != self.width() {
            out.extend_from_slice(format!("/{}", self.bits).as_bytes());
        }
    }

    /// The address alone.
    pub fn write_address(&self, out: &mut Vec<u8>) {
        if self.v6 {
            write_v6(&self.bytes(), out);
        } else {
            write_octets(&self.bytes(), out);
        }
    }

    /// `abbrev` of a `cidr`: octets and words behind the mask are left out.
    pub fn write_abbreviated(&self, out: &mut Vec<u8>) {
        let bytes = self.bytes();
        if self.v6 {
            abbreviate_v6(&bytes, self.bits, out);
        } else if self.bits == 0 {
            out.push(b'0');
        } else {
            write_octets(&bytes[..usize::from(self.bits).div_ceil(8)], out);
        }
        out.extend_from_slice(format!("/{}", self.bits).as_bytes());
    }

    /// Reads an `inet`, or a `cidr`.
    pub fn parse(text: &str, cidr: bool) -> Result<Inet> {
        let name = if cidr { "cidr" } else { "inet" };
        let bytes = text.as_bytes();
        let found = if bytes.contains(&b':') {
            read_v6(bytes).and_then(|(address, bits)| Inet::of_bytes(&address, bits))
        } else {
            let read = if cidr { read_v4_cidr } else { read_v4 };
            read(bytes).and_then(|(address, bits)| Inet::of_bytes(&address, bits))
        };
        let found = found.ok_or_else(|| invalid_syntax(name, text))?;
        if cidr && found.address != found.network() {
            return Err(SqlError::new(
                SqlState::INVALID_TEXT_REPRESENTATION,
                format!("invalid cidr value: \"{text}\""),
            )
            .detail("Value has bits set to right of mask."));
        }
        Ok(Inet { cidr, ..found })
    }
}

fn write_octets(octets: &[u8], out: &mut Vec<u8>) {
    for (i, octet) in octets.iter().enumerate() {
        if i > 0 {
            out.push(b'.');
        }
        out.extend_from_slice(octet.to_string().as_bytes());
    }
}

fn words(bytes: &[u8]) -> Vec<u16> {
    let pairs = bytes.chunks_exact(2);
    pairs.map(|w| u16::from_be_bytes([w[0], w[1]])).collect()
}

/// The longest run of zero words, the first of them: `::` stands for it.
fn write_v6(bytes: &[u8], out: &mut Vec<u8>) {
    let words = words(bytes);
    let mut best = 0..0;
    let mut at = 0;
    while at < words.len() {
        let len = words[at..].iter().take_while(|w| **w == 0).count();
        if len > best.len() {
            best = at..at + len;
        }
        at += len.max(1);
    }
    if best.len() < 2 {
        best = 0..0;
    }
    for (i, word) in words.iter().enumerate() {
        if best.contains(&i) {
            if i == best.start {
                out.push(b':');
            }
            continue;
        }
        if i > 0 {
            out.push(b':');
        }
        // An IPv4 address inside.
        let inside = best.start == 0
            && (best.len() == 6
                || (best.len() == 7 && words[7] != 1)
                || (best.len() == 5 && words[5] == 0xffff));
        if i == 6 && inside {
            write_octets(&bytes[12..], out);
            break;
        }
        out.extend_from_slice(format!("{word:x}").as_bytes());
    }
    if best.end == words.len() && !best.is_empty() {
        out.push(b':');
    }
}

fn abbreviate_v6(bytes: &[u8], bits: u8, out: &mut Vec<u8>) {
    if bits == 0 {
        out.extend_from_slice(b"::");
        return;
    }
    let all = words(bytes);
    let shown = usize::from(bits).div_ceil(16).max(2);
    // As PostgreSQL counts: a run that is no longer than the longest before it goes on into the next one.
    let (mut start, mut len, mut run_start, mut run) = (0, 0, 0, 0);
    for (i, word) in all[..shown].iter().enumerate() {
        if *word == 0 {
            if run == 0 {
                run_start = i;
            }
            run += 1;
        } else if run > len {
            (start, len) = (run_start, run);
            run = 0;
        }
    }
    if run > len {
        (start, len) = (run_start, run);
    }
    let inside = len != shown
        && start == 0
        && (len == 6
            || (len == 5 && all[5] == 0xffff)
            || (len == 7 && bytes[14] != 0 && bytes[15] != 1));
    let first = out.len();
    for (i, word) in all[..shown].iter().enumerate() {
        if len != 0 && (start..start + len).contains(&i) {
            if i == start {
                out.push(b':');
            }
            if i == shown - 1 {
                out.push(b':');
            }
        } else if inside && i > 5 {
            out.push(if i == 6 { b':' } else { b'.' });
            let [high, low] = word.to_be_bytes();
            out.extend_from_slice(high.to_string().as_bytes());
            // The last octet can go.
            if i != 7 || bits > 120 {
                out.extend_from_slice(format!(".{low}").as_bytes());
            }
        } else {
            if out.len() > first {
                out.push(b':');
            }
            out.extend_from_slice(format!("{word:x}").as_bytes());
        }
    }
}

/// The number behind a slash: all digits, at most `max`. Leading zeros are allowed by some.
fn mask_length(text: &[u8], max: u32, zeros: bool) -> Option<u8> {
    if text.is_empty() || (!zeros && text.len() > 1 && text[0] == b'0') {
        return None;
    }
    let mut bits = 0;
    for digit in text {
        if !digit.is_ascii_digit() {
            return None;
        }
        bits = bits * 10 + u32::from(digit - b'0');
        if bits > max {
            return None;
        }
    }
    u8::try_from(bits).ok()
}

/// Octets as digits with dots between, up to the end or a slash: them and what is behind the slash.
fn octets(text: &[u8], last_dot: bool) -> Option<(Vec<u8>, Option<&[u8]>)> {
    let (numbers, mask) = match text.iter().position(|b| *b == b'/') {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let mut found = Vec::new();
    let mut parts = numbers.split(|b| *b == b'.').peekable();
    while let Some(part) = parts.next() {
        // PostgreSQL lets an `inet` end with a dot.
        if part.is_empty() && last_dot && !found.is_empty() && parts.peek().is_none() {
            break;
        }
        found.push(mask_length(part, 255, true)?);
    }
    (found.len() <= 4).then_some((found, mask))
}

fn read_v4(text: &[u8]) -> Option<([u8; 4], u8)> {
    let (found, mask) = octets(text, true)?;
    let bits = match mask {
        Some(mask) => mask_length(mask, 32, true)?,
        None if found.len() == 4 => 32,
        None => return None,
    };
    if usize::from(bits / 8) > found.len() {
        return None;
    }
    let mut address = [0; 4];
    address[..found.len()].copy_from_slice(&found);
    Some((address, bits))
}

/// Without a mask a `cidr` has that of its class, or as many octets as were written.
fn read_v4_cidr(text: &[u8]) -> Option<([u8; 4], u8)> {
    let hexadecimal =
        |text: &[u8]| matches!(text, [b'0', b'x' | b'X', digit, ..] if digit.is_ascii_hexdigit());
    let (found, mask) = if hexadecimal(text) {
        let digits = &text[2..];
        let end = digits.iter().position(|b| !b.is_ascii_hexdigit());
        let (digits, rest) = digits.split_at(end.unwrap_or(digits.len()));
        let mask = match rest {
            [] => None,
            [b'/', mask @ ..] => Some(mask),
            _ => return None,
        };
        let value = |b: u8| (b as char).to_digit(16).and_then(|v| u8::try_from(v).ok());
        let pairs = digits.chunks(2).map(|pair| {
            let low = pair.get(1).map_or(Some(0), |b| value(*b));
            Some(value(pair[0])? << 4 | low?)
        });
        (pairs.collect::<Option<Vec<u8>>>()?, mask)
    } else {
        octets(text, false)?
    };
    if found.is_empty() || found.len() > 4 {
        return None;
    }
    let bits = match mask {
        Some(mask) => mask_length(mask, 32, true)?,
        None => {
            let class = match found[0] {
                240.. => 32,
                224.. => 8,
                192.. => 24,
                128.. => 16,
                _ => 8,
            };
            let bits = class.max(u8::try_from(found.len() * 8).ok()?);
            if bits == 8 && found[0] == 224 {
                4
            } else {
                bits
            }
        }
    };
    let mut address = [0; 4];
    address[..found.len()].copy_from_slice(&found);
    Some((address, bits))
}

fn read_v6(text: &[u8]) -> Option<([u8; 16], u8)> {
    let mut address = Vec::with_capacity(16);
    let mut gap = None;
    let mut bits = 128;
    let mut rest = match text {
        [b':', b':', ..] => &text[1..],
        [b':', ..] => return None,
        _ => text,
    };
    let mut token = rest;
    let mut word: Option<(u32, usize)> = None;
    while let [ch, after @ ..] = rest {
        rest = after;
        if let Some(digit) = (*ch as char).to_digit(16) {
            let (value, digits) = word.unwrap_or((0, 0));
            if digits == 4 {
                return None;
            }
            word = Some((value << 4 | digit, digits + 1));
            continue;
        }
        match ch {
            b':' => {
                token = rest;
                match word.take() {
                    None if gap.is_some() => return None,
                    None => gap = Some(address.len()),
                    Some(_) if rest.is_empty() => return None,
                    Some((value, _)) => push_word(&mut address, value)?,
                }
            }
            b'.' if address.len() + 4 <= 16 => {
                let (inside, mask) = octets(token, false)?;
                let zeros = token.split(|b| matches!(b, b'.' | b'/'));
                if zeros.clone().any(|n| n.len() > 1 && n[0] == b'0') {
                    return None;
                }
                if let Some(mask) = mask {
                    bits = mask_length(mask, 128, false)?;
                }
                address.extend_from_slice(&inside);
                address.resize(address.len() + 4 - inside.len(), 0);
                word = None;
                break;
            }
            b'/' => {
                bits = mask_length(rest, 128, false)?;
                break;
            }
            _ => return None,
        }
    }
    if let Some((value, _)) = word {
        push_word(&mut address, value)?;
    }
    if let Some(at) = gap {
        if address.len() == 16 {
            return None;
        }
        let zeros = vec![0; 16 - address.len()];
        address.splice(at..at, zeros);
    }
    Some((address.try_into().ok()?, bits))
}

fn push_word(address: &mut Vec<u8>, value: u32) -> Option<()> {
    if address.len() + 2 > 16 {
        return None;
    }
    address.extend_from_slice(&u16::try_from(value).ok()?.to_be_bytes());
    Some(())
}

/// One pattern of C's `sscanf` for a `macaddr`: six hexadecimal numbers of at most `width` digits, the separators
/// between them.
fn scan(text: &[u8], width: usize, between: [&[u8]; 5]) -> Option<[i64; 6]> {
    let mut octets = [0; 6];
    let mut rest = text;
    for (i, octet) in octets.iter_mut().enumerate() {
        if i > 0 {
            rest = rest.strip_prefix(between[i - 1])?;
        }
        while let [b, tail @ ..] = rest
            && super::text_io::is_space(*b)
        {
            rest = tail;
        }
        (*octet, rest) = scan_number(rest, width)?;
    }
    // Blanks may follow, nothing else.
    rest.iter()
        .all(|b| super::text_io::is_space(*b))
        .then_some(octets)
}

fn scan_number(text: &[u8], width: usize) -> Option<(i64, &[u8])> {
    let end = text.len().min(width);
    let mut at = 0;
    let negative = text.first() == Some(&b'-');
    if at < end && matches!(text[0], b'-' | b'+') {
        at = 1;
    }
    let digit = |at: usize| text[..end].get(at).and_then(|b| (*b as char).to_digit(16));
    if digit(at) == Some(0) && matches!(text[..end].get(at + 1), Some(b'x' | b'X')) {
        at += 2;
        digit(at)?;
    }
    let first = at;
    let mut value: i64 = 0;
    while let Some(d) = digit(at) {
        value = (value << 4 | i64::from(d)).min(i64::from(u32::MAX));
        at += 1;
    }
    (at > first).then_some((if negative { -value } else { value }, &text[at..]))
}

/// Reads a `macaddr`: one of seven spellings.
pub fn parse_mac(text: &str) -> Result<[u8; 6]> {
    const WHOLE: usize = usize::MAX;
    let b = text.as_bytes();
    let no: &[u8] = b"";
    let found = scan(b, WHOLE, [b":"; 5])
        .or_else(|| scan(b, WHOLE, [b"-"; 5]))
        .or_else(|| scan(b, 2, [no, no, b":", no, no]))
        .or_else(|| scan(b, 2, [no, no, b"-", no, no]))
        .or_else(|| scan(b, 2, [no, b".", no, b".", no]))
        .or_else(|| scan(b, 2, [no, b"-", no, b"-", no]))
        .or_else(|| scan(b, 2, [no; 5]))
        .ok_or_else(|| invalid_syntax("macaddr", text))?;
    let mut mac = [0; 6];
    for (octet, value) in mac.iter_mut().zip(found) {
        *octet = u8::try_from(value).map_err(|_| {
            SqlError::new(
                SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                format!("invalid octet value in \"macaddr\" value: \"{text}\""),
            )
        })?;
    }
    Ok(mac)
}

/// Reads a `macaddr8`: pairs of digits with one kind of separator between any of them; six bytes get the two in the
/// middle.
pub fn parse_mac8(text: &str) -> Result<[u8; 8]> {
    let bad = || invalid_syntax("macaddr8", text);
    let mut rest = text.as_bytes();
    let blank = |b: &u8| super::text_io::is_space(*b);
    while let Some((_, tail)) = rest.split_first().filter(|(b, _)| blank(b)) {
        rest = tail;
    }
    let mut found = Vec::with_capacity(8);
    let mut separator = None;
    // A single character that is left over is not looked at.
    while let [high, low, tail @ ..] = rest {
        let digit = |b: u8| (b as char).to_digit(16).and_then(|d| u8::try_from(d).ok());
        let (Some(high), Some(low)) = (digit(*high), digit(*low)) else {
            return Err(bad());
        };
        if found.len() == 8 {
            return Err(bad());
        }
        found.push(high << 4 | low);
        rest = tail;
        if let [mark @ (b':' | b'-' | b'.'), tail @ ..] = rest {
            if *separator.get_or_insert(*mark) != *mark {
                return Err(bad());
            }
            rest = tail;
        }
        if matches!(found.len(), 6 | 8) && rest.first().is_some_and(blank) {
            if !rest.iter().all(blank) {
                return Err(bad());
            }
            rest = &[];
        }
    }
    if let [a, b, c, d, e, f] = found[..] {
        return Ok(widen([a, b, c, d, e, f]));
    }
    found.try_into().map_err(|_| bad())
}

/// A `macaddr` as `macaddr8`.
pub fn widen([a, b, c, d, e, f]: [u8; 6]) -> [u8; 8] {
    [a, b, c, 0xff, 0xfe, d, e, f]
}

/// Appends a hardware address.
pub fn write_mac(bytes: &[u8], out: &mut Vec<u8>) {
    for (i, byte) in bytes.iter().enumerate() {
        if i > 0 {
            out.push(b':');
        }
        super::text_io::write_hex(&[*byte], out);
    }
}
