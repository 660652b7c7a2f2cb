//! Frames: what goes over a connection between a server and a storage node, in both directions.
//!
//! ```text
//! u8   kind          of the message
//! u8   zero
//! u16  head bytes
//! u32  body bytes
//! u64  number        of the request, or of the request that is answered
//! u32  head crc      CRC-32C of the sixteen bytes before it and of the head
//! u32  body crc      CRC-32C of the body
//! ...  head, body
//! ```
//! Numbers are little endian.
//!
//! Invariant: nothing is allocated for a body whose bytes have not come, but for its first megabyte.
//!
//! Does not: know what messages mean.

use logstead_env::Buffer;
use std::io::{self, Read};
use std::sync::Arc;

/// Bytes in front of a head.
pub const PREFIX_BYTES: usize = 24;
/// Largest head.
pub const HEAD_BYTES_MAX: usize = 4096;
/// Largest body: the largest object.
pub const BODY_BYTES_MAX: usize = crate::OBJECT_BYTES_MAX;
/// What is allocated for a body ahead of its bytes.
const BODY_STEP_BYTES: usize = 1 << 20;

/// The bytes that a message moves, aligned where they come from or go to a file as they are.
#[derive(Debug)]
pub enum FrameBody {
    /// Anything.
    Bytes(Vec<u8>),
    /// So many bytes of a buffer, from its start on.
    Aligned(Buffer, usize),
    /// The same of one that somebody wants back.
    Shared(Arc<Buffer>, usize),
}

impl FrameBody {
    /// A message without.
    pub const NONE: FrameBody = FrameBody::Bytes(Vec::new());

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        match self {
            FrameBody::Bytes(bytes) => bytes,
            FrameBody::Aligned(buffer, len) => buffer.as_slice().get(..*len).unwrap_or_default(),
            FrameBody::Shared(buffer, len) => buffer.as_slice().get(..*len).unwrap_or_default(),
        }
    }

    /// The bytes, for who needs no alignment.
    pub fn into_vec(self) -> Vec<u8> {
        match self {
            FrameBody::Bytes(bytes) => bytes,
            FrameBody::Aligned(..) | FrameBody::Shared(..) => self.as_slice().to_vec(),
        }
    }
}

/// A message as it is moved.
#[derive(Debug)]
pub struct Frame {
    /// Which message.
    pub kind: u8,
    /// The request's number.
    pub number: u64,
    /// What the message says.
    pub head: Vec<u8>,
    /// The bytes that it moves.
    pub body: FrameBody,
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

impl Frame {
    /// What goes before the body: prefix and head. A head or a body that is too large is an error of who made it.
    pub fn start(&self) -> io::Result<Vec<u8>> {
        let body = self.body.as_slice();
        let (head_len, body_len) = (self.head.len(), body.len());
        if head_len > HEAD_BYTES_MAX || body_len > BODY_BYTES_MAX {
            return Err(malformed("a message is too large"));
        }
        let mut start = Vec::with_capacity(PREFIX_BYTES + head_len);
        start.extend_from_slice(&[self.kind, 0]);
        start.extend_from_slice(&(head_len as u16).to_le_bytes());
        start.extend_from_slice(&(body_len as u32).to_le_bytes());
        start.extend_from_slice(&self.number.to_le_bytes());
        let crc = crc32c::crc32c_append(crc32c::crc32c(&start), &self.head);
        start.extend_from_slice(&crc.to_le_bytes());
        start.extend_from_slice(&crc32c::crc32c(body).to_le_bytes());
        start.extend_from_slice(&self.head);
        Ok(start)
    }

