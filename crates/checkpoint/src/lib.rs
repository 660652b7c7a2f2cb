//! Checkpoints: pages of rows in immutable objects, the directory that finds them, and the record that names a whole one.
#![forbid(unsafe_code)]
