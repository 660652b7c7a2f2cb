//! (inspect)