    /// Reads the next frame. `is_aligned` tells which kinds have bodies that go to a file as they are. `None`: the
    /// other side has ended the connection between two frames.
    pub fn read(
        from: &mut impl Read,
        is_aligned: impl Fn(u8) -> bool,
    ) -> io::Result<Option<Frame>> {
        let mut prefix = [0; PREFIX_BYTES];
        // The first byte alone: only before it may a connection end.
        loop {
            match from.read(&mut prefix[..1]) {
                Ok(0) => return Ok(None),
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        from.read_exact(&mut prefix[1..])?;
        let [
            kind,
            zero,
            h0,
            h1,
            b0,
            b1,
            b2,
            b3,
            number @ ..,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
            _,
        ] = prefix;
        let head_len = usize::from(u16::from_le_bytes([h0, h1]));
        let body_len = u32::from_le_bytes([b0, b1, b2, b3]) as usize;
        if zero != 0 || head_len > HEAD_BYTES_MAX || body_len > BODY_BYTES_MAX {
            return Err(malformed("a message's lengths are wrong"));
        }
        let mut head = vec![0; head_len];
        from.read_exact(&mut head)?;
        let crc_at = |at: usize| prefix.get(at..at + 4).unwrap_or_default();
        let crc = crc32c::crc32c_append(crc32c::crc32c(&prefix[..16]), &head);
        if crc_at(16) != crc.to_le_bytes() {
            return Err(malformed("a message's checksum is wrong"));
        }
        let body = read_body(from, body_len, is_aligned(kind))?;
        if crc_at(20) != crc32c::crc32c(body.as_slice()).to_le_bytes() {
            return Err(malformed("the checksum of a message's bytes is wrong"));
        }
        Ok(Some(Frame {
            kind,
            number: u64::from_le_bytes(number),
            head,
            body,
        }))
    }
}

fn read_body(from: &mut impl Read, len: usize, aligned: bool) -> io::Result<FrameBody> {
    if aligned && len <= BODY_STEP_BYTES {
        let mut buffer = Buffer::zeroed(len);
        from.read_exact(buffer.as_mut_slice())?;
        return Ok(FrameBody::Aligned(buffer, len));
    }
    let mut bytes = Vec::new();
    while bytes.len() < len {
        let step = (len - bytes.len()).min(BODY_STEP_BYTES);
        bytes.reserve_exact(step);
        let count = from.by_ref().take(step as u64).read_to_end(&mut bytes)?;
        if count < step {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    if !aligned {
        return Ok(FrameBody::Bytes(bytes));
    }
    let mut buffer = Buffer::zeroed(len);
    buffer.as_mut_slice().copy_from_slice(&bytes);
    Ok(FrameBody::Aligned(buffer, len))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(frame: &Frame) -> Vec<u8> {
        let mut bytes = frame.start().expect("small");
        bytes.extend_from_slice(frame.body.as_slice());
        bytes
    }

    fn frame(body: Vec<u8>) -> Frame {
        Frame {
            kind: 7,
            number: 0x0102_0304_0506_0708,
            head: b"the head".to_vec(),
            body: FrameBody::Bytes(body),
        }
    }

    #[test]
    fn frames_read_back_one_after_the_other() {
        let large = vec![9; 3 * BODY_STEP_BYTES + 5];
        let mut bytes = bytes_of(&frame(large.clone()));
        bytes.extend(bytes_of(&frame(Vec::new())));
        let mut from = bytes.as_slice();
        for (expected, aligned) in [(large.as_slice(), true), (&[], false)] {
            let read = Frame::read(&mut from, |kind| kind == 7 && aligned).expect("reads");
            let read = read.expect("there is one");
            assert_eq!((read.kind, read.number), (7, 0x0102_0304_0506_0708));
            assert_eq!(read.head, b"the head");
            assert_eq!(matches!(read.body, FrameBody::Aligned(..)), aligned);
            assert!(read.body.as_slice() == expected);
        }
        assert!(Frame::read(&mut from, |_| false).expect("ends").is_none());
    }

    #[test]
    fn every_changed_byte_and_every_cut_shows() {
        let bytes = bytes_of(&frame(b"the body".to_vec()));
        for at in 0..bytes.len() {
            let cut = Frame::read(&mut &bytes[..at], |_| false);
            assert_eq!(cut.is_err(), at > 0, "cut at {at}");
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            let read = Frame::read(&mut changed.as_slice(), |_| false);
            assert!(read.is_err(), "changed at {at}");
        }
    }

    #[test]
    fn too_large_is_refused_before_it_is_read() {
        let mut prefix = bytes_of(&frame(Vec::new()));
        prefix[4..8].copy_from_slice(&(BODY_BYTES_MAX as u32 + 1).to_le_bytes());
        let error = Frame::read(&mut prefix.as_slice(), |_| false).expect_err("too large");
        assert!(error.to_string().contains("lengths"), "{error}");
        let frame = Frame {
            head: vec![0; HEAD_BYTES_MAX + 1],
            ..frame(Vec::new())
        };
        assert!(frame.start().is_err());
    }
}
