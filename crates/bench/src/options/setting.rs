//! One setting of a run, of which a command may be given several values: what sweeps are made of.
//!
//! Invariant: a [`Setting`] is valid by itself; [`Setting::apply`] changes nothing else.

use std::time::Duration;

use logstead_engine::{
    AckTiming, AdaptiveSettings, ForceCommit, Isolation, ProtocolKind, QueueKind, Tracking,
    VIRTUAL_PARTITIONS,
};

use super::{CommonOptions, Home};

/// More workers than this have no lane each.
const WORKERS_MAX: usize = 1024;

/// A value of an option that may be given several.
#[derive(Clone, Debug, PartialEq)]
pub enum Setting {
    /// Worker threads.
    Workers(usize),
    /// Instances that they are divided among.
    Instances(usize),
    /// The share of transactions that lead to other instances.
    CrossInstance(f64),
    /// Where the log goes.
    Home(Home),
    /// The isolation level.
    Isolation(Isolation),
    /// Transactions that arrive per second.
    OpenLoop(f64),
    /// Sessions per worker.
    InFlight(usize),
    /// Workers that share a lane; `usize::MAX`: all.
    WorkersPerLane(usize),
    /// Bytes in a lane that are written while sessions are ready.
    FlushUnit(usize),
    /// Bytes of each of a lane's buffers.
    LaneBuffer(usize),
    /// The oldest entry waits no longer for the flush unit, in microseconds.
    FlushTimeout(u64),
    /// A lane waits so long for the workers that its last flush has set free, in microseconds.
    Gather(u64),
    /// Blocks of a lane that are written at a time.
    BlocksInFlight(usize),
    /// Workers whose transactions one of them acknowledges.
    AckGroup(usize),
    /// Workers that steal log from each other.
    StealGroup(usize),
    /// When workers acknowledge.
    AckTiming(AckTiming),
    /// When idle workers flush.
    ForceCommit(ForceCommit),
    /// Who flushes and who acknowledges.
    Protocol(ProtocolKind),
    /// What a transaction waits for besides itself.
    Tracking(Tracking),
    /// How transactions get to who acknowledges them.
    Queue(QueueKind),
    /// Records of updates are deltas; else whole rows.
    Delta(bool),
    /// Lanes in use, flush unit, timeout and gather delay follow latency and load.
    Adaptive(bool),
}

/// The options that take several values, in the order in which they become the axis of a chart.
pub(crate) const NAMES: [&str; 22] = [
    "open-loop",
    "workers",
    "cross-instance",
    "instances",
    "in-flight",
    "flush-unit",
    "flush-timeout",
    "lane-buffer",
    "ack-group",
    "steal-group",
    "acknowledge",
    "force-commit",
    "gather",
    "blocks-in-flight",
    "workers-per-lane",
    "protocol",
    "tracking",
    "queue",
    "delta",
    "adaptive",
    "isolation",
    "home",
];
/// An hour: nobody waits longer.
const MICROS_MAX: u64 = 3_600_000_000;

fn on_or_off(name: &str, text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(unknown(name, text, "on or off")),
    }
}

fn number<T: std::str::FromStr + PartialOrd + std::fmt::Display>(
    name: &str,
    text: &str,
    low: T,
    high: T,
) -> Result<T, String> {
    text.replace('_', "")
        .parse()
        .ok()
        .filter(|n: &T| *n >= low && *n <= high)
        .ok_or_else(|| format!("--{name} {text}: a number from {low} to {high} is expected"))
}

/// Bytes, with or without a unit.
pub(crate) fn size(name: &str, text: &str, low: usize, high: usize) -> Result<usize, String> {
    let plain = text.to_ascii_lowercase();
    let digits = plain.trim_end_matches(|c: char| !c.is_ascii_digit());
    let factor = match plain[digits.len()..].trim() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        _ => 0,
    };
    digits
        .replace('_', "")
        .parse::<usize>()
        .ok()
        .and_then(|n| n.checked_mul(factor))
        .filter(|n| *n >= low && *n <= high)
        .ok_or_else(|| {
            format!(
                "--{name} {text}: bytes from {low} to {high} are expected, as in 4096 or 4k or 1m"
            )
        })
}

/// Bytes as people write them.
pub(crate) fn size_text(bytes: usize) -> String {
    if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) {
        format!("{} MiB", bytes >> 20)
    } else if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) {
        format!("{} KiB", bytes >> 10)
    } else {
        format!("{bytes} B")
    }
}

/// The isolation level as the command line calls it.
pub(crate) fn isolation_text(level: Isolation) -> &'static str {
    match level {
        Isolation::ReadCommitted => "read-committed",
        Isolation::RepeatableRead => "repeatable-read",
        Isolation::Serializable => "serializable",
    }
}

fn unknown(name: &str, text: &str, known: &str) -> String {
    format!("--{name} {text}: {known} is expected")
}

