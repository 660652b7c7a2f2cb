//! A channel between two processes of one user on one machine, over which messages and open files go.
//!
//! Owns: the abstract Unix socket that one process waits on, under a name that other programs of the user can work out,
//! and messages with descriptors (`SCM_RIGHTS`).
//!
//! Invariants:
//! - Both ends see which user the other one is, and take nothing from another one: anybody may take a name that is
//!   free.
//! - A message arrives whole, with its descriptors, or is an error. Neither size nor count is trusted: both are
//!   bounded.
//! - Descriptors that come are closed at exec, as all of ours are.

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;

/// Descriptors of one message.
pub const DESCRIPTORS_MAX: usize = 16;
/// The longest message: a session with all its prepared statements.
const MESSAGE_BYTES_MAX: usize = 1 << 30;
/// The length of a message, and the number of its descriptors, before it.
const HEADER_BYTES: usize = 8;
/// A message's room grows with what has come of it, not with what its header says.
const PIECE_BYTES: usize = 64 << 10;

/// Waits for the other process.
pub struct DescriptorListener(UnixListener);

impl DescriptorListener {
    /// Waits under this name, which nobody else on this machine may have.
    pub fn bind(name: &str) -> io::Result<DescriptorListener> {
        let address = SocketAddr::from_abstract_name(name)?;
        Ok(DescriptorListener(UnixListener::bind_addr(&address)?))
    }

    /// The next process that comes; another user's is an error.
    pub fn accept(&self) -> io::Result<DescriptorChannel> {
        let (stream, _) = self.0.accept()?;
        DescriptorChannel::checked(stream)
    }
}

/// One end of a channel. Sending and receiving block.
pub struct DescriptorChannel(UnixStream);

impl DescriptorChannel {
    /// Connects to the process that waits under this name. [`io::ErrorKind::ConnectionRefused`] if there is none.
    pub fn connect(name: &str) -> io::Result<DescriptorChannel> {
        let address = SocketAddr::from_abstract_name(name)?;
        DescriptorChannel::checked(UnixStream::connect_addr(&address)?)
    }

    /// Two ends in this process.
    pub fn pair() -> io::Result<(DescriptorChannel, DescriptorChannel)> {
        let (one, other) = UnixStream::pair()?;
        Ok((DescriptorChannel(one), DescriptorChannel(other)))
    }

