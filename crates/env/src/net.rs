//! Sockets: thin wrappers, so that only this crate opens them.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// Connections the kernel keeps waiting for `accept`: thousands of clients may connect in one burst.
const BACKLOG: i32 = 4096;

/// Listens on `address`. The listener does not block, and may reuse an address in TIME_WAIT.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
    let family = if address.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    rustix::net::bind(&socket, &address)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(TcpListener::from(socket))
}

/// Connects to `address`, giving up after `timeout`. The stream blocks and sends small messages at once.
pub fn connect(address: SocketAddr, timeout: Duration) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, timeout)?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Silence after which the kernel asks a client whether it is still there, and how often it asks before it gives up: a
/// peer that vanished without a word is noticed within about two minutes.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_COUNT: u32 = 6;

/// Sets an accepted stream up: small messages leave at once, half-open connections are noticed, calls do not block.
pub fn prepare_accepted(stream: &TcpStream) -> io::Result<()> {
    use rustix::net::sockopt;
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(stream, KEEPALIVE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(stream, KEEPALIVE_COUNT)?;
    Ok(())
}

/// Sets an accepted stream of this machine up: calls do not block.
pub fn prepare_local(stream: &std::os::unix::net::UnixStream) -> io::Result<()> {
    stream.set_nonblocking(true)
}

/// What has arrived, as far as it fits into `buffer`, and stays there for whoever reads it.
pub fn peek(stream: &impl std::os::fd::AsFd, buffer: &mut [u8]) -> io::Result<usize> {
    let (count, _) = rustix::net::recv(stream, buffer, rustix::net::RecvFlags::PEEK)?;
    Ok(count)
}

/// The number of the user whose process has connected.
pub fn peer_user(stream: &impl std::os::fd::AsFd) -> io::Result<u32> {
    Ok(rustix::net::sockopt::socket_peercred(stream)?.uid.as_raw())
}

/// Lets this process open as many files and sockets as its hard limit allows; gives the number.
pub fn raise_open_files_limit() -> io::Result<u64> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit)?;
    Ok(limit.current.unwrap_or(u64::MAX))
}
