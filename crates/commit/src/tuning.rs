//! The numbers that are in force now: those that may change while the server runs.
//!
//! Each is read and written by itself: what a protocol makes of a mixture of old and new is a matter of time, never of
//! correctness.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;

use crate::protocol::ProtocolConfig;

/// See the module's documentation.
pub(crate) struct LiveTuning(CachePadded<Numbers>);

struct Numbers {
    flush_unit_bytes: AtomicUsize,
    flush_timeout_ns: AtomicU64,
    gather_ns: AtomicU64,
}

impl LiveTuning {
    pub(crate) fn new(protocol_config: &ProtocolConfig) -> LiveTuning {
        LiveTuning(CachePadded::new(Numbers {
            flush_unit_bytes: AtomicUsize::new(protocol_config.flush_unit_bytes),
            flush_timeout_ns: AtomicU64::new(protocol_config.flush_timeout_ns),
            gather_ns: AtomicU64::new(protocol_config.gather_ns),
        }))
    }

    /// `protocol_config` with these numbers.
    #[inline]
    pub(crate) fn protocol_config(&self, protocol_config: &ProtocolConfig) -> ProtocolConfig {
        ProtocolConfig {
            flush_unit_bytes: self.0.flush_unit_bytes.load(Ordering::Relaxed),
            flush_timeout_ns: self.0.flush_timeout_ns.load(Ordering::Relaxed),
            gather_ns: self.0.gather_ns.load(Ordering::Relaxed),
            ..*protocol_config
        }
    }

    pub(crate) fn set_flush_unit_bytes(&self, bytes: usize) {
        self.0
            .flush_unit_bytes
            .store(bytes.max(1), Ordering::Relaxed);
    }

    pub(crate) fn set_flush_timeout_ns(&self, ns: u64) {
        self.0.flush_timeout_ns.store(ns, Ordering::Relaxed);
    }

    pub(crate) fn set_gather_ns(&self, ns: u64) {
        self.0.gather_ns.store(ns, Ordering::Relaxed);
    }
}
