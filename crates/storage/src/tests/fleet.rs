//! Several nodes as one home: what a node lacks that comes back, and which way it goes.

use super::{append, options};
use crate::{NodeOptions, ScrubOptions, StorageNode};
use logstead_env::Env;
use logstead_home::node::message::{PROTOCOL, PROTOCOL_FIRST};
use logstead_home::{
    BYTES_FROM_PEERS, Buffer, FleetChange, HomeOptions, LogHome, MemberList, ObjectId, Position,
    change_fleet, fleet_groups, open, open_read_only,
};
use logstead_types::{Epoch, LaneId};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::Duration;
use tempfile::TempDir;

const LANES: [LaneId; 2] = [LaneId(0), LaneId(1)];
const LOOK: Duration = Duration::from_millis(50);
/// Looks until something that is to happen counts as lost.
const LOOKS_MAX: u32 = 1200;

fn is_bad(bytes: &[u8]) -> Option<String> {
    bytes.starts_with(b"bad").then(|| "it is bad".to_owned())
}

struct Place {
    dir: TempDir,
    address: SocketAddr,
    protocol: u32,
    distance: Duration,
    node: Option<StorageNode>,
}

impl Place {
    fn start(&mut self) {
        let options = NodeOptions {
            listen: self.address,
            protocol: self.protocol,
            distance: self.distance,
            scrub: ScrubOptions {
                interval: None,
                damage: is_bad,
            },
            ..options(self.dir.path())
        };
        let node = StorageNode::start(options, &Env::real()).expect("starts");
        self.address = node.address();
        self.node = Some(node);
    }

    /// A new disk is in its place.
    fn is_emptied(&mut self) {
        self.node = None;
        self.dir = tempfile::tempdir().expect("a directory");
        self.start();
    }

    fn url(&self) -> String {
        format!("node://{}/volume", self.address)
    }

    fn home(&self) -> LogHome {
        open_read_only(&self.url(), &Env::real()).expect("opens")
    }

    fn reported(&self, what: &str) -> u64 {
        let report = self.home().status.report();
        let value = report.iter().find(|(name, _)| name == what);
        value.map_or(0, |(_, value)| value.parse().expect("a number"))
    }
}

struct Fleet(Vec<Place>);

impl Fleet {
    /// Who the members are now, as a reader finds them.
    fn members(&self) -> MemberList {
        let groups = fleet_groups(&self.url(), &Env::real()).expect("reads");
        let first = groups.into_iter().next().expect("group 0");
        first.members.expect("answers")
    }

    fn start(protocols: &[u32]) -> Fleet {
        let place = |protocol: &u32| {
            let mut place = Place {
                dir: tempfile::tempdir().expect("a directory"),
                address: "127.0.0.1:0".parse().expect("an address"),
                protocol: *protocol,
                distance: Duration::ZERO,
                node: None,
            };
            place.start();
            place
        };
        Fleet(protocols.iter().map(place).collect())
    }

    fn url(&self) -> String {
        let addresses = self.0.iter().map(|place| place.address.to_string());
        let addresses: Vec<String> = addresses.collect();
        format!("fleet://{}/volume", addresses.join(","))
    }

    /// A server that has taken over.
    fn serve(&self, epoch: u32) -> Server {
        let options = HomeOptions {
            damage: Some(is_bad),
            ..HomeOptions::default()
        };
        let home = open(&self.url(), &Env::real(), &options).expect("opens");
        let lease = epoch.to_le_bytes();
        match home.names.get("manifest").expect("reads") {
            Some((_, tag)) => home.names.compare_and_swap("manifest", tag, &lease),
            None => home.names.put_if_absent("manifest", &lease),
        }
        .expect("takes the lease");
        let before = Epoch(epoch - 1);
        for lane in LANES {
            let fenced = home
                .segments
                .fence(lane, u64::from(epoch - 1) << 32, "the test");
            fenced.expect("fences");
        }
        let copies = home.copies.as_ref().expect("there are several");
        copies.copies_completed(before).expect("settles");
        for lane in LANES {
            let opened = home.appends.open_lane(lane, u64::from(epoch) << 32);
            opened.expect("opens");
        }
        Server {
            home,
            epoch,
            appended: BTreeMap::new(),
            objects: Vec::new(),
            sides: Vec::new(),
        }
    }
}

