use super::*;

fn all() -> Vec<Request> {
    let (lane, id, offset, len) = (LaneId(3), 1 << 40, 77, 4096);
    let at = Position {
        segment: 5 << 32,
        offset: 8192,
    };
    let name = "manifest".to_owned();
    let object = ObjectId(id);
    vec![
        Request::OpenVolume { write: true },
        Request::OpenLane {
            lane,
            first_segment: 9,
        },
        Request::Append { lane, at },
        Request::Fence {
            lane,
            first_segment: 9,
            by: "an own name: ü".to_owned(),
        },
        Request::ListLanes,
        Request::ListSegments { lane },
        Request::Read { lane, at, len },
        Request::Rewrite { lane, at },
        Request::Seal { lane, at },
        Request::Trim { lane, segment: 4 },
        Request::GetName { name: name.clone() },
        Request::PutName { name: name.clone() },
        Request::SwapName {
            name,
            tag: u64::MAX,
        },
        Request::BeginSide {
            writer: 1,
            lane,
            id,
        },
        Request::SidePiece { writer: 1 },
        Request::FinishSide { writer: 1 },
        Request::AbandonSide { writer: 1 },
        Request::GetSide {
            lane,
            id,
            offset,
            len,
        },
        Request::ListSides { lane },
        Request::RemoveSide { lane, id },
        Request::PutObject { id: object },
        Request::ReadObject {
            id: object,
            offset,
            len,
        },
        Request::ListObjects,
        Request::RemoveObject { id: object },
        Request::Ping,
        Request::Status,
        Request::ReplaceObject {
            epoch: Epoch(7),
            id: object,
            seen: SeenCopy::of(Some(b"damaged")),
        },
        Request::ReadObjectFromDisk {
            id: object,
            offset,
            len,
        },
        Request::FetchFromPeers {
            epoch: Epoch(7),
            item: CopyItem::Segment {
                lane,
                segment: 9,
                size_bytes: 4096,
                is_sure: true,
            },
        },
    ]
}

#[test]
fn requests_read_back() {
    for request in all() {
        let frame = request.frame(1, FrameBody::NONE);
        assert_eq!(Request::decode(&frame).expect("reads back"), request);
        let longer = Frame {
            head: [frame.head.as_slice(), &[0xff]].concat(),
            ..request.frame(1, FrameBody::NONE)
        };
        assert!(Request::decode(&longer).is_err(), "{request:?}, longer");
    }
    let kinds: std::collections::BTreeSet<u8> =
        all().iter().map(|request| request.encode().0).collect();
    assert_eq!(kinds.len(), all().len(), "each has a kind of its own");
}

#[test]
fn what_is_fetched_and_from_whom_reads_back() {
    let info = ObjectInfo {
        id: ObjectId(5),
        size_bytes: 6,
    };
    let (lane, id) = (LaneId(1), 2);
    for item in [CopyItem::Side { lane, id }, CopyItem::Object(info)] {
        let epoch = Epoch(3);
        let request = Request::FetchFromPeers { epoch, item };
        let frame = request.frame(1, FrameBody::NONE);
        assert_eq!(Request::decode(&frame).expect("reads back"), request);
    }
    let peer = |address: &str| Peer {
        address: address.to_owned(),
        node: u64::MAX,
    };
    let peers = [
        "10.0.0.7:7001",
        "[fe80::1%eth0]:1",
        "node-1.example.org:7001",
    ]
    .map(peer);
    let body = encode_peers(&peers);
    assert_eq!(decode_peers(&body).expect("reads back"), peers);
    let many = vec![peer("a:1"); 100];
    assert_eq!(
        decode_peers(&encode_peers(&many)).expect("reads").len(),
        PEERS_MAX
    );
    let long = "a".repeat(400);
    let long = format!("1 {long}:1\n");
    let others = [
        "1 a",
        "x a:1",
        "1 a:1 b:2",
        "1 a:99999",
        "1 :1",
        "1 a/b:1",
        "1 u@a:1",
        &long,
    ];
    for other in others {
        assert!(decode_peers(other.as_bytes()).is_err(), "{other}");
    }
    assert!(decode_peers(&[0xff]).is_err());
    assert!(decode_peers("1 a:1\n".repeat(33).as_bytes()).is_err());
    assert!(decode_peers(&vec![b'\n'; 100_000]).is_err());
}

#[test]
fn errors_keep_their_kind() {
    let io = |kind: io::ErrorKind| HomeError::io("write", kind.into());
    for error in [
        HomeError::Fenced("lane 1".to_owned()),
        HomeError::Conflict("manifest".to_owned()),
        HomeError::Missing("object 1".to_owned()),
        HomeError::Unsupported("that"),
        HomeError::Misuse {
            lane: LaneId(0),
            what: "this",
        },
        io(io::ErrorKind::StorageFull),
        io(io::ErrorKind::InvalidData),
        io(io::ErrorKind::TimedOut),
    ] {
        let (code, _) = encode_error(&error);
        let reply = Reply {
            is_short_of_space: true,
            result: Err(error.clone()),
        };
        let reply = Reply::decode(reply.frame(7)).expect("reads back");
        assert!(reply.is_short_of_space);
        let back = reply.result.expect_err("an error");
        assert_eq!(encode_error(&back).0, code, "{error}");
        assert_eq!(back.is_disk_full(), error.is_disk_full());
    }
}

#[test]
fn long_words_of_an_error_are_cut_between_two_characters() {
    let reply = Reply {
        is_short_of_space: false,
        result: Err(HomeError::Missing("ü".repeat(3000))),
    };
    let frame = reply.frame(7);
    assert!(frame.start().is_ok());
    assert!(Reply::decode(frame).is_ok());
}
