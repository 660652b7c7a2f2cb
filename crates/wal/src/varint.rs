//! Variable-length numbers: seven bits per byte, lowest first, the high bit says that more follow (LEB128).
//!
//! Invariant: one number has one encoding; longer forms of the same number are refused. What is read is untrusted:
//! nothing panics, and a length is checked against the bytes there are before it is used.

use crate::FormatError;

/// Longest encoding of a u64.
pub const LEN_MAX: usize = 10;

/// Appends the encoding of a number.
pub fn put(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads bytes from the front of a slice, remembering how far it came for error messages.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Reads from the first byte on.
    pub const fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, at: 0 }
    }

    /// How many bytes were read.
    pub const fn at(&self) -> usize {
        self.at
    }

    /// True when everything was read.
    pub const fn is_empty(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// The next byte.
    pub fn byte(&mut self) -> Result<u8, FormatError> {
        let byte = *self
            .bytes
            .get(self.at)
            .ok_or(FormatError::new("bytes end too early", self.at))?;
        self.at += 1;
        Ok(byte)
    }

    /// The next `len` bytes.
    pub fn bytes(&mut self, len: u64) -> Result<&'a [u8], FormatError> {
        let error = FormatError::new("length goes beyond the bytes", self.at);
        let len = usize::try_from(len).map_err(|_| error.clone())?;
        let end = self.at.checked_add(len).ok_or(error.clone())?;
        let bytes = self.bytes.get(self.at..end).ok_or(error)?;
        self.at = end;
        Ok(bytes)
    }

    /// All that was not read.
    pub fn rest(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.at..];
        self.at = self.bytes.len();
        rest
    }

    /// A number of four bytes, little endian.
    pub fn u32_le(&mut self) -> Result<u32, FormatError> {
        let bytes = self.bytes(4)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// A number.
    pub fn number(&mut self) -> Result<u64, FormatError> {
        let start = self.at;
        let mut value = 0u64;
        for index in 0..LEN_MAX {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if index == LEN_MAX - 1 && bits > 1 {
                return Err(FormatError::new("number larger than 64 bits", start));
            }
            value |= bits << (7 * index);
            if byte & 0x80 == 0 {
                if byte == 0 && index > 0 {
                    return Err(FormatError::new("number longer than it needs to be", start));
                }
                return Ok(value);
            }
        }
        Err(FormatError::new("number larger than 64 bits", start))
    }

    /// A number of at most 32 bits.
    pub fn number_u32(&mut self) -> Result<u32, FormatError> {
        let start = self.at;
        u32::try_from(self.number()?)
            .map_err(|_| FormatError::new("number larger than 32 bits", start))
    }

    /// A number of at most 16 bits.
    pub fn number_u16(&mut self) -> Result<u16, FormatError> {
        let start = self.at;
        u16::try_from(self.number()?)
            .map_err(|_| FormatError::new("number larger than 16 bits", start))
    }
}
