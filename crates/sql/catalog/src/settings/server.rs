//! What the server is configured with: what it has begun with, what its files say now, and ALTER SYSTEM.
//!
//! Owns: the values under those of all sessions ([`ServerSettings`]), and which of them wait for the next start. The
//! files are the server's ([`SettingsFiles`]): command line and environment stand over what ALTER SYSTEM has written,
//! that over the settings file.
//!
//! Invariants: a reload changes what sessions may change, nothing else; what a start only can take over is told as
//! pending. A line that is wrong changes nothing, and the others count.

use super::{Setting, SettingContext, find, is_identity, unknown};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use parking_lot::{Mutex, RwLock};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

type Values = BTreeMap<String, String>;

/// A setting in one of the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileLine {
    /// The file.
    pub file: String,
    /// Where in it, from 1 on.
    pub line: i32,
    /// The setting, as it is written.
    pub name: String,
    /// Its value, as it is written.
    pub value: String,
}

/// What ALTER SYSTEM does.
#[derive(Clone, Copy, Debug)]
pub enum AlterSystemAction<'a> {
    /// SET, with a value that was found good.
    Set(&'a str, &'a str),
    /// RESET.
    Reset(&'a str),
    /// RESET ALL.
    ResetAll,
}

/// The files behind the settings.
pub trait SettingsFiles: Send + Sync {
    /// What command line and environment say: no file changes it. By lower-case name, canonical.
    fn given(&self) -> &BTreeMap<String, String>;

    /// The settings in the files, in the order in which they are read: the last one of a name counts.
    fn lines(&self) -> Result<Vec<FileLine>, String>;

    /// Changes the file that is ALTER SYSTEM's: afterwards it is there, durably, as it was or as it is wanted.
    fn change(&self, change: AlterSystemAction<'_>) -> Result<(), String>;
}

/// A line of a file, and what has become of it: a row of `pg_file_settings`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSetting {
    /// The line.
    pub line: FileLine,
    /// It is what the setting is now.
    pub applied: bool,
    /// Why it is not.
    pub error: Option<String>,
}

/// What the files come to.
#[derive(Default)]
struct MergedSettings {
    /// With command line and environment, canonical.
    values: Values,
    /// Where those come from that are a file's.
    places: BTreeMap<String, (String, i32)>,
    lines: Vec<FileSetting>,
}

/// What the server is configured with.
#[derive(Default)]
pub struct ServerSettings {
    now: RwLock<Arc<Values>>,
    /// What files, command line and environment have come to at the start.
    began: Values,
    /// The same at the last reload.
    read: Mutex<Values>,
    notes: RwLock<Arc<SettingSources>>,
    /// Rises with every change of what sessions see.
    generation: AtomicU64,
    configuration: Option<Arc<dyn SettingsFiles>>,
}

/// What `pg_settings` tells beside the values.
#[derive(Debug, Default)]
pub struct SettingSources {
    /// Settings that get another value at the next start.
    pub pending: std::collections::BTreeSet<String>,
    /// In which line of which file those stand that are a file's.
    pub places: BTreeMap<String, (String, i32)>,
    /// Settings of command line and environment.
    pub given: std::collections::BTreeSet<String>,
}

impl std::fmt::Debug for ServerSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerSettings")
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

impl ServerSettings {
    /// Those of a server with these values, canonical by lower-case name, and no files.
    pub fn new(values: BTreeMap<String, String>) -> ServerSettings {
        ServerSettings {
            now: RwLock::new(Arc::new(values)),
            ..ServerSettings::default()
        }
    }

    /// The same with files, which have been read to make the values.
    pub fn with(mut self, configuration: Arc<dyn SettingsFiles>) -> ServerSettings {
        let merged = merge(&*configuration).unwrap_or_default();
        self.began.clone_from(&merged.values);
        *self.read.get_mut() = merged.values;
        *self.notes.get_mut() = Arc::new(SettingSources {
            places: merged.places,
            given: configuration.given().keys().cloned().collect(),
            ..SettingSources::default()
        });
        self.configuration = Some(configuration);
        self
    }

    /// The values, by lower-case name.
    pub fn now(&self) -> Arc<BTreeMap<String, String>> {
        Arc::clone(&self.now.read())
    }

    /// Rises when [`now`](Self::now) gives something else.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Where values come from.
    pub fn notes(&self) -> Arc<SettingSources> {
        Arc::clone(&self.notes.read())
    }

