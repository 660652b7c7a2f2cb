//! Clients that have connected, until a worker has them.
//!
//! Owns: who waits for a client's first packet, how many clients there may be, and requests to cancel. Those are read
//! and carried out by the thread that accepts: the statement that they are to end may be what holds the only worker.
//! What else a client begins with stays in its socket and is the worker's to read.
//!
//! Invariant: who has connected and said nothing is counted among the clients, and cut off after
//! `authentication_timeout`,
//! which counts from then on: what it has left is all that its worker gives it to prove who it is.
//!
//! Does not: decrypt. Who asks for encryption goes to a worker at once, a request to cancel within as well.

use crate::inherited_clients::InheritedClients;
use crate::worker::{AcceptedClient, ClientStream, Inbox};
use logstead_sql_session::Instance;
use logstead_wire::decode::{CANCEL_BYTES, cancel_request};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
    phase: watch::Sender<AdmissionPhase>,
    /// How often clients have been handed out.
    times: AtomicU64,
    /// Clients on their way to another process, and whether they came by a socket of the file system.
    handed_out: Mutex<Vec<(OwnedFd, bool)>>,
}

/// What becomes of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AdmissionPhase {
    /// Workers get them.
    Open,
    /// They wait; requests to cancel are carried out.
    Held,
    /// Those that wait are handed out to another process, and nobody is accepted. Each time has its number.
    HandedOut(u64),
    /// Nobody is taken in any more: whoever has not said anything is cut off, so that what serves can end.
    Closed,
}

/// How long all sessions wait for the last of them to be restored.
const RESTORE_TIME: Duration = Duration::from_secs(30);
/// How often it is looked whether all have been handed out.
const POLL: Duration = Duration::from_millis(1);

/// One of them, until it is somebody else's.
struct Silent(Arc<ClientAdmission>);

