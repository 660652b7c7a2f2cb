//! What a node fetches from its peers, order by order.

use super::{LANE, append, byte_at, home, node, options};
use crate::{NodeOptions, ScrubOptions, StorageNode};
use logstead_env::Env;
use logstead_home::node::message::PROTOCOL_FIRST;
use logstead_home::{
    BYTES_FROM_PEERS, Buffer, CopyItem, CopyOrder, CopyOrders, HomeError, LogHome, ObjectId,
    ObjectInfo, Peer, Position, SeenCopy, open_read_only,
};
use logstead_types::Epoch;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;
use tempfile::TempDir;

const EPOCH: Epoch = Epoch(3);
const FIRST: u64 = 3 << 32;
const OBJECT: ObjectId = ObjectId::new(EPOCH, 1);

/// Objects that begin with "bad" are damaged.
fn watchful(dir: &Path) -> NodeOptions {
    NodeOptions {
        scrub: ScrubOptions {
            interval: None,
            damage: |bytes| bytes.starts_with(b"bad").then(|| "it is bad".to_owned()),
        },
        ..options(dir)
    }
}

/// Nodes with one volume, each with a server of its own.
struct Rig {
    _dirs: Vec<TempDir>,
    nodes: Vec<StorageNode>,
    homes: Vec<LogHome>,
}

impl Rig {
    fn new(count: usize) -> Rig {
        Rig::of(count, |_, _| {})
    }

    /// So many nodes, each of which is changed.
    fn of(count: usize, change: impl Fn(usize, &mut NodeOptions)) -> Rig {
        let dirs: Vec<TempDir> = (0..count)
            .map(|_| tempfile::tempdir().expect("a directory"))
            .collect();
        let start = |(number, dir): (usize, &TempDir)| {
            let mut options = watchful(dir.path());
            change(number, &mut options);
            StorageNode::start(options, &Env::real()).expect("starts")
        };
        let nodes: Vec<StorageNode> = dirs.iter().enumerate().map(start).collect();
        let homes = nodes.iter().map(home).collect();
        Rig {
            _dirs: dirs,
            nodes,
            homes,
        }
    }

    fn peers(&self, numbers: &[usize]) -> Vec<Peer> {
        numbers
            .iter()
            .map(|number| peer(&self.homes[*number]))
            .collect()
    }

    /// The same segment in each of these: blocks with these bytes.
    fn fill(&self, numbers: &[usize], fills: &[u8]) {
        for number in numbers {
            let home = &self.homes[*number];
            home.appends.open_lane(LANE, FIRST).expect("opens");
            for fill in fills {
                append(home, LANE, *fill).expect("appends");
            }
        }
    }

    fn fetch(&self, number: usize, order: &CopyOrder) -> Result<(), HomeError> {
        let orders = begin(&self.homes[number]).expect("it can");
        given(orders.as_ref(), order).recv().expect("is told once")
    }

    fn object(&self, number: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; 100];
        match self.homes[number]
            .objects
            .read_object(OBJECT, 0, &mut bytes)
        {
            Ok(count) => {
                bytes.truncate(count);
                Some(bytes)
            }
            Err(HomeError::Missing(_)) => None,
            Err(error) => panic!("{error}"),
        }
    }
}

fn begin(home: &LogHome) -> Option<Box<dyn CopyOrders>> {
    let copies = home.peer_copies.as_ref().expect("a node has peers");
    copies.begin().expect("reaches it")
}

fn peer(home: &LogHome) -> Peer {
    home.peer_copies.as_ref().expect("a node has peers").peer()
}

fn given(orders: &dyn CopyOrders, order: &CopyOrder) -> mpsc::Receiver<Result<(), HomeError>> {
    let (tell, told) = mpsc::channel();
    orders.order(order, Box::new(move |result| drop(tell.send(result))));
    told
}

fn segment(peers: Vec<Peer>, size_bytes: u64) -> CopyOrder {
    let item = CopyItem::Segment {
        lane: LANE,
        segment: FIRST,
        size_bytes,
        is_sure: true,
    };
    CopyOrder {
        epoch: EPOCH,
        item,
        peers,
    }
}

fn an_object(peers: Vec<Peer>, size_bytes: u64) -> CopyOrder {
    let id = OBJECT;
    CopyOrder {
        epoch: EPOCH,
        item: CopyItem::Object(ObjectInfo { id, size_bytes }),
        peers,
    }
}

/// An address at which nobody listens.
fn nobody() -> Peer {
    let listener = logstead_env::listen("127.0.0.1:0".parse().expect("an address"));
    let address = listener.expect("listens").local_addr().expect("has one");
    Peer {
        address: address.to_string(),
        node: 1,
    }
}

