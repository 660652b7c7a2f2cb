//! Where settings come from: command line, then environment, then file, then default.
//!
//! Owns: the merge; `command_line` has the flags. Invariant: every value in a [`Config`] is
//! canonical, and an unknown name or a bad value is an error that names the setting and where it came from. Only an
//! unknown name in the environment is none: others put variables there that begin as ours do (Kubernetes for each
//! Service).

use crate::instances::{self, Machine};
use crate::primary_connection::PrimaryConnection;
use crate::system_file::{self, plain};
use clap::ArgMatches;
use logstead_engine::Retention;
use logstead_env::{Access, DataDirMode, Env, OpenMode};
use logstead_home::{IoMethod, WriteConcern};
use logstead_sql_catalog::settings::{self, Setting, SettingContext};
use logstead_wire::hba::{HbaLine, IdentLine, trusts_others};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Environment variables that set something begin so.
pub(crate) const ENVIRONMENT_PREFIX: &str = "LOGSTEAD_";
/// The least that is taken for rows, indexes and buffers on a very small machine.
const MEMORY_BYTES_MIN: u64 = 64 << 20;
/// The rest of the environment variable with the first password of the superuser.
pub(crate) const PASSWORD: &str = "PASSWORD";
/// The flag of tests for [`logstead_engine::EngineOptions::absent_one_in`].
pub(crate) const ABSENT_ONE_IN: &str = "absent-one-in";
/// The flag of tests that has everything evicted all the time.
pub(crate) const EVICT_ALWAYS: &str = "evict-always";
/// A settings file longer than this is something else.
const FILE_BYTES_MAX: usize = 1 << 20;

