//! Clients that have connected, until a worker has them.
//!
//! Owns: who waits for a client's first packet, how many clients there may be, and requests to cancel. Those are read and carried out by the thread that accepts: the
//! statement that they are to end may be what holds the only worker. What else a client begins with stays in its socket and is the worker's to read.
//!
//! Invariant: who has connected and said nothing is counted among the clients, and cut off after
//! `authentication_timeout`,
//! which counts from then on: what it has left is all that its worker gives it to prove who it is.
//!
//! Does not: decrypt. Who asks for encryption goes to a worker at once, a request to cancel within as well.

use crate::worker::{AcceptedClient, ClientStream, Inbox};
use logstead_sql_session::Instance;
use logstead_wire::decode::{CANCEL_BYTES, cancel_request};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::Interest;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::info;

/// Where clients arrive.
pub(crate) struct ClientAdmission {
    pub(crate) workers: Vec<Arc<Inbox>>,
    pub(crate) instance: Arc<Instance>,
    /// Most clients, those included that are only told that they are too many.
    pub(crate) most: usize,
    /// How long a client may take to say what it wants, and to prove who it is.
    pub(crate) patience: Duration,
    /// Clients that have not said anything.
    pub(crate) silent: AtomicUsize,
    /// Nobody is taken in any more: whoever has not said anything is cut off, so that what serves can end.
    pub(crate) closed: watch::Sender<bool>,
}

/// One of them, until it is somebody else's.
struct Silent(Arc<ClientAdmission>);

impl Drop for Silent {
    fn drop(&mut self) {
        self.0.silent.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ClientAdmission {
    /// Cuts off whoever has not said anything. To be called when nobody arrives any more.
    pub(crate) fn close(&self) {
        self.closed.send_replace(true);
    }

    /// Takes a client in. One that is beyond `most` is told so and cut off, whoever it is and whatever it wants.
    pub(crate) fn arrived(self: &Arc<Self>, stream: impl AcceptedStream) {
        let sessions = self.workers.iter();
        let sessions = sessions.map(|worker| worker.sessions.load(Ordering::Relaxed));
        if sessions.sum::<usize>() + self.silent.load(Ordering::Relaxed) >= self.most {
            stream.try_send(&logstead_wire::encode::too_many_clients());
            return;
        }
        self.silent.fetch_add(1, Ordering::Relaxed);
        let silent = Silent(Arc::clone(self));
        let deadline = Instant::now() + self.patience;
        let mut closed = self.closed.subscribe();
        tokio::spawn(async move {
            let mut packet = [0; CANCEL_BYTES];
            let said = tokio::time::timeout_at(deadline, stream.peeked(&mut packet));
            let said = tokio::select! {
                said = said => said,
                _ = closed.wait_for(|closed| *closed) => return,
            };
            let packet = match said {
                Ok(Ok(count)) if count > 0 => packet.get(..count).unwrap_or_default(),
                // Gone before it said anything, or silent for too long.
                Ok(_) | Err(_) => return,
            };
            match cancel_request(packet) {
                Some((pid, secret)) => {
                    silent.0.instance.cancel(pid, secret);
                    // With something left unread the client would be told of an error, not of the end.
                    stream.forget(&mut [0; CANCEL_BYTES]);
                }
                None => silent.0.hand_over(stream, deadline),
            }
        });
    }

    /// Gives a client to the worker with the fewest.
    fn hand_over(&self, stream: impl AcceptedStream, deadline: Instant) {
        let fewest = self.workers.iter();
        let fewest = fewest.min_by_key(|worker| worker.sessions.load(Ordering::Relaxed));
        match (stream.prepared(), fewest) {
            (Ok(stream), Some(worker)) => worker.send(AcceptedClient { stream, deadline }),
            (Ok(_), None) => {}
            // Gone before it was looked at.
            (Err(error), _) => info!("a connection was lost at once: {error}"),
        }
    }
}

/// A client's stream as it was accepted.
pub(crate) trait AcceptedStream: Send + 'static {
    /// Writes what fits.
    fn try_send(&self, bytes: &[u8]);
    /// Waits until something has come and gives what fits, which stays there; nothing if the client is gone.
    fn peeked(&self, into: &mut [u8]) -> impl Future<Output = std::io::Result<usize>> + Send;
    /// Takes off what was peeked.
    fn forget(&self, peeked: &mut [u8]);
    /// Made ready for a worker's runtime.
    fn prepared(self) -> std::io::Result<ClientStream>;
}

impl AcceptedStream for tokio::net::TcpStream {
    fn try_send(&self, bytes: &[u8]) {
        // It fits the socket's buffer, or nobody is there.
        let _nobody_waits = self.try_write(bytes);
    }

    async fn peeked(&self, into: &mut [u8]) -> std::io::Result<usize> {
        self.async_io(Interest::READABLE, || logstead_env::peek(self, into))
            .await
    }

    fn forget(&self, peeked: &mut [u8]) {
        let _it_is_over_in_any_case = self.try_read(peeked);
    }

    fn prepared(self) -> std::io::Result<ClientStream> {
        let stream = self.into_std()?;
        logstead_env::prepare_accepted(&stream)?;
        Ok(ClientStream::Host(stream))
    }
}

impl AcceptedStream for tokio::net::UnixStream {
    fn try_send(&self, bytes: &[u8]) {
        let _nobody_waits = self.try_write(bytes);
    }

    async fn peeked(&self, into: &mut [u8]) -> std::io::Result<usize> {
        self.async_io(Interest::READABLE, || logstead_env::peek(self, into))
            .await
    }

    fn forget(&self, peeked: &mut [u8]) {
        let _it_is_over_in_any_case = self.try_read(peeked);
    }

    fn prepared(self) -> std::io::Result<ClientStream> {
        let stream = self.into_std()?;
        logstead_env::prepare_local(&stream)?;
        Ok(ClientStream::Local(stream))
    }
}
