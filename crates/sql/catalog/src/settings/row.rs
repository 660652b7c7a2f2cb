//! How the rows of the table are made.

use super::{Setting, SettingContext, SettingType};

/// Any session sets it.
pub(super) const fn session(
    name: &'static str,
    kind: SettingType,
    default: &'static str,
    doc: &'static str,
) -> Setting {
    Setting {
        name,
        kind,
        default,
        scope: SettingContext::Session,
        fixed: false,
        reported: false,
        doc,
    }
}

/// The server's configuration sets it.
pub(super) const fn server(
    name: &'static str,
    kind: SettingType,
    default: &'static str,
    doc: &'static str,
) -> Setting {
    Setting {
        scope: SettingContext::Server,
        ..session(name, kind, default, doc)
    }
}

/// Superusers' sessions set it.
pub(super) const fn superuser(
    name: &'static str,
    kind: SettingType,
    default: &'static str,
    doc: &'static str,
) -> Setting {
    Setting {
        scope: SettingContext::Superuser,
        ..session(name, kind, default, doc)
    }
}

/// Nobody sets it.
pub(super) const fn fact(name: &'static str, default: &'static str, doc: &'static str) -> Setting {
    Setting {
        name,
        kind: SettingType::Text,
        default,
        scope: SettingContext::Internal,
        fixed: false,
        reported: false,
        doc,
    }
}

/// The same, told to clients at the start and whenever it changes.
pub(super) const fn reported(setting: Setting) -> Setting {
    Setting {
        reported: true,
        ..setting
    }
}