/// What the server runs with.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// Every setting that was given, by lower-case name, canonical; with workers and memory always present.
    pub(crate) values: BTreeMap<String, String>,
    pub(crate) listen: SocketAddr,
    pub(crate) data_directory: PathBuf,
    /// Of a directory that is made now.
    pub(crate) readers: DataDirMode,
    /// Where the log lives, if not in the data directory.
    pub(crate) home: Option<String>,
    /// The home whose log is followed, if this is a replica.
    pub(crate) replica_of: Option<String>,
    /// How a replica connects to its primary, for the stream.
    pub(crate) primary_conninfo: Option<PrimaryConnection>,
    /// `replica_of` is that connection: the primary is asked where its log lives.
    pub(crate) asks_for_home: bool,
    /// The replica becomes the primary as soon as it can have the log.
    pub(crate) promote_when_primary_lost: bool,
    /// What an engine has in memory is brought in first by the one that comes after it.
    pub(crate) autoprewarm: bool,
    /// The shortest time between two looks there, if it was given.
    pub(crate) replica_poll_interval: Option<Duration>,
    pub(crate) write_way: IoMethod,
    /// Where the log lives in several homes: when a commit is durable.
    pub(crate) ack: WriteConcern,
    pub(crate) workers: usize,
    /// Instances that the workers are divided among.
    pub(crate) instances: usize,
    /// Partitions of tables move between them by themselves.
    pub(crate) partition_balancing: bool,
    pub(crate) connections_max: usize,
    pub(crate) segment_size_bytes: u64,
    pub(crate) bucket_reserve_bytes: u64,
    pub(crate) memory_bytes: u64,
    pub(crate) shutdown_grace: Duration,
    /// Where figures are told to Prometheus.
    pub(crate) metrics_listen: Option<SocketAddr>,
    pub(crate) log_level: String,
    /// The log is lines of JSON.
    pub(crate) log_json: bool,
    pub(crate) accept_data_loss: bool,
    pub(crate) lease_duration: Duration,
    pub(crate) machine_is_never_copied: bool,
    /// Take the log, whoever has it: never a setting, so that no file or environment makes two servers shut out each
    /// other.
    pub(crate) take_over: bool,
    /// Take over from the server that runs there, with its clients.
    pub(crate) replace: bool,
    /// The owner of the lease that was handed over with that.
    pub(crate) predecessor: Option<u64>,
    /// How long open transactions may go on when another process does so here.
    pub(crate) replace_grace: Duration,
    /// For tests: see [`logstead_engine::EngineOptions::absent_one_in`].
    pub(crate) absent_one_in: u32,
    /// Serve this branch of the home.
    pub(crate) branch: Option<String>,
    /// For tests: see [`logstead_engine::Evictor`].
    pub(crate) evict_always: bool,
    /// What providers charge, if the built-in list is not enough.
    pub(crate) price_list: Option<PathBuf>,
    /// Where objects' blocks are kept on the local disk, if the home is an object store.
    pub(crate) cache_directory: Option<PathBuf>,
    pub(crate) cache_size_bytes: u64,
    /// Zero: only when asked.
    pub(crate) checkpoint_interval: Duration,
    /// In a second; 0: no limit.
    pub(crate) checkpoint_bandwidth_bytes: u64,
    pub(crate) replica_keep_time: Duration,
    /// As a replica it writes the pages of its primary's checkpoints.
    pub(crate) page_service: bool,
    pub(crate) page_service_timeout: Duration,
    /// What only the log has may leave memory.
    pub(crate) evict_to_log: bool,
    /// Which checkpoints are kept.
    pub(crate) retention: Retention,
    /// Who may connect; none is the default.
    pub(crate) hba: Option<Vec<HbaLine>>,
    /// Maps of the system's users to roles.
    pub(crate) identities: Vec<IdentLine>,
    /// Where sockets of the file system are made; nothing: the server chooses.
    pub(crate) socket_directories: Option<Vec<PathBuf>>,
    /// Of those sockets.
    pub(crate) socket_permissions: u32,
    /// The settings file.
    pub(crate) file: Option<String>,
    /// What command line and environment say.
    pub(crate) given: BTreeMap<String, String>,
    /// ALTER SYSTEM's file, if it has a place.
    pub(crate) system_file: Option<PathBuf>,
    pub(crate) authentication_timeout: Duration,
    /// The files of certificate and key, if connections may be encrypted.
    pub(crate) ssl: Option<(PathBuf, PathBuf)>,
    /// Environment variables that begin as settings do and are none.
    pub(crate) not_settings: Vec<String>,
}

/// The flag of a server setting.
pub(crate) fn flag(setting: &Setting) -> String {
    match setting.name {
        "data_directory" => "data".to_owned(),
        name => name.replace('_', "-"),
    }
}

pub(crate) fn server_settings() -> impl Iterator<Item = &'static Setting> {
    settings::own().filter(|s| s.scope == SettingContext::Server)
}

/// Values gathered so far; the first source to name a setting wins.
#[derive(Default)]
struct Gathered(BTreeMap<String, String>);

impl Gathered {
    fn put(&mut self, name: &str, value: &str, from: &str) -> Result<(), String> {
        let lower = name.to_ascii_lowercase();
        let setting =
            settings::find(&lower).ok_or_else(|| format!("{from}: unknown setting \"{lower}\""))?;
        if setting.scope == SettingContext::Internal || settings::is_identity(setting.name) {
            return Err(format!("{from}: \"{}\" cannot be set", setting.name));
        }
        let canonical = setting.canonical(value).map_err(|error| {
            let fields = error.fields();
            let hint = fields
                .hint
                .as_ref()
                .map(|hint| format!(" ({hint})"))
                .unwrap_or_default();
            format!("{from}: {}{hint}", fields.message)
        })?;
        self.0.entry(lower).or_insert(canonical);
        Ok(())
    }
}

