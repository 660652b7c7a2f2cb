//! What a directory of rows of 100 bytes costs: in space, and in bytes written for a checkpoint that changes a row here
//! and there. docs/internals/checkpoints.md has the figures for 8 million rows; here are a tenth, in the same
//! proportions.

use crate::rig;

use logstead_checkpoint::{
    ChunkWriter, Directory, ImageKind, ObjectIdAllocator, ObjectWriter, PageChain, PageKey, PageRef,
};
use logstead_env::{Env, SimClock, SimRandom};
use logstead_home::simulated::MODELS;
use logstead_home::{LogHome, ObjectId, SimulatedHome, SimulatedOptions};
use logstead_types::{Csn, Epoch};
use rig::{home, key};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const CHUNKS: u64 = 12_500;
const ROW: usize = 100;

/// The bytes of a page with so many rows.
fn page_bytes(rows: u16, extent: ImageKind) -> u64 {
    let home = home();
    let object_ids = Arc::new(ObjectIdAllocator::new(Epoch(1)));
    let random = SimRandom::new(7);
    let mut writer = ObjectWriter::new(home.objects.clone(), object_ids, None);
    let mut chunks = ChunkWriter::new();
    chunks.begin(key(16_384, 90_000), extent, Csn(9_000_000));
    for slot in 0..rows {
        let row: Vec<u8> = (0..ROW).map(|_| random.below(256) as u8).collect();
        let csn = Csn(9_000_000 - 1 - random.below(20_000));
        chunks.row(slot, csn, &row, &mut writer).unwrap();
    }
    let bytes = chunks.finish(&mut writer).unwrap()[0].len;
    rig::keep(writer.finish().unwrap());
    u64::from(bytes)
}

/// Places of pages that nobody reads, as a writer gives them.
struct Places {
    object: u64,
    offset: u64,
}

impl Places {
    fn put(&mut self, random: &SimRandom, len: u64) -> PageRef {
        if self.offset + len > 64 << 20 {
            (self.object, self.offset) = (self.object + 1, 0);
        }
        let offset = self.offset;
        self.offset += len;
        PageRef {
            object: ObjectId(self.object),
            offset: offset as u32,
            len: len as u32,
            crc: random.below(1 << 32) as u32,
        }
    }
}

/// Nodes come in with those that lie beside them: a start from a home far away does not wait for each of them.
#[test]
fn nodes_that_lie_together_are_read_together() {
    let (mut env, _) = Env::simulated(1);
    let clock = Arc::new(SimClock::new());
    env.clock = Arc::clone(&clock) as _;
    let model = MODELS.iter().find(|model| model.name == "s3express");
    let options = SimulatedOptions::new(model.unwrap().clone(), 1);
    let sim = SimulatedHome::in_virtual_time(&options, &env, clock).unwrap();
    let home = LogHome::from(sim.clone());
    let random = SimRandom::new(1);
    let mut places = Places {
        object: 3 << 32,
        offset: 0,
    };
    let changes: Vec<(PageKey, Option<PageChain>)> = (0..CHUNKS)
        .map(|chunk| {
            (
                key(16_384, chunk),
                PageChain::whole(&[places.put(&random, 6_000)]),
            )
        })
        .collect();
    let object_ids = Arc::new(ObjectIdAllocator::new(Epoch(1)));
    let mut writer = ObjectWriter::new(home.objects.clone(), object_ids, None);
    let made = Directory::open(home.objects.clone(), None)
        .apply(&changes, &BTreeSet::new(), Csn(9), &mut writer)
        .unwrap();
    rig::keep(writer.finish().unwrap());
    let requests = |read: &dyn Fn(&Directory)| {
        let directory = Directory::open(home.objects.clone(), made.directory.root());
        let before = sim.requests();
        read(&directory);
        sim.requests() - before
    };
    assert!(made.nodes > 150);
    let all = requests(&|directory| {
        let found: Result<Vec<_>, _> = directory.scan(None).collect();
        assert!(found.unwrap() == changes.iter().map(there).collect::<Vec<_>>());
    });
    assert!(all < 10, "{all} requests for {} nodes", made.nodes);
    let one = requests(&|directory| {
        let (key, chain) = there(&changes[7_000]);
        assert_eq!(directory.get(&key).unwrap(), Some(chain));
    });
    assert!(one <= 4, "{one} requests for one chunk");
}

