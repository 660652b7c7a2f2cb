//! Lanes, recovery, leases and readers beside a writer, from outside: one program, since each would be linked anew.

mod catch_up;
mod checkpoint;
mod copy;
mod follow;
mod formats;
mod groups;
mod horizon;
mod lane;
mod lease;
mod moment;
mod number_limits;
mod recovery;
mod recycled;
mod replicated;
mod rig;
mod survivors;
