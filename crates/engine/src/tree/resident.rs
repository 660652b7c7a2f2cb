//! Which leaves are in memory: what is listed of them for whoever is to have as much ([`crate::prewarm`]).
//!
//! Does not: lock anything. A leaf may go, come, split or merge behind the walk, so what it tells is a hint.

use super::absent::AboveLeaves;
use super::cell::EpochGuard;
use super::{SearchStop, Tree};

/// Leaves that follow upon each other and are all in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResidentLeaves {
    /// Where the first begins; empty: with the tree.
    pub(crate) low: Vec<u8>,
    /// Where the last ends; nothing: with the tree.
    pub(crate) high: Option<Vec<u8>>,
    /// How many they are.
    pub(crate) count: u64,
    /// Somebody has used each of them since the evictor last came by.
    pub(crate) is_hot: bool,
}

impl Tree {
    /// The leaves that are in memory, from left to right. What follows upon each other is told together, as long as it
    /// hangs on one page.
    pub(crate) fn resident_leaves(&self, mut tell: impl FnMut(ResidentLeaves)) {
        let (mut from, mut next) = (Vec::new(), Vec::new());
        loop {
            // A pin per page: nobody's garbage waits for the whole walk.
            let pin = EpochGuard::new();
            let step = Tree::retry(|| self.resident_below(&from, &mut next, &pin));
            // Pages above leaves are never absent.
            let Ok((runs, more)) = step else { return };
            runs.into_iter().for_each(&mut tell);
            if !more {
                return;
            }
            std::mem::swap(&mut from, &mut next);
        }
    }

    /// Those of one page, from the leaf on that covers `from`. Stores where the next page begins; false: there is none.
    fn resident_below(
        &self,
        from: &[u8],
        next: &mut Vec<u8>,
        pin: &EpochGuard,
    ) -> Result<(Vec<ResidentLeaves>, bool), SearchStop> {
        next.clear();
        let above = match self.find_above(from, pin)? {
            Ok(above) => above,
            Err(root) => {
                let whole = ResidentLeaves {
                    low: Vec::new(),
                    high: None,
                    count: 1,
                    is_hot: root.page.is_touched(),
                };
                return Ok((vec![whole], false));
            }
        };
        let AboveLeaves {
            page, link, last, ..
        } = above;
        let mut runs: Vec<ResidentLeaves> = Vec::new();
        let mut before = None;
        for at in link..=last {
            let leaf = page.links()[at].load(pin);
            let heat = leaf.map(|leaf| leaf.is_touched());
            if heat != before {
                if let (Some(run), Some(_)) = (runs.last_mut(), before) {
                    run.high = end_of(page, at - 1, pin);
                }
                if let Some(is_hot) = heat {
                    let mut low = Vec::new();
                    page.copy_low_of(at, pin, &mut low);
                    runs.push(ResidentLeaves {
                        low,
                        high: None,
                        count: 0,
                        is_hot,
                    });
                }
                before = heat;
            }
            if let (Some(run), Some(_)) = (runs.last_mut(), heat) {
                run.count += 1;
            }
        }
        if let (Some(run), Some(_)) = (runs.last_mut(), before) {
            run.high = end_of(page, last, pin);
        }
        let more = page.copy_high_of(last, pin, next);
        page.latch.check(above.version)?;
        Ok((runs, more))
    }

    /// The leaf that covers `bytes` was brought in for nobody.
    pub(crate) fn forget_touched(&self, bytes: &[u8]) {
        let pin = EpochGuard::new();
        let found = Tree::retry(|| {
            let Ok(above) = self.find_above(bytes, &pin)? else {
                return Ok(());
            };
            if let Some(leaf) = above.page.links()[above.link].load(&pin) {
                let _was_touched = leaf.take_touched();
            }
            Ok(())
        });
        // Pages above leaves are never absent.
        let _always_found = found;
    }
}

fn end_of(page: &super::page::Page, link: usize, pin: &EpochGuard) -> Option<Vec<u8>> {
    let mut high = Vec::new();
    page.copy_high_of(link, pin, &mut high).then_some(high)
}
