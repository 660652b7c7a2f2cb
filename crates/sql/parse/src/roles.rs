//! CREATE, ALTER and DROP of roles, users and groups, and GRANT and REVOKE of memberships, which the grammar library lacks in the main.

use super::fold;
use super::kind::StatementKind;
use super::position::error_at_token;
use super::rewrite::is_word;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// A role where a statement names one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoleName {
    /// By its name.
    Name(String),
    /// CURRENT_USER, CURRENT_ROLE.
    Current,
    /// SESSION_USER.
    Session,
    /// PUBLIC.
    Public,
}

/// What CREATE and ALTER ROLE say.
#[derive(Clone, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub struct RoleOptions {
    pub superuser: Option<bool>,
    pub inherit: Option<bool>,
    pub create_role: Option<bool>,
    pub create_db: Option<bool>,
    pub login: Option<bool>,
    pub replication: Option<bool>,
    pub bypass_rls: Option<bool>,
    pub connection_limit: Option<i32>,
    /// `Some(None)` is PASSWORD NULL.
    pub password: Option<Option<String>>,
    pub valid_until: Option<String>,
    pub in_role: Vec<RoleName>,
    pub role: Vec<RoleName>,
    pub admin: Vec<RoleName>,
}

impl std::fmt::Debug for RoleOptions {
    /// Without the password: it must never come into a log.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RoleOptions").finish_non_exhaustive()
    }
}

/// How a setting changes that sessions begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingChange {
    /// SET; no value is RESET, or SET ... TO DEFAULT.
    Set(String, Option<String>),
    /// SET ... FROM CURRENT.
    SetFromCurrent(String),
    /// RESET ALL.
    ResetAll,
}

/// A statement about roles.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum RoleCommand {
    Create {
        name: RoleName,
        options: RoleOptions,
    },
    Alter {
        name: RoleName,
        options: RoleOptions,
    },
    Rename {
        name: RoleName,
        new: RoleName,
    },
    /// SET; no value is RESET, or SET ... TO DEFAULT.
    Set {
        name: RoleName,
        setting: String,
        value: Option<String>,
    },
    /// SET ... FROM CURRENT.
    SetFromCurrent {
        name: RoleName,
        setting: String,
    },
    ResetAll {
        name: RoleName,
    },
    Drop {
        if_exists: bool,
        names: Vec<RoleName>,
    },
    Grant {
        roles: Vec<RoleName>,
        members: Vec<RoleName>,
        admin: bool,
        grantor: Option<RoleName>,
        tag: &'static str,
    },
    Revoke {
        roles: Vec<RoleName>,
        members: Vec<RoleName>,
        admin: bool,
        grantor: Option<RoleName>,
        tag: &'static str,
    },
}

impl RoleCommand {
    /// The command tag.
    pub fn tag(&self) -> &'static str {
        match self {
            RoleCommand::Create { .. } => "CREATE ROLE",
            RoleCommand::Drop { .. } => "DROP ROLE",
            RoleCommand::Grant { tag, .. } | RoleCommand::Revoke { tag, .. } => tag,
            _ => "ALTER ROLE",
        }
    }
}

/// Where an attribute that is on or off is kept.
type Place = fn(&mut RoleOptions) -> &mut Option<bool>;

/// The words of a statement, read one after the other.
pub(super) struct Words<'a> {
    pub(super) text: &'a str,
    pub(super) tokens: &'a [TokenWithSpan],
    pub(super) at: usize,
}

