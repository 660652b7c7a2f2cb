//! GRANT and REVOKE of privileges, ALTER DEFAULT PRIVILEGES, ALTER ... OWNER TO, REASSIGN OWNED, DROP OWNED.

use super::roles::{RoleName, Words};
use super::routines::{RoutineRef, RoutineWord};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Oid;
use logstead_types::SqlState;
use sqlparser::ast::{Ident, ObjectName, ObjectNamePart};
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// What a GRANT or REVOKE is about.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum GrantOn {
    Tables(Vec<ObjectName>),
    Sequences(Vec<ObjectName>),
    Databases(Vec<String>),
    Schemas(Vec<String>),
    /// With the word that names them.
    Types(&'static str, Vec<ObjectName>),
    Languages(Vec<String>),
    AllTables(Vec<String>),
    AllSequences(Vec<String>),
    Routines(RoutineWord, Vec<RoutineRef>),
    AllRoutines(RoutineWord, Vec<String>),
    LargeObjects(Vec<Oid>),
    /// What is not supported, by name.
    Other(&'static str),
    /// The kind of objects that ALTER DEFAULT PRIVILEGES is about.
    Later(&'static str),
}

/// The word of a privilege, and its columns.
pub type Privilege = (String, Vec<String>);

/// GRANT or REVOKE.
#[derive(Clone, Debug)]
pub struct Grant {
    /// It takes away.
    pub revoke: bool,
    /// WITH GRANT OPTION, or GRANT OPTION FOR.
    pub option: bool,
    /// Each privilege with its columns; none is ALL.
    pub privileges: Option<Vec<Privilege>>,
    /// The columns of ALL.
    pub columns: Vec<String>,
    /// On what.
    pub on: GrantOn,
    /// To or from whom.
    pub grantees: Vec<RoleName>,
    /// GRANTED BY.
    pub grantor: Option<RoleName>,
    /// CASCADE.
    pub cascade: bool,
}

/// What can be given to another owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum OwnedKind {
    Table,
    View,
    MaterializedView,
    Sequence,
    Index,
    Schema,
    Database,
    Type,
    Domain,
}

/// A statement about owners or privileges.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum RightsCommand {
    Grant(Grant),
    Defaults {
        roles: Vec<RoleName>,
        schemas: Vec<String>,
        grant: Grant,
    },
    Owner {
        kind: OwnedKind,
        if_exists: bool,
        name: ObjectName,
        owner: RoleName,
    },
    RoutineOwner {
        word: RoutineWord,
        target: RoutineRef,
        owner: RoleName,
    },
    Reassign {
        roles: Vec<RoleName>,
        to: RoleName,
    },
    DropOwned {
        roles: Vec<RoleName>,
        cascade: bool,
    },
}

impl RightsCommand {
    /// The command tag.
    pub fn tag(&self) -> &'static str {
        match self {
            RightsCommand::Grant(grant) if grant.revoke => "REVOKE",
            RightsCommand::Grant(_) => "GRANT",
            RightsCommand::Defaults { .. } => "ALTER DEFAULT PRIVILEGES",
            RightsCommand::Reassign { .. } => "REASSIGN OWNED",
            RightsCommand::DropOwned { .. } => "DROP OWNED",
            RightsCommand::RoutineOwner { word, .. } => match word {
                RoutineWord::Function => "ALTER FUNCTION",
                RoutineWord::Procedure => "ALTER PROCEDURE",
                RoutineWord::Routine => "ALTER ROUTINE",
                RoutineWord::Aggregate => "ALTER AGGREGATE",
            },
            RightsCommand::Owner { kind, .. } => match kind {
                OwnedKind::Table => "ALTER TABLE",
                OwnedKind::View => "ALTER VIEW",
                OwnedKind::MaterializedView => "ALTER MATERIALIZED VIEW",
                OwnedKind::Sequence => "ALTER SEQUENCE",
                OwnedKind::Index => "ALTER INDEX",
                OwnedKind::Schema => "ALTER SCHEMA",
                OwnedKind::Database => "ALTER DATABASE",
                OwnedKind::Type => "ALTER TYPE",
                OwnedKind::Domain => "ALTER DOMAIN",
            },
        }
    }
}

