//! PostgreSQL's other settings, which tools ask for: the table is text (`postgresql.txt`), a line each.
//!
//! Owns: reading that text, once. Invariant (a test): every line is whole, and its value is one that the setting takes.

use super::{Setting, SettingContext, SettingType, Unit};
use std::sync::OnceLock;

/// These settings, by name.
pub(super) fn postgresql() -> &'static [Setting] {
    static READ: OnceLock<Vec<Setting>> = OnceLock::new();
    READ.get_or_init(|| lines().filter_map(setting).collect())
}

/// The lines with a setting each.
pub(super) fn lines() -> impl Iterator<Item = &'static str> {
    let text = include_str!("postgresql.txt");
    text.lines().filter(|line| !line.starts_with('#'))
}

fn setting(line: &'static str) -> Option<Setting> {
    let mut parts = line.splitn(5, '|').map(str::trim);
    let (how, name, kind) = (parts.next()?, parts.next()?, parts.next()?);
    let (default, doc) = (parts.next()?, parts.next()?);
    let (scope, fixed) = match how {
        "fact" => (SettingContext::Internal, true),
        "server" => (SettingContext::Server, true),
        "session" => (SettingContext::Session, false),
        "session=" => (SettingContext::Session, true),
        "superuser" => (SettingContext::Superuser, false),
        "superuser=" => (SettingContext::Superuser, true),
        _ => return None,
    };
    Some(Setting {
        name,
        kind: self::kind(kind)?,
        default,
        scope,
        fixed,
        reported: false,
        doc,
    })
}

fn kind(text: &'static str) -> Option<SettingType> {
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    let mut numbers = rest.split(' ');
    Some(match word {
        "bool" => SettingType::Bool,
        "text" => SettingType::Text,
        "octal" => SettingType::Octal,
        // Read once for the life of the process.
        "enum" => SettingType::Enum(Vec::leak(rest.split(',').collect())),
        "int" => {
            let unit = match numbers.next()? {
                "-" => Unit::None,
                "ms" => Unit::Milliseconds,
                "s" => Unit::Seconds,
                "min" => Unit::Minutes,
                "B" => Unit::Bytes,
                "kB" => Unit::Kibibytes,
                "8kB" => Unit::Blocks,
                "MB" => Unit::Mebibytes,
                _ => return None,
            };
            SettingType::Int {
                min: numbers.next()?.parse().ok()?,
                max: numbers.next()?.parse().ok()?,
                unit,
            }
        }
        "real" => SettingType::Real {
            min: numbers.next()?.parse().ok()?,
            max: numbers.next()?.parse().ok()?,
        },
        _ => return None,
    })
}
