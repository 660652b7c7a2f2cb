//! The decoder of frontend messages, as the connection uses it: first packet, then messages, fed in uneven pieces.
#![no_main]

use bytes::BytesMut;
use logstead_wire::decode;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let mut buffer = BytesMut::from(data);
    let _any_answer_will_do = decode::take_first_packet(&mut buffer);
    let mut buffer = BytesMut::new();
    let piece = usize::from(data.first().copied().unwrap_or(1)) + 1;
    for piece in data.chunks(piece) {
        buffer.extend_from_slice(piece);
        loop {
            match decode::take_frame(&mut buffer) {
                Ok(Some(frame)) => match frame.decode() {
                    Err(error) if error.fatal => return,
                    _ => {}
                },
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
});
