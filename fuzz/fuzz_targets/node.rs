//! Frames, requests and answers of storage nodes from arbitrary bytes: every answer is fine, a panic is not. What
//! decodes must encode to the same bytes again.
#![no_main]

use logstead_home::node::frame::{FrameBody, Frame};
use logstead_home::node::message::{Reply, Request, decode_peers, encode_peers};

fn messages(kind: u8, head: &[u8], body: &[u8]) {
    let frame = || Frame {
        kind,
        number: 7,
        head: head.to_vec(),
        body: FrameBody::Bytes(body.to_vec()),
    };
    if let Ok(request) = Request::decode(&frame()) {
        let again = request.frame(7, FrameBody::NONE);
        assert_eq!((again.kind, again.head.as_slice()), (kind, head), "{request:?}");
    }
    // Whom a node is to fetch from: the addresses are those that were sent.
    if let Ok(peers) = decode_peers(body) {
        let again = decode_peers(&encode_peers(&peers)).expect("it was decoded");
        assert_eq!(again, peers);
    }
    if let Ok(reply) = Reply::decode(frame()) {
        // Words of an error are a node's own: they come again in this one's.
        if let Ok(again) = Reply::decode(reply.frame(7)) {
            let _words = again.result.err().map(|error| error.to_string());
        }
    }
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let mut from = data;
    while let Ok(Some(frame)) = Frame::read(&mut from, Request::is_aligned) {
        let mut again = frame.start().expect("it was not too large");
        again.extend_from_slice(frame.body.as_slice());
        let read = data.len() - from.len();
        assert!(data[..read].ends_with(&again), "a frame has one encoding");
        messages(frame.kind, &frame.head, frame.body.as_slice());
    }
    // Without the checksums, which few random bytes have.
    if let [kind, length, rest @ ..] = data {
        let (head, body) = rest.split_at(rest.len().min(usize::from(*length)));
        messages(*kind, head, body);
    }
});