fn at(block: u64) -> Position {
    Position {
        segment: FIRST,
        offset: block * 4096,
    }
}

#[test]
fn a_segment_comes_from_the_first_peer_that_has_it_all() {
    let rig = Rig::new(4);
    // The second one has less, and the third all.
    rig.fill(&[2, 3], &[1, 2, 3]);
    let size_bytes = 64 << 10;
    rig.homes[1].appends.open_lane(LANE, FIRST).expect("opens");
    let cut = rig.homes[1].segments.seal(LANE, at(2));
    cut.expect("is shorter");
    let mut peers = rig.peers(&[1, 2, 3]);
    peers.insert(0, nobody());
    let order = segment(peers, size_bytes);
    rig.fetch(0, &order).expect("fetches");
    let filled =
        |number: usize| [0, 1, 2, 3].map(|block| byte_at(&rig.homes[number], LANE, at(block)));
    assert_eq!(filled(0), [Some(1), Some(2), Some(3), Some(0)]);
    // Again, where it is already; and in the place of other bytes, if two say so.
    rig.fetch(0, &order).expect("it is there");
    let mut garbage = Buffer::zeroed(4096);
    garbage.as_mut_slice().fill(77);
    let damage = |number: usize| {
        let rewritten = rig.homes[number]
            .segments
            .rewrite(LANE, at(1), &garbage, 4096);
        rewritten.expect("rewrites");
    };
    damage(0);
    rig.fetch(0, &order).expect("fetches");
    assert_eq!(filled(0), [Some(1), Some(2), Some(3), Some(0)]);
    // Of three the two that agree are right, also where the first peer is the third one.
    damage(2);
    rig.fetch(0, &order).expect("fetches");
    assert_eq!(filled(0), [Some(1), Some(2), Some(3), Some(0)]);
    // Nobody has so much.
    let refused = rig.fetch(0, &segment(rig.peers(&[1]), size_bytes));
    refused.expect_err("nobody has it all");
}

#[test]
fn a_damaged_copy_of_an_object_is_not_taken() {
    let rig = Rig::new(5);
    let put = |number: usize, bytes: &[u8]| {
        let stored = rig.homes[number].objects.put_object(OBJECT, bytes);
        stored.expect("stores");
    };
    put(1, b"bad!");
    put(2, b"go");
    put(3, b"good, and more");
    let order = an_object(rig.peers(&[1, 2, 3, 4]), 4);
    rig.fetch(0, &order).expect_err("nobody has it");
    assert_eq!(rig.object(0), None);
    put(4, b"good");
    rig.fetch(0, &order).expect("one has it");
    assert_eq!(rig.object(0).as_deref(), Some(b"good".as_slice()));
    // What is there is not replaced.
    let other = rig.fetch(2, &order).expect_err("it has another one");
    assert!(matches!(other, HomeError::Conflict(_)), "{other}");
    assert_eq!(rig.object(2).as_deref(), Some(b"go".as_slice()));
    let report = rig.homes[0].status.report();
    let fetched = report.iter().find(|(name, _)| name == BYTES_FROM_PEERS);
    assert!(fetched.is_some(), "{report:?}");
}

#[test]
fn a_side_segment_comes_whole_or_not_at_all() {
    let rig = Rig::new(3);
    let bytes: Vec<u8> = (0..9_000_000u32).map(|number| number as u8).collect();
    let mut side = rig.homes[2].sides.begin_side_segment(LANE, 7);
    side.append(bytes.clone());
    let (tell, told) = mpsc::channel();
    side.finish(Box::new(move |result| drop(tell.send(result))));
    told.recv().expect("is told").expect("stores");
    let item = CopyItem::Side { lane: LANE, id: 7 };
    let order = |peers| CopyOrder {
        epoch: EPOCH,
        item,
        peers,
    };
    rig.fetch(0, &order(rig.peers(&[1])))
        .expect_err("it has none");
    let sides = |number: usize| rig.homes[number].sides.list_side_segments(LANE);
    assert!(sides(0).expect("lists").is_empty());
    rig.fetch(0, &order(rig.peers(&[1, 2]))).expect("fetches");
    let mut there = vec![0; bytes.len() + 1];
    let read = rig.homes[0].sides.get_side_segment(LANE, 7, 0, &mut there);
    assert_eq!(read.expect("reads"), bytes.len());
    assert!(there[..bytes.len()] == bytes);
}