fn isolation(text: &str) -> Result<Isolation, String> {
    [
        Isolation::ReadCommitted,
        Isolation::RepeatableRead,
        Isolation::Serializable,
    ]
    .into_iter()
    .find(|level| isolation_text(*level) == text)
    .ok_or_else(|| {
        format!("--isolation {text}: read-committed, repeatable-read or serializable is expected")
    })
}

impl Setting {
    /// Reads one value of the option `name`.
    pub(crate) fn read(name: &str, text: &str) -> Result<Setting, String> {
        let text = text.trim();
        Ok(match name {
            "workers" => Setting::Workers(number(name, text, 1, WORKERS_MAX)?),
            "instances" => {
                Setting::Instances(number(name, text, 1, usize::from(VIRTUAL_PARTITIONS))?)
            }
            "cross-instance" => Setting::CrossInstance(number(name, text, 0.0, 1.0)?),
            "home" => Setting::Home(Home::read(text)?),
            "isolation" => Setting::Isolation(isolation(text)?),
            "open-loop" => Setting::OpenLoop(number(name, text, 0.001, 1e9)?),
            "in-flight" => Setting::InFlight(number(name, text, 1, 1 << 20)?),
            "workers-per-lane" if text == "all" => Setting::WorkersPerLane(usize::MAX),
            "workers-per-lane" => Setting::WorkersPerLane(number(name, text, 1, WORKERS_MAX)?),
            "flush-unit" => Setting::FlushUnit(size(name, text, 1, 1 << 30)?),
            "lane-buffer" => Setting::LaneBuffer(size(name, text, 64 << 10, 1 << 30)?),
            "flush-timeout" => Setting::FlushTimeout(number(name, text, 0, MICROS_MAX)?),
            "gather" => Setting::Gather(number(name, text, 0, MICROS_MAX)?),
            "blocks-in-flight" => Setting::BlocksInFlight(number(name, text, 1, 1024)?),
            "ack-group" => Setting::AckGroup(number(name, text, 1, WORKERS_MAX)?),
            "steal-group" => Setting::StealGroup(number(name, text, 0, WORKERS_MAX)?),
            "acknowledge" => Setting::AckTiming(
                AckTiming::from_name(text)
                    .ok_or_else(|| unknown(name, text, "when-hardened or by-dice"))?,
            ),
            "force-commit" => Setting::ForceCommit(
                ForceCommit::from_name(text)
                    .ok_or_else(|| unknown(name, text, "at-once or if-idle-long"))?,
            ),
            "protocol" => Setting::Protocol(ProtocolKind::from_name(text).ok_or_else(|| {
                unknown(name, text, "group, pipelined, autonomous or grouped-lanes")
            })?),
            "tracking" => Setting::Tracking(
                Tracking::for_comparison(text)
                    .ok_or_else(|| unknown(name, text, "horizon, gsn, dsn, exact or leanstore"))?,
            ),
            "queue" => Setting::Queue(
                QueueKind::from_name(text)
                    .ok_or_else(|| unknown(name, text, "lock-free or latched"))?,
            ),
            "delta" => Setting::Delta(on_or_off(name, text)?),
            "adaptive" => Setting::Adaptive(on_or_off(name, text)?),
            other => return Err(format!("--{other} takes one value only")),
        })
    }

