//! What lies in an object: the keys of its pages, by the headers of its frames alone, from the first to the last.
//!
//! Objects are frames one behind the other. What a header says is checked by the header's own checksum; payloads are
//! passed over. Keys of pages that nobody refers to any more are among them: whoever asks looks in the directory.
//!
//! Does not: know what is alive, or check payloads.

use crate::error::CheckpointError;
use crate::frame::{FrameKind, HEADER_BYTES, Header, KEY_BYTES_MAX};
use crate::page_ref::PageKey;
use logstead_home::{HomeError, ObjectId, ObjectReader};
use std::collections::BTreeSet;

/// What is read in one go.
const WINDOW_BYTES: usize = 1 << 20;

/// Adds the keys of the pages in an object. False: its frames cannot be told apart to its end, so there may be more.
pub(crate) fn page_keys(
    objects: &dyn ObjectReader,
    object: ObjectId,
    keys: &mut BTreeSet<PageKey>,
) -> Result<bool, CheckpointError> {
    let mut window = vec![0; WINDOW_BYTES];
    let (mut start, mut len) = (0_u64, 0_usize);
    let mut at = 0_u64;
    let mut is_end = false;
    loop {
        let from = usize::try_from(at - start).unwrap_or(usize::MAX);
        let left = len.checked_sub(from);
        if !is_end && left.is_none_or(|left| left < HEADER_BYTES + KEY_BYTES_MAX) {
            len = match objects.read_object(object, at, &mut window) {
                Ok(len) => len,
                // It is told by whoever needs a page of it.
                Err(HomeError::Missing(_)) => return Ok(false),
                Err(error) => return Err(error.into()),
            };
            is_end = len < window.len();
            start = at;
            continue;
        }
        let Some(bytes) = window.get(from..len) else {
            // The last frame is longer than the object.
            return Ok(false);
        };
        if bytes.is_empty() {
            return Ok(true);
        }
        let Ok(header) = Header::decode(bytes) else {
            return Ok(false);
        };
        match header.kind {
            FrameKind::Node | FrameKind::Fork | FrameKind::Record => {}
            FrameKind::RowsBase
            | FrameKind::RowsDelta
            | FrameKind::RowPiece
            | FrameKind::RowChanges
            | FrameKind::ChangePiece
            | FrameKind::Leaf
            | FrameKind::LeafPiece => match PageKey::decode(header.key(bytes)) {
                Ok(key) => {
                    keys.insert(key);
                }
                Err(_) => return Ok(false),
            },
        }
        at += header.frame_len() as u64;
    }
}
