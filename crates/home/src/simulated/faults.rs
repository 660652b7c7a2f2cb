//! What goes wrong, how often, and what a test asks for by number.
//!
//! Invariant: one draw per request, whatever the rates are, so that changing a rate moves no other request's latency.

use logstead_env::SimRandom;
use std::collections::BTreeMap;

use super::model::uniform;

/// Something that goes wrong with one request. Only objects know all of them: a block device answers `LostReply` and
/// `Transient` with an error, which is final, and knows no `Delay` and no `Duplicate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// It is done, but the answer never comes.
    LostReply,
    /// It arrives only after its sender has given it up.
    Delay,
    /// It arrives twice.
    Duplicate,
    /// It is refused for now.
    Transient,
    /// It takes very long.
    Stall,
    /// One bit of what is stored is wrong.
    BitFlip,
    /// It is refused, and so is everything else for a while; a block device just does not answer.
    Outage,
}

/// All faults, in the order in which a draw meets them.
pub const FAULTS: [(Fault, &str); 7] = [
    (Fault::LostReply, "lost_reply"),
    (Fault::Delay, "delay"),
    (Fault::Duplicate, "duplicate"),
    (Fault::Transient, "transient"),
    (Fault::Stall, "stall"),
    (Fault::BitFlip, "bit_flip"),
    (Fault::Outage, "outage"),
];

/// How likely each fault is for a request: probabilities, by the order of [`FAULTS`]. Bit flips happen to appends only.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FaultRates([f64; FAULTS.len()]);

impl FaultRates {
    /// The same with another rate for one fault.
    pub fn with(mut self, fault: Fault, rate: f64) -> FaultRates {
        for (slot, (of, _)) in self.0.iter_mut().zip(FAULTS) {
            if of == fault {
                *slot = rate.clamp(0.0, 1.0);
            }
        }
        self
    }

    fn draw(&self, random: &SimRandom) -> Option<Fault> {
        let mut left = uniform(random);
        for (rate, (fault, _)) in self.0.iter().zip(FAULTS) {
            if left < *rate {
                return Some(fault);
            }
            left -= rate;
        }
        None
    }
}

/// Decides about each request.
#[derive(Debug, Default)]
pub(super) struct Faults {
    pub(super) rates: FaultRates,
    /// By the number of the request.
    script: BTreeMap<u64, Fault>,
}

impl Faults {
    pub(super) fn new(rates: FaultRates) -> Faults {
        Faults {
            rates,
            script: BTreeMap::new(),
        }
    }

    pub(super) fn at(&mut self, request: u64, fault: Fault) {
        self.script.insert(request, fault);
    }

    pub(super) fn decide(&mut self, request: u64, random: &SimRandom) -> Option<Fault> {
        let drawn = self.rates.draw(random);
        self.script.remove(&request).or(drawn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_come_as_often_as_asked_and_when_scripted() {
        let random = SimRandom::new(3);
        let rates = FaultRates::default()
            .with(Fault::Delay, 0.1)
            .with(Fault::Outage, 0.2);
        let mut faults = Faults::new(rates);
        faults.at(5, Fault::Stall);
        let mut counts = BTreeMap::new();
        for request in 0..10_000 {
            let fault = faults.decide(request, &random);
            assert!(request != 5 || fault == Some(Fault::Stall));
            *counts.entry(format!("{fault:?}")).or_insert(0) += 1;
        }
        assert!((900..1100).contains(&counts["Some(Delay)"]), "{counts:?}");
        assert!((1850..2150).contains(&counts["Some(Outage)"]), "{counts:?}");
        assert_eq!(counts["Some(Stall)"], 1);
        assert_eq!(counts.len(), 4);
    }
}
