//! Settings: what can be set, by whom, and what it is now.
//!
//! Owns: the tables of settings (name, kind, unit, default, documentation: [`TABLE`], and those that [`all`] joins it
//! with), the rules by which a value is read and shown, and the values of a session with their transactional behaviour
//! ([`SessionSettings`]). The same tables drive `SHOW ALL`, `pg_settings`, the server's command line, its environment
//! variables and its file.
//!
//! Invariant: a value that was accepted is kept in canonical form and reads back without an error.
//! Does not: read files or the environment (the server does), or act on a setting.

mod check_hooks;
mod ignored;
mod ignored_planner;
mod instances;
mod log;
mod postgresql;
mod row;
mod serialize;
mod server;
mod session;
mod table;
#[cfg(test)]
mod tests;
mod time_zone;
mod typed;

pub use serialize::SerializedSettings;
pub use server::{
    AlterSystemAction, FileLine, FileSetting, ServerSettings, SettingSources as SettingNotes,
    SettingsFiles,
};
pub use session::{SessionSettings, UTC, split_identifiers};
pub use table::TABLE;
pub use typed::{PlannerSettings, TypedSettings};

use logstead_sql_types::encoding::Encoding;
use logstead_sql_types::error::{Result, SqlError};
pub use logstead_sql_types::value::names::parse_bool;
use logstead_types::SqlState;
use std::collections::HashMap;
use std::sync::OnceLock;

/// Who may change a setting, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingContext {
    /// Nobody: it tells a fact.
    Internal,
    /// At server start: command line, environment, file.
    Server,
    /// Sessions of superusers, for themselves.
    Superuser,
    /// Any session, for itself; the server's configuration may give another default.
    Session,
}

/// Units of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A plain number.
    None,
    /// Microseconds.
    Microseconds,
    /// Milliseconds.
    Milliseconds,
    /// Seconds.
    Seconds,
    /// Minutes.
    Minutes,
    /// Kibibytes.
    Kibibytes,
    /// Bytes.
    Bytes,
    /// Blocks of 8 kB, which are PostgreSQL's pages.
    Blocks,
    /// Mebibytes.
    Mebibytes,
}

impl Unit {
    /// As `pg_settings.unit` names it.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Unit::None => None,
            Unit::Microseconds => Some("us"),
            Unit::Milliseconds => Some("ms"),
            Unit::Seconds => Some("s"),
            Unit::Minutes => Some("min"),
            Unit::Kibibytes => Some("kB"),
            Unit::Bytes => Some("B"),
            Unit::Blocks => Some("8kB"),
            Unit::Mebibytes => Some("MB"),
        }
    }

    /// Suffixes and their factor relative to this unit as (numerator, denominator), largest first.
    fn suffixes(self) -> &'static [(&'static str, i64, i64)] {
        match self {
            Unit::None => &[],
            Unit::Microseconds => &[
                ("d", 86_400_000_000, 1),
                ("h", 3_600_000_000, 1),
                ("min", 60_000_000, 1),
                ("s", 1_000_000, 1),
                ("ms", 1_000, 1),
                ("us", 1, 1),
            ],
            Unit::Milliseconds => &[
                ("d", 86_400_000, 1),
                ("h", 3_600_000, 1),
                ("min", 60_000, 1),
                ("s", 1_000, 1),
                ("ms", 1, 1),
                ("us", 1, 1_000),
            ],
            Unit::Seconds => &[
                ("d", 86_400, 1),
                ("h", 3_600, 1),
                ("min", 60, 1),
                ("s", 1, 1),
                ("ms", 1, 1_000),
            ],
            Unit::Minutes => &[
                ("d", 1_440, 1),
                ("h", 60, 1),
                ("min", 1, 1),
                ("s", 1, 60),
                ("ms", 1, 60_000),
            ],
            Unit::Kibibytes => &[
                ("TB", 1 << 30, 1),
                ("GB", 1 << 20, 1),
                ("MB", 1 << 10, 1),
                ("kB", 1, 1),
                ("B", 1, 1 << 10),
            ],
            Unit::Mebibytes => &[
                ("TB", 1 << 20, 1),
                ("GB", 1 << 10, 1),
                ("MB", 1, 1),
                ("kB", 1, 1 << 10),
                ("B", 1, 1 << 20),
            ],
            Unit::Blocks => &[
                ("TB", 1 << 27, 1),
                ("GB", 1 << 17, 1),
                ("MB", 1 << 7, 1),
                ("kB", 1, 8),
                ("B", 1, 1 << 13),
            ],
            Unit::Bytes => &[
                ("TB", 1 << 40, 1),
                ("GB", 1 << 30, 1),
                ("MB", 1 << 20, 1),
                ("kB", 1 << 10, 1),
                ("B", 1, 1),
                // Understood and not printed.
                ("TiB", 1 << 40, 1),
                ("GiB", 1 << 30, 1),
                ("MiB", 1 << 20, 1),
                ("KiB", 1 << 10, 1),
            ],
        }
    }
}

