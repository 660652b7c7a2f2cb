//! Tests of the executor over hand-made plans and a real engine on a log in memory.

mod merge_joins;
mod prune_columns;
mod reads;
mod windows;
mod world;
mod writes;
