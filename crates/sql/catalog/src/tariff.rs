//! What requests to the log's homes cost: the price list, and what comes by itself.

use logstead_engine::PriceList;
use std::time::Duration;

/// A month, as providers reckon: 730 hours.
const MONTH: Duration = Duration::from_secs(730 * 3600);

/// What requests cost here, and which of them come by themselves.
#[derive(Debug, Default)]
pub struct Tariff {
    /// What providers charge.
    pub prices: PriceList,
    /// A lease on the log is renewed so often, each time by a put; `None`: there is none.
    pub lease_renewed_every: Option<Duration>,
}

impl Tariff {
    /// Puts in a month in which nobody does anything.
    pub fn idle_puts(&self) -> f64 {
        let every = self.lease_renewed_every.filter(|every| !every.is_zero());
        every.map_or(0.0, |every| MONTH.as_secs_f64() / every.as_secs_f64())
    }
}
