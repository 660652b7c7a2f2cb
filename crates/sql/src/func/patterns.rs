//! LIKE.
