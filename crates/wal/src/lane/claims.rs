//! Claims: in what order the bytes of one lane become durable, whichever lane writes them.
//!
//! A block carries a claim for the lane that writes it, and one for each lane whose bytes were stolen into it. A claim
//! is a stretch of its lane's cursor; the claims of a lane follow one another without gaps. Their writes may end in any
//! order: a claim whose block is durable is *parked* until all earlier ones are (the parking-lot rule, T14), so
//! the lane's hardened cursor never passes bytes that are still on their way in somebody else's block.
//!
//! Does not: lock, or know blocks.

use logstead_env::Instant;
use logstead_types::Csn;
use std::collections::VecDeque;

/// Bytes of one lane in one block, whole entries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    /// The lane's cursor where they begin and end.
    pub(super) start: u64,
    pub(super) end: u64,
    /// Lowest CSN among the entries.
    pub(super) csn_lowest: Csn,
    /// GSN of the last entry.
    pub(super) gsn_end: u64,
}

/// A claim whose block, and all before it in the lane that wrote it, are durable.
#[derive(Clone, Copy, Debug)]
pub(super) struct DurableClaim {
    pub(super) claim: Claim,
    pub(super) sealed_at: Instant,
}

/// A lane's claims that have not hardened, in the order of its cursor.
#[derive(Default)]
pub(super) struct Claims {
    /// Number of the first one; numbers are given out in order and never again.
    first: u64,
    waiting: VecDeque<(Claim, Option<Instant>)>,
}

impl Claims {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Adds a claim behind the others and returns its number.
    pub(super) fn add(&mut self, claim: Claim) -> u64 {
        debug_assert!(claim.start < claim.end, "a claim without bytes");
        debug_assert!(
            self.waiting
                .back()
                .is_none_or(|(last, _)| last.end == claim.start),
            "claims follow one another"
        );
        self.waiting.push_back((claim, None));
        self.first + self.waiting.len() as u64 - 1
    }

    /// The claim's bytes are durable. It parks until all earlier ones are; true if it has to.
    ///
    /// # Panics
    /// If it is not waiting: a block told of twice would let a later claim pass for durable.
    pub(super) fn written(&mut self, number: u64, sealed_at: Instant) -> bool {
        let index = number
            .checked_sub(self.first)
            .and_then(|index| usize::try_from(index).ok());
        let slot = index.and_then(|index| self.waiting.get_mut(index));
        let (_, written) = slot.expect("a claim that is waiting");
        assert!(written.is_none(), "a claim is written once");
        *written = Some(sealed_at);
        // Who tells of several tells in order and takes out what has hardened later.
        self.waiting
            .iter()
            .take(index.unwrap_or(0))
            .any(|(_, written)| written.is_none())
    }

    /// Takes the first claim if its bytes are durable.
    pub(super) fn next_hardened(&mut self) -> Option<DurableClaim> {
        let &(claim, written) = self.waiting.front()?;
        let sealed_at = written?;
        self.waiting.pop_front();
        self.first += 1;
        Some(DurableClaim { claim, sealed_at })
    }

    /// Lowest CSN among those that have not hardened.
    pub(super) fn csn_lowest(&self) -> Csn {
        let lowest = self.waiting.iter().map(|(claim, _)| claim.csn_lowest).min();
        lowest.unwrap_or(Csn(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(start: u64, end: u64, csn: u64) -> Claim {
        Claim {
            start,
            end,
            csn_lowest: Csn(csn),
            gsn_end: end,
        }
    }

    #[test]
    fn t14_claims_written_out_of_order_harden_in_order() {
        let mut claims = Claims::default();
        let at = Instant::from_nanos;
        assert_eq!(claims.add(claim(0, 10, 7)), 0);
        assert_eq!(claims.add(claim(10, 15, 3)), 1);
        assert_eq!(claims.add(claim(15, 40, 9)), 2);
        claims.written(1, at(2));
        claims.written(2, at(3));
        assert!(claims.next_hardened().is_none(), "the first one is missing");
        assert_eq!(claims.csn_lowest(), Csn(3));
        claims.written(0, at(1));
        let hardened: Vec<_> = std::iter::from_fn(|| claims.next_hardened())
            .map(|written| (written.claim.end, written.sealed_at.as_nanos()))
            .collect();
        assert_eq!(hardened, [(10, 1), (15, 2), (40, 3)]);
        assert!(claims.is_empty());
        assert_eq!(claims.add(claim(40, 41, 10)), 3);
    }

    #[test]
    #[should_panic(expected = "a claim that is waiting")]
    fn a_claim_that_has_hardened_cannot_be_written_again() {
        let mut claims = Claims::default();
        claims.add(claim(0, 10, 7));
        claims.written(0, Instant::from_nanos(1));
        claims.next_hardened();
        claims.written(0, Instant::from_nanos(1));
    }
}
