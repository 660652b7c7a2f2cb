//! A node over a real connection and a real disk.

mod fetch;
mod fleet;

use crate::{NodeCertificate, NodeError, NodeOptions, ScrubOptions, StorageNode};
use logstead_env::Env;
use logstead_home::node::message::PROTOCOL;
use logstead_home::{
    Buffer, DAMAGED_OBJECTS, HomeError, HomeOptions, IoMethod, LogHome, NoRoom, ObjectId, Position,
    conformance, open, open_read_only,
};
use logstead_types::{Epoch, LaneId};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

const LANE: LaneId = LaneId(4);

fn options(dir: &Path) -> NodeOptions {
    NodeOptions {
        listen: "127.0.0.1:0".parse().expect("an address"),
        dir: dir.to_owned(),
        zone: "a".to_owned(),
        secret: Vec::new(),
        certificate: None,
        segment_bytes: 64 << 10,
        way: IoMethod::Pwrite,
        distance: Duration::ZERO,
        scrub: ScrubOptions {
            interval: None,
            damage: |_| None,
        },
        protocol: PROTOCOL,
    }
}

fn node(dir: &Path) -> StorageNode {
    StorageNode::start(options(dir), &Env::real()).expect("starts")
}

fn url(node: &StorageNode) -> String {
    format!("node://{}/volume", node.address())
}

fn home(node: &StorageNode) -> LogHome {
    open(&url(node), &Env::real(), &HomeOptions::default()).expect("opens")
}

fn append(home: &LogHome, lane: LaneId, fill: u8) -> Result<Position, HomeError> {
    let at = home.appends.place(lane, 4096)?;
    let mut block = Buffer::zeroed(4096);
    block.as_mut_slice().fill(fill);
    let (tell, told) = mpsc::channel();
    let done = move |block: Buffer, result| {
        assert_eq!(block.capacity(), 4096, "the buffer comes back");
        drop(tell.send(result));
    };
    home.appends.append(lane, at, block, 4096, Box::new(done));
    told.recv().expect("is told once")?;
    Ok(at)
}

fn byte_at(home: &LogHome, lane: LaneId, at: Position) -> Option<u8> {
    let mut into = Buffer::zeroed(4096);
    let count = home.segments.read(lane, at, &mut into).expect("reads");
    (count == 4096).then(|| into.as_slice()[0])
}

#[test]
fn a_node_does_what_every_home_does() {
    let dir = tempfile::tempdir().expect("a directory");
    let node = node(dir.path());
    conformance::check(&home(&node));
}

#[test]
fn lives_follow_one_another() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut kept = Vec::new();
    for life in 0..3 {
        let node = node(dir.path());
        kept = conformance::check_trimmed_life(&home(&node), &|| false, life, &kept);
    }
}

/// Over one node that stays, too: the lane's next writer takes it from the one before.
#[test]
fn the_next_writer_takes_the_lanes() {
    let dir = tempfile::tempdir().expect("a directory");
    let node = node(dir.path());
    let mut kept = Vec::new();
    for life in 0..3 {
        kept = conformance::check_trimmed_life(&home(&node), &|| false, life, &kept);
    }
}

#[test]
fn who_is_fenced_out_appends_nothing_and_opens_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let of_epoch = |epoch: u64| epoch << 32;
    let first = of_epoch(5);
    let mut fenced_at = Position::default();
    for restarts in [false, true] {
        let mut node = node(dir.path());
        if !restarts {
            let (old, new) = (home(&node), home(&node));
            old.appends.open_lane(LANE, first).expect("opens");
            append(&old, LANE, 1).expect("appends");
            new.segments.fence(LANE, first, "the test").expect("fences");
            fenced_at = old.appends.place(LANE, 4096).expect("a place");
            let (tell, told) = mpsc::channel();
            old.appends.append(
                LANE,
                fenced_at,
                Buffer::zeroed(4096),
                4096,
                Box::new(move |_, result| drop(tell.send(result))),
            );
            let told = told.recv().expect("is told");
            assert!(matches!(told, Err(HomeError::Fenced(_))), "{told:?}");
        } else {
            // What is fenced stays so when the node comes back.
            drop(node);
            node = self::node(dir.path());
        }
        let late = home(&node);
        for segment in [first, first + 7, of_epoch(4), of_epoch(4) + 9] {
            let opened = late.appends.open_lane(LANE, segment);
            let fenced = matches!(opened, Err(NoRoom::Failed(HomeError::Fenced(_))));
            assert!(fenced, "segment {segment}: {opened:?}");
        }
        assert_ne!(
            byte_at(&late, LANE, fenced_at),
            Some(1),
            "nothing was written"
        );
    }
    let node = node(dir.path());
    let home = home(&node);
    // A start that was overtaken before its fence does not hit who overtook it.
    home.appends.open_lane(LANE, of_epoch(7)).expect("opens");
    home.segments
        .fence(LANE, of_epoch(6), "one that was overtaken")
        .expect("fences");
    append(&home, LANE, 3).expect("goes on");
}

