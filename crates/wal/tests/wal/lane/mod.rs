//! Lanes over the memory home: what is published when, what room means, and what happens when the home is slow, full or
//! broken, completes in another order, or when lanes steal from one another.

mod allowance;
mod basics;
mod bench;
mod in_flight;
mod model;
mod sides;
mod simulated;
mod stealing;
