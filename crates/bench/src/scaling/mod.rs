//! How the engine would do on machines with more cores than ours have: measured sharing, modelled machines.
//!
//! 1. `traced_run` runs a workload with as many workers as the machine that is asked for has cores. Each has a thread
//!    and a `WorkerLoop` of its own, as in the server, but one of them runs at a time (`baton`), and says so with a
//!    store to a line of memory that is known. That is run under `valgrind --tool=lackey --trace-mem=yes`.
//! 2. `trace` reads what valgrind prints and keeps, of each worker, the accesses to lines that other workers touch
//!    too, with the number of instructions between them: a [`Recording`].
//! 3. `sites` says to which structure of the engine the instruction of each access belongs, and where it takes or
//!    gives back a lock.
//! 4. `profile` counts: transfers, misses and critical sections per transaction, by structure.
//! 5. `simulation` runs the recording on a machine (`machine`): cores in core complexes in sockets, with prices for
//!    what crosses them. A core's accesses come in their order; which core has a line is decided anew, in virtual time.
//! 6. `figures` makes the tables and the chart of docs/internals/scaling.md. `bench/scaling.py` does all of it.
//!
//! Invariants: the same recording and machine give the same figures. What the workload counts for its own checks, and
//! the home that keeps nothing, are no part of a recording.
//!
//! Does not: know caches' sizes, bandwidth, or anything of a machine but who has a line last; docs/internals/scaling.md
//! says what follows from that.

mod baton;
mod figures;
mod machine;
mod profile;
mod recording;
mod simulation;
mod sites;
mod trace;
mod traced_run;
mod transfer;

pub use figures::{ScalingFigures, ScalingInputs, TracedCell, figures};
pub use machine::{Machine, Prices};
pub use profile::{Profile, StructureCounts};
pub use recording::{Access, AccessKind, Line, Recording};
pub use simulation::{SimulatedRun, simulate};
pub use sites::Sites;
pub use trace::{Marks, read_trace};
pub use traced_run::{RunTimes, TracedOptions, TracedWorkload, announcement, run};
pub use transfer::own_transfer_ns;
