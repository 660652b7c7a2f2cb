//! How a session begins: the startup packet, and who is let in.
//!
//! Owns: [`StartupRequest`] and the checks between it and an open session: role, database, limits of connections,
//! settings.

use super::context::SessionContext;
use super::cursor::Cursors;
use super::instance::SessionSlot;
use super::reply_dependencies::ReplyDependencies;
use super::transaction_modes::TransactionModes;
use super::{Session, database, routine};
use crate::open_transaction::BlockState;
use crate::worker_sessions::WorkerSessions;
use logstead_engine::CommitWait;
use logstead_sql_catalog::settings::{self, SessionSettings};
use logstead_sql_catalog::{DatabaseConnection, TempObjects};
use logstead_sql_types::RoleId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

/// The startup packet, sorted.
#[derive(Clone, Debug, Default)]
pub struct StartupRequest {
    /// User.
    pub user: String,
    /// The role that was authenticated, if that was asked for; it is the user's, or was when it began.
    pub role: Option<RoleId>,
    /// Database; empty is the user's name.
    pub database: String,
    /// Command-line style options.
    pub options: String,
    /// Replication mode asked for.
    pub replication: String,
    /// Where the client is.
    pub client: Option<SocketAddr>,
    /// Where it has reached the server.
    pub server: Option<SocketAddr>,
    /// By a socket of the file system: neither has an address.
    pub local: bool,
    /// Other parameters: settings.
    pub settings: Vec<(String, String)>,
    /// The server's own session, or one that was let in before: whoever may not log in, and wherever nobody may
    /// connect, it may, and it counts as none too many.
    pub own: bool,
}

impl StartupRequest {
    /// Does it ask for a replication connection? 22023 for a word that is no answer to that.
    pub fn is_replication(&self) -> Result<bool> {
        match self.replication.to_ascii_lowercase().as_str() {
            "" | "false" | "off" | "no" | "0" => Ok(false),
            "true" | "on" | "yes" | "1" | "database" => Ok(true),
            other => Err(SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("invalid value for parameter \"replication\": \"{other}\""),
            )
            .hint("Valid values are: \"false\", 0, \"true\", 1, \"database\".")),
        }
    }
}

impl Session {
    pub(super) fn admitted(
        worker: &Rc<WorkerSessions>,
        request: StartupRequest,
        place: SessionSlot,
        entered: Option<DatabaseConnection>,
    ) -> Result<Session> {
        let instance = Arc::clone(&worker.instance);
        let SessionSlot {
            pid,
            secret,
            signals,
            live,
        } = place;
        let roles = instance.store.roles();
        let role = match request.role {
            Some(oid) => roles.get(oid),
            None => roles.by_name(&request.user),
        };
        let refused = |what: &str| {
            SqlError::new(
                SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
                format!("role \"{}\" {what}", request.user),
            )
        };
        let role = Arc::clone(role.ok_or_else(|| refused("does not exist"))?);
        if !role.login && !request.own {
            return Err(refused("is not permitted to log in"));
        }
        let replication = request.is_replication()?;
        if replication && !role.superuser && !role.replication {
            return Err(SqlError::new(
                SqlState::INSUFFICIENT_PRIVILEGE,
                "must be superuser or replication role to start walsender",
            ));
        }
        instance.admit_role(pid, &role, request.own)?;
        let (name, catalog, entered) = if replication {
            instance.admit_replication(&live)?;
            let (name, catalog) = database::of_replication(&instance)?;
            (name, catalog, None)
        } else {
            let name = match request.database.as_str() {
                "" => request.user.clone(),
                name => name.to_owned(),
            };
            let (catalog, entered) = match entered {
                Some(entered) => (database::of_member(&instance, &entered)?, entered),
                None => database::enter(&instance, &name, &role, request.own)?,
            };
            (name, catalog, Some(entered))
        };
        let database = catalog.database;
        live.set_user(
            (role.oid, &role.name),
            (database, &name),
            (request.client, request.server),
            request.local,
        );
        let mut settings = SessionSettings::new(Arc::clone(&instance.settings), &request.user)?;
        settings.begin_as(&role);
        database::begin_settings(&catalog, &role, &mut settings);
        let given = options(&request.options)?
            .into_iter()
            .chain(request.settings);
        let (identity, given): (Vec<_>, Vec<_>) =
            given.partition(|(name, _)| settings::is_identity(name));
        for (name, value) in given {
            settings.set_initial(&name, &value)?;
        }
        // What the roles tell rests on it.
        let mut reply_dependencies = ReplyDependencies::default();
        reply_dependencies.merge(&CommitWait::floor(instance.store.newest_change()), true);
        let temporary = Rc::new(TempObjects::new(&instance.store, pid));
        let context = SessionContext::new(
            instance,
            worker.worker.clone(),
            name.clone(),
            request.user,
            (pid, live, Arc::clone(&signals)),
            settings,
            catalog,
        );
        let mut session = Session {
            worker: Rc::clone(worker),
            context: Rc::new(context),
            signals,
            secret,
            database,
            block: BlockState::None,
            modes: TransactionModes {
                isolation: logstead_engine::Isolation::ReadCommitted,
                read_only: false,
                deferrable: false,
                isolation_name: "read committed",
            },
            open: None,
            temporary,
            as_of_snapshot: None,
            as_of_clause: None,
            savepoints: Vec::new(),
            portals: HashMap::default(),
            suspended: 0,
            cursors: Cursors::default(),
            in_simple_query: false,
            reply_dependencies,
            working: None,
            running: None,
            routines: 0,
            stack_begins: 0,
            atomic: 0,
            bodies: 0,
            stable: 0,
            in_use: Vec::new(),
            buffered_notices: Vec::new(),
            unnamed_cursors: 0,
            frames: Vec::new(),
            functions: routine::RoutineCache::default(),
            sql_functions: routine::SqlFunctions::default(),
            extended_since: None,
            prior: None,
            subtransaction: None,
            replication,
            placement: None,
            leaves: false,
            at_worker: None,
            entered,
        };
        for (name, value) in identity {
            session
                .context
                .set_identity(&name, Some(&value), false, &roles)?;
            session.context.settings.borrow_mut().commit();
        }
        session.modes = session.default_modes()?;
        Ok(session)
    }
}

/// The `options` of a startup packet: `-c name=value`, `--name=value`; backslash keeps a blank.
fn options(text: &str) -> Result<Vec<(String, String)>> {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => word.extend(chars.next()),
            c if c.is_whitespace() => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            c => word.push(c),
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    let mut found = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let assignment = if word == "-c" {
            words.next().unwrap_or_default()
        } else if let Some(rest) = word.strip_prefix("--").or_else(|| word.strip_prefix("-c")) {
            rest.to_owned()
        } else {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!("invalid command-line argument for server process: {word}"),
            ));
        };
        let (name, value) = assignment
            .split_once('=')
            .ok_or_else(|| settings::unknown(&assignment))?;
        found.push((name.replace('-', "_"), value.to_owned()));
    }
    Ok(found)
}
