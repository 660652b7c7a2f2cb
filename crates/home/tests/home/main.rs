//! The homes and their clients, from outside: one program, since each would be linked anew.

mod bucket_client;
mod bucket_probe;
mod cache;
mod device;
mod homes;
mod immutable;
mod objects;
mod private;
mod replicated;
mod replicated_objects;
mod replicated_sides;
mod rings;
mod servers;
mod simulated;
mod trims;
mod volume;
