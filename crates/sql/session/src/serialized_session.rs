//! A session as data: what `serialize` makes and reads, and what one process sends to another.
//!
//! Invariant: fields have names, and one that is missing has a default: the two processes may run different programs.

use logstead_sql_catalog::SerializedSequences;
use logstead_sql_catalog::settings::SerializedSettings;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// What a client can see of its session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SerializedSession {
    /// The cancel key.
    pub(super) pid: i32,
    pub(super) secret: i32,
    /// The user of the startup packet, and the role that was let in.
    pub(super) user: String,
    pub(super) role: u32,
    pub(super) database: String,
    pub(super) client: Option<SocketAddr>,
    pub(super) server: Option<SocketAddr>,
    /// The client came by a socket of the file system.
    pub local: bool,
    /// When the session began, in microseconds since 2000-01-01 UTC.
    pub(super) begun: i64,
    pub(super) settings: SerializedSettings,
    pub(super) statements: Vec<SerializedStatement>,
    /// Channels that it listens to.
    pub(super) channels: Vec<String>,
    pub(super) notifications: Vec<SerializedNotification>,
    pub(super) sequences: SerializedSequences,
    /// What setseed() has begun.
    pub(super) random: Option<[u64; 2]>,
}

/// A prepared statement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct SerializedStatement {
    pub(super) name: String,
    /// The text that it was sent in.
    pub(super) text: String,
    /// By PREPARE, which begins at this byte of the text.
    pub(super) prepare: Option<usize>,
    pub(super) types: Vec<Option<u32>>,
    /// What was told of its columns, which stays true; none if nothing was told.
    pub(super) columns: Option<Vec<SerializedColumn>>,
    pub(super) gives_rows: bool,
    pub(super) prepared_at: i64,
    pub(super) runs: i64,
}

/// A notification that the client was not told of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct SerializedNotification {
    pub(super) pid: i32,
    pub(super) channel: String,
    pub(super) payload: String,
}

/// A column of a prepared statement's result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct SerializedColumn {
    pub(super) name: String,
    /// OID and modifier of its type.
    pub(super) ty: (u32, i32),
    pub(super) domain: Option<u32>,
    pub(super) origin: (u32, i16),
}

impl SerializedSession {
    /// Its process number.
    pub fn pid(&self) -> i32 {
        self.pid
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_version_says_is_read() {
        let session = SerializedSession {
            pid: 7,
            user: "ada".to_owned(),
            statements: vec![SerializedStatement {
                name: "s".to_owned(),
                columns: Some(vec![SerializedColumn::default()]),
                ..SerializedStatement::default()
            }],
            random: Some([1, u64::MAX]),
            ..SerializedSession::default()
        };
        let text = serde_json::to_string(&session).unwrap();
        let read: SerializedSession = serde_json::from_str(&text).unwrap();
        assert_eq!(read, session);
        // One that knows less, and one that knows more.
        let text = r#"{"pid": 7, "user": "ada", "new": {"deep": [1]}}"#;
        let read: SerializedSession = serde_json::from_str(text).unwrap();
        assert_eq!((read.pid, read.user.as_str()), (7, "ada"));
        assert_eq!(read.channels, Vec::<String>::new());
    }
}