    fn checked(stream: UnixStream) -> io::Result<DescriptorChannel> {
        let own = rustix::process::geteuid().as_raw();
        match crate::peer_user(&stream)? {
            user if user == own => Ok(DescriptorChannel(stream)),
            user => Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!("the other process is user {user}'s, and this one is user {own}'s"),
            )),
        }
    }

    /// How long sending and receiving wait for the other process; none is for ever.
    pub fn set_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        self.0.set_read_timeout(limit)?;
        self.0.set_write_timeout(limit)
    }

    /// Sends a message, with open files that the other process gets as its own; this one keeps its.
    pub fn send(&mut self, message: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        if message.len() > MESSAGE_BYTES_MAX || descriptors.len() > DESCRIPTORS_MAX {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the message is too long",
            ));
        }
        let mut header = [0; HEADER_BYTES];
        let (length, count) = header.split_at_mut(4);
        length.copy_from_slice(&(message.len() as u32).to_le_bytes());
        count.copy_from_slice(&(descriptors.len() as u32).to_le_bytes());
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !beside.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return Err(io::Error::other("no room for descriptors"));
        }
        // A process that is stopped and goes on is interrupted, where there is a limit of time.
        let sent = rustix::io::retry_on_intr(|| {
            rustix::net::sendmsg(
                &self.0,
                &[IoSlice::new(&header)],
                &mut beside,
                SendFlags::NOSIGNAL,
            )
        })?;
        self.0.write_all(header.get(sent..).unwrap_or_default())?;
        self.0.write_all(message)
    }

    /// The next message and what came with it. [`io::ErrorKind::UnexpectedEof`] once the other process has let go of
    /// its end, as it does when it ends.
    pub fn receive(&mut self) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
        let mut header = [0; HEADER_BYTES];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut beside = RecvAncillaryBuffer::new(&mut space);
        let came = rustix::io::retry_on_intr(|| {
            rustix::net::recvmsg(
                &self.0,
                &mut [IoSliceMut::new(&mut header)],
                &mut beside,
                RecvFlags::CMSG_CLOEXEC,
            )
        })?;
        let mut descriptors = Vec::new();
        for part in beside.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = part {
                descriptors.extend(rights);
            }
        }
        if came.bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.0
            .read_exact(header.get_mut(came.bytes..).unwrap_or_default())?;
        let number = |at: usize| {
            let bytes = header.get(at..at + 4).and_then(|b| b.try_into().ok());
            u32::from_le_bytes(bytes.unwrap_or_default()) as usize
        };
        let (length, count) = (number(0), number(4));
        let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        if length > MESSAGE_BYTES_MAX {
            return Err(wrong("the message is too long"));
        }
        // The kernel leaves out what is more than this process may have open.
        if count != descriptors.len() {
            return Err(wrong(
                "descriptors are missing: this process may not open more files",
            ));
        }
        let mut message = Vec::new();
        while message.len() < length {
            let at = message.len();
            message.resize(length.min(at + PIECE_BYTES), 0);
            self.0.read_exact(&mut message[at..])?;
        }
        Ok((message, descriptors))
    }

    /// Has the other process let go of its end? Does not wait; what has come stays to be received.
    pub fn has_ended(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        !matches!(
            rustix::net::recv(&self.0, &mut [0; 1], flags),
            Ok((1.., _)) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR)
        )
    }

    /// Waits until the other process has let go of its end, or for some time, which is `limit` at most: false then.
    pub fn wait_for_end(&mut self, limit: Duration) -> io::Result<bool> {
        self.0.set_read_timeout(Some(limit))?;
        match self.0.read(&mut [0]) {
            Ok(0) => Ok(true),
            Ok(_) => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a message came that was not expected",
            )),
            // The limit is over, or this process was stopped and goes on.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) =>
            {
                Ok(false)
            }
            // It has ended without reading all that was sent to it.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(true),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn messages_and_files_arrive_whole() {
        let name = format!("logstead-test-{}", std::process::id());
        let listener = DescriptorListener::bind(&name).unwrap();
        assert!(
            DescriptorListener::bind(&name).is_err(),
            "the name is taken"
        );
        let sender = std::thread::spawn(move || {
            let mut channel = DescriptorChannel::connect(&name).unwrap();
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(b"of the file").unwrap();
            channel.send(b"", &[]).unwrap();
            let most = vec![file.as_fd(); DESCRIPTORS_MAX + 1];
            channel.send(b"too many", &most).unwrap_err();
            channel.send(&vec![7; 300_000], &[file.as_fd()]).unwrap();
        });
        let mut channel = listener.accept().unwrap();
        let (message, files) = channel.receive().unwrap();
        assert_eq!((message.len(), files.len()), (0, 0));
        let (message, files) = channel.receive().unwrap();
        assert_eq!(message, vec![7; 300_000]);
        assert_eq!(files.len(), 1);
        let mut file = std::fs::File::from(files.into_iter().next().unwrap());
        let mut text = String::new();
        io::Seek::rewind(&mut file).unwrap();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "of the file");
        assert!(channel.wait_for_end(Duration::from_secs(60)).unwrap());
        let error = channel.receive().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        sender.join().unwrap();
    }

    #[test]
    fn a_header_is_not_trusted() {
        let (mut one, mut other) = DescriptorChannel::pair().unwrap();
        one.0.write_all(&[255; HEADER_BYTES]).unwrap();
        let error = other.receive().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        // Descriptors that were promised and did not come.
        let (mut one, mut other) = DescriptorChannel::pair().unwrap();
        one.0.write_all(&[0, 0, 0, 0, 1, 0, 0, 0]).unwrap();
        let error = other.receive().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert!(
            !other.wait_for_end(Duration::from_millis(1)).unwrap(),
            "the other end is open"
        );
        assert!(!other.has_ended());
        one.send(b"a message", &[]).unwrap();
        drop(one);
        assert!(!other.has_ended(), "a message is there");
        assert_eq!(other.receive().unwrap().0, b"a message");
        assert!(other.has_ended());
    }

    #[test]
    fn nobody_waits_under_a_free_name() {
        let error = DescriptorChannel::connect("logstead-test-nobody").err();
        assert_eq!(
            error.unwrap().kind(),
            io::ErrorKind::ConnectionRefused,
            "as the kernel tells it"
        );
    }
}