/// A server, and what it has stored.
struct Server {
    home: LogHome,
    epoch: u32,
    appended: BTreeMap<(LaneId, Position), u8>,
    objects: Vec<(ObjectId, usize)>,
    sides: Vec<(LaneId, u64)>,
}

const SIDE_BYTES: usize = 300_000;

impl Server {
    /// Appends to both lanes.
    fn append(&mut self, count: usize) {
        for number in 0..count {
            for lane in LANES {
                let fill = 1 + (number % 250) as u8;
                let at = append(&self.home, lane, fill).expect("appends");
                self.appended.insert((lane, at), fill);
            }
        }
    }

    fn put(&mut self, len: usize) -> ObjectId {
        let counter = self.objects.len() as u32 + 1;
        let id = ObjectId::new(Epoch(self.epoch), counter);
        let bytes = vec![counter as u8; len];
        self.home.objects.put_object(id, &bytes).expect("stores");
        self.objects.push((id, len));
        id
    }

    fn put_side(&mut self) {
        let id = u64::from(self.epoch) << 32 | (self.sides.len() as u64 + 1);
        let mut side = self.home.sides.begin_side_segment(LANES[0], id);
        side.append(vec![7; SIDE_BYTES]);
        let (tell, told) = mpsc::channel();
        side.finish(Box::new(move |result| drop(tell.send(result))));
        told.recv().expect("is told").expect("stores");
        self.sides.push((LANES[0], id));
    }

    /// Some of everything: about 20 MB.
    fn store(&mut self) {
        self.append(100);
        for number in 0..8 {
            self.put(2_000_000 + number);
        }
        self.put_side();
        self.put_side();
        self.append(20);
    }

    fn state(&self, child: usize) -> String {
        let name = format!("replica {child} state");
        let report = self.home.status.report();
        let state = report.into_iter().find(|(what, _)| *what == name);
        state.map_or_else(String::new, |(_, state)| state)
    }

    /// Bytes that have crossed this server's connections to these nodes, but for appends.
    fn crossed(&self, places: &[Place]) -> u64 {
        let usage = self.home.status.usage();
        let urls: Vec<String> = places.iter().map(Place::url).collect();
        let of = usage.iter().filter(|of| urls.contains(&of.home));
        of.map(|of| of.usage.read_bytes + of.usage.write_bytes)
            .sum()
    }

    /// What a server does all the time; it hears of changes of the list so.
    fn renew(&self) {
        let lease = self.home.names.get("manifest").expect("reads");
        let (bytes, tag) = lease.expect("is there");
        let renewed = self.home.names.compare_and_swap("manifest", tag, &bytes);
        renewed.expect("has the lease");
    }

    /// Waits until there are as many members as places, each complete.
    fn is_whole(&self, fleet: &Fleet) {
        for _ in 0..LOOKS_MAX {
            let list = fleet.members();
            let report = self.home.status.report();
            let states = report.iter().filter(|(what, _)| what.ends_with(" state"));
            let (up, down): (Vec<_>, Vec<_>) = states.partition(|(_, state)| state == "member");
            let complete = list
                .members
                .iter()
                .filter(|(_, complete)| *complete)
                .count();
            if complete == fleet.0.len() && up.len() == complete && down.is_empty() {
                return;
            }
            logstead_env::sleep(LOOK);
        }
        panic!("{:?}", self.home.status.report());
    }