/// What values a setting takes.
#[derive(Clone, Copy, Debug)]
pub enum SettingType {
    /// on / off.
    Bool,
    /// A whole number.
    Int {
        /// Smallest.
        min: i64,
        /// Largest.
        max: i64,
        /// Unit of the number kept.
        unit: Unit,
    },
    /// A number, not only whole ones.
    Real {
        /// Smallest.
        min: f64,
        /// Largest.
        max: f64,
    },
    /// Permissions of a file, in octal.
    Octal,
    /// One of these words.
    Enum(&'static [&'static str]),
    /// Any text.
    Text,
    /// Text that this function checks and puts in canonical form; `None` if invalid.
    Checked(fn(&str) -> Option<String>),
}

/// One setting.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Name, as shown.
    pub name: &'static str,
    /// Values.
    pub kind: SettingType,
    /// Default, in canonical form.
    pub default: &'static str,
    /// Who may change it.
    pub scope: SettingContext,
    /// No other value than the default is taken: it would promise what is not done.
    pub fixed: bool,
    /// Reported to the client whenever it changes (ParameterStatus).
    pub reported: bool,
    /// What it is for, one sentence.
    pub doc: &'static str,
}

/// A row of `pg_settings`.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "the columns of pg_settings")]
pub struct SettingRow {
    pub name: String,
    pub value: String,
    pub unit: Option<String>,
    pub category: String,
    pub description: String,
    /// postmaster, sighup, superuser, user ...
    pub context: String,
    /// bool, integer, real, string, enum
    pub kind: String,
    pub min: Option<String>,
    pub max: Option<String>,
    /// Allowed values of an enum.
    pub values: Vec<String>,
    pub default: String,
    pub reset: String,
    /// default, configuration file, client, session ...
    pub source: String,
    /// The file and the line in it.
    pub place: Option<(String, i32)>,
    pub pending_restart: bool,
}

/// The settings that do something here, and those few that say of themselves that they do not (`Accepted`).
pub fn own() -> impl Iterator<Item = &'static Setting> {
    TABLE.iter().chain(instances::INSTANCES).chain(log::LOG)
}

/// All settings.
pub fn all() -> impl Iterator<Item = &'static Setting> {
    own()
        .chain(ignored_planner::ACCEPTED)
        .chain(ignored::ACCEPTED)
        .chain(postgresql::postgresql())
}

/// The same by name, as they are listed.
pub fn by_name() -> Vec<&'static Setting> {
    let mut settings: Vec<_> = all().collect();
    settings.sort_by_key(|setting| setting.name.to_ascii_lowercase());
    settings
}

/// Finds a setting by name; case makes no difference.
pub fn find(name: &str) -> Option<&'static Setting> {
    static INDEX: OnceLock<HashMap<String, &'static Setting>> = OnceLock::new();
    let index = INDEX.get_or_init(|| all().map(|s| (s.name.to_ascii_lowercase(), s)).collect());
    match index.get(name) {
        Some(setting) => Some(setting),
        None => index.get(name.to_ascii_lowercase().as_str()).copied(),
    }
}

/// 42704 for a name that is no setting.
pub fn unknown(name: &str) -> SqlError {
    SqlError::new(
        SqlState::UNDEFINED_OBJECT,
        format!("unrecognized configuration parameter \"{name}\""),
    )
}

