//! The settings of the commit path: what was given, over what suits the home.
//!
//! Owns: the mapping between settings by name and [`CommitOptions`], both ways, so that SHOW tells what is in force
//! when the server starts. What was set by hand stays so; what was not adapts, where the home is worth it and
//! `adaptive` is on. The values are canonical and in range; what remains to be checked is how they fit together.

use logstead_engine::{
    AckTiming, AdaptiveSettings, CommitOptions, ForceCommit, ProtocolKind, QueueKind, Tracking,
};
use logstead_home::HomeCapabilities;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::Duration;

type Values = BTreeMap<String, String>;

const ALL: &str = "all";

/// A setting's value read by `read`, or the default.
fn or<T>(
    values: &Values,
    name: &str,
    default: T,
    read: impl Fn(&str) -> Option<T>,
) -> Result<T, String> {
    match values.get(name) {
        None => Ok(default),
        Some(value) => read(value).ok_or_else(|| format!("{name}: \"{value}\" is no valid value")),
    }
}

fn micros(value: &str) -> Option<Duration> {
    value.parse().ok().map(Duration::from_micros)
}

fn pause(value: &str) -> Option<Option<Duration>> {
    let ms = value.parse().ok()?;
    Some(Some(Duration::from_millis(ms)).filter(|pause| !pause.is_zero()))
}

fn number(value: &str) -> Option<usize> {
    value.parse().ok()
}

/// The options that the settings give at a home like that.
pub(crate) fn options(
    values: &Values,
    capabilities: &HomeCapabilities,
) -> Result<CommitOptions, String> {
    let home = CommitOptions::defaults_for(capabilities);
    let workers = |value: &str| match value {
        ALL => Some(usize::MAX),
        value => number(value),
    };
    let lane_buffer_bytes = or(values, "lane_buffer_size", home.lane_buffer_bytes, number)?;
    // Who makes the buffers smaller did not choose the unit that goes with larger ones.
    let unit = home.flush_unit_bytes.min(lane_buffer_bytes / 2);
    let on = values.get("adaptive").is_none_or(|value| value != "off");
    let moves = |name: &str, of_home: bool| of_home && on && !values.contains_key(name);
    let options = CommitOptions {
        adapt: AdaptiveSettings {
            lanes: moves("workers_per_lane", home.adapt.lanes),
            flush_unit: moves("flush_unit", home.adapt.flush_unit),
            buffer: moves("lane_buffer_size", home.adapt.buffer),
            flush_timeout: moves("flush_timeout", home.adapt.flush_timeout),
            gather: moves("flush_gather_delay", home.adapt.gather),
        },
        protocol: or(
            values,
            "commit_protocol",
            home.protocol,
            ProtocolKind::from_name,
        )?,
        tracking: or(
            values,
            "dependency_tracking",
            home.tracking,
            Tracking::from_name,
        )?,
        queue: or(values, "commit_queue", home.queue, QueueKind::from_name)?,
        workers_per_lane: or(values, "workers_per_lane", home.workers_per_lane, workers)?,
        lane_buffer_bytes,
        flush_unit_bytes: or(values, "flush_unit", unit, number)?,
        flush_timeout: or(values, "flush_timeout", home.flush_timeout, micros)?,
        gather: or(values, "flush_gather_delay", home.gather, micros)?,
        ack_group: or(values, "acknowledgment_group", home.ack_group, number)?,
        steal_group: or(values, "steal_group", home.steal_group, number)?,
        acknowledging: or(
            values,
            "acknowledge",
            home.acknowledging,
            AckTiming::from_name,
        )?,
        force_commit: or(
            values,
            "force_commit",
            home.force_commit,
            ForceCommit::from_name,
        )?,
        log_allocation_limit_bytes: or(
            values,
            "log_allocation_limit",
            home.log_allocation_limit_bytes,
            |value| value.parse().ok(),
        )?,
        horizon_pause: or(values, "horizon_pause", home.horizon_pause, pause)?,
        ..home
    };
    if options.flush_unit_bytes > options.lane_buffer_bytes {
        return Err(format!(
            "flush_unit ({} bytes) is more than lane_buffer_size ({} bytes): it would never be reached",
            options.flush_unit_bytes, options.lane_buffer_bytes
        ));
    }
    if options.log_allocation_limit_bytes < options.lane_buffer_bytes as u64 {
        return Err(format!(
            "log_allocation_limit ({} bytes) is less than lane_buffer_size ({} bytes)",
            options.log_allocation_limit_bytes, options.lane_buffer_bytes
        ));
    }
    Ok(options)
}