/// Whoever may not write to the volume, or was overtaken, or names others than the volume's nodes, changes nothing.
#[test]
fn who_may_not_order_gets_nothing() {
    let rig = Rig::new(3);
    rig.fill(&[1], &[1]);
    let stored = rig.homes[1].objects.put_object(OBJECT, b"good");
    stored.expect("stores");
    let orders = [
        // Another one is there than the one that was named.
        Peer {
            node: rig.nodes[2].id(),
            ..peer(&rig.homes[1])
        },
        // Itself.
        peer(&rig.homes[0]),
        nobody(),
        // Nothing is asked elsewhere without encryption and a secret.
        Peer {
            address: "192.0.2.1:7001".to_owned(),
            node: 1,
        },
    ];
    for other in orders {
        let refused = rig.fetch(0, &an_object(vec![other.clone()], 4));
        let told = refused.expect_err("is not asked").to_string();
        assert!(
            told.contains("none of the peers gives it"),
            "{other:?}: {told}"
        );
        assert!(!told.contains(&other.address), "{told}");
    }
    // A later server has begun.
    rig.homes[0]
        .segments
        .fence(LANE, FIRST, "the next")
        .expect("fences");
    for order in [
        an_object(rig.peers(&[1]), 4),
        segment(rig.peers(&[1]), 64 << 10),
    ] {
        let refused = rig.fetch(0, &order).expect_err("it was overtaken");
        assert!(matches!(refused, HomeError::Fenced(_)), "{refused}");
    }
    assert_eq!(rig.object(0), None);
    assert_eq!(byte_at(&rig.homes[0], LANE, at(0)), None);
    let later = CopyOrder {
        epoch: Epoch(4),
        ..segment(rig.peers(&[1]), 64 << 10)
    };
    rig.fetch(0, &later).expect("the next one fetches");
    assert_eq!(byte_at(&rig.homes[0], LANE, at(0)), Some(1));
}

/// The next server's fence comes while a peer is about to answer: nothing is written behind it.
#[test]
fn t3_what_a_peer_gives_late_is_not_written_behind_a_fence() {
    let rig = Rig::of(2, |number, options| {
        if number == 1 {
            options.distance = Duration::from_millis(500);
        }
    });
    rig.fill(&[1], &[1]);
    let orders = begin(&rig.homes[0]).expect("it can");
    let told = given(orders.as_ref(), &segment(rig.peers(&[1]), 64 << 10));
    // Whenever it comes, nothing may follow; after a while the peer has been asked, and has not answered.
    logstead_env::sleep(Duration::from_millis(200));
    let fenced = rig.homes[0].segments.fence(LANE, FIRST, "the next");
    fenced.expect("fences");
    let refused = told.recv().expect("is told").expect_err("it is overtaken");
    assert!(matches!(refused, HomeError::Fenced(_)), "{refused}");
    assert_eq!(byte_at(&rig.homes[0], LANE, at(0)), None);
}

/// A node of another fleet has a volume of the same name, with other bytes.
#[test]
fn nothing_is_taken_of_who_has_another_key() {
    let rig = Rig::new(1);
    let dir = tempfile::tempdir().expect("a directory");
    let options = NodeOptions {
        secret: b"of another fleet".to_vec(),
        ..watchful(dir.path())
    };
    let stranger = StorageNode::start(options, &Env::real()).expect("starts");
    let there = Peer {
        address: stranger.address().to_string(),
        node: stranger.id(),
    };
    let refused = rig
        .fetch(0, &an_object(vec![there], 4))
        .expect_err("has another key");
    assert!(
        refused.to_string().contains("none of the peers"),
        "{refused}"
    );
    assert!(!dir.path().join("volumes/volume").exists());
}

/// Who reads only, and asks by hand: nothing is fetched.
#[test]
fn who_opened_a_volume_to_read_orders_nothing() {
    let rig = Rig::new(2);
    let stored = rig.homes[1].objects.put_object(OBJECT, b"good");
    stored.expect("stores");
    let reader = format!("node://{}/volume", rig.nodes[0].address());
    let reader = open_read_only(&reader, &Env::real()).expect("opens");
    let orders = begin(&reader).expect("it can");
    let told = given(orders.as_ref(), &an_object(rig.peers(&[1]), 4));
    let refused = told.recv().expect("is told").expect_err("it may only read");
    assert!(matches!(refused, HomeError::Unsupported(_)), "{refused}");
    let repair = reader.object_repair.as_ref().expect("a node can");
    let seen = SeenCopy::of(Some(b"bad!"));
    let refused = repair.replace_object(EPOCH, OBJECT, seen, b"good");
    let refused = refused.expect_err("it may only read");
    assert!(matches!(refused, HomeError::Unsupported(_)), "{refused}");
    assert_eq!(rig.object(0), None);
}

