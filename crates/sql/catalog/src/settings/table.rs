//! The settings of sessions and of the server, one row each; `server(..)` rows need a start.
//!
//! Those of the planner that act stand here too (`enable_hashjoin`, ...). A row that is accepted and changes nothing
//! says so (`Accepted`); more of them are in `ignored_planner` and `ignored`. Those of the log are in `log`, and
//! PostgreSQL's others, which are only named, in `postgresql.txt`. All of them together: [`all`](super::all).

use super::check_hooks::{
    application_name, client_encoding, commit_token, date_style, listen_address, metrics_address,
    search_path, text_search_config, time_zone,
};
use super::row::{fact, reported, server, session, superuser};
use super::{Setting, SettingType, Unit};

const MS: SettingType = SettingType::Int {
    min: 0,
    max: i32::MAX as i64,
    unit: Unit::Milliseconds,
};

const ISOLATION: SettingType = SettingType::Enum(&[
    "serializable",
    "repeatable read",
    "read committed",
    "read uncommitted",
]);
const MESSAGES: SettingType = SettingType::Enum(&[
    "debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error",
]);

/// Settings of the server and of sessions that are in no list of their own, by name. What nobody should tune is a
/// constant in the code, not a row here.
pub static TABLE: &[Setting] = &[
    server(
        "allow_group_access",
        SettingType::Bool,
        "off",
        "A data directory that is made now may be read by the group of its owner too (0750 and 0640, as with initdb -g); of one that is there, its permissions say it.",
    ),
    reported(session(
        "application_name",
        SettingType::Checked(application_name),
        "",
        "Sets the application name to be reported in statistics and logs.",
    )),
    server(
        "authentication_timeout",
        SettingType::Int {
            min: 1,
            max: 600,
            unit: Unit::Seconds,
        },
        "60",
        "The longest that a client may take to connect and prove who it is.",
    ),
    server(
        "autoprewarm",
        SettingType::Bool,
        "on",
        "After a promotion or a replacement, what the server before had in memory is brought in first, in the background. See logstead_recovery.",
    ),
    server(
        "autovacuum",
        SettingType::Bool,
        "on",
        "Analyzes tables by itself when their number of rows has changed much.",
    ),
    server(
        "autovacuum_analyze_scale_factor",
        SettingType::Real {
            min: 0.0,
            max: 100.0,
        },
        "0.1",
        "Rows more or less, as a share of a table's rows, before it is analyzed by itself.",
    ),
    server(
        "autovacuum_analyze_threshold",
        SettingType::Int {
            min: 0,
            max: i32::MAX as i64,
            unit: Unit::None,
        },
        "50",
        "Rows more or less, beside that share, before a table is analyzed by itself.",
    ),
    server(
        "autovacuum_naptime",
        SettingType::Int {
            min: 1,
            max: 2_147_483,
            unit: Unit::Seconds,
        },
        "60",
        "Time between two looks for tables to analyze.",
    ),
    session(
        "backslash_quote",
        SettingType::Enum(&["safe_encoding", "on", "off"]),
        "safe_encoding",
        "Sets whether \"\\'\" is allowed in string literals.",
    ),
    fact(
        "block_size",
        "8192",
        "Shows the size of a disk block, as clients expect it.",
    ),
    session(
        "bytea_output",
        SettingType::Enum(&["escape", "hex"]),
        "hex",
        "Sets the output format for bytea.",
    ),
    server(
        "cache_directory",
        SettingType::Text,
        "",
        "Directory on a local disk where blocks of stored objects are kept, if the home is an object store; empty: nowhere. See logstead_cache.",
    ),
    server(
        "cache_size",
        SettingType::Int {
            min: 1 << 20,
            max: 1 << 50,
            unit: Unit::Bytes,
        },
        "10737418240",
        "The most that is kept in cache_directory.",
    ),
    session(
        "check_function_bodies",
        SettingType::Bool,
        "on",
        "Checks routine bodies when they are created.",
    ),
    reported(session(
        "client_encoding",
        SettingType::Checked(client_encoding),
        "UTF8",
        "Sets the client's character set encoding.",
    )),
    session(
        "client_min_messages",
        MESSAGES,
        "notice",
        "Sets the message levels that are sent to the client.",
    ),
    server(
        "data_directory",
        SettingType::Text,
        "./logstead-data",
        "Directory (made if there is none), block device or URL (file:///dir?way=NAME) that holds the log.",
    ),
    fact(
        "data_directory_mode",
        "0700",
        "Shows the mode of the data directory.",
    ),
    reported(session(
        "DateStyle",
        SettingType::Checked(date_style),
        "ISO, MDY",
        "Sets the display format for date and time values.",
    )),
    session(
        "deadlock_timeout",
        MS,
        "1000",
        "Accepted for clients that set it; a deadlock is found at once.",
    ),
    session(
        "default_table_access_method",
        SettingType::Enum(&["heap"]),
        "heap",
        "Sets the default table access method for new tables.",
    ),
    session(
        "default_tablespace",
        SettingType::Enum(&["", "pg_default"]),
        "",
        "Sets the default tablespace to create tables and indexes in.",
    ),
    session(
        "default_text_search_config",
        SettingType::Checked(text_search_config),
        "pg_catalog.english",
        "Sets default text search configuration.",
    ),
    session(
        "default_toast_compression",
        SettingType::Enum(&["pglz", "lz4"]),
        "pglz",
        "Sets the default compression method for compressible values.",
    ),
    session(
        "default_transaction_deferrable",
        SettingType::Bool,
        "off",
        "Sets the default deferrable status of new transactions.",
    ),
    session(
        "default_transaction_isolation",
        ISOLATION,
        "read committed",
        "Sets the transaction isolation level of each new transaction.",
    ),
    reported(session(
        "default_transaction_read_only",
        SettingType::Bool,
        "off",
        "Sets the default read-only status of new transactions.",
    )),
    session(
        "default_with_oids",
        SettingType::Enum(&["off"]),
        "off",
        "Kept for old clients; tables have no OIDs.",
    ),
    session(
        "enable_bitmapscan",
        SettingType::Bool,
        "on",
        "Accepted: the planner has no bitmap scans to enable.",
    ),
    session(
        "enable_hashjoin",
        SettingType::Bool,
        "on",
        "Enables the planner's use of hash joins.",
    ),
    session(
        "enable_indexonlyscan",
        SettingType::Bool,
        "on",
        "Accepted: the planner has no index-only scans to enable.",
    ),
    session(
        "enable_indexscan",
        SettingType::Bool,
        "on",
        "Enables the planner's use of index scans.",
    ),
    session(
        "enable_mergejoin",
        SettingType::Bool,
        "on",
        "Enables the planner's use of merge joins.",
    ),
    session(
        "enable_nestloop",
        SettingType::Bool,
        "on",
        "Enables the planner's use of nested loops where another join would do.",
    ),
    session(
        "enable_seqscan",
        SettingType::Bool,
        "on",
        "Enables the planner's use of sequential scans where an index would do.",
    ),
    session(
        "escape_string_warning",
        SettingType::Bool,
        "on",
        "Warns about backslash escapes in ordinary string literals.",
    ),
    server(
        "evict_to_log",
        SettingType::Bool,
        "on",
        "Rows that have changed since the newest checkpoint may leave memory when it is short, as soon as their log is durable, while a replica with page_service gives them back. Off: they stay until the next checkpoint.",
    ),
    session(
        "extra_float_digits",
        SettingType::Int {
            min: -15,
            max: 3,
            unit: Unit::None,
        },
        "1",
        "Sets the number of digits displayed for floating-point values.",
    ),
    server(
        "fault_threads",
        SettingType::Int {
            min: 1,
            max: 256,
            unit: Unit::None,
        },
        "4",
        "Threads that bring in rows and index pages that are not in memory. Chosen for the home unless set.",
    ),
    session(
        "hash_mem_multiplier",
        SettingType::Real {
            min: 1.0,
            max: 1000.0,
        },
        "2",
        "Multiple of work_mem to use for hash tables.",
    ),
    session(
        "idle_in_transaction_session_timeout",
        MS,
        "0",
        "Ends a session that idles in an open transaction for longer; 0 is never.",
    ),
    session(
        "idle_session_timeout",
        MS,
        "0",
        "Ends a session that idles outside a transaction for longer; 0 is never.",
    ),
    reported(fact(
        "in_hot_standby",
        "off",
        "Shows whether hot standby is currently active.",
    )),
    reported(fact(
        "integer_datetimes",
        "on",
        "Shows whether datetimes are integer based.",
    )),
    reported(session(
        "IntervalStyle",
        SettingType::Enum(&["postgres", "postgres_verbose", "sql_standard", "iso_8601"]),
        "postgres",
        "Sets the display format for interval values.",
    )),
    reported(fact(
        "is_superuser",
        "on",
        "Shows whether the current user is a superuser.",
    )),
    session(
        "jit",
        SettingType::Bool,
        "off",
        "Accepted for clients that switch it; nothing is compiled just in time.",
    ),
    fact("lc_collate", "C", "Shows the collation order locale."),
    fact(
        "lc_ctype",
        "C.UTF-8",
        "Shows the character classification and case conversion locale.",
    ),
    session(
        "lc_messages",
        SettingType::Enum(&["C"]),
        "C",
        "Sets the language in which messages are displayed.",
    ),
    session(
        "lc_monetary",
        SettingType::Enum(&["C"]),
        "C",
        "Sets the locale for formatting monetary amounts.",
    ),
    session(
        "lc_numeric",
        SettingType::Enum(&["C"]),
        "C",
        "Sets the locale for formatting numbers.",
    ),
    session(
        "lc_time",
        SettingType::Enum(&["C"]),
        "C",
        "Sets the locale for formatting date and time values.",
    ),
    server(
        "listen",
        SettingType::Checked(listen_address),
        "127.0.0.1:5433",
        "Address and port to listen on; others than loopback addresses only where clients must prove who they are. Port 0: the system chooses.",
    ),
    session(
        "lock_timeout",
        MS,
        "0",
        "Sets the maximum allowed duration of any wait for a lock; 0 is for ever.",
    ),
    server(
        "log_format",
        SettingType::Enum(&["text", "json"]),
        "text",
        "What the server writes to its standard error: lines for people, or an object of JSON each.",
    ),
    server(
        "log_level",
        SettingType::Enum(&["error", "warn", "info", "debug", "trace"]),
        "info",
        "How much the server writes to its standard error.",
    ),
    superuser(
        "log_min_duration_statement",
        SettingType::Int {
            min: -1,
            max: i32::MAX as i64,
            unit: Unit::Milliseconds,
        },
        "-1",
        "Sets the minimum execution time above which statements will be logged; 0 logs all, -1 none.",
    ),
    session(
        "logstead.as_of",
        SettingType::Text,
        "",
        "Transactions read the database as of this time, or of the restore point of this name, and write nothing; empty: they read the present.",
    ),
    fact(
        "logstead.as_of_point",
        "",
        "Shows the restore point that logstead.as_of has led to.",
    ),
    session(
        "logstead.read_after",
        SettingType::Checked(commit_token),
        "",
        "At a replica, snapshots wait until they have all commits that this token of logstead_commit_token() tells of; empty: they wait for nothing.",
    ),
    session(
        "logstead.read_after_timeout",
        SettingType::Int {
            min: 0,
            max: i32::MAX as i64,
            unit: Unit::Milliseconds,
        },
        "10000",
        "How long a snapshot waits for what logstead.read_after tells of before its statement fails; 0 is without end.",
    ),
    fact(
        "logstead.write_way",
        "",
        "Shows how the local home writes the log: pwrite, threads, uring or portable; empty for other homes.",
    ),
    server(
        "machine_is_never_copied",
        SettingType::Bool,
        "off",
        "Nobody ever resumes a copy of this machine beside it (a snapshot with memory, a running template): the lease of a server of this machine that has ended is free at once. Otherwise a start waits until that lease has run out.",
    ),
    server(
        "max_connections",
        SettingType::Int {
            min: 1,
            max: 1_000_000,
            unit: Unit::None,
        },
        "10000",
        "Most connections at the same time; one more is refused with 53300.",
    ),
    fact(
        "max_identifier_length",
        "63",
        "Shows the maximum identifier length.",
    ),
    fact(
        "max_index_keys",
        "32",
        "Shows the maximum number of index keys.",
    ),
    server(
        "memory",
        SettingType::Int {
            min: 16 << 20,
            max: 1 << 50,
            unit: Unit::Bytes,
        },
        "1073741824",
        "Memory for rows, indexes and buffers; beyond it statements that need more fail with 53200. Two thirds of what the machine has unless set.",
    ),
    server(
        "metrics_listen",
        SettingType::Checked(metrics_address),
        "",
        "Address and port where figures are told to Prometheus (GET /metrics), to whoever asks; empty: nowhere. Port 0: the system chooses.",
    ),
    session(
        "password_encryption",
        SettingType::Enum(&["scram-sha-256"]),
        "scram-sha-256",
        "Chooses the algorithm for encrypting passwords.",
    ),
    superuser(
        "pg_stat_statements.track",
        SettingType::Enum(&["top", "all", "none"]),
        "top",
        "Which statements are counted in pg_stat_statements.",
    ),
    session(
        "plan_cache_mode",
        SettingType::Enum(&["auto", "force_generic_plan", "force_custom_plan"]),
        "auto",
        "Accepted for clients that set it; prepared statements are always planned once.",
    ),
    server(
        "price_list",
        SettingType::Text,
        "",
        "File of what providers of object storage charge; its lines win over the built-in ones. For logstead_cost.",
    ),
    session(
        "quote_all_identifiers",
        SettingType::Bool,
        "off",
        "When generating SQL fragments, quote all identifiers.",
    ),
    server(
        "replace_grace",
        SettingType::Int {
            min: 0,
            max: 86_400_000,
            unit: Unit::Milliseconds,
        },
        "2000",
        "How long open transactions may go on once another process takes the server over (--replace).",
    ),
    session("role", SettingType::Text, "none", "Sets the current role."),
    session(
        "row_security",
        SettingType::Bool,
        "on",
        "Enables row security; off fails a query that policies would affect.",
    ),
    session(
        "search_path",
        SettingType::Checked(search_path),
        "\"$user\", public",
        "Sets the schema search order for names that are not schema-qualified.",
    ),
    reported(fact(
        "server_encoding",
        "UTF8",
        "Shows the server (database) character set encoding.",
    )),
    reported(fact(
        "server_version",
        "15.0",
        "Shows the PostgreSQL version whose behaviour is the specification.",
    )),
    fact(
        "server_version_num",
        "150000",
        "Shows the server version as an integer.",
    ),
    reported(session(
        "session_authorization",
        SettingType::Text,
        "postgres",
        "Sets the session user.",
    )),
    server(
        "shutdown_grace",
        SettingType::Int {
            min: 0,
            max: 86_400,
            unit: Unit::Seconds,
        },
        "10",
        "How long open transactions may go on after SIGTERM.",
    ),
    server(
        "ssl",
        SettingType::Bool,
        "off",
        "Connections may be encrypted; needs ssl_cert_file and ssl_key_file.",
    ),
    server(
        "ssl_cert_file",
        SettingType::Text,
        "server.crt",
        "The server's certificate, and those behind it, in PEM. Read again on SIGHUP.",
    ),
    server(
        "ssl_key_file",
        SettingType::Text,
        "server.key",
        "The certificate's key, in PEM; nobody but the server's user may read it.",
    ),
    reported(session(
        "standard_conforming_strings",
        SettingType::Bool,
        "on",
        "Causes '...' strings to treat backslashes literally.",
    )),
    session(
        "statement_timeout",
        MS,
        "0",
        "Sets the maximum allowed duration of any statement; 0 is for ever.",
    ),
    session(
        "synchronize_seqscans",
        SettingType::Bool,
        "on",
        "Accepted for pg_dump; scans start at the beginning anyway.",
    ),
    session(
        "synchronous_commit",
        SettingType::Enum(&["local", "remote_write", "remote_apply", "on", "off"]),
        "on",
        "on: answers wait until what they tell is durable. off: they do not, and a crash may take it back. The other values are as on.",
    ),
    server(
        "temp_directory",
        SettingType::Text,
        "",
        "Directory for temporary files of large statements; empty: the directory temp of data_directory, or, with a home elsewhere, the system's.",
    ),
    superuser(
        "temp_file_limit",
        SettingType::Int {
            min: -1,
            max: i32::MAX as i64,
            unit: Unit::Kibibytes,
        },
        "-1",
        "Limits the total size of all temporary files used by each session; -1: no limit.",
    ),
    reported(session(
        "TimeZone",
        SettingType::Checked(time_zone),
        "UTC",
        "Sets the time zone for displaying and interpreting time stamps.",
    )),
    session(
        "transaction_deferrable",
        SettingType::Bool,
        "off",
        "Deferrable status of the current transaction.",
    ),
    session(
        "transaction_isolation",
        ISOLATION,
        "read committed",
        "Isolation level of the current transaction.",
    ),
    session(
        "transaction_read_only",
        SettingType::Bool,
        "off",
        "Read-only status of the current transaction.",
    ),
    fact(
        "transaction_timeout",
        "0",
        "Kept for clients that read it; there is no such limit.",
    ),
    server(
        "unix_socket_directories",
        SettingType::Text,
        "",
        "Directories for sockets of this machine's clients (psql -h DIRECTORY), separated by commas; '' is none. Unless set, none if home is an object store, otherwise /var/run/postgresql where the server may write there, else /tmp.",
    ),
    server(
        "unix_socket_permissions",
        SettingType::Octal,
        "0777",
        "Permissions of those sockets, in octal: who may connect to one must be able to write it.",
    ),
    session(
        "work_mem",
        SettingType::Int {
            min: 64,
            max: i32::MAX as i64,
            unit: Unit::Kibibytes,
        },
        "65536",
        "Sets the memory that a sort, a hash table (see hash_mem_multiplier) or a kept result uses before it goes to temporary files.",
    ),
    server(
        "workers",
        SettingType::Int {
            min: 1,
            max: 1024,
            unit: Unit::None,
        },
        "1",
        "Worker threads, each pinned to a core and with a lane of its own; one per core unless set.",
    ),
    session(
        "xmloption",
        SettingType::Enum(&["content", "document"]),
        "content",
        "Sets whether XML data is to be considered as documents or fragments.",
    ),
];