fn there(change: &(PageKey, Option<PageChain>)) -> (PageKey, PageChain) {
    (change.0.clone(), change.1.clone().expect("it has pages"))
}

struct Cost {
    nodes: u64,
    node_bytes: u64,
    page_bytes: u64,
}

/// Runs so many checkpoints that change one row each of `changed` chunks anywhere: the costs of the one that has
/// everything, of the first behind it, which has deltas alone, and of the last, when some chunks are written whole each
/// time.
fn costs(changed: u64, rounds: u64) -> (Cost, Cost, Cost) {
    let home: LogHome = home();
    let random = SimRandom::new(changed);
    let whole = page_bytes(64, ImageKind::Whole);
    let delta = page_bytes(1, ImageKind::Delta);
    let object_ids = Arc::new(ObjectIdAllocator::new(Epoch(1)));
    let mut places = Places {
        object: 3 << 32,
        offset: 0,
    };
    let mut chains: Vec<PageChain> = (0..CHUNKS)
        .map(|_| {
            let len = whole - random.below(40);
            PageChain::whole(&[places.put(&random, len)]).unwrap()
        })
        .collect();
    let mut changes: Vec<(PageKey, Option<PageChain>)> = chains
        .iter()
        .enumerate()
        .map(|(chunk, chain)| (key(16_384, chunk as u64), Some(chain.clone())))
        .collect();
    let mut directory = Directory::open(home.objects.clone(), None);
    let mut round_of = |changes: &[(PageKey, Option<PageChain>)], number: u64| {
        let mut writer = ObjectWriter::new(home.objects.clone(), Arc::clone(&object_ids), None);
        let made = directory.apply(changes, &BTreeSet::new(), Csn(1_000 + number), &mut writer);
        let made = made.unwrap();
        directory = made.directory;
        rig::keep(writer.finish().unwrap());
        (made.nodes, made.node_bytes)
    };
    let (nodes, node_bytes) = round_of(&changes, 0);
    let all = Cost {
        nodes,
        node_bytes,
        page_bytes: whole * CHUNKS,
    };
    let mut costs = Vec::new();
    for number in 1..=rounds {
        (places.object, places.offset) = ((3 << 32) + 1_000 + number, 0);
        let mut touched = BTreeMap::new();
        while (touched.len() as u64) < changed {
            touched.insert(random.below(CHUNKS), ());
        }
        let mut page_bytes = 0;
        changes.clear();
        for chunk in touched.into_keys() {
            let chain = &mut chains[chunk as usize];
            if chain.is_due_for_merge(delta, whole) {
                page_bytes += whole;
                *chain = PageChain::whole(&[places.put(&random, whole)]).unwrap();
            } else {
                page_bytes += delta;
                chain.push(&[places.put(&random, delta - random.below(3))]);
            }
            changes.push((key(16_384, chunk), Some(chain.clone())));
        }
        let (nodes, node_bytes) = round_of(&changes, number);
        costs.push(Cost {
            nodes,
            node_bytes,
            page_bytes,
        });
    }
    let last = costs.pop().unwrap();
    (all, costs.swap_remove(0), last)
}

#[test]
fn nodes_cost_less_than_twice_the_pages() {
    for (changed, rounds) in [(2_000, 40), (100, 500)] {
        let (all, first, last) = costs(changed, rounds);
        for (what, cost) in [("all", &all), ("first", &first), ("last", &last)] {
            println!(
                "{changed} of {CHUNKS} chunks, {what}: {} nodes, {} bytes, {} each; pages {} bytes; {:.2}",
                cost.nodes,
                cost.node_bytes,
                cost.node_bytes / cost.nodes,
                cost.page_bytes,
                cost.node_bytes as f64 / cost.page_bytes as f64
            );
        }
        assert!(all.node_bytes * 100 < all.page_bytes);
        assert!(last.node_bytes < 2 * last.page_bytes);
    }
}