impl Config {
    /// Reads all sources.
    pub(crate) fn read(arguments: &ArgMatches) -> Result<Config, String> {
        let environment = std::env::vars_os().filter_map(|(name, value)| {
            let name = name.into_string().ok()?;
            Some((
                name.strip_prefix(ENVIRONMENT_PREFIX)?.to_owned(),
                value.to_string_lossy().into_owned(),
            ))
        });
        let file = match arguments.get_one::<String>("config") {
            Some(path) => Some((path.clone(), read_file(Path::new(path))?)),
            None => None,
        };
        let mut given = Vec::new();
        for setting in server_settings() {
            if let Some(value) = arguments.get_one::<String>(setting.name) {
                given.push((setting.name.to_owned(), value.clone()));
            }
        }
        for assignment in arguments.get_many::<String>("set").into_iter().flatten() {
            let (name, value) = assignment
                .split_once('=')
                .ok_or_else(|| format!("--set {assignment}: NAME=VALUE is expected"))?;
            given.push((name.trim().to_owned(), value.trim().to_owned()));
        }
        let take_over = arguments.get_flag("take-over");
        let config = Config::merge(
            given,
            environment,
            file,
            arguments.get_flag("accept-data-loss"),
            &Env::real(),
        )?;
        if take_over && config.promote_when_primary_lost {
            return Err(
                "promote_when_primary_lost and --take-over cannot both be given: the primary would never be found alive"
                    .to_owned(),
            );
        }
        let replace = arguments.get_flag("replace");
        if replace && (take_over || config.replica_of.is_some()) {
            return Err(
                "--replace takes a primary's place with its consent: neither --take-over nor replica_of can be given"
                    .to_owned(),
            );
        }
        Ok(Config {
            take_over,
            replace,
            absent_one_in: if cfg!(debug_assertions) {
                arguments.get_one(ABSENT_ONE_IN).copied().unwrap_or(0)
            } else {
                0
            },
            branch: arguments.get_one::<String>("branch").cloned(),
            evict_always: arguments.get_flag(EVICT_ALWAYS),
            ..config
        })
    }

    /// Of a replica that has become the primary.
    pub(crate) fn promoted(&self) -> Config {
        Config {
            home: self.replica_of.clone(),
            replica_of: None,
            primary_conninfo: None,
            ..self.clone()
        }
    }