impl Setting {
    /// Reads a value and gives its canonical form, or PostgreSQL's error; 0A000 for one that promises what is not done.
    pub fn canonical(&self, value: &str) -> Result<String> {
        let canonical = self.read(value)?;
        if self.fixed && canonical != self.default {
            return Err(SqlError::unsupported(format!(
                "another value of the parameter \"{}\" than \"{}\"",
                self.name, self.default
            )));
        }
        Ok(canonical)
    }

    fn read(&self, value: &str) -> Result<String> {
        let name = self.name;
        let invalid = || {
            SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("invalid value for parameter \"{name}\": \"{value}\""),
            )
        };
        match self.kind {
            SettingType::Bool => match parse_bool(value) {
                Some(true) => Ok("on".to_owned()),
                Some(false) => Ok("off".to_owned()),
                None => Err(SqlError::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    format!("parameter \"{name}\" requires a Boolean value"),
                )),
            },
            SettingType::Int { min, max, unit } => {
                let number = parse_int(value, unit).ok_or_else(|| {
                    let error = invalid();
                    let digits = value.trim().starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'));
                    let hint = match unit {
                        Unit::None => return error,
                        _ if !digits => return error,
                        Unit::Microseconds
                        | Unit::Milliseconds
                        | Unit::Seconds
                        | Unit::Minutes => {
                            "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\"."
                        }
                        Unit::Kibibytes | Unit::Bytes | Unit::Blocks | Unit::Mebibytes => {
                            "Valid units for this parameter are \"B\", \"kB\", \"MB\", \"GB\", and \"TB\"."
                        }
                    };
                    error.hint(hint)
                })?;
                if !(min..=max).contains(&number) {
                    let suffix = unit.name().map(|u| format!(" {u}")).unwrap_or_default();
                    return Err(SqlError::new(
                        SqlState::INVALID_PARAMETER_VALUE,
                        format!(
                            "{number}{suffix} is outside the valid range for parameter \"{name}\" ({min} .. {max})"
                        ),
                    ));
                }
                Ok(number.to_string())
            }
            SettingType::Real { min, max } => {
                let number: f64 = value.trim().parse().map_err(|_| invalid())?;
                if number.is_nan() {
                    return Err(invalid());
                }
                if !(min..=max).contains(&number) {
                    return Err(SqlError::new(
                        SqlState::INVALID_PARAMETER_VALUE,
                        format!(
                            "{number} is outside the valid range for parameter \"{name}\" ({min} .. {max})"
                        ),
                    ));
                }
                Ok(number.to_string())
            }
            SettingType::Octal => match parse_mode(value).ok_or_else(invalid)? {
                mode @ 0..=0o777 => Ok(format!("{mode:04o}")),
                mode => Err(SqlError::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    format!(
                        "{mode} is outside the valid range for parameter \"{name}\" (0 .. 511)"
                    ),
                )),
            },
            SettingType::Enum(words) => match words.iter().find(|w| w.eq_ignore_ascii_case(value)) {
                Some(word) => Ok((*word).to_owned()),
                // As in PostgreSQL, words that can be on and off can be true and false too.
                None if words.contains(&"on") && is_spelled(value, &["true", "yes", "1"]) => {
                    Ok("on".to_owned())
                }
                None if words.contains(&"off") && is_spelled(value, &["false", "no", "0"]) => {
                    Ok("off".to_owned())
                }
                None if name == "dependency_tracking" && is_spelled(value, &["leanstore"]) => {
                    Err(SqlError::new(
                        SqlState::FEATURE_NOT_SUPPORTED,
                        "dependency_tracking \"leanstore\" loses acknowledged commits in a crash",
                    )
                    .hint("It is for comparison in \"logstead bench\" only."))
                }
                None => Err(SqlError::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    // As statements name it: they have no capitals.
                    format!(
                        "invalid value for parameter \"{}\": \"{value}\"",
                        name.to_ascii_lowercase()
                    ),
                )
                .hint(format!("Available values: {}.", words.join(", ")))),
            },
            SettingType::Text => Ok(value.to_owned()),
            SettingType::Checked(check) => {
                check(value).ok_or_else(|| match Encoding::named(value) {
                    // One that is known by name only.
                    Some(known) if name == "client_encoding" => SqlError::unsupported(known.what()),
                    _ if name == "DateStyle" => {
                        invalid().detail(check_hooks::date_style_wrong(value))
                    }
                    _ if name == "instances" => invalid().hint("A number from 1 to 64, or auto."),
                    _ => invalid(),
                })
            }
        }
    }

    /// A canonical value as SHOW prints it: numbers with the largest unit that divides them.
    pub fn show(&self, canonical: &str) -> String {
        let SettingType::Int { unit, .. } = self.kind else {
            return canonical.to_owned();
        };
        let Ok(number) = canonical.parse::<i64>() else {
            return canonical.to_owned();
        };
        if number <= 0 {
            return canonical.to_owned();
        }
        let (number, unit) = match unit {
            Unit::Blocks => (number * 8, Unit::Kibibytes),
            unit => (number, unit),
        };
        for (suffix, factor, divisor) in unit.suffixes() {
            if *divisor == 1 && number % factor == 0 {
                return format!("{}{suffix}", number / factor);
            }
        }
        canonical.to_owned()
    }

    /// `pg_settings.vartype`.
    pub fn type_name(&self) -> &'static str {
        match self.kind {
            SettingType::Bool => "bool",
            SettingType::Int { .. } | SettingType::Octal => "integer",
            SettingType::Real { .. } => "real",
            SettingType::Enum(_) => "enum",
            SettingType::Text | SettingType::Checked(_) => "string",
        }
    }

    /// `pg_settings.context`.
    pub fn context_name(&self) -> &'static str {
        match self.scope {
            SettingContext::Internal => "internal",
            SettingContext::Server => "postmaster",
            SettingContext::Superuser => "superuser",
            SettingContext::Session => "user",
        }
    }

    /// Unit of a number.
    pub fn unit(&self) -> Option<&'static str> {
        match self.kind {
            SettingType::Int { unit, .. } => unit.name(),
            _ => None,
        }
    }
}