    /// Everything is in a node, byte by byte.
    fn is_in(&self, place: &Place) {
        // What is behind the cut comes as fast as appends do.
        let home = place.home();
        for (&(lane, at), &fill) in &self.appended {
            let mut looks = 0;
            while super::byte_at(&home, lane, at) != Some(fill) {
                looks += 1;
                assert!(looks < LOOKS_MAX, "lane {lane} {at}");
                logstead_env::sleep(LOOK);
            }
        }
        for (id, len) in &self.objects {
            let mut bytes = vec![0; len + 1];
            let count = home.objects.read_object(*id, 0, &mut bytes).expect("reads");
            assert_eq!(count, *len, "{id}");
            let of_object = id.counter() as u8;
            assert!(bytes[..count].iter().all(|byte| *byte == of_object), "{id}");
        }
        for (lane, id) in &self.sides {
            let mut bytes = vec![0; SIDE_BYTES + 1];
            let read = home.sides.get_side_segment(*lane, *id, 0, &mut bytes);
            assert_eq!(read.expect("reads"), SIDE_BYTES);
        }
    }

    fn stored_bytes(&self) -> u64 {
        let objects: usize = self.objects.iter().map(|(_, len)| len).sum();
        let sides = self.sides.len() * SIDE_BYTES;
        (objects + sides + self.appended.len() * 4096) as u64
    }
}

/// The bytes of a node that is emptied come from its peers, and not by way of the server. One of an earlier version is
/// filled by the server, over whose connections all goes twice.
#[test]
fn a_node_that_was_emptied_is_filled_by_its_peers() {
    for protocol in [PROTOCOL, PROTOCOL_FIRST] {
        let mut fleet = Fleet::start(&[PROTOCOL, PROTOCOL, protocol]);
        let mut server = fleet.serve(1);
        server.store();
        let stored = server.stored_bytes();
        // Those of the node's new disk are counted anew.
        let before = server.crossed(&fleet.0[..2]);
        fleet.0[2].is_emptied();
        server.append(1);
        server.is_whole(&fleet);
        let crossed = server.crossed(&fleet.0) - before;
        let fetched = fleet.0[2].reported(BYTES_FROM_PEERS);
        match protocol {
            PROTOCOL_FIRST => {
                assert!(
                    crossed > 2 * stored * 9 / 10 && fetched == 0,
                    "{crossed} {fetched}"
                );
            }
            _ => assert!(
                crossed < stored / 20 && fetched > stored * 9 / 10,
                "{crossed} {fetched}"
            ),
        }
        server.append(3);
        server.is_in(&fleet.0[2]);
        // It counts: without another one there are two.
        fleet.0[0].node = None;
        server.append(3);
        server.is_in(&fleet.0[2]);
    }
}

/// One that was away for a while, too; all of its peers are of an earlier version.
#[test]
fn a_node_that_was_away_gets_what_it_missed_from_peers_of_any_version() {
    let mut fleet = Fleet::start(&[PROTOCOL_FIRST, PROTOCOL_FIRST, PROTOCOL]);
    let mut server = fleet.serve(1);
    server.append(40);
    server.put(1000);
    fleet.0[2].node = None;
    server.store();
    let before = server.crossed(&fleet.0);
    fleet.0[2].start();
    server.is_whole(&fleet);
    let (crossed, stored) = (server.crossed(&fleet.0) - before, server.stored_bytes());
    assert!(crossed < stored / 20, "{crossed} of {stored}");
    assert!(fleet.0[2].reported(BYTES_FROM_PEERS) > stored / 2);
    server.append(3);
    server.is_in(&fleet.0[2]);
}