#[test]
fn appends_may_be_given_in_any_order() {
    let dir = tempfile::tempdir().expect("a directory");
    let node = node(dir.path());
    let home = home(&node);
    home.appends.open_lane(LANE, 0).expect("opens");
    let places: Vec<Position> = (0..6)
        .map(|_| home.appends.place(LANE, 4096).expect("a place"))
        .collect();
    let (tell, told) = mpsc::channel();
    for number in [3, 1, 0, 2, 5, 4] {
        let mut block = Buffer::zeroed(4096);
        block.as_mut_slice().fill(number as u8 + 1);
        let tell = tell.clone();
        let done = Box::new(move |_, result| drop(tell.send(result)));
        home.appends.append(LANE, places[number], block, 4096, done);
    }
    for _ in &places {
        told.recv().expect("is told").expect("appends");
    }
    for (number, at) in places.iter().enumerate() {
        assert_eq!(byte_at(&home, LANE, *at), Some(number as u8 + 1));
    }
    let error = append_at(&home, places[5]).expect_err("it was given before");
    assert!(matches!(error, HomeError::Misuse { .. }), "{error}");
}

fn append_at(home: &LogHome, at: Position) -> Result<(), HomeError> {
    let (tell, told) = mpsc::channel();
    let done = Box::new(move |_, result| drop(tell.send(result)));
    home.appends
        .append(LANE, at, Buffer::zeroed(4096), 4096, done);
    told.recv().expect("is told once")
}

#[test]
fn what_a_copy_lacks_is_written_and_what_its_writer_has_not_come_to_is_not() {
    let dir = tempfile::tempdir().expect("a directory");
    let node = node(dir.path());
    let home = home(&node);
    home.appends.open_lane(LANE, 3).expect("opens");
    append(&home, LANE, 1).expect("appends");
    let mut block = Buffer::zeroed(4096);
    block.as_mut_slice().fill(9);
    let rewrite = |segment| {
        let at = Position::start_of(segment);
        home.segments.rewrite(LANE, at, &block, 4096)
    };
    rewrite(2).expect("of before");
    rewrite(3).expect("of now");
    assert!(rewrite(4).is_err(), "it may be in the making");
    assert_eq!(byte_at(&home, LANE, Position::start_of(2)), Some(9));
    // What was given back is made again where it is needed.
    home.segments
        .seal(LANE, Position::start_of(2))
        .expect("seals");
    assert_eq!(byte_at(&home, LANE, Position::start_of(2)), None);
    rewrite(2).expect("again");
    assert_eq!(byte_at(&home, LANE, Position::start_of(2)), Some(9));
}

/// A segment is in the making for a server that is fenced out, while the next one completes this copy: what that has
/// written stays.
#[test]
fn what_a_copy_is_given_outlives_the_segment_that_its_old_writer_was_to_have() {
    let dir = tempfile::tempdir().expect("a directory");
    let node = node(dir.path());
    for round in 0..40u64 {
        let (old, new) = (home(&node), home(&node));
        let first = (2 * round + 1) << 32;
        old.appends.open_lane(LANE, first).expect("opens");
        // Behind a quarter of the segment the next one is prepared, beside this thread.
        for fill in 0..5 {
            append(&old, LANE, fill).expect("appends");
        }
        new.segments.fence(LANE, first, "the next").expect("fences");
        let at = Position::start_of(first + 1);
        let mut block = Buffer::zeroed(4096);
        block.as_mut_slice().fill(77);
        new.segments
            .rewrite(LANE, at, &block, 4096)
            .expect("completes");
        std::thread::yield_now();
        let of_others = Position::start_of(first + 2);
        new.segments
            .rewrite(LANE, of_others, &block, 4096)
            .expect("makes another");
        assert_eq!(byte_at(&new, LANE, at), Some(77), "round {round}");
        for segment in [first, first + 1, first + 2] {
            new.segments.trim(LANE, segment).expect("trims");
        }
    }
}