    /// The option.
    pub fn name(&self) -> &'static str {
        match self {
            Setting::Workers(_) => "workers",
            Setting::Instances(_) => "instances",
            Setting::CrossInstance(_) => "cross-instance",
            Setting::Home(_) => "home",
            Setting::Isolation(_) => "isolation",
            Setting::OpenLoop(_) => "open-loop",
            Setting::InFlight(_) => "in-flight",
            Setting::WorkersPerLane(_) => "workers-per-lane",
            Setting::FlushUnit(_) => "flush-unit",
            Setting::LaneBuffer(_) => "lane-buffer",
            Setting::FlushTimeout(_) => "flush-timeout",
            Setting::Gather(_) => "gather",
            Setting::BlocksInFlight(_) => "blocks-in-flight",
            Setting::AckGroup(_) => "ack-group",
            Setting::StealGroup(_) => "steal-group",
            Setting::AckTiming(_) => "acknowledge",
            Setting::ForceCommit(_) => "force-commit",
            Setting::Protocol(_) => "protocol",
            Setting::Tracking(_) => "tracking",
            Setting::Queue(_) => "queue",
            Setting::Delta(_) => "delta",
            Setting::Adaptive(_) => "adaptive",
        }
    }

    /// The value, for people.
    pub fn text(&self) -> String {
        match self {
            Setting::Workers(n)
            | Setting::Instances(n)
            | Setting::InFlight(n)
            | Setting::BlocksInFlight(n)
            | Setting::AckGroup(n)
            | Setting::StealGroup(n) => n.to_string(),
            Setting::CrossInstance(share) => share.to_string(),
            Setting::WorkersPerLane(usize::MAX) => "all".into(),
            Setting::WorkersPerLane(n) => n.to_string(),
            Setting::Home(home) => home.describe(),
            Setting::Isolation(level) => isolation_text(*level).into(),
            Setting::OpenLoop(rate) => format!("{rate} per second"),
            Setting::FlushUnit(bytes) | Setting::LaneBuffer(bytes) => size_text(*bytes),
            Setting::FlushTimeout(us) | Setting::Gather(us) => format!("{us} us"),
            Setting::AckTiming(when) => when.name().into(),
            Setting::ForceCommit(when) => when.name().into(),
            Setting::Protocol(kind) => kind.name().into(),
            Setting::Tracking(kind) => kind.name().into(),
            Setting::Queue(kind) => kind.name().into(),
            Setting::Delta(on) | Setting::Adaptive(on) => if *on { "on" } else { "off" }.into(),
        }
    }

    /// The value as a place on an axis, if it has one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Setting::Workers(n)
            | Setting::Instances(n)
            | Setting::InFlight(n)
            | Setting::FlushUnit(n)
            | Setting::LaneBuffer(n)
            | Setting::BlocksInFlight(n)
            | Setting::AckGroup(n)
            | Setting::StealGroup(n) => Some(*n as f64),
            Setting::FlushTimeout(us) | Setting::Gather(us) => Some(*us as f64),
            Setting::OpenLoop(rate) | Setting::CrossInstance(rate) => Some(*rate),
            Setting::WorkersPerLane(_)
            | Setting::Home(_)
            | Setting::Isolation(_)
            | Setting::AckTiming(_)
            | Setting::ForceCommit(_)
            | Setting::Protocol(_)
            | Setting::Tracking(_)
            | Setting::Queue(_)
            | Setting::Delta(_)
            | Setting::Adaptive(_) => None,
        }
    }

    /// Makes it part of a run's configuration.
    pub fn apply(&self, common: &mut CommonOptions) {
        match self {
            Setting::Workers(n) => common.workers = *n,
            Setting::Instances(n) => common.instances = *n,
            Setting::CrossInstance(share) => common.cross_instance = *share,
            Setting::Home(home) => common.home = home.clone(),
            Setting::Isolation(level) => common.isolation = *level,
            Setting::OpenLoop(rate) => common.open_loop = Some(*rate),
            Setting::InFlight(n) => common.in_flight = *n,
            Setting::WorkersPerLane(n) => common.commit.workers_per_lane = *n,
            Setting::FlushUnit(bytes) => common.commit.flush_unit_bytes = *bytes,
            Setting::LaneBuffer(bytes) => common.commit.lane_buffer_bytes = *bytes,
            Setting::FlushTimeout(us) => common.commit.flush_timeout = Duration::from_micros(*us),
            Setting::Gather(us) => common.commit.gather = Duration::from_micros(*us),
            Setting::BlocksInFlight(n) => common.commit.blocks_in_flight_max = *n,
            Setting::AckGroup(n) => common.commit.ack_group = *n,
            Setting::StealGroup(n) => common.commit.steal_group = *n,
            Setting::AckTiming(when) => common.commit.acknowledging = *when,
            Setting::ForceCommit(when) => common.commit.force_commit = *when,
            Setting::Protocol(kind) => common.commit.protocol = *kind,
            Setting::Tracking(kind) => {
                common.commit.tracking = *kind;
                common.commit.may_lose = !kind.is_safe();
            }
            Setting::Queue(kind) => common.commit.queue = *kind,
            Setting::Delta(on) => common.delta_records = *on,
            Setting::Adaptive(on) => {
                common.commit.adapt = if *on {
                    AdaptiveSettings::ALL
                } else {
                    AdaptiveSettings::NOTHING
                };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in [
            ("1", 1),
            ("4096", 4096),
            ("4k", 4096),
            ("16KiB", 16384),
            ("1 MiB", 1 << 20),
        ] {
            assert_eq!(size("x", text, 1, 1 << 30), Ok(bytes), "{text}");
        }
        for text in ["", "k", "0", "4x", "-1", "1g", "999999999999m"] {
            assert!(size("x", text, 1, 1 << 30).is_err(), "{text}");
        }
        assert_eq!(size_text(4096), "4 KiB");
        assert_eq!(size_text(3 << 20), "3 MiB");
        assert_eq!(size_text(1000), "1000 B");
    }

    #[test]
    fn every_option_that_takes_several_is_read_under_its_name() {
        let texts = [
            "100",
            "2",
            "0.5",
            "2",
            "3",
            "4k",
            "50",
            "1m",
            "2",
            "0",
            "by-dice",
            "at-once",
            "100",
            "4",
            "all",
            "group",
            "exact",
            "latched",
            "off",
            "on",
            "serializable",
            "memory",
        ];
        for (name, text) in NAMES.into_iter().zip(texts) {
            assert_eq!(Setting::read(name, text).expect(name).name(), name);
        }
    }
}