impl Words<'_> {
    pub(super) fn error(&self) -> SqlError {
        match self.tokens.get(self.at) {
            Some(token) => error_at_token(self.text, token),
            None => error_at_token(self.text, &TokenWithSpan::new_eof()),
        }
    }

    pub(super) fn is(&self, word: &str) -> bool {
        is_word(self.tokens.get(self.at), word)
    }

    pub(super) fn take(&mut self, word: &str) -> bool {
        let found = self.is(word);
        self.at += usize::from(found);
        found
    }

    pub(super) fn take_all(&mut self, words: &[&str]) -> bool {
        let found = super::rewrite::words(self.tokens, self.at, words);
        if found {
            self.at += words.len();
        }
        found
    }

    pub(super) fn expect(&mut self, word: &str) -> Result<()> {
        match self.take(word) {
            true => Ok(()),
            false => Err(self.error()),
        }
    }

    pub(super) fn token(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|token| &token.token)
    }

    pub(super) fn take_token(&mut self, token: &Token) -> bool {
        let found = self.token() == Some(token);
        self.at += usize::from(found);
        found
    }

    pub(super) fn done(&self) -> bool {
        self.at >= self.tokens.len()
    }

    pub(super) fn end(&self) -> Result<()> {
        match self.done() {
            true => Ok(()),
            false => Err(self.error()),
        }
    }

    pub(super) fn ident(&mut self) -> Result<String> {
        let Some(TokenWithSpan {
            token: Token::Word(word),
            span,
        }) = self.tokens.get(self.at)
        else {
            return Err(self.error());
        };
        self.at += 1;
        Ok(fold(&word.clone().into_ident(*span)))
    }

    pub(super) fn role(&mut self) -> Result<RoleName> {
        let Some(Token::Word(word)) = self.token() else {
            return Err(self.error());
        };
        let quoted = word.quote_style.is_some();
        let name = if quoted {
            RoleName::Name(word.value.clone())
        } else {
            match word.value.to_lowercase().as_str() {
                "current_user" | "current_role" => RoleName::Current,
                "session_user" => RoleName::Session,
                "public" => RoleName::Public,
                "user" => return Err(self.error()),
                "none" => {
                    return Err(SqlError::new(
                        SqlState::RESERVED_NAME,
                        "role name \"none\" is reserved",
                    ));
                }
                name => RoleName::Name(name.to_owned()),
            }
        };
        if matches!(&name, RoleName::Name(name) if name.is_empty()) {
            return Err(self.error());
        }
        self.at += 1;
        Ok(match name {
            // Quoted or not, nobody is called so.
            RoleName::Name(name) if name == "public" => RoleName::Public,
            other => other,
        })
    }

    pub(super) fn roles(&mut self) -> Result<Vec<RoleName>> {
        let mut roles = vec![self.role()?];
        while self.take_token(&Token::Comma) {
            roles.push(self.role()?);
        }
        Ok(roles)
    }

    /// A string literal.
    pub(super) fn string(&mut self) -> Result<String> {
        let text = match self.token() {
            Some(
                Token::SingleQuotedString(text)
                | Token::EscapedStringLiteral(text)
                | Token::UnicodeStringLiteral(text),
            ) => text.clone(),
            Some(Token::DollarQuotedString(text)) => text.value.clone(),
            _ => return Err(self.error()),
        };
        self.at += 1;
        Ok(text)
    }

    pub(super) fn number(&mut self) -> Result<i32> {
        let negative = self.take_token(&Token::Minus);
        let Some(Token::Number(digits, _)) = self.token() else {
            return Err(self.error());
        };
        let number: i32 = digits.parse().map_err(|_| self.error())?;
        self.at += 1;
        Ok(if negative { -number } else { number })
    }

    fn once<T>(&self, place: &mut Option<T>, value: T, at: usize) -> Result<()> {
        if place.replace(value).is_none() {
            return Ok(());
        }
        let position = self
            .tokens
            .get(at)
            .and_then(|token| super::span_position(self.text, token.span));
        Err(SqlError::new(SqlState::SYNTAX_ERROR, "conflicting or redundant options").at(position))
    }

    fn options(&mut self, create: bool) -> Result<RoleOptions> {
        let mut options = RoleOptions::default();
        self.take("with");
        while !self.done() {
            let at = self.at;
            let flags: [(&str, &str, Place); 7] = [
                ("superuser", "nosuperuser", |o| &mut o.superuser),
                ("inherit", "noinherit", |o| &mut o.inherit),
                ("createrole", "nocreaterole", |o| &mut o.create_role),
                ("createdb", "nocreatedb", |o| &mut o.create_db),
                ("login", "nologin", |o| &mut o.login),
                ("replication", "noreplication", |o| &mut o.replication),
                ("bypassrls", "nobypassrls", |o| &mut o.bypass_rls),
            ];
            let flag = flags
                .iter()
                .find(|(on, off, _)| self.is(on) || self.is(off));
            if let Some((on, _, place)) = flag {
                let value = self.is(on);
                self.at += 1;
                self.once(place(&mut options), value, at)?;
            } else if self.take_all(&["connection", "limit"]) {
                let limit = self.number()?;
                if limit < -1 {
                    return Err(SqlError::new(
                        SqlState::INVALID_PARAMETER_VALUE,
                        format!("invalid connection limit: {limit}"),
                    ));
                }
                self.once(&mut options.connection_limit, limit, at)?;
            } else if self.is("unencrypted") {
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "UNENCRYPTED PASSWORD is no longer supported",
                )
                .hint("Remove UNENCRYPTED to store the password in encrypted form instead."));
            } else if self.take_all(&["encrypted", "password"]) || self.take("password") {
                let password = match self.take("null") {
                    true => None,
                    false => Some(self.string()?),
                };
                self.once(&mut options.password, password, at)?;
            } else if self.take_all(&["valid", "until"]) {
                let until = self.string()?;
                self.once(&mut options.valid_until, until, at)?;
            } else if create && self.take("sysid") {
                // Noise, as in PostgreSQL.
                self.number()?;
            } else if create && (self.take_all(&["in", "role"]) || self.take_all(&["in", "group"]))
            {
                options.in_role.extend(self.roles()?);
            } else if create && self.take("admin") {
                options.admin.extend(self.roles()?);
            } else if create && (self.take("role") || self.take("user")) {
                options.role.extend(self.roles()?);
            } else {
                if let Some(Token::Word(word)) = self.token()
                    && word.quote_style.is_none()
                {
                    let shown = word.value.to_lowercase();
                    return Err(SqlError::new(
                        SqlState::SYNTAX_ERROR,
                        format!("unrecognized role option \"{shown}\""),
                    )
                    .at(super::span_position(self.text, self.tokens[self.at].span)));
                }
                return Err(self.error());
            }
        }
        Ok(options)
    }

    pub(super) fn setting_name(&mut self) -> Result<String> {
        if self.take_all(&["time", "zone"]) {
            return Ok("timezone".to_owned());
        }
        let mut name = self.ident()?;
        while self.take_token(&Token::Period) {
            name.push('.');
            name.push_str(&self.ident()?);
        }
        Ok(name)
    }

    /// What follows SET name TO: words, strings and numbers, joined as SET joins them.
    fn setting_value(&mut self, setting: &str) -> Result<Option<String>> {
        if self.take("default") {
            return Ok(None);
        }
        let path = setting.eq_ignore_ascii_case("search_path");
        let mut values = Vec::new();
        loop {
            let negative = self.take_token(&Token::Minus);
            let value = match self.token() {
                Some(Token::Number(number, _)) => {
                    let number = number.to_string();
                    self.at += 1;
                    number
                }
                Some(Token::Word(word)) if !negative => {
                    let name = match word.quote_style {
                        Some(_) if path => format!("\"{}\"", word.value.replace('"', "\"\"")),
                        Some(_) => word.value.clone(),
                        None => word.value.to_lowercase(),
                    };
                    self.at += 1;
                    name
                }
                _ if !negative => {
                    let text = self.string()?;
                    let plain = text
                        .chars()
                        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
                    match path && !plain {
                        true => format!("\"{}\"", text.replace('"', "\"\"")),
                        false => text,
                    }
                }
                _ => return Err(self.error()),
            };
            values.push(if negative { format!("-{value}") } else { value });
            if !self.take_token(&Token::Comma) {
                return Ok(Some(values.join(", ")));
            }
        }
    }

    /// SET or RESET of a setting that sessions begin with.
    pub(super) fn setting_change(&mut self) -> Result<SettingChange> {
        if self.take("reset") {
            if self.take("all") {
                return Ok(SettingChange::ResetAll);
            }
            return Ok(SettingChange::Set(self.setting_name()?, None));
        }
        self.expect("set")?;
        let setting = self.setting_name()?;
        if self.take_all(&["from", "current"]) {
            return Ok(SettingChange::SetFromCurrent(setting));
        }
        let zone = setting == "timezone";
        if !(self.take("to") || self.take_token(&Token::Eq) || zone) {
            return Err(self.error());
        }
        let value = self.setting_value(&setting)?;
        Ok(SettingChange::Set(setting, value))
    }

    fn alter(&mut self, group: bool) -> Result<RoleCommand> {
        let all = self.is("all");
        let name = self.role()?;
        if group && (self.is("add") || self.is("drop")) {
            let add = self.take("add") || !self.take("drop");
            self.expect("user")?;
            let members = self.roles()?;
            let (roles, tag) = (vec![name], "ALTER ROLE");
            let (admin, grantor) = (false, None);
            return Ok(match add {
                true => RoleCommand::Grant {
                    roles,
                    members,
                    admin,
                    grantor,
                    tag,
                },
                false => RoleCommand::Revoke {
                    roles,
                    members,
                    admin,
                    grantor,
                    tag,
                },
            });
        }
        if self.take_all(&["rename", "to"]) {
            let new = self.role()?;
            return Ok(RoleCommand::Rename { name, new });
        }
        if self.is("set") || self.is("reset") {
            if all {
                return Err(SqlError::unsupported("ALTER ROLE ALL"));
            }
            return Ok(match self.setting_change()? {
                SettingChange::Set(setting, value) => RoleCommand::Set {
                    name,
                    setting,
                    value,
                },
                SettingChange::SetFromCurrent(setting) => {
                    RoleCommand::SetFromCurrent { name, setting }
                }
                SettingChange::ResetAll => RoleCommand::ResetAll { name },
            });
        }
        let options = self.options(false)?;
        Ok(RoleCommand::Alter { name, options })
    }

    fn membership(&mut self, grant: bool) -> Result<RoleCommand> {
        let mut admin = !grant && self.take_all(&["admin", "option", "for"]);
        let roles = self.roles()?;
        self.expect(if grant { "to" } else { "from" })?;
        let members = self.roles()?;
        if grant && self.take_all(&["with", "admin", "option"]) {
            admin = true;
        }
        let mut grantor = None;
        if self.take_all(&["granted", "by"]) {
            grantor = Some(self.role()?);
        }
        if !grant {
            // Nothing depends on a membership.
            let _either = self.take("cascade") || self.take("restrict");
        }
        Ok(match grant {
            true => RoleCommand::Grant {
                roles,
                members,
                admin,
                grantor,
                tag: "GRANT ROLE",
            },
            false => RoleCommand::Revoke {
                roles,
                members,
                admin,
                grantor,
                tag: "REVOKE ROLE",
            },
        })
    }
}