impl Drop for Silent {
    fn drop(&mut self) {
        self.0.silent.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Silent {
    /// Waits for what the client wants, and gives it to whoever has it then.
    async fn admit(self, stream: impl AcceptedStream, mut deadline: Instant) {
        let mut phase = self.0.phase.subscribe();
        let mut packet = [0; CANCEL_BYTES];
        let mut said = None;
        let mut handed_out = None;
        loop {
            let now = *phase.borrow_and_update();
            match (now, said) {
                (AdmissionPhase::Closed, _) => return,
                (AdmissionPhase::HandedOut(number), _) if handed_out != Some(number) => {
                    // One that is gone is nobody's.
                    let Ok(descriptor) = stream.descriptor() else {
                        return;
                    };
                    let client = (descriptor, stream.is_local());
                    self.0.handed_out().push(client);
                    handed_out = Some(number);
                }
                (AdmissionPhase::Open, Some(())) => return self.0.hand_over(stream, deadline),
                (AdmissionPhase::Held, _) => {
                    // The time that it is held is not its own.
                    deadline = Instant::now() + self.0.patience;
                }
                (AdmissionPhase::Open, None) | (AdmissionPhase::HandedOut(_), _) => {}
            }
            let peeked = async {
                match said {
                    None => stream.peeked(&mut packet).await,
                    Some(_) => std::future::pending().await,
                }
            };
            // What it says while it is another process's stays for that one.
            let count = tokio::select! {
                biased;
                _ = phase.changed() => continue,
                count = peeked, if !matches!(now, AdmissionPhase::HandedOut(_)) => count,
                () = tokio::time::sleep_until(deadline), if now == AdmissionPhase::Open => return,
            };
            let packet = match count {
                Ok(count) if count > 0 => packet.get(..count).unwrap_or_default(),
                // Gone before it said anything.
                Ok(_) | Err(_) => return,
            };
            if let Some((pid, secret)) = cancel_request(packet) {
                self.0.instance.cancel(pid, secret);
                // With something left unread the client would be told of an error, not of the end.
                return stream.forget(&mut [0; CANCEL_BYTES]);
            }
            said = Some(());
        }
    }
}

impl ClientAdmission {
    /// For these workers.
    pub(crate) fn new(
        workers: Vec<Arc<Inbox>>,
        instance: Arc<Instance>,
        most: usize,
        patience: Duration,
    ) -> ClientAdmission {
        ClientAdmission {
            workers,
            instance,
            most,
            patience,
            silent: AtomicUsize::new(0),
            phase: watch::Sender::new(AdmissionPhase::Open),
            times: AtomicU64::new(0),
            handed_out: Mutex::default(),
        }
    }

    /// Cuts off whoever has not said anything. To be called when nobody arrives any more.
    pub(crate) fn close(&self) {
        self.phase.send_replace(AdmissionPhase::Closed);
    }

    /// Whoever comes waits, until it goes on.
    pub(crate) fn hold(&self) {
        self.phase.send_replace(AdmissionPhase::Held);
    }

    /// Workers get whoever waits.
    pub(crate) fn open(&self) {
        self.phase.send_replace(AdmissionPhase::Open);
        self.handed_out().clear();
    }

    /// Whoever waits is another process's; nobody is to be accepted.
    pub(crate) fn hand_out(&self) {
        let number = self.times.fetch_add(1, Ordering::Relaxed);
        self.handed_out().clear();
        self.phase.send_replace(AdmissionPhase::HandedOut(number));
    }

    /// Clients that no worker has.
    pub(crate) fn silent_count(&self) -> usize {
        self.silent.load(Ordering::Relaxed)
    }

    /// Those who waited, once all of them have been handed out; none if that takes longer than `limit`.
    pub(crate) async fn handed_out_within(&self, limit: Duration) -> Option<Vec<(OwnedFd, bool)>> {
        let all = async {
            while self.handed_out().len() < self.silent.load(Ordering::Relaxed) {
                tokio::time::sleep(POLL).await;
            }
        };
        tokio::time::timeout(limit, all).await.ok()?;
        Some(std::mem::take(&mut *self.handed_out()))
    }

    fn handed_out(&self) -> MutexGuard<'_, Vec<(OwnedFd, bool)>> {
        let all = self.handed_out.lock();
        all.unwrap_or_else(PoisonError::into_inner)
    }

    /// May clients be accepted now?
    pub(crate) fn accepts(&self) -> bool {
        !matches!(*self.phase.borrow(), AdmissionPhase::HandedOut(_))
    }

    /// Where clients may not be accepted: waits until they may. Where they may: until they may not.
    pub(crate) async fn accepting_changes(&self) {
        let accepts = self.accepts();
        let mut phase = self.phase.subscribe();
        let changed =
            phase.wait_for(|phase| matches!(phase, AdmissionPhase::HandedOut(_)) == accepts);
        // The sender is here.
        let _phase = changed.await;
    }

    /// Takes a client in. One that is beyond `most` is told so and cut off, whoever it is and whatever it wants.
    pub(crate) fn arrived(self: &Arc<Self>, stream: impl AcceptedStream) {
        if self.connections() + self.silent.load(Ordering::Relaxed) >= self.most {
            stream.try_send(&logstead_wire::encode::too_many_clients());
            return;
        }
        self.silent.fetch_add(1, Ordering::Relaxed);
        let silent = Silent(Arc::clone(self));
        let deadline = Instant::now() + self.patience;
        tokio::spawn(async move { silent.admit(stream, deadline).await });
    }

    /// Clients that a worker has, those without a session included.
    pub(crate) fn connections(&self) -> usize {
        let sessions = self.workers.iter();
        sessions
            .map(|worker| worker.sessions.load(Ordering::Relaxed))
            .sum()
    }

    /// Takes in the clients of another process. None of them goes on before all sessions are there: one may notify
    /// another, or cancel it.
    pub(crate) async fn restore(self: &Arc<Self>, clients: InheritedClients) {
        let (sessions, arrivals) = clients.clients();
        if !sessions.is_empty() {
            self.instance.pause();
            let mut workers = self.workers.iter().cycle();
            for session in sessions {
                if let Some(worker) = workers.next() {
                    worker.send(session);
                }
            }
            let all = async {
                while self.connections() > self.instance.paused_count() {
                    tokio::time::sleep(POLL).await;
                }
            };
            if tokio::time::timeout(RESTORE_TIME, all).await.is_err() {
                info!("sessions are still being restored while others go on");
            }
            self.instance.resume();
        }
        for stream in arrivals {
            let arrived = match stream {
                ClientStream::Host(stream) => {
                    tokio::net::TcpStream::from_std(stream).map(|stream| self.arrived(stream))
                }
                ClientStream::Local(stream) => {
                    tokio::net::UnixStream::from_std(stream).map(|stream| self.arrived(stream))
                }
            };
            if let Err(error) = arrived {
                info!("a connection was lost at once: {error}");
            }
        }
    }

    /// Gives a client to the worker with the fewest.
    fn hand_over(&self, stream: impl AcceptedStream, deadline: Instant) {
        let fewest = self.workers.iter();
        let fewest = fewest.min_by_key(|worker| worker.sessions.load(Ordering::Relaxed));
        match (stream.prepared(), fewest) {
            (Ok(stream), Some(worker)) => worker.send(AcceptedClient::New { stream, deadline }),
            (Ok(_), None) => {}
            // Gone before it was looked at.
            (Err(error), _) => info!("a connection was lost at once: {error}"),
        }
    }
}

/// A client's stream as it was accepted.
pub(crate) trait AcceptedStream: Send + Sync + 'static {
    /// Writes what fits.
    fn try_send(&self, bytes: &[u8]);
    /// Waits until something has come and gives what fits, which stays there; nothing if the client is gone.
    fn peeked(&self, into: &mut [u8]) -> impl Future<Output = std::io::Result<usize>> + Send;
    /// Takes off what was peeked.
    fn forget(&self, peeked: &mut [u8]);
    /// Another name of it, for another process.
    fn descriptor(&self) -> std::io::Result<OwnedFd>;
    /// From a socket of the file system?
    fn is_local(&self) -> bool;
    /// Made ready for a worker's runtime.
    fn prepared(self) -> std::io::Result<ClientStream>;
}

impl AcceptedStream for tokio::net::TcpStream {
    fn descriptor(&self) -> std::io::Result<OwnedFd> {
        self.as_fd().try_clone_to_owned()
    }

    fn is_local(&self) -> bool {
        false
    }

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
    fn descriptor(&self) -> std::io::Result<OwnedFd> {
        self.as_fd().try_clone_to_owned()
    }

    fn is_local(&self) -> bool {
        true
    }

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