    /// `pg_reload_conf()`: reads the files again. What is wrong in them is told by the strings.
    pub fn reload(&self) -> Result<Vec<String>, String> {
        let Some(configuration) = &self.configuration else {
            return Ok(Vec::new());
        };
        let merged = merge(&**configuration)?;
        let mut read = self.read.lock();
        let mut now = Values::clone(&self.now.read());
        let mut pending = std::collections::BTreeSet::new();
        let names = read
            .keys()
            .chain(merged.values.keys())
            .chain(self.began.keys());
        for name in names {
            let Some(setting) = find(name) else { continue };
            let wanted = merged.values.get(name);
            if !matches!(
                setting.scope,
                SettingContext::Session | SettingContext::Superuser
            ) {
                if wanted != self.began.get(name) {
                    pending.insert(name.clone());
                }
                continue;
            }
            // What the server has found out by itself at the start is not in the files, and stays.
            if wanted != read.get(name) {
                match wanted {
                    Some(value) => now.insert(name.clone(), value.clone()),
                    None => now.remove(name),
                };
            }
        }
        *read = merged.values;
        *self.notes.write() = Arc::new(SettingSources {
            pending,
            places: merged.places,
            given: configuration.given().keys().cloned().collect(),
        });
        *self.now.write() = Arc::new(now);
        self.generation.fetch_add(1, Ordering::Release);
        let errors = merged.lines.into_iter().filter_map(|setting| {
            let FileLine { file, line, .. } = setting.line;
            Some(format!("{file}:{line}: {}", setting.error?))
        });
        Ok(errors.collect())
    }

    /// `pg_file_settings`.
    pub fn file_settings(&self) -> Result<Vec<FileSetting>, String> {
        match &self.configuration {
            Some(configuration) => Ok(merge(&**configuration)?.lines),
            None => Ok(Vec::new()),
        }
    }

    /// ALTER SYSTEM; whether the role may was asked before.
    pub fn change(&self, change: AlterSystemAction<'_>) -> Result<()> {
        if let AlterSystemAction::Set(name, _) | AlterSystemAction::Reset(name) = change {
            let setting = find(name).ok_or_else(|| unknown(name))?;
            if !can_be_kept(setting) {
                return Err(SqlError::new(
                    SqlState::CANT_CHANGE_RUNTIME_PARAM,
                    format!("parameter \"{}\" cannot be changed", setting.name),
                ));
            }
            if let AlterSystemAction::Set(_, value) = change {
                setting.canonical(value)?;
                if value.contains('\n') {
                    return Err(SqlError::new(
                        SqlState::INVALID_PARAMETER_VALUE,
                        "parameter value for ALTER SYSTEM must not contain a newline",
                    ));
                }
            }
        }
        let Some(configuration) = &self.configuration else {
            return Err(SqlError::unsupported("ALTER SYSTEM on a server that has no place for it,")
                .hint("Its file stands in the data directory; where there is none, beside the settings file."));
        };
        let change = match change {
            AlterSystemAction::Set(name, value) => {
                AlterSystemAction::Set(find(name).map_or(name, |s| s.name), value)
            }
            AlterSystemAction::Reset(name) => {
                AlterSystemAction::Reset(find(name).map_or(name, |s| s.name))
            }
            AlterSystemAction::ResetAll => AlterSystemAction::ResetAll,
        };
        let changed = configuration.change(change);
        changed.map_err(|why| SqlError::new(SqlState::IO_ERROR, why))
    }
}

/// May ALTER SYSTEM keep it? Not what belongs to a session or transaction, nor where the file itself is to be found.
fn can_be_kept(setting: &Setting) -> bool {
    let of_one = matches!(
        setting.name,
        "transaction_isolation"
            | "transaction_read_only"
            | "transaction_deferrable"
            | "seed"
            | "data_directory"
            | "home"
            | "config_file"
            | "logstead.as_of"
            | "logstead.read_after"
    );
    setting.scope != SettingContext::Internal && !is_identity(setting.name) && !of_one
}

/// Reads the files.
fn merge(configuration: &dyn SettingsFiles) -> Result<MergedSettings, String> {
    let mut merged = MergedSettings::default();
    for line in configuration.lines()? {
        let lower = line.name.to_ascii_lowercase();
        let read = match find(&lower) {
            Some(setting)
                if setting.scope == SettingContext::Internal || is_identity(setting.name) =>
            {
                Err("setting could not be applied".to_owned())
            }
            Some(setting) => setting
                .canonical(&line.value)
                .map_err(|error| error.fields().message.to_string()),
            None => Err("unrecognized configuration parameter".to_owned()),
        };
        let error = match read {
            Ok(value) => {
                merged
                    .places
                    .insert(lower.clone(), (line.file.clone(), line.line));
                merged.values.insert(lower.clone(), value);
                None
            }
            Err(error) => Some(error),
        };
        for before in &mut merged.lines {
            if error.is_none() && before.line.name.eq_ignore_ascii_case(&line.name) {
                before.applied = false;
            }
        }
        merged.lines.push(FileSetting {
            line,
            applied: error.is_none(),
            error,
        });
    }
    for (name, value) in configuration.given() {
        merged.values.insert(name.clone(), value.clone());
        merged.places.remove(name);
        for line in &mut merged.lines {
            line.applied &= !line.line.name.eq_ignore_ascii_case(name);
        }
    }
    Ok(merged)
}