fn is_spelled(value: &str, words: &[&str]) -> bool {
    words.iter().any(|word| word.eq_ignore_ascii_case(value))
}

fn parse_int(value: &str, unit: Unit) -> Option<i64> {
    let value = value.trim();
    let digits = value
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '-' | '+' | '.')))
        .unwrap_or(value.len());
    let (number, suffix) = (&value[..digits], value[digits..].trim());
    let (factor, divisor) = match suffix {
        "" => (1, 1),
        suffix => unit
            .suffixes()
            .iter()
            .find(|(s, ..)| *s == suffix)
            .map(|(_, f, d)| (*f, *d))?,
    };
    match number.parse::<i64>() {
        Ok(whole) => {
            let scaled = i128::from(whole) * i128::from(factor);
            let half = i128::from(divisor) / 2;
            i64::try_from((scaled + half * scaled.signum()) / i128::from(divisor)).ok()
        }
        Err(_) => {
            let real: f64 = number.parse().ok()?;
            let scaled = (real * factor as f64 / divisor as f64).round();
            (scaled.abs() < 9e15).then_some(scaled as i64)
        }
    }
}

/// A number as C has it: octal behind a zero, hexadecimal behind 0x.
fn parse_mode(value: &str) -> Option<i64> {
    let value = value.trim();
    let (digits, radix) = match value.strip_prefix('0') {
        Some(rest) => match rest.strip_prefix(['x', 'X']) {
            Some(digits) => (digits, 16),
            None => (value, 8),
        },
        None => (value, 10),
    };
    i64::from_str_radix(digits, radix).ok()
}

/// May a role's sessions begin with this value?
pub fn check_for_session(name: &str, value: &str) -> Result<()> {
    match find(name) {
        Some(setting) if setting.scope == SettingContext::Session => {
            setting.canonical(value).map(|_| ())
        }
        Some(setting) => Err(SqlError::new(
            SqlState::CANT_CHANGE_RUNTIME_PARAM,
            format!("parameter \"{}\" cannot be changed now", setting.name),
        )),
        None if session::is_custom(name) => Ok(()),
        None => Err(unknown(name)),
    }
}

/// Is it a name of the one encoding there is?
pub fn is_utf8(name: &str) -> bool {
    Encoding::named(name) == Some(Encoding::UTF8)
}

/// Says who the session is: never set like others, since it is asked first whether that may be.
pub fn is_identity(name: &str) -> bool {
    name.eq_ignore_ascii_case("role") || name.eq_ignore_ascii_case("session_authorization")
}
