//! What several homes can together.

use super::child::no_answer;
use super::open::wrong;
use super::state::WriteConcern;
use crate::{HomeCapabilities, HomeError, Rollover};

/// What all of them can, and the rollover rule that suits all.
pub(super) fn common_capabilities(
    homes: &[Option<(HomeCapabilities, Rollover)>],
    urls: &[String],
    ack: WriteConcern,
) -> Result<(HomeCapabilities, Rollover), HomeError> {
    let mut common: Option<(HomeCapabilities, Rollover)> = None;
    for (capabilities, rollover) in homes.iter().flatten() {
        let (mut both, smallest) = common.unwrap_or((*capabilities, *rollover));
        both.block_alignment = both.block_alignment.max(capabilities.block_alignment);
        both.block_size_preferred = both
            .block_size_preferred
            .max(capabilities.block_size_preferred);
        both.room_size_bytes_max = both
            .room_size_bytes_max
            .min(capabilities.room_size_bytes_max)
            .min(rollover.size_bytes);
        common = Some((both, smallest.min(*rollover)));
    }
    let (mut common, rollover) = common.ok_or_else(|| no_answer("opening the log's homes"))?;
    for (capabilities, url) in homes.iter().zip(urls) {
        let alignment = capabilities.map_or(1, |(capabilities, _)| capabilities.block_alignment);
        if !common.block_alignment.is_multiple_of(alignment) {
            return Err(wrong(url, "its alignment does not go with the others'"));
        }
    }
    // As good as `needed` of them are.
    let mut known: Vec<HomeCapabilities> = homes.iter().flatten().map(|home| home.0).collect();
    let needed = ack.needed(homes.len()).clamp(1, known.len());
    known.sort_by_key(|capabilities| std::cmp::Reverse(capabilities.appends_in_flight_max));
    common.appends_in_flight_max = known[needed - 1].appends_in_flight_max;
    known.sort_by_key(|capabilities| capabilities.append_latency_expected_us);
    common.append_latency_expected_us = known[needed - 1].append_latency_expected_us;
    // No kernel's lock holds all of them, and numbers of segments must not come twice after a child was away.
    common.leased = true;
    Ok((common, rollover))
}
