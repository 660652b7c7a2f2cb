//! The decoder against arbitrary bytes, arbitrary cuts, and an independent implementation of the protocol.

use bytes::BytesMut;
use logstead_wire::decode::{self, FirstPacket, Frontend, ProtocolError, Target};
use pgwire::messages::Message;
use pgwire::messages::extendedquery as oracle;
use proptest::prelude::*;

/// Everything a byte string decodes to, fed in pieces of the given sizes: a description of each message, then the
/// error.
fn decode_all(bytes: &[u8], cuts: &[usize]) -> (Vec<String>, Option<ProtocolError>) {
    let mut buffer = BytesMut::new();
    let mut messages = Vec::new();
    let mut rest = bytes;
    let mut cuts = cuts.iter().cycle();
    loop {
        loop {
            match decode::take_frame(&mut buffer) {
                Ok(Some(frame)) => match frame.decode() {
                    Ok(message) => messages.push(format!("{message:?}")),
                    Err(error) if error.fatal => return (messages, Some(error)),
                    Err(error) => messages.push(format!("{error:?}")),
                },
                Ok(None) => break,
                Err(error) => return (messages, Some(error)),
            }
        }
        if rest.is_empty() {
            return (messages, None);
        }
        let cut = cuts.next().copied().unwrap_or(1).clamp(1, rest.len());
        buffer.extend_from_slice(&rest[..cut]);
        rest = &rest[cut..];
    }
}

/// A well-formed or slightly broken message.
fn message() -> impl Strategy<Value = Vec<u8>> {
    let kinds = prop::sample::select(b"QPBDECHSdcfFpX".to_vec());
    let body = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40),
        ("[a-z]{0,5}", "[ -~]{0,20}", any::<u16>()).prop_map(|(a, b, n)| {
            let mut body = a.into_bytes();
            body.push(0);
            body.extend_from_slice(b.as_bytes());
            body.push(0);
            body.extend_from_slice(&(n % 3).to_be_bytes());
            body
        }),
    ];
    (kinds, body).prop_map(|(kind, body)| {
        let mut message = vec![kind];
        message.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
        message.extend_from_slice(&body);
        message
    })
}

proptest! {
    #[test]
    fn copy_data_is_taken_as_it_arrives(
        data in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..6),
        behind in prop::collection::vec(message(), 0..3),
        cuts in prop::collection::vec(1usize..30, 1..10),
        most in 1usize..40,
    ) {
        let mut bytes = Vec::new();
        for body in &data {
            bytes.extend_from_slice(b"d");
            bytes.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
            bytes.extend_from_slice(body);
        }
        let behind: Vec<u8> = behind.into_iter().filter(|other| other[0] != b'd').flatten().collect();
        bytes.extend_from_slice(&behind);
        let (mut buffer, mut left, mut copied) = (BytesMut::new(), 0, b"before".to_vec());
        let mut cuts = cuts.iter().cycle();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(*cuts.next().unwrap()));
            buffer.extend_from_slice(now);
            rest = later;
            let mut before = copied.len();
            while decode::take_copy_data(&mut buffer, &mut left, &mut copied, most) {
                prop_assert!((1..=most).contains(&(copied.len() - before)));
                before = copied.len();
            }
            prop_assert_eq!(copied.len(), before);
        }
        prop_assert_eq!(left, 0);
        prop_assert_eq!(&copied[6..], &data.concat()[..]);
        prop_assert_eq!(&buffer[..], &behind[..]);
    }

    #[test]
    fn cuts_make_no_difference(
        messages in prop::collection::vec(message(), 0..8),
        cuts in prop::collection::vec(1usize..30, 1..10),
    ) {
        let bytes = messages.concat();
        prop_assert_eq!(decode_all(&bytes, &cuts), decode_all(&bytes, &[usize::MAX]));
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), cuts in prop::collection::vec(1usize..30, 1..5)) {
        decode_all(&bytes, &cuts);
        let mut buffer = BytesMut::from(&bytes[..]);
        let _any_answer_will_do = decode::take_first_packet(&mut buffer);
    }

    #[test]
    fn bind_agrees_with_another_implementation(
        portal in "[a-z]{0,8}",
        statement in "[a-z]{0,8}",
        values in prop::collection::vec(prop::option::of(prop::collection::vec(any::<u8>(), 0..20)), 0..6),
        formats in prop::collection::vec(0i16..2, 0..4),
    ) {
        let name = |s: &str| (!s.is_empty()).then(|| s.to_owned());
        let bind = oracle::Bind::new(
            name(&portal),
            name(&statement),
            vec![1],
            values.iter().map(|v| v.clone().map(bytes::Bytes::from)).collect(),
            formats.clone(),
        );
        let mut buffer = BytesMut::new();
        bind.encode(&mut buffer).unwrap();
        let frame = decode::take_frame(&mut buffer).unwrap().unwrap();
        let Frontend::Bind(decoded) = frame.decode().unwrap() else { panic!("not a Bind") };
        prop_assert_eq!(decoded.portal, portal);
        prop_assert_eq!(decoded.statement, statement);
        prop_assert_eq!(decoded.formats.as_slice(), &[1]);
        prop_assert_eq!(decoded.values.iter().map(|v| v.map(<[u8]>::to_vec)).collect::<Vec<_>>(), values);
        prop_assert_eq!(decoded.result_formats.to_vec(), formats);
    }
}

