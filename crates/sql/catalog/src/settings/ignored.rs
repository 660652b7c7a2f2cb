//! Settings of PostgreSQL that scripts and tools make, and that nothing here depends on: memory and workers for what is
//! done otherwise, vacuum, statistics of its own.
//!

use super::row::{session, superuser};
use super::{Setting, SettingType, Unit};

/// What is said of each.
const DOC: &str = "Accepted: nothing here depends on it.";

const fn number(min: i64, max: i64, unit: Unit) -> SettingType {
    SettingType::Int { min, max, unit }
}

/// These settings, by name.
pub(super) static ACCEPTED: &[Setting] = &[
    session(
        "backend_flush_after",
        number(0, 256, Unit::Blocks),
        "0",
        DOC,
    ),
    session("commit_siblings", number(0, 1000, Unit::None), "5", DOC),
    session(
        "effective_io_concurrency",
        number(0, 1000, Unit::None),
        "1",
        DOC,
    ),
    session(
        "force_parallel_mode",
        SettingType::Enum(&["off", "on", "regress"]),
        "off",
        DOC,
    ),
    session(
        "gin_fuzzy_search_limit",
        number(0, 2147483647, Unit::None),
        "0",
        DOC,
    ),
    session(
        "gin_pending_list_limit",
        number(64, 2147483647, Unit::Kibibytes),
        "4096",
        DOC,
    ),
    session("jit_expressions", SettingType::Bool, "on", DOC),
    session("jit_tuple_deforming", SettingType::Bool, "on", DOC),
    session(
        "logical_decoding_work_mem",
        number(64, 2147483647, Unit::Kibibytes),
        "65536",
        DOC,
    ),
    session(
        "maintenance_io_concurrency",
        number(0, 1000, Unit::None),
        "10",
        DOC,
    ),
    session(
        "maintenance_work_mem",
        number(1024, 2147483647, Unit::Kibibytes),
        "65536",
        DOC,
    ),
    session(
        "max_parallel_maintenance_workers",
        number(0, 1024, Unit::None),
        "2",
        DOC,
    ),
    session(
        "max_parallel_workers",
        number(0, 1024, Unit::None),
        "8",
        DOC,
    ),
    session(
        "max_parallel_workers_per_gather",
        number(0, 1024, Unit::None),
        "2",
        DOC,
    ),
    superuser(
        "max_stack_depth",
        number(100, 2147483647, Unit::Kibibytes),
        "2048",
        DOC,
    ),
    session(
        "parallel_leader_participation",
        SettingType::Bool,
        "on",
        DOC,
    ),
    session("plpgsql.check_asserts", SettingType::Bool, "on", DOC),
    session(
        "plpgsql.extra_errors",
        SettingType::Checked(extra_checks),
        "none",
        "Programming mistakes in bodies of PL/pgSQL that are errors.",
    ),
    session(
        "plpgsql.extra_warnings",
        SettingType::Checked(extra_checks),
        "none",
        "Programming mistakes in bodies of PL/pgSQL of which a WARNING tells.",
    ),
    session("plpgsql.print_strict_params", SettingType::Bool, "off", DOC),
    superuser(
        "plpgsql.variable_conflict",
        SettingType::Enum(&["error", "use_variable", "use_column"]),
        "error",
        DOC,
    ),
    superuser(
        "session_replication_role",
        SettingType::Enum(&["origin", "replica", "local"]),
        "origin",
        DOC,
    ),
    session(
        "stats_fetch_consistency",
        SettingType::Enum(&["none", "cache", "snapshot"]),
        "cache",
        DOC,
    ),
    session(
        "temp_buffers",
        number(100, 1073741823, Unit::Blocks),
        "1024",
        DOC,
    ),
    superuser("track_activities", SettingType::Bool, "on", DOC),
    superuser("track_counts", SettingType::Bool, "on", DOC),
    superuser(
        "track_functions",
        SettingType::Enum(&["none", "pl", "all"]),
        "none",
        DOC,
    ),
    superuser("track_io_timing", SettingType::Bool, "off", DOC),
    superuser("update_process_title", SettingType::Bool, "on", DOC),
    session(
        "vacuum_cost_delay",
        number(0, 100, Unit::Milliseconds),
        "0",
        DOC,
    ),
    session(
        "vacuum_cost_limit",
        number(1, 10000, Unit::None),
        "200",
        DOC,
    ),
    session(
        "vacuum_cost_page_dirty",
        number(0, 10000, Unit::None),
        "20",
        DOC,
    ),
    session(
        "vacuum_cost_page_hit",
        number(0, 10000, Unit::None),
        "1",
        DOC,
    ),
    session(
        "vacuum_cost_page_miss",
        number(0, 10000, Unit::None),
        "2",
        DOC,
    ),
    session(
        "vacuum_failsafe_age",
        number(0, 2100000000, Unit::None),
        "1600000000",
        DOC,
    ),
    session(
        "vacuum_freeze_min_age",
        number(0, 1000000000, Unit::None),
        "50000000",
        DOC,
    ),
    session(
        "vacuum_freeze_table_age",
        number(0, 2000000000, Unit::None),
        "150000000",
        DOC,
    ),
    session(
        "vacuum_multixact_failsafe_age",
        number(0, 2100000000, Unit::None),
        "1600000000",
        DOC,
    ),
    session(
        "vacuum_multixact_freeze_min_age",
        number(0, 1000000000, Unit::None),
        "5000000",
        DOC,
    ),
    session(
        "vacuum_multixact_freeze_table_age",
        number(0, 2000000000, Unit::None),
        "150000000",
        DOC,
    ),
    superuser(
        "wal_compression",
        SettingType::Enum(&["pglz", "lz4", "zstd", "on", "off"]),
        "off",
        DOC,
    ),
    session(
        "wal_skip_threshold",
        number(0, 2147483647, Unit::Kibibytes),
        "2048",
        DOC,
    ),
];

/// A list of checks of PL/pgSQL; all and none stand alone.
fn extra_checks(text: &str) -> Option<String> {
    const CHECKS: [&str; 3] = [
        "shadowed_variables",
        "too_many_rows",
        "strict_multi_assignment",
    ];
    let lower = text.to_ascii_lowercase();
    let names: Vec<&str> = lower.split(',').map(str::trim).collect();
    let known = |name: &&str| CHECKS.contains(name);
    match names.as_slice() {
        ["all" | "none"] => {}
        names if names.iter().all(known) => {}
        _ => return None,
    }
    Some(text.to_owned())
}