impl Words<'_> {
    fn idents(&mut self) -> Result<Vec<String>> {
        let mut all = vec![self.ident()?];
        while self.take_token(&Token::Comma) {
            all.push(self.ident()?);
        }
        Ok(all)
    }

    pub(super) fn object(&mut self) -> Result<ObjectName> {
        let mut parts = Vec::new();
        loop {
            // Folded already.
            let name = Ident::with_quote('"', self.ident()?);
            parts.push(ObjectNamePart::Identifier(name));
            if !self.take_token(&Token::Period) {
                return Ok(ObjectName(parts));
            }
        }
    }

    fn objects(&mut self) -> Result<Vec<ObjectName>> {
        let mut all = vec![self.object()?];
        while self.take_token(&Token::Comma) {
            all.push(self.object()?);
        }
        Ok(all)
    }

    fn grantees(&mut self) -> Result<Vec<RoleName>> {
        let mut all = Vec::new();
        loop {
            let group = self.is("group");
            self.at += usize::from(group);
            all.push(self.role()?);
            if !self.take_token(&Token::Comma) {
                return Ok(all);
            }
        }
    }

    fn columns(&mut self) -> Result<Vec<String>> {
        if !self.take_token(&Token::LParen) {
            return Ok(Vec::new());
        }
        let columns = self.idents()?;
        match self.take_token(&Token::RParen) {
            true => Ok(columns),
            false => Err(self.error()),
        }
    }

    fn privileges(&mut self) -> Result<(Option<Vec<Privilege>>, Vec<String>)> {
        if self.take("all") {
            self.take("privileges");
            return Ok((None, self.columns()?));
        }
        let mut all = Vec::new();
        loop {
            let mut name = self.ident()?;
            if name == "alter" && self.take("system") {
                name = "alter system".to_owned();
            }
            all.push((name, self.columns()?));
            if !self.take_token(&Token::Comma) {
                return Ok((Some(all), Vec::new()));
            }
        }
    }

    fn grant_on(&mut self) -> Result<GrantOn> {
        let all = [
            ("tables", GrantOn::AllTables as fn(Vec<String>) -> GrantOn),
            ("sequences", GrantOn::AllSequences),
            ("functions", |schemas| {
                GrantOn::AllRoutines(RoutineWord::Function, schemas)
            }),
            ("procedures", |schemas| {
                GrantOn::AllRoutines(RoutineWord::Procedure, schemas)
            }),
            ("routines", |schemas| {
                GrantOn::AllRoutines(RoutineWord::Routine, schemas)
            }),
        ];
        for (word, make) in all {
            if self.take_all(&["all", word, "in", "schema"]) {
                return Ok(make(self.idents()?));
            }
        }
        for word in [
            RoutineWord::Function,
            RoutineWord::Procedure,
            RoutineWord::Routine,
        ] {
            let behind = self.tokens.get(self.at + 1);
            let named = matches!(behind.map(|t| &t.token), Some(Token::Word(_)))
                && !super::rewrite::is_word(behind, "to")
                && !super::rewrite::is_word(behind, "from");
            if self.is(word.text()) && named {
                self.at += 1;
                return Ok(GrantOn::Routines(word, self.routine_refs()?));
            }
        }
        if self.take_all(&["large", "object"]) {
            let mut all = vec![self.large_object()?];
            while self.take_token(&Token::Comma) {
                all.push(self.large_object()?);
            }
            return Ok(GrantOn::LargeObjects(all));
        }
        for (words, what) in [
            (
                &["foreign", "data", "wrapper"][..],
                "GRANT on a foreign-data wrapper",
            ),
            (&["foreign", "server"], "GRANT on a foreign server"),
            (&["tablespace"], "GRANT on a tablespace"),
            (&["parameter"], "GRANT on a parameter"),
        ] {
            // A table may be called so.
            let named = |at: usize| {
                matches!(
                    self.tokens.get(at).map(|t: &TokenWithSpan| &t.token),
                    Some(Token::Word(word)) if !word.value.eq_ignore_ascii_case("to") && !word.value.eq_ignore_ascii_case("from")
                )
            };
            let there = super::rewrite::words(self.tokens, self.at, words);
            if there && (named(self.at + words.len()) || words.len() > 1) {
                while !(self.done() || self.is("to") || self.is("from")) {
                    self.at += 1;
                }
                return Ok(GrantOn::Other(what));
            }
        }
        if self.take("sequence") {
            return Ok(GrantOn::Sequences(self.objects()?));
        }
        if self.take("database") {
            return Ok(GrantOn::Databases(self.idents()?));
        }
        if self.take("schema") {
            return Ok(GrantOn::Schemas(self.idents()?));
        }
        if self.take("language") {
            return Ok(GrantOn::Languages(self.idents()?));
        }
        if self.take("type") {
            return Ok(GrantOn::Types("type", self.objects()?));
        }
        if self.take("domain") {
            return Ok(GrantOn::Types("domain", self.objects()?));
        }
        self.take("table");
        Ok(GrantOn::Tables(self.objects()?))
    }

    /// What ALTER DEFAULT PRIVILEGES is about.
    fn later(&mut self) -> Result<GrantOn> {
        for word in ["tables", "sequences", "functions", "types", "schemas"] {
            if self.take(word) {
                return Ok(GrantOn::Later(word));
            }
        }
        match self.take("routines") {
            true => Ok(GrantOn::Later("functions")),
            false => Err(self.error()),
        }
    }

    /// What follows GRANT or REVOKE.
    fn grant(&mut self, revoke: bool, later: bool) -> Result<Grant> {
        let mut option = revoke && self.take_all(&["grant", "option", "for"]);
        let (privileges, columns) = self.privileges()?;
        self.expect("on")?;
        let on = match later {
            true => self.later()?,
            false => self.grant_on()?,
        };
        self.expect(if revoke { "from" } else { "to" })?;
        let grantees = self.grantees()?;
        option |= !revoke && self.take_all(&["with", "grant", "option"]);
        let mut grantor = None;
        if !later && self.take_all(&["granted", "by"]) {
            grantor = Some(self.role()?);
        }
        let cascade = revoke && self.take("cascade");
        if revoke && !cascade {
            self.take("restrict");
        }
        self.end()?;
        Ok(Grant {
            revoke,
            option,
            privileges,
            columns,
            on,
            grantees,
            grantor,
            cascade,
        })
    }

    fn defaults(&mut self) -> Result<RightsCommand> {
        let redundant =
            || SqlError::new(SqlState::SYNTAX_ERROR, "conflicting or redundant options");
        let (mut roles, mut schemas) = (Vec::new(), Vec::new());
        loop {
            if self.take_all(&["for", "role"]) || self.take_all(&["for", "user"]) {
                if !roles.is_empty() {
                    return Err(redundant());
                }
                roles = self.roles()?;
            } else if self.take_all(&["in", "schema"]) {
                if !schemas.is_empty() {
                    return Err(redundant());
                }
                schemas = self.idents()?;
            } else {
                break;
            }
        }
        let revoke = self.take("revoke");
        if !revoke {
            self.expect("grant")?;
        }
        let grant = self.grant(revoke, true)?;
        Ok(RightsCommand::Defaults {
            roles,
            schemas,
            grant,
        })
    }

    /// ALTER kind name OWNER TO role, if it is that.
    fn owner(&mut self) -> Result<Option<RightsCommand>> {
        use OwnedKind as K;
        let kinds: [(&[&str], K); 9] = [
            (&["table"], K::Table),
            (&["view"], K::View),
            (&["materialized", "view"], K::MaterializedView),
            (&["sequence"], K::Sequence),
            (&["index"], K::Index),
            (&["schema"], K::Schema),
            (&["database"], K::Database),
            (&["type"], K::Type),
            (&["domain"], K::Domain),
        ];
        let Some(kind) = kinds
            .into_iter()
            .find(|(words, _)| self.take_all(words))
            .map(|(_, kind)| kind)
        else {
            return Ok(None);
        };
        let if_exists = self.take_all(&["if", "exists"]);
        if kind == K::Table {
            self.take("only");
        }
        let Ok(name) = self.object() else {
            return Ok(None);
        };
        if !self.take_all(&["owner", "to"]) {
            return Ok(None);
        }
        let owner = self.role()?;
        // Several at once are ALTER TABLE's.
        if !self.done() && kind == K::Table {
            return Ok(None);
        }
        self.end()?;
        Ok(Some(RightsCommand::Owner {
            kind,
            if_exists,
            name,
            owner,
        }))
    }
}

/// The statement, if it is about owners or privileges.
pub(super) fn rights(text: &str, tokens: &[TokenWithSpan]) -> Result<Option<RightsCommand>> {
    let mut words = Words {
        text,
        tokens,
        at: 0,
    };
    if words.take("grant") {
        return Ok(Some(RightsCommand::Grant(words.grant(false, false)?)));
    }
    if words.take("revoke") {
        return Ok(Some(RightsCommand::Grant(words.grant(true, false)?)));
    }
    if words.take_all(&["alter", "default", "privileges"]) {
        return words.defaults().map(Some);
    }
    if words.take_all(&["reassign", "owned", "by"]) {
        let roles = words.roles()?;
        words.expect("to")?;
        let to = words.role()?;
        words.end()?;
        return Ok(Some(RightsCommand::Reassign { roles, to }));
    }
    if words.take_all(&["drop", "owned", "by"]) {
        let roles = words.roles()?;
        let cascade = words.take("cascade");
        if !cascade {
            words.take("restrict");
        }
        words.end()?;
        return Ok(Some(RightsCommand::DropOwned { roles, cascade }));
    }
    if words.take("alter") {
        return words.owner();
    }
    Ok(None)
}
