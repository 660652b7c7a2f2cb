//! The part of the table of settings that is about instances: how workers are divided, where sessions and partitions
//! go.
//!
//! Owns: these rows. The server reads them at its start.

use super::check_hooks::instances;
use super::row::server;
use super::{Setting, SettingType, Unit};

/// These settings, by name.
pub(super) static INSTANCES: &[Setting] = &[
    server(
        "instances",
        SettingType::Checked(instances),
        "1",
        "Instances that the workers are divided among, each with cores, lanes and partitions of tables of its own: a number up to 64, or auto for one per node of memory or per 16 cores, whichever is more. See logstead_instances.",
    ),
    server(
        "partition_balancing",
        SettingType::Bool,
        "on",
        "Partitions of tables move by themselves from instances with much load to others with little (instances beyond 1).",
    ),
    server(
        "session_move_threshold",
        SettingType::Int {
            min: 0,
            max: 1_000_000,
            unit: Unit::None,
        },
        "4",
        "Transactions in a row whose keys are mostly another instance's, after which a session moves there; 0: sessions stay where they are (instances beyond 1).",
    ),
];
