//! Replacing a server by another process of the same machine, under its clients: `serve --replace`, or SIGUSR2.
//!
//! The process that has the log is the *predecessor*, the one that is to have it the *successor*. Steps:
//!
//! 1. The successor reads its settings and connects to the predecessor, over a socket that only the same user's
//!    processes use ([`channel_name`]). It reads the log beside the predecessor once, as a replica begins: what its
//!    program cannot read is found out now. It says that it is ready, and which number it has found at the home
//!    (`logstead_wal::server_identity`): whoever cannot read the log gets nobody's connection.
//! 2. The predecessor takes a checkpoint, so that the successor has little to read, and sends what it has in memory, if
//!    both have `autoprewarm` and know of it. It serves meanwhile.
//! 3. *The pause begins.* Sessions begin no transaction any more, and pause when they have ended the one that is open
//!    (`logstead_sql_session::pause`). Those that take longer than `replace_grace` end with 57P01. Clients that connect
//!    wait, requests to cancel that are not encrypted are carried out.
//! 4. The predecessor sends its sockets, with what each session is, and the successor says that it has everything.
//!    *Up to here* whatever fails on either side, the end of the other one included, has the predecessor resume its
//!    sessions.
//! 5. *The last word* ([`FromPredecessor::Yours`]). Behind it the predecessor does nothing but end, whatever signal
//!    comes. The successor goes on only if it has heard that, and has seen the end: so nobody writes to the log when it
//!    opens it, as any start does. The lease is not given back but handed over, so nobody else takes it in between.
//! 6. The successor restores all sessions before one of them goes on: a notification finds its listeners. *The pause is
//!    over.*
//!
//! What a client sees: its next answer takes as long as the pause. Sessions with what is one process's alone
//! (temporary tables, held cursors, advisory locks, TLS) end with 57P01 in step 5, a stream of the log in step 3.

mod predecessor;
mod successor;

pub(crate) use predecessor::{
    ListenerDescriptors, ReplacedServer, Replacement, ReplacementEvent, check_descriptors,
};
pub(crate) use successor::take_over;

use crate::config::Config;
use crate::open::place;
use logstead_env::DescriptorChannel;
use logstead_sql_session::SerializedSession;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

/// What the two say to each other may change with this number only.
const PROTOCOL: u32 = 1;
/// A process that says nothing for so long where it has nothing to wait for is given up.
const ANSWER_TIME: Duration = Duration::from_secs(30);
/// How much of a home's name is in the channel's.
const NAME_BYTES_MAX: usize = 64;

/// What the successor says.
#[derive(Debug, Serialize, Deserialize)]
enum FromSuccessor {
    /// Its first word.
    Hello {
        protocol: u32,
        process: u32,
        version: String,
    },
    /// It can read the log, and has found there what the predecessor has left for it.
    Ready {
        identity: Option<u64>,
        /// It wants to know what the predecessor has in memory.
        #[serde(default)]
        prewarm: bool,
    },
    /// It has everything.
    Received { messages: usize },
}

/// What the predecessor says. Descriptors go with the message that names them.
#[derive(Debug, Serialize, Deserialize)]
enum FromPredecessor {
    Welcome {
        process: u32,
        /// Its setting `listen`.
        listen: String,
        /// The way of writing that it has found to be the fastest there.
        #[serde(default)]
        write_way: Option<String>,
    },
    Refused {
        why: String,
    },
    /// What it has in memory, for a successor that has asked for it. Before everything else, and not counted.
    Prewarm {
        list: Vec<u8>,
    },
    Listener(ListenerName),
    /// A client with its session, and what has come from it.
    Client {
        session: Box<SerializedSession>,
        input: Vec<u8>,
        unwanted: usize,
    },
    /// A client that has no session yet.
    Arrival {
        local: bool,
    },
    /// That was all.
    Complete {
        messages: usize,
    },
    /// The last word: everything is the successor's, once this process has ended. Without it nothing is.
    Yours {
        /// The owner of the lease, if the home has one.
        lease: Option<u64>,
    },
}

/// What is listened on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum ListenerName {
    /// `listen`.
    Clients,
    /// `metrics_listen`.
    Metrics,
    /// A socket of the file system: the listener and the lock file beside it.
    Local(PathBuf),
}

/// The name under which a server of this home waits for its successor. One home has one server.
fn channel_name(config: &Config) -> String {
    let place = place(config);
    let place = place.strip_prefix("file://").unwrap_or(&place);
    let place = match place.contains("://") {
        true => place.to_owned(),
        // The two may have been started in different directories.
        false => std::path::absolute(place)
            .map_or_else(|_| place.to_owned(), |path| path.display().to_string()),
    };
    let branch = config.branch.as_deref().unwrap_or_default();
    let whole = format!("{place}#{branch}");
    let mut begins = whole.len().saturating_sub(NAME_BYTES_MAX);
    while !whole.is_char_boundary(begins) {
        begins += 1;
    }
    format!(
        "logstead/{}/{:08x}/{}",
        logstead_env::user_id(),
        crc32c::crc32c(whole.as_bytes()),
        whole.get(begins..).unwrap_or_default()
    )
}

fn send<M: Serialize>(
    channel: &mut DescriptorChannel,
    message: &M,
    descriptors: &[OwnedFd],
) -> io::Result<()> {
    let text = serde_json::to_vec(message)?;
    let borrowed: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
    channel.send(&text, &borrowed)
}

fn receive<M: DeserializeOwned>(channel: &mut DescriptorChannel) -> io::Result<(M, Vec<OwnedFd>)> {
    let (text, descriptors) = channel.receive()?;
    Ok((serde_json::from_slice(&text)?, descriptors))
}
