//! Settings of PostgreSQL's planner that this one takes and does nothing by: its costs are its own.

use super::row::session;
use super::{Setting, SettingType, Unit};

/// A cost.
const COST: SettingType = SettingType::Real {
    min: 0.0,
    max: f64::MAX,
};
/// A cost that may be switched off.
const JIT_COST: SettingType = SettingType::Real {
    min: -1.0,
    max: f64::MAX,
};

const fn number(min: i64, max: i64) -> SettingType {
    SettingType::Int {
        min,
        max,
        unit: Unit::None,
    }
}

const fn blocks(min: i64, max: i64) -> SettingType {
    SettingType::Int {
        min,
        max,
        unit: Unit::Blocks,
    }
}

/// These settings, by name.
pub(super) static ACCEPTED: &[Setting] = &[
    session(
        "constraint_exclusion",
        SettingType::Enum(&["partition", "on", "off"]),
        "partition",
        "Accepted: enables the planner to use constraints to optimize queries.",
    ),
    session(
        "cpu_index_tuple_cost",
        COST,
        "0.005",
        "Accepted: sets the planner's estimate of the cost of processing each index entry during an index scan.",
    ),
    session(
        "cpu_operator_cost",
        COST,
        "0.0025",
        "Accepted: sets the planner's estimate of the cost of processing each operator or function call.",
    ),
    session(
        "cpu_tuple_cost",
        COST,
        "0.01",
        "Accepted: sets the planner's estimate of the cost of processing each tuple (row).",
    ),
    session(
        "cursor_tuple_fraction",
        SettingType::Real { min: 0.0, max: 1.0 },
        "0.1",
        "Accepted: sets the planner's estimate of the fraction of a cursor's rows that will be retrieved.",
    ),
    session(
        "default_statistics_target",
        number(1, 10000),
        "100",
        "Accepted: sets the default statistics target.",
    ),
    session(
        "effective_cache_size",
        blocks(1, 2147483647),
        "524288",
        "Accepted: sets the planner's assumption about the total size of the data caches.",
    ),
    session(
        "enable_async_append",
        SettingType::Bool,
        "on",
        "Accepted: enables the planner's use of async append plans.",
    ),
    session(
        "enable_gathermerge",
        SettingType::Bool,
        "on",
        "Accepted: enables the planner's use of gather merge plans.",
    ),
    session(
        "enable_hashagg",
        SettingType::Bool,
        "on",
        "Accepted: enables the planner's use of hashed aggregation plans.",
    ),
    session(
        "enable_incremental_sort",
        SettingType::Bool,
        "on",
        "Accepted: enables the planner's use of incremental sort steps.",
    ),
    session(
        "enable_material",
        SettingType::Bool,
        "on",
        "Accepted: enables the planner's use of materialization.",
    ),
    session(
        "enable_memoize",
        SettingType::Bool,
        "on",
        "Accepted: enables the planner's use of memoization.",
    ),
    session(
        "enable_parallel_append",
        SettingType::Bool,
        "on",
        "Accepted: enables the planner's use of parallel append plans.",
    ),
    session(
        "enable_parallel_hash",
        SettingType::Bool,
        "on",
        "Accepted: enables the planner's use of parallel hash plans.",
    ),
    session(
        "enable_partition_pruning",
        SettingType::Bool,
        "on",
        "Accepted: enables plan-time and execution-time partition pruning.",
    ),
    session(
        "enable_partitionwise_aggregate",
        SettingType::Bool,
        "off",
        "Accepted: enables partitionwise aggregation and grouping.",
    ),
    session(
        "enable_partitionwise_join",
        SettingType::Bool,
        "off",
        "Accepted: enables partitionwise join.",
    ),
    session(
        "enable_sort",
        SettingType::Bool,
        "on",
        "Accepted: enables the planner's use of explicit sort steps.",
    ),
    session(
        "enable_tidscan",
        SettingType::Bool,
        "on",
        "Accepted: enables the planner's use of TID scan plans.",
    ),
    session(
        "from_collapse_limit",
        number(1, 2147483647),
        "8",
        "Accepted: sets the FROM-list size beyond which subqueries are not collapsed.",
    ),
    session(
        "geqo",
        SettingType::Bool,
        "on",
        "Accepted: enables genetic query optimization.",
    ),
    session(
        "geqo_effort",
        number(1, 10),
        "5",
        "Accepted: GEQO: effort is used to set the default for other GEQO parameters.",
    ),
    session(
        "geqo_generations",
        number(0, 2147483647),
        "0",
        "Accepted: GEQO: number of iterations of the algorithm.",
    ),
    session(
        "geqo_pool_size",
        number(0, 2147483647),
        "0",
        "Accepted: GEQO: number of individuals in the population.",
    ),
    session(
        "geqo_seed",
        SettingType::Real { min: 0.0, max: 1.0 },
        "0",
        "Accepted: GEQO: seed for random path selection.",
    ),
    session(
        "geqo_selection_bias",
        SettingType::Real { min: 1.5, max: 2.0 },
        "2",
        "Accepted: GEQO: selective pressure within the population.",
    ),
    session(
        "geqo_threshold",
        number(2, 2147483647),
        "12",
        "Accepted: sets the threshold of FROM items beyond which GEQO is used.",
    ),
    session(
        "jit_above_cost",
        JIT_COST,
        "100000",
        "Accepted: perform JIT compilation if query is more expensive.",
    ),
    session(
        "jit_inline_above_cost",
        JIT_COST,
        "500000",
        "Accepted: perform JIT inlining if query is more expensive.",
    ),
    session(
        "jit_optimize_above_cost",
        JIT_COST,
        "500000",
        "Accepted: optimize JIT-compiled functions if query is more expensive.",
    ),
    session(
        "join_collapse_limit",
        number(1, 2147483647),
        "8",
        "Accepted: sets the FROM-list size beyond which JOIN constructs are not flattened.",
    ),
    session(
        "min_parallel_index_scan_size",
        blocks(0, 715827882),
        "64",
        "Accepted: sets the minimum amount of index data for a parallel scan.",
    ),
    session(
        "min_parallel_table_scan_size",
        blocks(0, 715827882),
        "1024",
        "Accepted: sets the minimum amount of table data for a parallel scan.",
    ),
    session(
        "parallel_setup_cost",
        COST,
        "1000",
        "Accepted: sets the planner's estimate of the cost of starting up worker processes for parallel query.",
    ),
    session(
        "parallel_tuple_cost",
        COST,
        "0.1",
        "Accepted: sets the planner's estimate of the cost of passing each tuple (row) from worker to leader backend.",
    ),
    session(
        "random_page_cost",
        COST,
        "4",
        "Accepted: sets the planner's estimate of the cost of a nonsequentially fetched disk page.",
    ),
    session(
        "recursive_worktable_factor",
        SettingType::Real {
            min: 0.001,
            max: 1_000_000.0,
        },
        "10",
        "Accepted: sets the planner's estimate of the average size of a recursive query's working table.",
    ),
    session(
        "seq_page_cost",
        COST,
        "1",
        "Accepted: sets the planner's estimate of the cost of a sequentially fetched disk page.",
    ),
];