    fn merge(
        given: Vec<(String, String)>,
        environment: impl Iterator<Item = (String, String)>,
        file: Option<(String, String)>,
        accept_data_loss: bool,
        env: &Env,
    ) -> Result<Config, String> {
        let mut gathered = Gathered::default();
        let mut not_settings = Vec::new();
        for (name, value) in given {
            gathered.put(&name, &value, "command line")?;
        }
        for (name, value) in environment {
            // For the first start, and no setting: nothing shows it.
            if name == PASSWORD {
                continue;
            }
            // The flag is called --data, so its variable may be too.
            let setting = if name == "DATA" {
                "data_directory"
            } else {
                &name
            };
            if !can_be_set(setting) {
                not_settings.push(format!("{ENVIRONMENT_PREFIX}{name}"));
                continue;
            }
            gathered.put(
                setting,
                &value,
                &format!("environment variable {ENVIRONMENT_PREFIX}{name}"),
            )?;
        }
        not_settings.sort_unstable();
        let (mut hba, mut identities) = (None, Vec::new());
        let file_name = file.as_ref().map(|(path, _)| path.clone());
        let above = gathered.0.clone();
        let mut in_file = Gathered::default();
        if let Some((path, text)) = file {
            let mut table: toml::Table =
                text.parse().map_err(|error| format!("{path}: {error}"))?;
            if let Some(rules) = table.remove("hba") {
                let rules = crate::hba::rules(&rules);
                hba = Some(rules.map_err(|error| format!("{path}: {error}"))?);
            }
            if let Some(lines) = table.remove("ident") {
                let lines = crate::hba::identities(&lines);
                identities = lines.map_err(|error| format!("{path}: {error}"))?;
            }
            let rules = hba.as_deref().unwrap_or_default();
            if let Some(map) = crate::hba::unknown_map(rules, &identities) {
                return Err(format!(
                    "{path}: there is no [[ident]] of the map \"{map}\""
                ));
            }
            for (name, value) in &table {
                let setting = if name == "data" {
                    "data_directory"
                } else {
                    name
                };
                let value = plain(value)
                    .ok_or_else(|| format!("{path}: \"{name}\" must be one plain value"))?;
                in_file.put(setting, &value, &path)?;
            }
        }
        let place = |name: &str| {
            let told = above.get(name).or_else(|| in_file.0.get(name));
            let default = settings::find(name).map_or("", |setting| setting.default);
            told.map_or(default, String::as_str)
        };
        // A replica has no data directory: there may be one of another server.
        let elsewhere = match place("home") {
            "" => place("replica_of"),
            home => home,
        };
        let system_file = system_file::place(
            env,
            elsewhere,
            place("data_directory"),
            file_name.as_deref(),
        );
        if let Some(path) = &system_file {
            for line in system_file::read(env, path)? {
                gathered.put(&line.name, &line.value, &line.file)?;
            }
        }
        for (name, value) in in_file.0 {
            gathered.0.entry(name).or_insert(value);
        }
        let mut values = gathered.0;
        values
            .entry("workers".to_owned())
            .or_insert_with(|| logstead_env::core_count().to_string());
        if let Some(machine) = logstead_env::memory_bytes() {
            // The rest is for sessions, plans, code and what the allocator loses. In whole mebibytes, to be read.
            let share = (machine / 3 * 2).max(MEMORY_BYTES_MIN) >> 20 << 20;
            values
                .entry("memory".to_owned())
                .or_insert_with(|| share.to_string());
        }
        instances::resolve(&mut values, &Machine::this())?;
        let given = |name: &str| values.get(name).filter(|text| !text.is_empty());
        let primary_conninfo = match given("primary_conninfo") {
            None => None,
            Some(_) if given("replica_of").is_none() => {
                return Err(
                    "\"primary_conninfo\" is for a replica, and \"replica_of\" is not given"
                        .to_owned(),
                );
            }
            Some(text) => Some(PrimaryConnection::parse("primary_conninfo", text)?),
        };
        let asked = match given("replica_of") {
            Some(url) if PrimaryConnection::is_url(url) => {
                if primary_conninfo.is_some() {
                    return Err("\"replica_of\" is a connection to the primary, and \"primary_conninfo\" another one".to_owned());
                }
                Some(PrimaryConnection::parse("replica_of", url)?)
            }
            _ => None,
        };
        if let Some(connection) = &asked {
            let shown = connection.shown().to_owned();
            values.insert("replica_of".to_owned(), shown);
        }
        let asks_for_home = asked.is_some();
        if let Some(connection) = &primary_conninfo {
            // Whoever may look at settings need not know the password.
            let shown = connection.shown().to_owned();
            values.insert("primary_conninfo".to_owned(), shown);
        }
        let value = |name: &str| {
            let default = settings::find(name).map_or("", |s| s.default);
            values
                .get(name)
                .cloned()
                .unwrap_or_else(|| default.to_owned())
        };
        let number = |name: &str| {
            value(name)
                .parse::<u64>()
                .map_err(|_| format!("\"{name}\" is not a number"))
        };
        let listen: SocketAddr = value("listen")
            .parse()
            .map_err(|_| format!("\"listen\" is not an address: {}", value("listen")))?;
        if !listen.ip().is_loopback() {
            // That somebody can prove something is seen when the roles are read.
            if let Some(rule) = trusts_others(hba.as_deref().unwrap_or_default()) {
                return Err(format!(
                    "listen: {listen} is not a loopback address, and a rule trusts others than this machine ({:?}): everybody could connect as {}",
                    rule.network,
                    rule.users.join(", ")
                ));
            }
        }
        if !value("replica_of").is_empty() {
            let not_both = |name: &str| format!("\"replica_of\" and {name} cannot both be given");
            if !value("home").is_empty() {
                return Err(not_both("\"home\""));
            }
            if accept_data_loss {
                return Err(not_both("--accept-data-loss"));
            }
            if value("page_service") == "on" && primary_conninfo.is_none() && !asks_for_home {
                return Err("\"page_service\" needs a stream from the primary: \"primary_conninfo\" is not given".to_owned());
            }
        }
        Ok(Config {
            listen,
            data_directory: PathBuf::from(value("data_directory")),
            readers: match value("allow_group_access").as_str() {
                "on" => DataDirMode::Group,
                _ => DataDirMode::Owner,
            },
            home: Some(value("home")).filter(|url| !url.is_empty()),
            replica_of: Some(value("replica_of")).filter(|url| !url.is_empty()),
            primary_conninfo: primary_conninfo.or(asked),
            asks_for_home,
            promote_when_primary_lost: value("promote_when_primary_lost") == "on",
            autoprewarm: value("autoprewarm") == "on",
            replica_poll_interval: values
                .contains_key("replica_poll_interval")
                .then(|| number("replica_poll_interval"))
                .transpose()?
                .map(Duration::from_millis),
            write_way: value("write_way").parse()?,
            ack: value("ack").parse()?,
            workers: usize::try_from(number("workers")?).map_err(|error| error.to_string())?,
            instances: usize::try_from(number("instances")?).map_err(|error| error.to_string())?,
            partition_balancing: value("partition_balancing") == "on",
            connections_max: usize::try_from(number("max_connections")?)
                .map_err(|error| error.to_string())?,
            segment_size_bytes: number("segment_size")?,
            bucket_reserve_bytes: number("bucket_reserve")?,
            memory_bytes: number("memory")?,
            shutdown_grace: Duration::from_secs(number("shutdown_grace")?),
            metrics_listen: match value("metrics_listen").as_str() {
                "" => None,
                address => Some(
                    address
                        .parse()
                        .map_err(|_| format!("\"metrics_listen\" is not an address: {address}"))?,
                ),
            },
            log_level: value("log_level"),
            log_json: value("log_format") == "json",
            accept_data_loss,
            lease_duration: Duration::from_millis(number("lease_duration")?),
            machine_is_never_copied: value("machine_is_never_copied") == "on",
            take_over: false,
            replace: false,
            predecessor: None,
            replace_grace: Duration::from_millis(number("replace_grace")?),
            absent_one_in: 0,
            branch: None,
            evict_always: false,
            price_list: Some(value("price_list"))
                .filter(|file| !file.is_empty())
                .map(PathBuf::from),
            cache_directory: Some(value("cache_directory"))
                .filter(|directory| !directory.is_empty())
                .map(PathBuf::from),
            cache_size_bytes: number("cache_size")?,
            checkpoint_interval: Duration::from_millis(number("checkpoint_interval")?),
            checkpoint_bandwidth_bytes: number("checkpoint_bandwidth")?,
            replica_keep_time: Duration::from_millis(number("replica_keep_time")?),
            page_service: value("page_service") == "on",
            page_service_timeout: Duration::from_millis(number("page_service_timeout")?),
            evict_to_log: value("evict_to_log") == "on",
            retention: Retention {
                interval: Duration::from_millis(number("restore_point_interval")?),
                retention: Duration::from_millis(number("restore_point_retention")?),
            },
            hba,
            identities,
            socket_directories: match values.get("unix_socket_directories") {
                None => None,
                Some(list) => Some(directories(list)?),
            },
            socket_permissions: u32::from_str_radix(&value("unix_socket_permissions"), 8)
                .map_err(|error| format!("\"unix_socket_permissions\": {error}"))?,
            file: file_name,
            given: above,
            system_file,
            authentication_timeout: Duration::from_secs(number("authentication_timeout")?),
            ssl: (value("ssl") == "on").then(|| {
                (
                    PathBuf::from(value("ssl_cert_file")),
                    PathBuf::from(value("ssl_key_file")),
                )
            }),
            not_settings,
            values,
        })
    }
}