#[test]
fn lengths_are_checked_before_anything_is_kept() {
    let mut buffer = BytesMut::from(&b"Q\x7f\xff\xff\xff"[..]);
    let error = decode::take_frame(&mut buffer).unwrap_err();
    assert!(error.fatal);
    assert_eq!(error.code.as_str(), "54000");
    let mut buffer = BytesMut::from(&b"S\0\0\0\x03"[..]);
    assert_eq!(
        decode::take_frame(&mut buffer).unwrap_err().message,
        "invalid message length"
    );
    let mut buffer = BytesMut::from(&b"\x01"[..]);
    assert_eq!(
        decode::take_frame(&mut buffer).unwrap_err().message,
        "invalid frontend message type 1"
    );
    let mut buffer = BytesMut::from(&b"\0\0\xff\xff\0\x03\0\0"[..]);
    assert!(decode::take_first_packet(&mut buffer).unwrap_err().fatal);
}

#[test]
fn broken_bodies_are_ordinary_errors() {
    let check = |message: &[u8], code: &str, text: &str| {
        let mut buffer = BytesMut::from(message);
        let frame = decode::take_frame(&mut buffer).unwrap().unwrap();
        let error = frame.decode().unwrap_err();
        assert_eq!(
            (error.code.as_str(), error.message.as_str(), error.fatal),
            (code, text, false)
        );
    };
    check(
        b"Q\0\0\0\x07\xff\xfe\0",
        "22021",
        "invalid byte sequence for encoding \"UTF8\": 0xff",
    );
    check(b"Q\0\0\0\x06ab", "08P01", "invalid string in message");
    check(
        b"B\0\0\0\x08\0\0\xff\xff",
        "08P01",
        "insufficient data left in message",
    );
    check(b"D\0\0\0\x06Z\0", "08P01", "invalid message subtype 90");
    check(b"S\0\0\0\x05x", "08P01", "invalid message format");
}

#[test]
fn first_packets() {
    let packet = |body: &[u8]| {
        let mut buffer = BytesMut::new();
        buffer.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
        buffer.extend_from_slice(body);
        decode::take_first_packet(&mut buffer)
    };
    assert_eq!(
        packet(&80_877_103u32.to_be_bytes()).unwrap(),
        Some(FirstPacket::Ssl)
    );
    assert_eq!(
        packet(&80_877_104u32.to_be_bytes()).unwrap(),
        Some(FirstPacket::Gss)
    );
    assert_eq!(
        packet(b"\0\x03\0\0user\0me\0database\0d\0\0").unwrap(),
        Some(FirstPacket::Startup {
            minor: 0,
            parameters: vec![
                ("user".to_owned(), "me".to_owned()),
                ("database".to_owned(), "d".to_owned())
            ],
        })
    );
    assert!(packet(b"\0\x03\0\0user\0me\0").unwrap_err().fatal);
    assert_eq!(packet(b"\0\x02\0\0\0").unwrap_err().code.as_str(), "0A000");
}

#[test]
fn targets_and_limits() {
    let mut buffer = BytesMut::from(&b"D\0\0\0\x08Sab\0E\0\0\0\x0a\x70\0\0\0\0\x05"[..]);
    let frame = decode::take_frame(&mut buffer).unwrap().unwrap();
    assert_eq!(
        frame.decode().unwrap(),
        Frontend::Describe(Target::Statement("ab"))
    );
    let frame = decode::take_frame(&mut buffer).unwrap().unwrap();
    assert_eq!(
        frame.decode().unwrap(),
        Frontend::Execute {
            portal: "p",
            rows_max: 5
        }
    );
    assert!(buffer.is_empty());
}

#[test]
fn a_message_that_cannot_be_accepted_is_refused_before_its_rest_arrives() {
    for (begin, refused) in [
        (&b"S\x7f\xff\xff\xff"[..], true),
        (&b"Q\x7f\xff\xff\xff"[..], true),
        (&b"Q\x00\x00\x00\x03"[..], true),
        (&b"G"[..], true),
        (&b"Q\x00\x00\x10\x00"[..], false),
        (&b"Q"[..], false),
        (&b""[..], false),
    ] {
        let found = decode::frame_length(begin);
        assert_eq!(found.is_err(), refused, "{begin:?}");
        assert!(refused || found == Ok(None), "{begin:?}");
    }
    assert_eq!(decode::frame_length(b"S\x00\x00\x00\x04Q"), Ok(Some(5)));
}