#[test]
fn a_connection_that_breaks_ends_the_lanes_and_nothing_else() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut first = node(dir.path());
    let listen = first.address();
    let home = home(&first);
    home.appends.open_lane(LANE, 0).expect("opens");
    append(&home, LANE, 1).expect("appends");
    let tag = home.names.put_if_absent("thing", b"one").expect("puts");
    drop(first);
    assert!(append(&home, LANE, 2).is_err());
    first = StorageNode::start(
        NodeOptions {
            listen,
            ..options(dir.path())
        },
        &Env::real(),
    )
    .expect("starts again");
    let (bytes, again) = home.names.get("thing").expect("reads").expect("is there");
    assert_eq!((bytes.as_slice(), again), (b"one".as_slice(), tag));
    assert_eq!(byte_at(&home, LANE, Position::start_of(0)), Some(1));
    home.names
        .compare_and_swap("thing", tag, b"two")
        .expect("swaps");
    assert!(append(&home, LANE, 3).is_err(), "the lane has failed");
    home.appends.open_lane(LANE, 7).expect("opens anew");
    append(&home, LANE, 4).expect("appends");
    drop(first);
}

#[test]
fn a_volume_is_opened_by_its_key_only() {
    let dir = tempfile::tempdir().expect("a directory");
    let node = StorageNode::start(
        NodeOptions {
            secret: b"a secret".to_vec(),
            ..options(dir.path())
        },
        &Env::real(),
    )
    .expect("starts");
    let error = open(&url(&node), &Env::real(), &HomeOptions::default()).map(drop);
    let error = error.expect_err("without the secret").to_string();
    assert!(error.contains("the key of the volume is wrong"), "{error}");
    assert!(
        !dir.path().join("volumes/volume").exists(),
        "nothing was made"
    );
}

#[test]
fn who_reads_makes_nothing_and_changes_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let node = node(dir.path());
    let missing = open_read_only(&url(&node), &Env::real()).map(drop);
    assert!(matches!(missing, Err(HomeError::Missing(_))), "{missing:?}");
    home(&node)
        .names
        .put_if_absent("thing", b"one")
        .expect("puts");
    let reader = open_read_only(&url(&node), &Env::real()).expect("opens");
    assert!(reader.names.get("thing").expect("reads").is_some());
    let refused = [
        reader.names.put_if_absent("other", b"one").map(drop),
        reader.segments.fence(LANE, 0, "nobody"),
        reader.segments.trim(LANE, 0),
    ];
    for refused in refused {
        let refused = refused.expect_err("it may only read");
        assert!(matches!(refused, HomeError::Unsupported(_)), "{refused}");
    }
}

/// Measured anew at each start, the same volume takes another time for an append.
#[test]
#[expect(clippy::disallowed_methods, reason = "a real disk is emptied")]
fn a_node_that_was_measured_anew_is_the_same() {
    let dir = tempfile::tempdir().expect("a directory");
    let start = |listen: Option<std::net::SocketAddr>| {
        let defaults = options(dir.path());
        let options = NodeOptions {
            listen: listen.unwrap_or(defaults.listen),
            way: IoMethod::Auto,
            ..defaults
        };
        StorageNode::start(options, &Env::real()).expect("starts")
    };
    let first = start(None);
    let address = first.address();
    let home = home(&first);
    home.names.put_if_absent("thing", b"one").expect("puts");
    drop(first);
    let again = start(Some(address));
    assert!(home.names.get("thing").expect("reads").is_some());
    home.objects
        .put_object(logstead_home::ObjectId(1), b"an object")
        .expect("puts");
    drop(again);
    // Emptied it is another one.
    std::fs::remove_dir_all(dir.path().join("volumes")).expect("removes");
    std::fs::remove_file(dir.path().join("node")).expect("removes");
    let _another = start(Some(address));
    let error = home.names.get("thing").expect_err("it is another one");
    assert!(
        error.to_string().contains("another one than before"),
        "{error}"
    );
}

