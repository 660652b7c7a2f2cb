//! The values of one session.
//!
//! Three pictures are kept, cheaply (they share one map until something changes): what holds *now* (SET LOCAL
//! included), what will hold after COMMIT, and what held before the transaction. COMMIT takes the second, ROLLBACK the
//! third; savepoints keep a pair of the first two.

use super::typed::{PlannerSettings, TypedSettings};
use super::{ServerSettings, Setting, SettingContext, all, find, unknown};
use crate::role::{BOOTSTRAP, Role};
use jiff::tz::TimeZone;
use logstead_sql_parse::LiteralRules;
use logstead_sql_types::encoding::Encoding;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::datetime::{DateForm, DateOrder, IntervalStyle};
use logstead_types::SqlState;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

/// What sessions begin with.
pub static UTC: TimeZone = TimeZone::UTC;

type Values = BTreeMap<String, String>;

/// Who the session is, beside the names that are shown: no client can name these.
pub(super) const SESSION_OID: &str = " session_authorization";
pub(super) const ROLE_OID: &str = " role";
/// All that says who the session is.
const IDENTITY: [&str; 5] = [
    "role",
    ROLE_OID,
    "session_authorization",
    SESSION_OID,
    "is_superuser",
];

/// One session's settings.
pub struct SessionSettings {
    /// What the server was configured with (by lower-case name); under everything else.
    server: Arc<Values>,
    /// Where that comes from, and which generation of it it is.
    source: Arc<ServerSettings>,
    generation: u64,
    pub(super) user: String,
    /// What RESET goes back to: startup parameters.
    pub(super) initial: Rc<Values>,
    pub(super) before: Rc<Values>,
    pub(super) after_commit: Rc<Values>,
    pub(super) now: Rc<Values>,
    pub(super) savepoints: Vec<(Rc<Values>, Rc<Values>)>,
    /// Names of applications' own values that the session has ever had: what is reset or rolled back is empty, not
    /// unknown.
    pub(super) places: BTreeSet<String>,
    pub(super) typed: TypedSettings,
    /// Names of reported settings that changed since the client was told.
    pub(super) changed: Vec<&'static Setting>,
    /// Whether the role that acts in the place of the session's is a superuser, while one does.
    acts_as_superuser: Option<bool>,
}

impl SessionSettings {
    /// Settings of a new session of `user` of a server that is configured so.
    pub fn new(source: Arc<ServerSettings>, user: &str) -> Result<SessionSettings> {
        let empty = Rc::new(Values::new());
        let mut settings = SessionSettings {
            generation: source.generation(),
            server: source.now(),
            source,
            user: user.to_owned(),
            initial: Rc::clone(&empty),
            before: Rc::clone(&empty),
            after_commit: Rc::clone(&empty),
            now: empty,
            savepoints: Vec::new(),
            places: BTreeSet::new(),
            typed: TypedSettings {
                time_zone: &UTC,
                extra_float_digits: 1,
                bytea_hex: true,
                interval_style: IntervalStyle::Postgres,
                date_order: DateOrder::Mdy,
                date_form: DateForm::Iso,
                search_path: Rc::from([]),
                statement_timeout_ms: 0,
                lock_timeout_ms: 0,
                idle_in_transaction_ms: 0,
                idle_session_ms: 0,
                work_mem_bytes: 0,
                hash_mem_multiplier: 1.0,
                temp_file_limit_bytes: None,
                default_isolation: String::new(),
                default_read_only: false,
                default_deferrable: false,
                notices: true,
                warnings: true,
                as_of: Rc::from(""),
                read_after: None,
                read_after_timeout_ms: 0,
                scans: PlannerSettings::default(),
                session_role: BOOTSTRAP,
                role: None,
                row_security: true,
                synchronous_commit: true,
                log_min_duration_ms: -1,
                track_statements: true,
                client_encoding: Encoding::UTF8,
                literals: LiteralRules {
                    conforming: true,
                    backslash_quote: true,
                    warns: true,
                },
            },
            changed: Vec::new(),
            acts_as_superuser: None,
        };
        settings.refresh();
        Ok(settings)
    }

