//! The part of the table of settings that is about the log: its home, its lanes, when commits are durable, and
//! checkpoints.
//!
//! Owns: these rows. What they mean stands with the engine and the log; the server reads them at its start.

use super::check_hooks::workers_per_lane;
use super::row::server;
use super::{Setting, SettingType, Unit};

/// The longest that log is held back on purpose.
const MINUTE_US: i64 = 60_000_000;

/// These settings, by name.
pub(super) static LOG: &[Setting] = &[
    server(
        "ack",
        SettingType::Enum(&["all", "majority"]),
        "all",
        "When a commit is durable, if home is a list of URLs: when all of them have it, or a majority.",
    ),
    server(
        "acknowledge",
        SettingType::Enum(&["when-hardened", "by-dice"]),
        "when-hardened",
        "When workers acknowledge commits (commit_protocol autonomous).",
    ),
    server(
        "acknowledgment_group",
        SettingType::Int {
            min: 1,
            max: 1024,
            unit: Unit::None,
        },
        "2",
        "Workers whose transactions one of them acknowledges (commit_protocol autonomous).",
    ),
    server(
        "adaptive",
        SettingType::Bool,
        "on",
        "Lanes in use, flush unit, the part of a buffer that is used, flush timeout and gather delay follow latency and load, each unless it is set, on homes whose appends take a millisecond or more; see logstead_adaptive.",
    ),
    server(
        "bucket_reserve",
        SettingType::Int {
            min: 0,
            max: 1 << 30,
            unit: Unit::Bytes,
        },
        "0",
        "Room that a home in a bucket with a quota keeps there for what frees room.",
    ),
    server(
        "checkpoint_bandwidth",
        SettingType::Int {
            min: 0,
            max: 1 << 40,
            unit: Unit::Bytes,
        },
        "67108864",
        "The most that checkpoints write in a second; 0 is no limit.",
    ),
    server(
        "checkpoint_interval",
        SettingType::Int {
            min: 0,
            max: 86_400_000,
            unit: Unit::Milliseconds,
        },
        "2000",
        "How long after a checkpoint began the next one begins, if something has changed; 0: only by CHECKPOINT.",
    ),
    server(
        "commit_protocol",
        SettingType::Enum(&["group", "pipelined", "autonomous", "grouped-lanes"]),
        "grouped-lanes",
        "Who flushes the log and who acknowledges. Chosen for the home unless set.",
    ),
    server(
        "commit_queue",
        SettingType::Enum(&["lock-free", "latched"]),
        "lock-free",
        "How transactions get from workers to who acknowledges them; latched is for comparison only.",
    ),
    server(
        "dependency_tracking",
        SettingType::Enum(&["horizon", "gsn", "dsn", "exact"]),
        "exact",
        "What a commit waits for besides its own bytes. Chosen for the home unless set.",
    ),
    server(
        "flush_gather_delay",
        SettingType::Int {
            min: 0,
            max: MINUTE_US,
            unit: Unit::Microseconds,
        },
        "0",
        "How long the next flush of a lane waits for workers that the last one has set free, while one of them is at work (commit_protocol grouped-lanes). Chosen for the home unless set.",
    ),
    server(
        "flush_timeout",
        SettingType::Int {
            min: 0,
            max: MINUTE_US,
            unit: Unit::Microseconds,
        },
        "1000",
        "Log that has waited for so long is flushed also while sessions are ready to run. Chosen for the home unless set.",
    ),
    server(
        "flush_unit",
        SettingType::Int {
            min: 512,
            max: 64 << 20,
            unit: Unit::Bytes,
        },
        "16384",
        "So many unflushed bytes of a lane are flushed also while sessions are ready to run. Chosen for the home unless set.",
    ),
    server(
        "force_commit",
        SettingType::Enum(&["at-once", "if-idle-long"]),
        "at-once",
        "When an idle worker flushes its log (commit_protocol autonomous).",
    ),
    server(
        "home",
        SettingType::Text,
        "",
        "URL of where the log lives: file:///dir, a block device or a preallocated file, s3express://BUCKET/PREFIX, s3://BUCKET/PREFIX, azure://CONTAINER/PREFIX, memory:, sim://?model=NAME, or a list of URLs with commas between them. Unless set, the directory data_directory.",
    ),
    server(
        "horizon_pause",
        SettingType::Int {
            min: 0,
            max: 3_600_000,
            unit: Unit::Milliseconds,
        },
        "0",
        "How long the log waits in a pause until it records what has become durable, by one more block: set it where replicas follow the log, which show the last commits before a pause only then or with the next checkpoint. 0: it does not.",
    ),
    server(
        "lane_buffer_size",
        SettingType::Int {
            min: 64 << 10,
            max: 64 << 20,
            unit: Unit::Bytes,
        },
        "1048576",
        "Size of one buffer of a lane; a lane has one more of them than blocks in flight. Chosen for the home unless set.",
    ),
    server(
        "lease_duration",
        SettingType::Int {
            min: 1_000,
            max: 3_600_000,
            unit: Unit::Milliseconds,
        },
        "10000",
        "How long the right to write a log in an object store lasts unless it is renewed (every third of this, one request each): another server waits so long for one that has vanished.",
    ),
    server(
        "log_allocation_limit",
        SettingType::Int {
            min: 1 << 20,
            max: 1 << 40,
            unit: Unit::Bytes,
        },
        "268435456",
        "Writers wait while the log is so many bytes ahead of durability.",
    ),
    server(
        "max_wal_senders",
        SettingType::Int {
            min: 0,
            max: 262_143,
            unit: Unit::None,
        },
        "10",
        "Most replicas that are sent the log by a stream at the same time; one more is refused with 53300, and follows the home. They count as connections, too.",
    ),
    server(
        "page_service",
        SettingType::Bool,
        "off",
        "A replica writes the pages of its primary's checkpoints, which the primary orders and publishes: the log alone goes from the primary to storage. It needs a stream, and the right to store objects in the home of replica_of.",
    ),
    server(
        "page_service_timeout",
        SettingType::Int {
            min: 100,
            max: 3_600_000,
            unit: Unit::Milliseconds,
        },
        "60000",
        "How long a replica that was to write a checkpoint's pages may be silent, while it writes or before it begins; then the primary takes the checkpoint itself.",
    ),
    server(
        "primary_conninfo",
        SettingType::Text,
        "",
        "How a replica connects to the primary that writes the log of replica_of, to get what is written there sooner than by looking at the home: \"host=10.0.0.1 port=5433 user=replicator\" or postgres://...; of several hosts it takes the one that is the primary. A password may be in PGPASSWORD.",
    ),
    server(
        "promote_when_primary_lost",
        SettingType::Bool,
        "off",
        "A replica becomes the primary by itself as soon as no server has the log of replica_of: it tries again and again, and the lock or the lease of the home is the only judge. A primary that is stopped and started again may find that a replica has taken its place.",
    ),
    server(
        "replica_keep_time",
        SettingType::Int {
            min: 0,
            max: 86_400_000,
            unit: Unit::Milliseconds,
        },
        "600000",
        "How long the log, and checkpoints that newer ones have superseded, are kept for replicas that follow by a stream and need them still; 0: not at all. Nothing is kept for one that was cut off more than a minute ago, or while there is little room.",
    ),
    server(
        "replica_of",
        SettingType::Text,
        "",
        "URL of the home of another server, whose log this server follows as a replica: it serves reads and writes nothing. As home, a list too. postgres://... connects to the server as primary_conninfo does, and asks it for its home.",
    ),
    server(
        "replica_poll_interval",
        SettingType::Int {
            min: 1,
            max: 60_000,
            unit: Unit::Milliseconds,
        },
        "10",
        "How long a replica waits between two looks at the log; up to 16 times as long while nothing comes. Chosen for the home unless set.",
    ),
    server(
        "restore_point_interval",
        SettingType::Int {
            min: 1000,
            max: 86_400_000,
            unit: Unit::Milliseconds,
        },
        "60000",
        "A checkpoint becomes a restore point when the newest one is older than this; see restore_point_retention.",
    ),
    server(
        "restore_point_retention",
        SettingType::Int {
            min: 0,
            max: 3_650 * 86_400_000,
            unit: Unit::Milliseconds,
        },
        "0",
        "How long restore points are kept that were not made by hand; beyond an hour one in ten. 0: none is.",
    ),
    server(
        "segment_size",
        SettingType::Int {
            min: 1 << 20,
            max: 1 << 32,
            unit: Unit::Bytes,
        },
        "67108864",
        "Size of one log segment, made ready ahead of time; the log is removed segment by segment.",
    ),
    server(
        "steal_group",
        SettingType::Int {
            min: 0,
            max: 1024,
            unit: Unit::None,
        },
        "8",
        "Workers that flush each other's log (commit_protocol autonomous); 0 is none.",
    ),
    server(
        "workers_per_lane",
        SettingType::Checked(workers_per_lane),
        "1",
        "Workers that share a lane of the log, or all. Chosen for the home unless set.",
    ),
    server(
        "write_way",
        SettingType::Enum(&["auto", "pwrite", "threads", "uring", "portable"]),
        "auto",
        "How a local home writes the log; auto measures at start. SHOW logstead.write_way tells which it is.",
    ),
];
