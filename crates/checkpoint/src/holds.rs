//! Records that this process, or a replica, reads: they stay until it lets go of them, whatever retention and pins say.
//!
//! That is for reads of the past, which begin and end by the thousand, and for replicas: a pin would cost a change of a
//! named thing each, and one that a crash left behind would hold its record for ever. A hold is a line in memory. After
//! a crash it is gone, and what only it kept is found like any other orphan.
//!
//! # Why nothing is removed that is held (T8)
//!
//! Both sides meet at one mutex. Who removes decides under it which records stay: newest, kept, pinned, and held at
//! that moment. From then on no other record can be held ([`Holds::hold`] gives nothing). So a record is either held
//! before that decision, and stays, or never held after it.
//!
//! Does not: outlive the process, or know what a record holds.

use crate::record::RetainedRecord;
use logstead_home::ObjectId;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Default)]
struct State {
    /// Records that are whole, nothing that they name was removed, with their checksums.
    whole: BTreeMap<ObjectId, u32>,
    /// Each with its checksum, and how often it is held.
    held: BTreeMap<ObjectId, (u32, usize)>,
    /// Those that nobody holds any more, until a collection has looked at them.
    released: BTreeMap<ObjectId, u32>,
}

/// See the module's documentation.
#[derive(Default)]
pub struct Holds(Mutex<State>);

impl Holds {
    /// Holds the last of these records that is still whole; the others are not looked at.
    pub fn hold<'r>(
        self: &Arc<Self>,
        records: impl DoubleEndedIterator<Item = &'r RetainedRecord>,
    ) -> Option<Hold> {
        let mut state = self.0.lock();
        let record = *records
            .rev()
            .find(|record| state.whole.contains_key(&record.object))?;
        Some(Hold {
            record,
            held: self.add(&mut state, record.object, record.crc),
        })
    }

    /// Holds this record, which somebody else has told of, if it is still whole.
    pub fn hold_object(self: &Arc<Self>, object: ObjectId) -> Option<ObjectHold> {
        let mut state = self.0.lock();
        let crc = *state.whole.get(&object)?;
        Some(self.add(&mut state, object, crc))
    }

    fn add(self: &Arc<Self>, state: &mut State, object: ObjectId, crc: u32) -> ObjectHold {
        state.released.remove(&object);
        state.held.entry(object).or_insert((crc, 0)).1 += 1;
        ObjectHold {
            holds: Arc::clone(self),
            object,
            crc,
        }
    }

    /// The records that are whole, the newest first. They stay so until the next decision.
    pub fn whole(&self) -> Vec<ObjectId> {
        let state = self.0.lock();
        state.whole.keys().rev().copied().collect()
    }

    /// These are whole; each with its checksum.
    pub(crate) fn add_whole(&self, records: impl IntoIterator<Item = (ObjectId, u32)>) {
        self.0.lock().whole.extend(records);
    }

    /// Does anybody hold anything, or was something let go of that no collection has looked at?
    pub(crate) fn is_empty(&self) -> bool {
        let state = self.0.lock();
        state.held.is_empty() && state.released.is_empty()
    }

    /// The decision which records stay: `stay` gets those that are held. No others can be held from here on. Gives
    /// those that were let go of since the last time.
    pub(crate) fn decide(&self, stay: &mut BTreeMap<ObjectId, u32>) -> BTreeMap<ObjectId, u32> {
        let mut state = self.0.lock();
        let held = state.held.iter();
        stay.extend(held.map(|(object, (crc, _))| (*object, *crc)));
        state.whole.clone_from(stay);
        std::mem::take(&mut state.released)
    }
}

/// A record that stays as long as this does.
pub struct Hold {
    record: RetainedRecord,
    #[expect(dead_code, reason = "it is dropped with this")]
    held: ObjectHold,
}

impl Hold {
    /// Which one.
    pub fn record(&self) -> &RetainedRecord {
        &self.record
    }
}

/// A record, known by its number alone, that stays as long as this does.
pub struct ObjectHold {
    holds: Arc<Holds>,
    object: ObjectId,
    crc: u32,
}

impl ObjectHold {
    /// Which one.
    pub fn object(&self) -> ObjectId {
        self.object
    }

    /// The checksum of its record.
    pub fn crc(&self) -> u32 {
        self.crc
    }
}

impl Drop for ObjectHold {
    fn drop(&mut self) {
        let mut state = self.holds.0.lock();
        if let Some((_, count)) = state.held.get_mut(&self.object) {
            *count -= 1;
            if *count == 0 {
                state.held.remove(&self.object);
                state.released.insert(self.object, self.crc);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use logstead_types::{Csn, Epoch};

    fn record(number: u32) -> RetainedRecord {
        RetainedRecord {
            object: ObjectId::new(Epoch(1), number),
            crc: number,
            csn: Csn(u64::from(number)),
            taken_at_micros: 0,
        }
    }

    fn held(hold: Option<Hold>) -> Option<(u32, Hold)> {
        hold.map(|hold| (hold.record().crc, hold))
    }

    #[test]
    fn what_is_held_stays_and_what_goes_cannot_be_held() {
        let holds = Arc::new(Holds::default());
        let records = [record(1), record(2), record(3)];
        assert!(holds.hold(records.iter()).is_none(), "none is known");
        holds.add_whole(records.iter().map(|record| (record.object, record.crc)));
        let (which, third) = held(holds.hold(records.iter())).expect("one");
        assert_eq!(which, 3);
        let (which, first) = held(holds.hold(records[..1].iter())).expect("one");
        assert_eq!(which, 1);
        let again = holds.hold_object(records[0].object).expect("one");
        // The second goes: nobody holds it.
        let mut stay = BTreeMap::from([(records[2].object, 3)]);
        assert!(holds.decide(&mut stay).is_empty());
        assert_eq!(stay.len(), 2);
        assert!(!stay.contains_key(&records[1].object));
        assert!(holds.hold(records[1..2].iter()).is_none());
        // Held twice, it stays until both have let go.
        drop(first);
        let mut stay = BTreeMap::new();
        assert!(holds.decide(&mut stay).is_empty());
        assert!(stay.contains_key(&records[0].object));
        assert_eq!(again.object(), records[0].object);
        drop(again);
        assert!(!holds.is_empty());
        let mut stay = BTreeMap::new();
        let released = holds.decide(&mut stay);
        assert_eq!(released, BTreeMap::from([(records[0].object, 1)]));
        assert!(!stay.contains_key(&records[0].object));
        assert!(holds.hold(records[..1].iter()).is_none());
        drop(third);
        assert_eq!(holds.decide(&mut BTreeMap::new()).len(), 1);
        assert!(holds.is_empty());
        assert!(holds.hold_object(records[2].object).is_none());
    }

    #[test]
    fn what_is_held_again_before_anybody_looked_is_not_let_go_of() {
        let holds = Arc::new(Holds::default());
        let only = [record(1)];
        holds.add_whole([(only[0].object, only[0].crc)]);
        drop(holds.hold(only.iter()));
        let again = holds.hold(only.iter()).expect("it is whole still");
        let mut stay = BTreeMap::new();
        assert!(holds.decide(&mut stay).is_empty());
        assert!(stay.contains_key(&again.record().object));
    }
}