/// Is it the name of something that is set here?
fn can_be_set(name: &str) -> bool {
    let found = settings::find(&name.to_ascii_lowercase());
    found.is_some_and(|s| {
        s.scope != SettingContext::Internal && !s.fixed && !settings::is_identity(s.name)
    })
}

/// The directories of a list with commas; one with a comma in its name stands in double quotes.
fn directories(list: &str) -> Result<Vec<PathBuf>, String> {
    let wrong = || format!("\"unix_socket_directories\" is not a list of directories: {list}");
    let mut found = Vec::new();
    let mut rest = list.trim();
    while !rest.is_empty() {
        let name;
        (name, rest) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let (name, behind) = quoted.split_once('"').ok_or_else(wrong)?;
                let behind = behind.trim_start();
                let more = behind.strip_prefix(',');
                if more.is_none() && !behind.is_empty() {
                    return Err(wrong());
                }
                (name, more.unwrap_or_default())
            }
            None => rest.split_once(',').unwrap_or((rest, "")),
        };
        let name = name.trim();
        if name.is_empty() {
            return Err(wrong());
        }
        if name.starts_with('@') {
            return Err(format!(
                "\"unix_socket_directories\": abstract sockets ({name}) are not supported"
            ));
        }
        found.push(PathBuf::from(name));
        rest = rest.trim();
    }
    Ok(found)
}