/// Peers have other bytes of one object each, or damaged ones; one goes away in the midst, and the answers of all are
/// slow. The node has everything in the end.
#[test]
fn peers_that_fail_are_replaced_by_others() {
    let mut fleet = Fleet::start(&[PROTOCOL; 5]);
    let mut server = fleet.serve(1);
    server.store();
    let objects: Vec<ObjectId> = server.objects.iter().map(|(id, _)| *id).collect();
    for (number, bytes) in [
        (0, b"bad".as_slice()),
        (1, b"bad, too"),
        (2, b"bad as well"),
    ] {
        let home = open(
            &fleet.0[number].url(),
            &Env::real(),
            &HomeOptions::default(),
        );
        let home = home.expect("opens");
        home.objects
            .remove_object(objects[number])
            .expect("removes");
        home.objects
            .put_object(objects[number], bytes)
            .expect("stores");
    }
    for place in &mut fleet.0[..4] {
        place.distance = Duration::from_millis(20);
    }
    for number in 0..4 {
        // One after the other, so that there is always a majority.
        fleet.0[number].node = None;
        fleet.0[number].start();
        server.append(1);
        server.is_whole(&fleet);
    }
    fleet.0[4].is_emptied();
    server.append(1);
    while fleet.0[4].node.is_some() && !has_begun(&fleet.0[4]) {
        logstead_env::sleep(LOOK);
    }
    fleet.0[3].node = None;
    server.append(1);
    fleet.0[3].start();
    server.is_whole(&fleet);
    server.is_in(&fleet.0[4]);
}

fn has_begun(place: &Place) -> bool {
    let home = open_read_only(&place.url(), &Env::real());
    home.is_ok_and(|home| {
        let report = home.status.report();
        report.iter().any(|(name, _)| name == BYTES_FROM_PEERS)
    })
}

/// A repair gives a node better copies of objects in one step, also beside one of an earlier version.
#[test]
fn damaged_objects_are_replaced_when_somebody_asks() {
    for protocol in [PROTOCOL, PROTOCOL_FIRST] {
        let fleet = Fleet::start(&[PROTOCOL, PROTOCOL, protocol]);
        let mut server = fleet.serve(1);
        server.append(3);
        let [one, other] = [server.put(5_000_000), server.put(1000)];
        let home = open(&fleet.0[2].url(), &Env::real(), &HomeOptions::default());
        let home = home.expect("opens");
        for (id, bytes) in [(one, &b"bad"[..]), (other, &[2; 999])] {
            home.objects.remove_object(id).expect("removes");
            home.objects.put_object(id, bytes).expect("stores");
        }
        drop(home);
        let address = fleet.0[2].address.to_string();
        let repair = FleetChange::Repair(address);
        change_fleet(&fleet.url(), &Env::real(), None, &repair).expect("is written down");
        for _ in 0..LOOKS_MAX {
            server.renew();
            let list = fleet.members();
            let is_wanted = |url: &String| url.ends_with(" repair");
            if !list.wanted.iter().flatten().any(is_wanted) {
                break;
            }
            logstead_env::sleep(LOOK);
        }
        server.is_whole(&fleet);
        server.is_in(&fleet.0[2]);
        assert_eq!(server.state(2), "member");
    }
}

/// A segment is compared with peers also where the node has bytes of it already.
#[test]
fn what_has_rotted_in_a_segment_is_made_good_by_peers() {
    let mut fleet = Fleet::start(&[PROTOCOL; 3]);
    let mut server = fleet.serve(1);
    server.append(60);
    let home = open(&fleet.0[2].url(), &Env::real(), &HomeOptions::default());
    let home = home.expect("opens");
    let mut garbage = Buffer::zeroed(4096);
    garbage.as_mut_slice().fill(255);
    for &(lane, at) in server.appended.keys().step_by(7) {
        home.segments
            .rewrite(lane, at, &garbage, 4096)
            .expect("rewrites");
    }
    drop(home);
    fleet.0[2].node = None;
    server.append(1);
    fleet.0[2].start();
    server.is_whole(&fleet);
    server.is_in(&fleet.0[2]);
    assert!(fleet.0[2].reported(BYTES_FROM_PEERS) > 0);
}
