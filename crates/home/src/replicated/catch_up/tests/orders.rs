//! Children that fetch from their peers, as far as those give them what they lack.

use super::*;
use crate::{CopyDone, CopyItem, CopyOrder, CopyOrders, Peer};

/// What becomes of an order.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Outcome {
    Done,
    /// No peer gives it.
    Failed,
    /// Half of them are done, and half fail.
    Either,
}

/// A place that fetches: from the memory of others.
#[derive(Clone)]
struct Fetching {
    own: MemoryHome,
    number: usize,
    places: Vec<MemoryHome>,
    outcome: Outcome,
    done: Arc<AtomicUsize>,
    failed: Arc<AtomicUsize>,
    /// How often each place was named first.
    first: Arc<Mutex<BTreeMap<u64, usize>>>,
}

impl PeerCopies for Fetching {
    fn peer(&self) -> Peer {
        Peer {
            address: format!("place {}", self.number),
            node: self.number as u64,
        }
    }

    fn begin(&self) -> Result<Option<Box<dyn CopyOrders>>, HomeError> {
        Ok(Some(Box::new(self.clone())))
    }
}

impl CopyOrders for Fetching {
    fn order(&self, order: &CopyOrder, done: CopyDone) {
        assert_eq!(order.epoch, Epoch(1));
        assert!(order.peers.iter().all(|peer| *peer != self.peer()));
        let peer = order.peers.first().expect("there is one");
        *self.first.lock().entry(peer.node).or_default() += 1;
        let so_far = self.done.load(Ordering::SeqCst) + self.failed.load(Ordering::SeqCst);
        let fails = match self.outcome {
            Outcome::Done => false,
            Outcome::Failed => true,
            Outcome::Either => so_far.is_multiple_of(2),
        };
        if fails {
            self.failed.fetch_add(1, Ordering::SeqCst);
            let why = std::io::Error::other("no peer gives it");
            return done(Err(HomeError::io("fetch", why)));
        }
        self.done.fetch_add(1, Ordering::SeqCst);
        done(self.fetch(&self.places[peer.node as usize], order.item));
    }
}

impl Fetching {
    fn fetch(&self, from: &MemoryHome, item: CopyItem) -> Result<(), HomeError> {
        match item {
            CopyItem::Segment {
                lane,
                segment,
                size_bytes,
                ..
            } => {
                let at = Position::start_of(segment);
                let mut block = Buffer::zeroed(size_bytes as usize);
                let count = from.read(lane, at, &mut block)?;
                self.own.rewrite(lane, at, &block, count)
            }
            CopyItem::Side { lane, id } => {
                let mut bytes = vec![0; 100_000];
                let count = from.get_side_segment(lane, id, 0, &mut bytes)?;
                bytes.truncate(count);
                let mut side = self.own.begin_side_segment(lane, id);
                side.append(bytes);
                finish(side);
                Ok(())
            }
            CopyItem::Object(info) => {
                let mut bytes = vec![0; info.size_bytes as usize];
                from.read_object(info.id, 0, &mut bytes)?;
                self.own.put_object(info.id, &bytes)
            }
        }
    }
}

/// T2: it counts when it has everything, whether peers gave it that or this home did.
#[test]
fn t2_what_peers_do_not_give_is_copied_before_a_child_counts() {
    for outcome in [Outcome::Done, Outcome::Failed, Outcome::Either] {
        let mut rig = Rig::new(Kind::Memory, false);
        let places = rig.places.iter().map(|place| place.memory.clone());
        let places: Vec<MemoryHome> = places.collect();
        let mut fetching = Fetching {
            own: places[0].clone(),
            number: 0,
            places: places.clone(),
            outcome,
            done: Arc::default(),
            failed: Arc::default(),
            first: Arc::default(),
        };
        for (number, place) in rig.places.iter_mut().enumerate() {
            fetching.own = places[number].clone();
            fetching.number = number;
            place.peers = Some(Arc::new(fetching.clone()));
        }
        let mut acknowledged = Acknowledged::default();
        let life = rig.start(1);
        life.append(&mut acknowledged, 20);
        rig.leave(&life, 2);
        life.append(&mut acknowledged, 60);
        let objects = [1, 2, 3, 4].map(|counter| life.put(counter));
        finish(life.side(7));
        finish(life.side(8));
        rig.is_there_again(2);
        life.is_back(2);
        life.has_followed(2);
        let child = rig.look(2);
        acknowledged.is_in(&child, &format!("{outcome:?}"));
        let listed = child.objects.list_objects().expect("lists");
        let listed: Vec<ObjectId> = listed.iter().map(|info| info.id).collect();
        assert_eq!(listed, objects, "{outcome:?}");
        let sides = child.sides.list_side_segments(LANE).expect("lists");
        assert_eq!(sides, [1 << 32 | 7, 1 << 32 | 8], "{outcome:?}");
        let [done, failed] =
            [&fetching.done, &fetching.failed].map(|count| count.load(Ordering::SeqCst));
        match outcome {
            Outcome::Done => assert!(done > 10 && failed == 0, "{done} {failed}"),
            // After a few of them, and those under way, nothing more is ordered.
            Outcome::Failed => assert!(done == 0 && (8..12).contains(&failed), "{failed}"),
            Outcome::Either => assert!(done > 5 && failed > 5, "{done} {failed}"),
        }
        // They are divided over those that have everything.
        let first = fetching.first.lock();
        assert_eq!(first.keys().copied().collect::<Vec<_>>(), [0, 1]);
        let counts: Vec<usize> = first.values().copied().collect();
        assert!(counts[0].abs_diff(counts[1]) <= 4, "{counts:?}");
    }
}