/// A text file of settings or of prices.
pub(crate) fn read_file(path: &Path) -> Result<String, String> {
    let wrong = |error: std::io::Error| format!("{}: {error}", path.display());
    let file = Env::real()
        .files
        .open(path, OpenMode::buffered(Access::Read))
        .map_err(wrong)?;
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let count = file
            .read_at(bytes.len() as u64, &mut piece)
            .map_err(wrong)?;
        if count == 0 {
            break;
        }
        bytes.extend_from_slice(&piece[..count]);
        if bytes.len() > FILE_BYTES_MAX {
            return Err(format!(
                "{}: too long for a file of settings",
                path.display()
            ));
        }
    }
    String::from_utf8(bytes).map_err(|_| format!("{}: not UTF-8 text", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::command_line;

    fn merge(
        given: &[(&str, &str)],
        environment: &[(&str, &str)],
        file: &str,
    ) -> Result<Config, String> {
        let owned = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs
                .iter()
                .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
                .collect()
        };
        Config::merge(
            owned(given),
            owned(environment).into_iter(),
            Some(("f.toml".to_owned(), file.to_owned())),
            false,
            &Env::real(),
        )
    }

    #[test]
    fn nearer_sources_win() {
        let all = merge(&[("workers", "1")], &[("WORKERS", "2")], "workers = 3").unwrap();
        assert_eq!(all.workers, 1);
        assert_eq!(
            merge(&[], &[("WORKERS", "2")], "workers = 3")
                .unwrap()
                .workers,
            2
        );
        assert_eq!(merge(&[], &[], "workers = 3").unwrap().workers, 3);
        assert_eq!(
            merge(&[], &[], "").unwrap().workers,
            logstead_env::core_count()
        );
        assert_eq!(
            merge(&[("memory", "64MB")], &[], "memory = '8GiB'")
                .unwrap()
                .memory_bytes,
            64 << 20
        );
        assert_eq!(
            merge(&[], &[], "memory = '8GiB'").unwrap().memory_bytes,
            8 << 30
        );
        let default = merge(&[], &[], "").unwrap();
        assert_eq!((default.home, default.write_way), (None, IoMethod::Auto));
        let default = merge(&[], &[], "home = 'memory:'\nwrite_way = 'URING'").unwrap();
        assert_eq!(default.home.as_deref(), Some("memory:"));
        assert_eq!(default.write_way, IoMethod::Uring);
        let default = merge(&[], &[], "").unwrap();
        assert!(default.memory_bytes >= MEMORY_BYTES_MIN);
        assert_eq!(default.values["memory"], default.memory_bytes.to_string());
        assert_eq!(
            merge(&[], &[], "statement_timeout = '5s'").unwrap().values["statement_timeout"],
            "5000"
        );
    }

    #[test]
    fn a_bad_value_is_an_error_even_if_another_source_wins() {
        let error = merge(&[("workers", "1")], &[], "workers = 'two'").unwrap_err();
        assert!(
            error.contains("f.toml") && error.contains("workers"),
            "{error}"
        );
        for (file, named) in [
            ("nonsense = 1", "nonsense"),
            ("workers = 0", "workers"),
            ("memory = '1MB'", "memory"),
            ("commit_protocol = 'fast'", "grouped-lanes"),
            ("workers_per_lane = 0", "workers_per_lane"),
            ("flush_timeout = '2h'", "flush_timeout"),
            ("flush_timeout = '2 parsecs'", "\"us\""),
            ("lane_buffer_size = '1kB'", "lane_buffer_size"),
            ("write_way = 'magic'", "uring"),
            ("logstead.write_way = 'uring'", "plain value"),
            ("listen = 5", "listen"),
            ("a = [", "f.toml"),
        ] {
            let error = merge(&[], &[], file).unwrap_err();
            assert!(error.contains(named), "{error}");
        }
        let error = merge(&[("no_such", "1")], &[], "").unwrap_err();
        assert!(
            error.contains("no_such") && error.contains("command line"),
            "{error}"
        );
        let error = merge(&[], &[("WORKERS", "two")], "").unwrap_err();
        assert!(error.contains("LOGSTEAD_WORKERS"), "{error}");
    }

    #[test]
    fn variables_that_are_no_settings_are_named_and_stop_nothing() {
        let merged = merge(
            &[],
            &[
                ("SERVICE_HOST", "10.0.0.7"),
                ("PORT", "tcp://10.0.0.7:5433"),
                ("PORT_5433_TCP_ADDR", "10.0.0.7"),
                ("SERVER_VERSION", "15"),
                ("WORKERS", "2"),
            ],
            "",
        )
        .unwrap();
        assert_eq!(merged.workers, 2);
        assert_eq!(
            merged.not_settings,
            [
                "LOGSTEAD_PORT",
                "LOGSTEAD_PORT_5433_TCP_ADDR",
                "LOGSTEAD_SERVER_VERSION",
                "LOGSTEAD_SERVICE_HOST"
            ]
        );
        assert!(merge(&[], &[], "").unwrap().not_settings.is_empty());
    }

    #[test]
    fn nobody_is_trusted_from_elsewhere() {
        let trusting = |network: &str| {
            let rule = format!("[[hba]]\naddress = '{network}'\nmethod = 'trust'");
            merge(&[("listen", "0.0.0.0:5433")], &[], &rule)
        };
        assert!(trusting("all").unwrap_err().contains("trusts"));
        assert!(trusting("10.0.0.0/8").unwrap_err().contains("trusts"));
        assert!(trusting("127.0.0.1").is_ok());
        assert!(merge(&[("listen", "0.0.0.0:5433")], &[], "").is_ok());
        assert!(merge(&[("listen", "[::1]:0")], &[], "").is_ok());
        assert!(merge(&[("listen", "localhost:1")], &[], "").is_ok());
    }

    #[test]
    fn every_server_setting_has_a_flag() {
        let matches = command_line()
            .try_get_matches_from(["logstead", "serve", "--workers", "2", "--data", "x"])
            .unwrap();
        let (_, arguments) = matches.subcommand().unwrap();
        assert_eq!(arguments.get_one::<String>("workers").unwrap(), "2");
        command_line().debug_assert();
    }
}