    /// Takes over what the server is configured with now; gives whether that is another than before. Costs a load if
    /// not.
    pub fn follow(&mut self) -> bool {
        let generation = self.source.generation();
        if generation == self.generation {
            return false;
        }
        self.generation = generation;
        let old = std::mem::replace(&mut self.server, self.source.now());
        let names = old.keys().chain(self.server.keys());
        let changed: Vec<String> = names
            .filter(|name| old.get(*name) != self.server.get(*name))
            .filter(|name| !self.now.contains_key(*name))
            .cloned()
            .collect();
        changed.iter().for_each(|name| self.note_change(name));
        self.refresh();
        true
    }

    /// The often-read values.
    pub fn typed(&self) -> &TypedSettings {
        &self.typed
    }

    /// The session begins as this role.
    pub fn begin_as(&mut self, role: &Role) {
        self.user.clone_from(&role.name);
        let values = Rc::make_mut(&mut self.initial);
        insert_identity(values, Some(role), None, role.superuser);
        self.before = Rc::clone(&self.initial);
        self.after_commit = Rc::clone(&self.initial);
        self.now = Rc::clone(&self.initial);
        self.refresh();
    }

    /// SET SESSION AUTHORIZATION (`session`, which ends SET ROLE) and SET ROLE; whether that may be was asked before.
    pub fn set_identity(
        &mut self,
        session: Option<&Role>,
        role: Option<&Role>,
        superuser: bool,
        local: bool,
    ) {
        let targets = [
            Some(&mut self.now),
            (!local).then_some(&mut self.after_commit),
        ];
        for values in targets.into_iter().flatten() {
            insert_identity(Rc::make_mut(values), session, role, superuser);
        }
        IDENTITY.iter().for_each(|key| self.note_change(key));
        self.refresh();
    }

    /// Sets a value for the session from its startup packet: RESET comes back to it.
    pub fn set_initial(&mut self, name: &str, value: &str) -> Result<()> {
        let key = self.check(name, value)?;
        let values = Rc::make_mut(&mut self.initial);
        values.insert(key.0, key.1);
        self.before = Rc::clone(&self.initial);
        self.after_commit = Rc::clone(&self.initial);
        self.now = Rc::clone(&self.initial);
        self.refresh();
        Ok(())
    }

    /// Lower-case name and canonical value, or why it may not be set.
    fn check(&self, name: &str, value: &str) -> Result<(String, String)> {
        let lower = name.to_ascii_lowercase();
        if super::is_identity(&lower) {
            return Err(SqlError::internal(
                "who a session is was set like a setting",
            ));
        }
        match find(&lower) {
            Some(setting) => {
                self.may_change(setting)?;
                let kept = self.kept_date_style(&lower, value);
                let value = setting.canonical(kept.as_deref().unwrap_or(value))?;
                Ok((lower, value))
            }
            // As in PostgreSQL, any two-part name is a place for an application's own value.
            None if is_custom(&lower) => Ok((lower, value.to_owned())),
            None if lower.starts_with(RESERVED_PREFIX) => Err(SqlError::new(
                SqlState::INVALID_NAME,
                format!("invalid configuration parameter name \"{name}\""),
            )
            .detail("\"plpgsql\" is a reserved prefix.")),
            None => Err(unknown(name)),
        }
    }

    /// A date style that names no form, or no order of fields, leaves that as it is.
    fn kept_date_style(&self, lower: &str, value: &str) -> Option<String> {
        if lower != "datestyle" {
            return None;
        }
        let (form, order) = super::check_hooks::date_words(value)?;
        let (form_now, order_now) = self.canonical_value(lower)?.split_once(", ")?;
        let (form, order) = (form.unwrap_or(form_now), order.unwrap_or(order_now));
        Some(format!("{form}, {order}"))
    }

