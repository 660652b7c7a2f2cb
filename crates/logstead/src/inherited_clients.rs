//! What comes from the server before: clients with their sessions, on their way to workers, and what was in memory.

use crate::worker::{AcceptedClient, ClientStream};
use logstead_engine::PrewarmList;
use logstead_sql_session::{Encryption, SerializedClient};
use std::io;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use tracing::warn;

/// What a server has from the one before it, whose place it takes.
#[derive(Default)]
pub(crate) struct InheritedSessions {
    pub(crate) clients: InheritedClients,
    /// What that one had in memory.
    pub(crate) prewarm: Option<PrewarmList>,
}

/// The clients of another process, which this one goes on with.
#[derive(Default)]
pub(crate) struct InheritedClients {
    pub(crate) sessions: Vec<SerializedClient>,
    /// Clients without a session, by a socket of the file system or not.
    pub(crate) arrivals: Vec<(OwnedFd, bool)>,
}

impl InheritedClients {
    /// The largest process number of its sessions.
    pub(crate) fn last_pid(&self) -> Option<i32> {
        self.sessions
            .iter()
            .map(|client| client.session.pid())
            .max()
    }

    /// Its clients, ready for workers. One whose socket cannot be used is gone.
    pub(crate) fn clients(self) -> (Vec<AcceptedClient>, Vec<ClientStream>) {
        let stream = |descriptor: OwnedFd, local: bool| {
            let prepared = match local {
                true => {
                    let stream = UnixStream::from(descriptor);
                    logstead_env::prepare_local(&stream).map(|()| ClientStream::Local(stream))
                }
                false => {
                    let stream = TcpStream::from(descriptor);
                    logstead_env::prepare_accepted(&stream).map(|()| ClientStream::Host(stream))
                }
            };
            let lost = |error: &io::Error| warn!("a client was lost on its way here: {error}");
            prepared.inspect_err(lost).ok()
        };
        let sessions = self.sessions.into_iter();
        let sessions = sessions.filter_map(|client| {
            let encryption = match client.encryption.map(Encryption::downcast) {
                Some(Ok(encryption)) => Some(*encryption),
                // It would be told in the clear what was encrypted.
                Some(Err(_)) => return None,
                None => None,
            };
            Some(AcceptedClient::Restored {
                stream: stream(client.descriptor, client.session.local)?,
                encryption,
                session: Box::new(client.session),
                input: (client.input, client.unwanted),
            })
        });
        let arrivals = self.arrivals.into_iter();
        let arrivals = arrivals.filter_map(|(descriptor, local)| stream(descriptor, local));
        (sessions.collect(), arrivals.collect())
    }
}
