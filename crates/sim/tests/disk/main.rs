//! Space: what a server takes of its home behind each checkpoint ([`space`]), and what becomes of it when there is no
//! more ([`full`]).
//!
//! One server and one session in one thread, on simulated files and buckets in memory. `LOGSTEAD_SEEDS` says how many
//! seeds are run, `LOGSTEAD_SEED` which one is the
//! first.

mod full;
mod life;
mod space;

pub(crate) fn from_environment(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.and_then(|text| text.parse().ok()).unwrap_or(default)
}
