//! Group commit: one thread flushes all lanes in rounds and acknowledges everybody at the end of each. The classic.
//!
//! Rule: the worker that finds enough unflushed bytes, or nothing else to do, leads the next round in its own thread.
//! Why it is right: a round acknowledges only after all it flushed is hardened, and then only what the tracking mode
//! lets pass; whoever wanted a round while one ran gets the next one.

use super::rounds::Rounds;
use super::{Actions, Event, ProtocolConfig};

pub(crate) struct Group(Rounds);

impl Group {
    pub(crate) fn new() -> Group {
        Group(Rounds::new(false))
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
