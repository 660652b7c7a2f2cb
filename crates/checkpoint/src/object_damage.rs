//! Whether an object's bytes are what was stored, by the checksums that its frames carry.
//!
//! An object is frames, one behind the other. So whoever has its bytes and nothing else, as a storage node, can tell
//! that they are damaged.
//!
//! Does not: know whether it is the right object, or a frame the right one: references say that (`page_ref`).

use crate::frame::{FrameError, sound_frame};

/// What is wrong with an object; `None`: nothing, or it has a format that is not known here, whose server knows better.
pub fn object_damage(bytes: &[u8]) -> Option<FrameError> {
    let mut at = 0;
    while at < bytes.len() {
        match sound_frame(&bytes[at..]) {
            Ok(Some(len)) => at += len,
            Ok(None) => return None,
            Err(error) => return Some(error),
        }
    }
    None
}

/// The same in words: what homes of several copies, and storage nodes, are given.
pub fn damage_of_object(bytes: &[u8]) -> Option<String> {
    object_damage(bytes).map(|damage| damage.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Encoder, FrameKind};
    use logstead_types::Csn;

    fn object() -> Vec<u8> {
        let mut encoder = Encoder::new();
        let mut object = Vec::new();
        for payload in [&b"abc"[..], &[7; 5000], b""] {
            let frame = encoder.encode(FrameKind::Record, Csn(9), b"key", payload);
            object.extend_from_slice(frame.expect("fits"));
        }
        object
    }

    #[test]
    fn every_damaged_byte_is_found() {
        let whole = object();
        assert_eq!(object_damage(&whole), None);
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            assert!(object_damage(&damaged).is_some(), "byte {at}");
        }
        let cut: Vec<usize> = (1..whole.len())
            .filter(|&len| object_damage(&whole[..len]).is_none())
            .collect();
        assert_eq!(cut.len(), 2, "only where a frame ends: {cut:?}");
    }

    #[test]
    fn what_a_newer_server_wrote_is_not_damaged() {
        let mut object = object();
        object[8] = 9;
        let crc = crc32c::crc32c_append(crc32c::crc32c(&object[..36]), b"key");
        object[36..40].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(object_damage(&object), None);
    }
}
