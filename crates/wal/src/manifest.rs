//! (manifest)
