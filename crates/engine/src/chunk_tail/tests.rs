//! What a tail says of rows, folded or not, and what it takes.

use logstead_types::TableId;

use super::*;
use crate::memory::{Account, UNLIMITED};

const TABLE: TableId = TableId(7);
const FIRST: u64 = 5 * CHUNK_SLOTS as u64;

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) % sides
    }

    /// A row of few or many columns, some of them NULL.
    fn row(&mut self) -> Vec<u8> {
        let mut builder = RowBuilder::new();
        let columns = 1 + self.roll(5) as usize;
        builder.start(self.roll(3) as u16, columns);
        for _ in 0..columns {
            let bytes = vec![self.roll(250) as u8; self.roll(6) as usize];
            builder.push((self.roll(4) > 0).then_some(&bytes[..]));
        }
        builder.finish().to_vec()
    }
}

fn delta(from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    delta::diff(RowRef::new(from), RowRef::new(to), &mut bytes);
    bytes
}

type Rows = Vec<Option<Vec<u8>>>;

fn slots_of(rows: &Rows) -> UnsharedSlots {
    let mut slots = UnsharedSlots::new(&UNLIMITED);
    for (slot, row) in rows.iter().enumerate() {
        slots.replace(slot, Csn(1), row.as_deref());
    }
    slots
}

fn rows_of(slots: &UnsharedSlots) -> Rows {
    let row = |slot| slots.row(slot).map(<[u8]>::to_vec);
    (0..CHUNK_SLOTS).map(row).collect()
}

/// A few changes of one row after the other, as a log has them.
fn change(dice: &mut Dice, rows: &mut Rows, csn: u64, tail: &mut ChunkTail) {
    let slot = dice.roll(6) as usize;
    let rid = Rid(FIRST + slot as u64);
    let new = dice.row();
    let delta = rows[slot].as_ref().map(|old| delta(old, &new));
    let record = match &delta {
        Some(delta) if dice.roll(5) > 0 => RowRecord::Update {
            table: TABLE,
            rid,
            delta,
        },
        Some(_) => RowRecord::Delete { table: TABLE, rid },
        None => RowRecord::Insert {
            table: TABLE,
            rid,
            row: &new,
        },
    };
    rows[slot] = match record {
        RowRecord::Delete { .. } => None,
        _ => Some(new.clone()),
    };
    tail.push(Csn(csn), &record).expect("fits");
}

/// Folded at any moment, and more than once, a tail makes of a chunk's rows what its records make of them one after the
/// other.
#[test]
fn a_folded_tail_says_what_it_said() {
    for seed in 1..400u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let before: Rows = (0..CHUNK_SLOTS)
            .map(|_| (dice.roll(2) == 0).then(|| dice.row()))
            .collect();
        let mut rows = before.clone();
        let mut tail = ChunkTail::new(&UNLIMITED);
        for csn in 2..2 + dice.roll(60) {
            change(&mut dice, &mut rows, csn, &mut tail);
            if dice.roll(9) == 0 {
                tail.fold().expect("fits");
            }
        }
        tail.fold().expect("fits");
        assert_eq!(tail.records().count(), tail.touched().len());
        let mut slots = slots_of(&before);
        tail.apply(&mut slots).expect("fits");
        assert_eq!(rows_of(&slots), rows, "seed {seed}");
        // Once more over what it has made: whoever has both has the same.
        tail.apply(&mut slots).expect("fits");
        assert_eq!(rows_of(&slots), rows, "seed {seed}");
    }
}

/// What is written again and again takes what it takes once.
#[test]
fn a_tail_takes_what_its_rows_take() {
    let account = Account::open(u64::MAX);
    let memory = account.memory();
    let mut tail = ChunkTail::new(memory);
    let wide = vec![7; 1000];
    for csn in 2..5_000 {
        let mut builder = RowBuilder::new();
        builder.start(0, 2);
        builder.push(Some(&csn.to_string().into_bytes()));
        builder.push(Some(&wide));
        let row = builder.finish();
        let rid = Rid(FIRST + csn % 10);
        let table = TABLE;
        tail.push(Csn(csn), &RowRecord::Insert { table, rid, row })
            .expect("fits");
        assert!(memory.used_bytes() < 30_000, "{memory:?}");
    }
    tail.fold().expect("fits");
    assert_eq!(memory.used_bytes(), tail.memory_bytes());
    assert!(memory.used_bytes() < 13_000, "{memory:?}");
    drop(tail);
    assert_eq!(memory.used_bytes(), 0);
}

/// A log that changes a row which it has deleted is not one of ours.
#[test]
fn a_change_of_what_is_gone_is_told() {
    let mut tail = ChunkTail::new(&UNLIMITED);
    let (table, rid) = (TABLE, Rid(FIRST));
    let delta = &delta(&Dice(3).row(), &Dice(4).row())[..];
    tail.push(Csn(5), &RowRecord::Delete { table, rid })
        .expect("a record");
    tail.push(Csn(6), &RowRecord::Update { table, rid, delta })
        .expect("a record");
    let why = tail.fold().expect_err("does not fit");
    assert_eq!((why.csn, why.rid), (Csn(6), rid));
}