/// As much as a node does at a time is under way, and slow, when the server that ordered it goes: all of it is given
/// up. What is ordered next comes before any of that is done.
#[test]
fn orders_end_with_their_connection() {
    let rig = Rig::of(2, |number, options| {
        if number == 1 {
            options.distance = Duration::from_millis(300);
        }
    });
    let stored = rig.homes[1].objects.put_object(OBJECT, b"good");
    stored.expect("stores");
    let mut order = an_object(rig.peers(&[1]), 4);
    let next = order.clone();
    let orders = begin(&rig.homes[0]).expect("it can");
    let mut told = Vec::new();
    for id in 0..4 {
        let mut side = rig.homes[1].sides.begin_side_segment(LANE, id);
        side.append(vec![id as u8; 24 << 20]);
        let (tell, finished) = mpsc::channel();
        side.finish(Box::new(move |result| drop(tell.send(result))));
        finished.recv().expect("is told").expect("stores");
        order.item = CopyItem::Side { lane: LANE, id };
        told.push(given(orders.as_ref(), &order));
    }
    let has_begun = || {
        let report = rig.homes[0].status.report();
        report.iter().any(|(name, _)| name == BYTES_FROM_PEERS)
    };
    while !has_begun() {
        logstead_env::sleep(Duration::from_millis(5));
    }
    drop(orders);
    for told in told {
        told.recv().expect("is told").expect_err("it is given up");
    }
    rig.fetch(0, &next).expect("fetches");
    assert_eq!(rig.object(0).as_deref(), Some(b"good".as_slice()));
    let sides = rig.homes[0].sides.list_side_segments(LANE);
    assert!(sides.expect("lists").is_empty());
}

#[test]
fn a_node_of_an_earlier_version_is_asked_for_nothing_new() {
    let rig = Rig::of(2, |number, options| {
        if number == 0 {
            options.protocol = PROTOCOL_FIRST;
        }
    });
    assert!(begin(&rig.homes[0]).is_none());
    let repair = rig.homes[0].object_repair.as_ref().expect("a node has it");
    assert!(!repair.can_replace_objects().expect("says so"));
    let bytes = [7; 5000];
    rig.homes[0]
        .objects
        .put_object(OBJECT, &bytes)
        .expect("stores");
    // It is read as ever.
    let mut into = [0; 6000];
    let read = repair.read_object_from_disk(OBJECT, 0, &mut into);
    assert_eq!(read.expect("reads"), 5000);
    let seen = SeenCopy::of(Some(&bytes));
    let refused = repair.replace_object(EPOCH, OBJECT, seen, b"other");
    assert!(
        matches!(refused, Err(HomeError::Unsupported(_))),
        "{refused:?}"
    );
    // And others read of it.
    rig.fetch(1, &an_object(rig.peers(&[0]), 5000))
        .expect("fetches");
    // If it were asked, it would break the connection.
    let lane = rig.homes[0].appends.open_lane(LANE, FIRST);
    lane.expect("the connections are as they were");
    append(&rig.homes[0], LANE, 1).expect("appends");
}

#[test]
fn a_damaged_object_is_replaced_over_the_network() {
    let dir = tempfile::tempdir().expect("a directory");
    let node = node(dir.path());
    let home = home(&node);
    let repair = home.object_repair.as_ref().expect("a node can");
    assert!(repair.can_replace_objects().expect("it is new"));
    let bytes: Vec<u8> = (0..5_000_000u32).map(|number| number as u8).collect();
    home.objects.put_object(OBJECT, &bytes).expect("stores");
    let read = |offset: u64, len: usize| {
        let mut into = vec![0; len];
        let count = repair.read_object_from_disk(OBJECT, offset, &mut into);
        into.truncate(count.expect("reads"));
        into
    };
    assert!(read(0, 6_000_000) == bytes);
    assert!(read(4097, 5000) == bytes[4097..9097]);
    assert!(read(4_999_999, 5000) == bytes[4_999_999..]);
    assert!(read(5_000_000, 5).is_empty() && read(u64::MAX, 5).is_empty());
    let better = vec![9; 4_000_000];
    let seen = SeenCopy::of(Some(&bytes));
    for _ in 0..2 {
        let replaced = repair.replace_object(EPOCH, OBJECT, seen, &better);
        replaced.expect("replaces");
        assert!(read(0, 6_000_000) == better);
    }
    let other = repair.replace_object(EPOCH, OBJECT, seen, &bytes);
    assert!(matches!(other, Err(HomeError::Conflict(_))), "{other:?}");
    home.segments
        .fence(LANE, FIRST, "the next")
        .expect("fences");
    let seen = SeenCopy::of(Some(&better));
    let late = repair.replace_object(EPOCH, OBJECT, seen, &bytes);
    assert!(matches!(late, Err(HomeError::Fenced(_))), "{late:?}");
    assert!(read(0, 6_000_000) == better);
}