#[test]
fn a_server_asks_no_node_elsewhere_without_encryption_and_secret() {
    let url = "node://192.0.2.1:7001/volume";
    let error = open(url, &Env::real(), &HomeOptions::default()).map(drop);
    let error = error.expect_err("it is not asked").to_string();
    assert!(error.contains("tls=on and a secret"), "{error}");
}

#[test]
fn a_node_hides_where_it_cannot_encrypt() {
    let dir = tempfile::tempdir().expect("a directory");
    for secret in ["", "a secret"] {
        let started = StorageNode::start(
            NodeOptions {
                listen: "0.0.0.0:0".parse().expect("an address"),
                secret: secret.as_bytes().to_vec(),
                ..options(dir.path())
            },
            &Env::real(),
        );
        assert!(matches!(started, Err(NodeError::Exposed(_))));
    }
    let files = Env::real().files;
    let none = dir.path().join("none");
    assert!(NodeCertificate::read(&none, &none, files.as_ref()).is_err());
}

#[test]
fn two_nodes_do_not_share_a_directory() {
    let dir = tempfile::tempdir().expect("a directory");
    let _first = node(dir.path());
    let second = StorageNode::start(options(dir.path()), &Env::real());
    assert!(matches!(second, Err(NodeError::Home(HomeError::InUse(_)))));
}

/// Whatever somebody sends: the connection ends, and the others go on.
#[test]
fn strangers_are_shown_out() {
    let dir = tempfile::tempdir().expect("a directory");
    let node = node(dir.path());
    let home = home(&node);
    let greeting = [b"logstead node 1\n".as_slice(), &[7; 32], &[6], b"../etc"].concat();
    let stranger = b"GET / HTTP/1.1\r\nHost: a-node-that-is-none\r\n\r\n".to_vec();
    for sent in [stranger, vec![0xff; 5000], greeting] {
        let mut socket =
            logstead_env::connect(node.address(), Duration::from_secs(5)).expect("connects");
        // It may have closed before all was sent.
        let _sent = socket
            .write_all(&sent)
            .and_then(|()| socket.write_all(&[0; 32]));
        let mut answer = Vec::new();
        let _closed = socket.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(!answer.contains("etc"), "{answer}");
    }
    home.names.put_if_absent("thing", b"one").expect("goes on");
}

/// What the disk has damaged is told until it is removed, and stays where it is.
#[test]
fn damaged_objects_are_told() {
    let dir = tempfile::tempdir().expect("a directory");
    let scrub = ScrubOptions {
        interval: Some(Duration::from_millis(10)),
        damage: |bytes| bytes.starts_with(b"bad").then(|| "it is bad".to_owned()),
    };
    let options = NodeOptions {
        scrub,
        ..options(dir.path())
    };
    let node = StorageNode::start(options, &Env::real()).expect("starts");
    let home = home(&node);
    let id = |number| ObjectId::new(Epoch(1), number);
    let put = |number: u32, bytes: &[u8]| {
        home.objects
            .put_object(id(number), bytes)
            .expect("is stored");
    };
    let told = || -> Option<String> {
        let mut report = home.status.report().into_iter();
        report.find_map(|(name, value)| (name == DAMAGED_OBJECTS).then_some(value))
    };
    let tells = |wanted: Option<&str>| {
        while told().as_deref() != wanted {
            logstead_env::sleep(Duration::from_millis(5));
        }
    };
    put(0, &[b'a'; 5000]);
    put(1, b"bad");
    tells(Some("1"));
    put(2, b"bad, too");
    tells(Some("2"));
    assert_eq!(home.objects.list_objects().expect("lists").len(), 3);
    home.objects.remove_object(id(1)).expect("is removed");
    put(1, b"good");
    tells(Some("1"));
    home.objects.remove_object(id(2)).expect("is removed");
    assert_eq!(told(), None);
    put(2, b"bad again");
    tells(Some("1"));
}