/// The statement, if it is about roles.
pub(super) fn roles(text: &str, tokens: &[TokenWithSpan]) -> Result<Option<StatementKind>> {
    let mut words = Words {
        text,
        tokens,
        at: 0,
    };
    let first = ["create", "alter", "drop", "grant", "revoke"];
    let Some(verb) = first.into_iter().find(|verb| words.take(verb)) else {
        return Ok(None);
    };
    let command = match verb {
        "grant" | "revoke" => {
            // Privileges are ON something; memberships are not.
            if tokens.iter().any(|token| is_word(Some(token), "on")) {
                return Ok(None);
            }
            words.membership(verb == "grant")?
        }
        _ => {
            let (user, group) = (words.is("user"), words.is("group"));
            if !(user || group || words.is("role")) {
                return Ok(None);
            }
            words.at += 1;
            if words.take_all(&["mapping"]) {
                return Ok(Some(StatementKind::Unsupported("USER MAPPING")));
            }
            if verb == "alter"
                && let Some(command) = super::databases::of_role(&mut words)?
            {
                return Ok(Some(StatementKind::Database(Box::new(command))));
            }
            match verb {
                "create" => {
                    let name = words.role()?;
                    let mut options = words.options(true)?;
                    if user {
                        options.login.get_or_insert(true);
                    }
                    RoleCommand::Create { name, options }
                }
                "alter" => words.alter(group)?,
                _ => {
                    let if_exists = words.take_all(&["if", "exists"]);
                    let names = words.roles()?;
                    RoleCommand::Drop { if_exists, names }
                }
            }
        }
    };
    words.end()?;
    Ok(Some(StatementKind::Role(Box::new(command))))
}