    /// From now on another role than the session's decides what may be set, which is a superuser or not; `None` is the
    /// session's again.
    pub fn act_as(&mut self, superuser: Option<bool>) {
        self.acts_as_superuser = superuser;
    }

    fn may_do_all(&self) -> bool {
        self.acts_as_superuser
            .unwrap_or_else(|| self.is_on("is_superuser"))
    }

    fn may_change(&self, setting: &Setting) -> Result<()> {
        let tail = match setting.scope {
            SettingContext::Session => return Ok(()),
            SettingContext::Superuser if self.may_do_all() => return Ok(()),
            SettingContext::Superuser => {
                return Err(SqlError::new(
                    SqlState::INSUFFICIENT_PRIVILEGE,
                    format!("permission denied to set parameter \"{}\"", setting.name),
                ));
            }
            SettingContext::Internal => "cannot be changed",
            SettingContext::Server => "cannot be changed without restarting the server",
        };
        Err(SqlError::new(
            SqlState::CANT_CHANGE_RUNTIME_PARAM,
            format!("parameter \"{}\" {tail}", setting.name),
        ))
    }

    /// SET (or SET LOCAL): gives the canonical value.
    pub fn set(&mut self, name: &str, value: &str, local: bool) -> Result<String> {
        let (key, canonical) = self.check(name, value)?;
        if find(&key).is_none() {
            self.places.insert(key.clone());
        }
        if !local {
            Rc::make_mut(&mut self.after_commit).insert(key.clone(), canonical.clone());
        }
        Rc::make_mut(&mut self.now).insert(key.clone(), canonical.clone());
        self.note_change(&key);
        self.refresh();
        Ok(canonical)
    }

    /// RESET name, or SET name TO DEFAULT.
    pub fn reset(&mut self, name: &str, local: bool) -> Result<()> {
        let lower = name.to_ascii_lowercase();
        match find(&lower) {
            Some(setting) => self.may_change(setting)?,
            None if is_custom(&lower) => {}
            None => return Err(unknown(name)),
        }
        let targets = [
            Some(&mut self.now),
            (!local).then_some(&mut self.after_commit),
        ];
        for values in targets.into_iter().flatten() {
            match self.initial.get(&lower) {
                Some(value) => Rc::make_mut(values).insert(lower.clone(), value.clone()),
                // One that is nobody's stays known once it has been set.
                None if is_custom(&lower) && values.contains_key(&lower) => {
                    Rc::make_mut(values).insert(lower.clone(), String::new())
                }
                None => Rc::make_mut(values).remove(&lower),
            };
        }
        self.note_change(&lower);
        self.refresh();
        Ok(())
    }

    /// RESET ALL, which leaves the session who it is.
    pub fn reset_all(&mut self) {
        let keys: Vec<String> = self.now.keys().cloned().collect();
        for values in [&mut self.now, &mut self.after_commit] {
            let mut reset = Rc::clone(&self.initial);
            for key in IDENTITY {
                if reset.get(key) != values.get(key) {
                    let reset = Rc::make_mut(&mut reset);
                    match values.get(key) {
                        Some(value) => reset.insert(key.to_owned(), value.clone()),
                        None => reset.remove(key),
                    };
                }
            }
            *values = reset;
        }
        keys.iter().for_each(|key| self.note_change(key));
        self.refresh();
    }

    /// The value of a setting, by its name in small letters, in canonical form; `None` for an unknown name.
    pub fn canonical_value(&self, lower: &str) -> Option<&str> {
        let kept = self
            .now
            .get(lower)
            .or_else(|| self.server.get(lower))
            .map(String::as_str);
        kept.or_else(|| find(lower).map(|s| s.default))
            .or_else(|| self.places.contains(lower).then_some(""))
    }