/// Has SHOW tell what is in force at first. What adapts from there on stands in the view `logstead_adaptive`.
pub(crate) fn show(values: &mut Values, options: &CommitOptions) {
    let mut put = |name: &str, value: &dyn Display| {
        values.insert(name.to_owned(), value.to_string());
    };
    put("commit_protocol", &options.protocol.name());
    put("dependency_tracking", &options.tracking.name());
    put("commit_queue", &options.queue.name());
    match options.workers_per_lane {
        usize::MAX => put("workers_per_lane", &ALL),
        workers => put("workers_per_lane", &workers),
    }
    put("lane_buffer_size", &options.lane_buffer_bytes);
    put("flush_unit", &options.flush_unit_bytes);
    put("flush_timeout", &options.flush_timeout.as_micros());
    put("flush_gather_delay", &options.gather.as_micros());
    put("acknowledgment_group", &options.ack_group);
    put("steal_group", &options.steal_group);
    put("acknowledge", &options.acknowledging.name());
    put("force_commit", &options.force_commit.name());
    put("log_allocation_limit", &options.log_allocation_limit_bytes);
    let pause = options.horizon_pause.unwrap_or_default();
    put("horizon_pause", &pause.as_millis());
}

#[cfg(test)]
mod tests {
    use super::*;
    use logstead_sql_catalog::settings;

    const CAPABILITIES: HomeCapabilities = HomeCapabilities {
        block_alignment: 1,
        block_size_preferred: 512 << 10,
        room_size_bytes_max: 64 << 20,
        appends_in_flight_max: 1,
        append_latency_expected_us: 5_000,
        leased: false,
    };

    fn given(pairs: &[(&str, &str)]) -> Values {
        let canonical = |(name, value): &(&str, &str)| {
            let setting = settings::find(name).unwrap();
            ((*name).to_owned(), setting.canonical(value).unwrap())
        };
        pairs.iter().map(canonical).collect()
    }

    #[test]
    fn what_is_shown_reads_back() {
        for kind in ProtocolKind::ALL {
            for tracking in Tracking::ALL {
                let mut values = given(&[
                    ("commit_protocol", kind.name()),
                    ("dependency_tracking", tracking.name()),
                    ("commit_queue", "latched"),
                    ("workers_per_lane", "ALL"),
                    ("lane_buffer_size", "256kB"),
                    ("flush_timeout", "2ms"),
                    ("flush_gather_delay", "70"),
                    ("acknowledgment_group", "4"),
                    ("steal_group", "0"),
                    ("acknowledge", "by-dice"),
                    ("force_commit", "if-idle-long"),
                    ("log_allocation_limit", "1GB"),
                    ("horizon_pause", "20ms"),
                ]);
                let read = options(&values, &CAPABILITIES).unwrap();
                assert_eq!((read.protocol, read.tracking), (kind, tracking));
                assert_eq!((read.lanes(5), read.queue), (1, QueueKind::Latched));
                assert_eq!(
                    read.adapt,
                    AdaptiveSettings {
                        flush_unit: true,
                        ..AdaptiveSettings::NOTHING
                    },
                    "all but one are given"
                );
                assert_eq!(read.lane_buffer_bytes, 256 << 10);
                assert_eq!(read.flush_unit_bytes, 128 << 10, "half of the buffer");
                assert_eq!(read.flush_timeout, Duration::from_millis(2));
                assert_eq!(read.gather, Duration::from_micros(70));
                assert_eq!((read.ack_group, read.steal_group), (4, 0));
                assert_eq!(
                    (read.acknowledging, read.force_commit),
                    (AckTiming::AtRandom, ForceCommit::IfIdleLong)
                );
                assert_eq!(read.log_allocation_limit_bytes, 1 << 30);
                assert_eq!(read.horizon_pause, Some(Duration::from_millis(20)));
                show(&mut values, &read);
                let fixed = CommitOptions {
                    adapt: AdaptiveSettings::NOTHING,
                    ..read
                };
                assert_eq!(options(&values, &CAPABILITIES).unwrap(), fixed);
            }
        }
    }

    #[test]
    fn the_home_gives_the_defaults_and_all_are_valid() {
        let mut values = Values::new();
        let read = options(&values, &CAPABILITIES).unwrap();
        assert_eq!(read, CommitOptions::defaults_for(&CAPABILITIES));
        assert_eq!(read.adapt, AdaptiveSettings::ALL);
        let off = options(&given(&[("adaptive", "no")]), &CAPABILITIES).unwrap();
        assert_eq!(off.adapt, AdaptiveSettings::NOTHING);
        show(&mut values, &read);
        assert_eq!(values["workers_per_lane"], "2");
        assert_eq!(values["flush_timeout"], "2500");
        for (name, value) in &values {
            let setting = settings::find(name).unwrap();
            assert_eq!(&setting.canonical(value).unwrap(), value, "{name}");
        }
    }

    #[test]
    fn sizes_that_do_not_fit_together_are_refused() {
        for (pairs, named) in [
            (
                [("flush_unit", "2MB"), ("lane_buffer_size", "1MB")],
                "flush_unit",
            ),
            (
                [("log_allocation_limit", "1MB"), ("lane_buffer_size", "2MB")],
                "log_allocation_limit",
            ),
        ] {
            let error = options(&given(&pairs), &CAPABILITIES).unwrap_err();
            assert!(error.starts_with(named), "{error}");
        }
    }
}
