//! Flush pipelining (Aether): group commit by a background thread, while the workers go on.
//!
//! Rule: a worker only asks for a round; the background thread flushes all lanes and acknowledges everybody. Why it is
//! right: as for `group`; an ask is never lost, because one made while a round runs begins the next.

use super::rounds::Rounds;
use super::{Actions, Event, ProtocolConfig};

pub(crate) struct Pipelined(Rounds);

impl Pipelined {
    pub(crate) fn new() -> Pipelined {
        Pipelined(Rounds::new(true))
    }

    pub(crate) fn on(
        &mut self,
        event: Event<'_>,
        protocol_config: &ProtocolConfig,
        out: &mut Actions,
    ) {
        self.0.on(event, protocol_config, out);
    }
}