    /// All settings as `pg_settings` shows them, by name.
    pub fn rows(&self) -> Vec<crate::settings::SettingRow> {
        let notes = self.source.notes();
        let row = |s: &Setting| {
            let lower = s.name.to_ascii_lowercase();
            // As in PostgreSQL: where what counts now comes from.
            let place = notes.places.get(&lower);
            let source = if self.now.get(&lower) != self.initial.get(&lower) {
                "session"
            } else if self.initial.contains_key(&lower) {
                "client"
            } else if place.is_some() {
                "configuration file"
            } else if notes.given.contains(&lower) {
                "command line"
            } else {
                "default"
            };
            let place = place.filter(|_| source == "configuration file");
            let of = |values: &Values| values.get(&lower).cloned();
            let reset = of(&self.initial)
                .or_else(|| of(&self.server))
                .unwrap_or_else(|| s.default.to_owned());
            let (min, max) = match s.kind {
                super::SettingType::Int { min, max, .. } => {
                    (Some(min.to_string()), Some(max.to_string()))
                }
                super::SettingType::Real { min, max } => {
                    (Some(min.to_string()), Some(real_text(max)))
                }
                super::SettingType::Octal => (Some("0".to_owned()), Some("511".to_owned())),
                _ => (None, None),
            };
            let values = match s.kind {
                super::SettingType::Enum(words) => words.iter().map(|w| (*w).to_owned()).collect(),
                _ => Vec::new(),
            };
            crate::settings::SettingRow {
                name: s.name.to_owned(),
                value: self.canonical_value(&lower).unwrap_or_default().to_owned(),
                unit: s.unit().map(str::to_owned),
                category: "Logstead".to_owned(),
                description: s.doc.to_owned(),
                context: s.context_name().to_owned(),
                kind: s.type_name().to_owned(),
                min,
                max,
                values,
                default: s.default.to_owned(),
                reset,
                source: source.to_owned(),
                place: place.cloned(),
                pending_restart: notes.pending.contains(&lower),
            }
        };
        let mut rows: Vec<_> = super::all().map(row).collect();
        rows.sort_by_key(|row| row.name.to_lowercase());
        rows
    }

    /// The value as SHOW prints it; `None` for an unknown name.
    pub fn show(&self, name: &str) -> Option<String> {
        let lower = name.to_ascii_lowercase();
        let value = self.canonical_value(&lower)?;
        Some(match find(&lower) {
            Some(setting) => setting.show(value),
            None => value.to_owned(),
        })
    }

    /// The transaction committed: SET LOCAL ends.
    pub fn commit(&mut self) {
        if !Rc::ptr_eq(&self.now, &self.after_commit) {
            self.replace(Rc::clone(&self.after_commit));
        }
        self.before = Rc::clone(&self.after_commit);
        self.savepoints.clear();
    }

    /// The transaction rolled back: every SET in it ends.
    pub fn rollback(&mut self) {
        if !Rc::ptr_eq(&self.now, &self.before) {
            self.replace(Rc::clone(&self.before));
        }
        self.after_commit = Rc::clone(&self.before);
        self.savepoints.clear();
    }

    /// A savepoint was made.
    pub fn savepoint(&mut self) {
        self.savepoints
            .push((Rc::clone(&self.now), Rc::clone(&self.after_commit)));
    }

    /// Back to the savepoint with this index, which stays.
    pub fn rollback_to(&mut self, index: usize) {
        self.savepoints.truncate(index + 1);
        if let Some((now, after_commit)) = self.savepoints.last().cloned() {
            self.after_commit = after_commit;
            self.replace(now);
        }
    }

    /// The savepoint with this index and all later ones are gone; what was set since stays.
    pub fn release(&mut self, index: usize) {
        self.savepoints.truncate(index);
    }

    fn replace(&mut self, values: Rc<Values>) {
        let old = std::mem::replace(&mut self.now, values);
        let keys: Vec<String> = old
            .iter()
            .filter(|(k, v)| self.now.get(*k) != Some(v))
            .map(|(k, _)| k.clone())
            .chain(self.now.keys().filter(|k| !old.contains_key(*k)).cloned())
            .collect();
        keys.iter().for_each(|key| self.note_change(key));
        self.refresh();
    }

