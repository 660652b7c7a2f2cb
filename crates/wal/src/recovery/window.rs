//! What has been read and waits for its turn, by CSN.
//!
//! Nearly everything waits near the CSN that is due next: that part is a ring of slots. What is far ahead, because of a
//! gap or because a CSN is nonsense, is kept in a map, so that memory follows the number of items and not their spread.
//!
//! Invariant: every item is at or above the CSN that is due, and in one of the two parts.

use logstead_types::Csn;
use std::collections::{BTreeMap, VecDeque};

/// CSNs that the ring covers.
const NEAR: u64 = 1 << 14;

/// Items by CSN, from the one that is due on.
pub(crate) struct Window<T> {
    due: Csn,
    near: VecDeque<Option<T>>,
    far: BTreeMap<Csn, T>,
    len: usize,
}

impl<T> Window<T> {
    pub(crate) fn new(due: Csn) -> Window<T> {
        Window {
            due,
            near: VecDeque::new(),
            far: BTreeMap::new(),
            len: 0,
        }
    }

    /// The CSN that is due next.
    pub(crate) fn due(&self) -> Csn {
        self.due
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    fn slot(&self, csn: Csn) -> Option<usize> {
        let ahead = csn.get().checked_sub(self.due.get())?;
        (ahead < NEAR).then_some(ahead as usize)
    }

    pub(crate) fn contains(&self, csn: Csn) -> bool {
        let slot = self.slot(csn).and_then(|slot| self.near.get(slot));
        slot.is_some_and(Option::is_some) || (!self.far.is_empty() && self.far.contains_key(&csn))
    }

    /// Keeps an item whose CSN is at or above the one that is due, and is not there yet.
    pub(crate) fn insert(&mut self, csn: Csn, item: T) {
        let replaced = match self.slot(csn) {
            Some(slot) => {
                if self.near.len() <= slot {
                    self.near.resize_with(slot + 1, || None);
                }
                self.near[slot].replace(item)
            }
            None => self.far.insert(csn, item),
        };
        assert!(replaced.is_none(), "CSN {csn} twice, or past its turn");
        self.len += 1;
    }

    /// The item that is due, if it is there. It stays due until [`Window::pass`].
    pub(crate) fn take_due(&mut self) -> Option<T> {
        let item = match self.near.front_mut().and_then(Option::take) {
            Some(item) => item,
            None if self.far.is_empty() => return None,
            None => self.far.remove(&self.due)?,
        };
        self.len -= 1;
        Some(item)
    }

    /// The next CSN is due: the item of the one before is gone.
    pub(crate) fn pass(&mut self) {
        self.due = self.due.next();
        let passed = self.near.pop_front().flatten();
        assert!(passed.is_none(), "an item is passed over");
    }

    /// Drops every item at or above `from`, and says how many.
    pub(crate) fn cut(&mut self, from: Csn) -> u64 {
        let before = self.len;
        let start = from.get().saturating_sub(self.due.get());
        let start = usize::try_from(start).unwrap_or(usize::MAX);
        let near = self.near.drain(start.min(self.near.len())..);
        self.len -= near.flatten().count();
        self.len -= self.far.split_off(&from).len();
        (before - self.len) as u64
    }

    /// Takes the item with the lowest CSN.
    pub(crate) fn pop_first(&mut self) -> Option<(Csn, T)> {
        let near = self.near.iter().position(Option::is_some);
        let near = near.map(|slot| (Csn(self.due.get() + slot as u64), slot));
        let far = self.far.first_key_value().map(|(&csn, _)| csn);
        let first = match (near, far) {
            (Some((csn, slot)), far) if far.is_none_or(|far| csn < far) => {
                // Nothing lower is left, so the ring may begin here.
                self.near.drain(..slot);
                self.due = csn;
                (csn, self.near.front_mut().and_then(Option::take)?)
            }
            _ => self.far.pop_first()?,
        };
        self.len -= 1;
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u64),
        Turn,
        Cut(u64),
        Pop,
    }

    fn ahead() -> impl Strategy<Value = u64> {
        prop_oneof![6 => 0..20u64, 2 => NEAR - 5..NEAR + 30, 1 => NEAR * 2..NEAR * 9]
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            20 => ahead().prop_map(Step::Insert),
            20 => Just(Step::Turn),
            1 => ahead().prop_map(Step::Cut),
            2 => Just(Step::Pop),
        ]
    }

    proptest! {
        #[test]
        fn it_is_a_sorted_map(steps in prop::collection::vec(step(), 0..400)) {
            let mut window = Window::new(Csn(7));
            let mut model = BTreeMap::new();
            let mut ended = false;
            for step in steps {
                let due = window.due().get();
                match step {
                    Step::Insert(ahead) => {
                        let csn = due + ahead;
                        prop_assert_eq!(window.contains(Csn(csn)), model.contains_key(&csn));
                        if model.insert(csn, csn).is_none() {
                            window.insert(Csn(csn), csn);
                        }
                    }
                    Step::Turn if !ended => {
                        prop_assert_eq!(window.take_due(), model.remove(&due));
                        // Also over a long gap, so that what was far comes near.
                        for _ in 0..if model.contains_key(&(due + 1)) { 1 } else { NEAR / 2 } {
                            if model.contains_key(&window.due().get()) {
                                break;
                            }
                            window.pass();
                        }
                    }
                    Step::Turn => {}
                    Step::Cut(ahead) => {
                        let gone = model.split_off(&(due + ahead)).len() as u64;
                        prop_assert_eq!(window.cut(Csn(due + ahead)), gone);
                    }
                    Step::Pop => {
                        ended = true;
                        let first = model.pop_first().map(|(csn, item)| (Csn(csn), item));
                        prop_assert_eq!(window.pop_first(), first);
                    }
                }
                prop_assert_eq!(window.len(), model.len());
            }
            while let Some(first) = window.pop_first() {
                prop_assert_eq!(Some((first.0.get(), first.1)), model.pop_first());
            }
            prop_assert!(model.is_empty() && window.len() == 0);
        }
    }
}
