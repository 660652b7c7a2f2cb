//! Sockets of this machine's file system (`unix_socket_directories`), and what the server was started with as
//! PostgreSQL's settings have it.
//!
//! Invariant: where directories were named, a socket is made in each of them or the server does not start. In the one
//! that the server chose itself nobody may count on one: there it is a warning.

use crate::client_admission::ClientAdmission;
use crate::config::Config;
use logstead_env::{LocalSocket, LocalSocketDescriptors, LockFileLines, can_write_in};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixListener;
use tracing::{info, warn};

/// Where clients look for sockets that are not told where: those of Debian's packages, and all others.
const USUAL: [&str; 2] = ["/var/run/postgresql", "/tmp"];
/// A pause after accept fails.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Seconds from 1970 to PostgreSQL's epoch.
const EPOCH_S: i64 = 946_684_800;
/// PostgreSQL's pages.
const BLOCK_BYTES: u64 = 8192;

/// The sockets that are listened on. Their files go with them.
#[derive(Default)]
pub(crate) struct Sockets {
    sockets: Vec<LocalSocket>,
    /// Those of another process that are not listened on here. Their files go with this.
    inherited: Vec<LocalSocket>,
}

impl Sockets {
    /// Makes them, and says in the settings where they are.
    /// One that was inherited is not made.
    pub(crate) fn open(
        config: &mut Config,
        port: u16,
        now_us: i64,
        inherited: Vec<LocalSocketDescriptors>,
    ) -> Result<Sockets, String> {
        let chosen: Vec<PathBuf> = match &config.socket_directories {
            Some(named) => named.clone(),
            // Sockets have files beside them, and a server whose log is elsewhere writes on no disk unless it is told
            // to.
            None if config
                .home
                .as_ref()
                .or(config.replica_of.as_ref())
                .is_some_and(|home| !home.starts_with("file:")) =>
            {
                Vec::new()
            }
            None => USUAL
                .iter()
                .map(PathBuf::from)
                .find(|directory| can_write_in(directory))
                .into_iter()
                .collect(),
        };
        let data = config.data_directory.display().to_string();
        let about = lock_file_lines(&data, now_us);
        let (mut sockets, mut names) = (Vec::new(), Vec::new());
        let mut taken_over = Vec::new();
        for socket in inherited {
            let socket = LocalSocket::inherit(socket);
            taken_over.push(socket.map_err(|error| format!("cannot take a socket over: {error}"))?);
        }
        for directory in chosen {
            let path = directory.join(format!(".s.PGSQL.{port}"));
            let known = taken_over.iter().position(|socket| socket.path() == path);
            let made = match known {
                Some(at) => Ok(taken_over.swap_remove(at)),
                None => LocalSocket::listen(&directory, port, config.socket_permissions, about),
            };
            match made {
                Ok(socket) => {
                    names.push(directory.display().to_string());
                    sockets.push(socket);
                }
                Err(error) => {
                    let told = format!(
                        "could not create Unix-domain socket in directory \"{}\": {error}",
                        directory.display()
                    );
                    match config.socket_directories {
                        Some(_) => return Err(told),
                        None => warn!("{told}"),
                    }
                }
            }
        }
        let key = "unix_socket_directories".to_owned();
        config.values.insert(key, names.join(", "));
        Ok(Sockets {
            sockets,
            inherited: taken_over,
        })
    }

    /// Each of them.
    pub(crate) fn each(&self) -> impl Iterator<Item = &LocalSocket> {
        self.sockets.iter()
    }

    /// The process that has listened on the inherited ones is gone. Those that are not listened on here go.
    pub(crate) fn own(&mut self, config: &Config, now_us: i64) {
        let data = config.data_directory.display().to_string();
        let about = lock_file_lines(&data, now_us);
        for socket in self.sockets.iter_mut().chain(&mut self.inherited) {
            if let Err(error) = socket.own(config.socket_permissions, about) {
                warn!("{}: {error}", socket.path().display());
            }
        }
        self.inherited.clear();
    }

    /// Accepts from each of them for as long as what is given back lives.
    pub(crate) fn accept(
        &self,
        arrivals: &Arc<ClientAdmission>,
    ) -> Result<tokio::task::JoinSet<()>, String> {
        let mut accepting = tokio::task::JoinSet::new();
        for socket in &self.sockets {
            info!("clients of this machine at {}", socket.path().display());
            let arrivals = Arc::clone(arrivals);
            let listener = socket
                .listener
                .try_clone()
                .and_then(UnixListener::from_std)
                .map_err(|error| format!("cannot listen: {error}"))?;
            accepting.spawn(async move {
                loop {
                    let accepted = tokio::select! {
                        biased;
                        () = arrivals.accepting_changes() => continue,
                        accepted = listener.accept(), if arrivals.accepts() => accepted,
                    };
                    match accepted {
                        Ok((stream, _)) => arrivals.arrived(stream),
                        Err(error) => {
                            warn!("cannot accept a connection: {error}");
                            tokio::time::sleep(ACCEPT_PAUSE).await;
                        }
                    }
                }
            });
        }
        Ok(accepting)
    }
}

fn lock_file_lines(data_directory: &str, now_us: i64) -> LockFileLines<'_> {
    LockFileLines {
        data_directory,
        started: now_us / 1_000_000 + EPOCH_S,
    }
}

/// What PostgreSQL's settings tell of how a server was started.
pub(crate) fn report_settings(config: &mut Config, address: SocketAddr, open_files: Option<u64>) {
    let ip = address.ip();
    let listens = match ip.is_unspecified() {
        true => "*".to_owned(),
        false => ip.to_string(),
    };
    let seconds = config.checkpoint_interval.as_millis().div_ceil(1000);
    let mut tell = |name: &str, value: String| {
        config.values.insert(name.to_owned(), value);
    };
    tell("port", address.port().to_string());
    tell("listen_addresses", listens);
    tell(
        "shared_buffers",
        (config.memory_bytes / BLOCK_BYTES).to_string(),
    );
    tell("wal_segment_size", config.segment_size_bytes.to_string());
    tell("checkpoint_timeout", seconds.to_string());
    if let Some(most) = open_files {
        tell(
            "max_files_per_process",
            most.min(i32::MAX as u64).to_string(),
        );
    }
    if cfg!(debug_assertions) {
        tell("debug_assertions", "on".to_owned());
    }
    if let Some(file) = &config.file {
        tell("config_file", file.clone());
        if config.hba.is_some() {
            tell("hba_file", file.clone());
        }
        if !config.identities.is_empty() {
            tell("ident_file", file.clone());
        }
    }
}