    pub(super) fn note_change(&mut self, lower: &str) {
        if let Some(setting) = find(lower)
            && setting.reported
            && !self.changed.iter().any(|s| s.name == setting.name)
        {
            self.changed.push(setting);
        }
    }

    /// Reported settings changed since the last call, with their values.
    pub fn take_changed(&mut self) -> Vec<(&'static str, String)> {
        if self.changed.is_empty() {
            return Vec::new();
        }
        let changed = std::mem::take(&mut self.changed);
        changed
            .iter()
            .map(|s| (s.name, self.show(s.name).unwrap_or_default()))
            .collect()
    }

    /// Every reported setting: what a new client is told.
    pub fn reported(&self) -> impl Iterator<Item = (&'static str, String)> + '_ {
        all()
            .filter(|s| s.reported)
            .map(|s| (s.name, self.show(s.name).unwrap_or_default()))
    }

    pub(super) fn number(&self, lower: &str) -> i64 {
        // Canonical numbers read back (the invariant of this module).
        self.canonical_value(lower)
            .and_then(|v| v.parse().ok())
            .unwrap_or(0)
    }

    pub(super) fn is_on(&self, lower: &str) -> bool {
        self.canonical_value(lower) == Some("on")
    }
}

/// `session` is who the session is from now on, unless it stays who it is; `role` who it acts as.
fn real_text(value: f64) -> String {
    match value {
        f64::MAX => "1.79769e+308".to_owned(),
        value => value.to_string(),
    }
}

fn insert_identity(
    values: &mut Values,
    session: Option<&Role>,
    role: Option<&Role>,
    superuser: bool,
) {
    if let Some(session) = session {
        values.insert("session_authorization".to_owned(), session.name.clone());
        values.insert(SESSION_OID.to_owned(), session.oid.to_string());
    }
    let name = role.map_or("none", |role| &role.name);
    values.insert("role".to_owned(), name.to_owned());
    values.insert(
        ROLE_OID.to_owned(),
        role.map_or(0, |role| role.oid.get()).to_string(),
    );
    let superuser = if superuser { "on" } else { "off" };
    values.insert("is_superuser".to_owned(), superuser.to_owned());
}

/// Settings of PL/pgSQL, of which all are known.
const RESERVED_PREFIX: &str = "plpgsql.";

pub(super) fn is_custom(lower: &str) -> bool {
    let mut parts = lower.split('.');
    let word = |part: &str| {
        part.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && part
                .chars()
                .all(|c| c.is_alphanumeric() || c == '_' || c == '$')
    };
    // Those that begin so are the server's: one that does not exist is a mistake that somebody would trust.
    let reserved = ["logstead.", RESERVED_PREFIX];
    lower.contains('.') && parts.all(word) && !reserved.iter().any(|own| lower.starts_with(own))
}

/// Splits a list of identifiers (`"$user", public`): quoted ones keep their case. `None` if it is no such list.
pub fn split_identifiers(value: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut rest = value.trim();
    if rest.is_empty() {
        return Some(names);
    }
    loop {
        if let Some(quoted) = rest.strip_prefix('"') {
            let mut name = String::new();
            let mut chars = quoted.char_indices().peekable();
            let end = loop {
                match chars.next()? {
                    (at, '"') if chars.peek().is_some_and(|(_, c)| *c == '"') => {
                        chars.next();
                        name.push('"');
                        let _position_in_value = at;
                    }
                    (at, '"') => break at + 1,
                    (_, c) => name.push(c),
                }
            };
            names.push(name);
            rest = quoted[end..].trim_start();
        } else {
            let end = rest.find(',').unwrap_or(rest.len());
            let name = rest[..end].trim();
            if name.is_empty() || name.contains(char::is_whitespace) {
                return None;
            }
            names.push(name.to_lowercase());
            rest = &rest[end..];
        }
        if rest.is_empty() {
            return Some(names);
        }
        rest = rest.strip_prefix(',')?.trim_start();
    }
}
