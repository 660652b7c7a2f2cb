use super::*;
use crate::{Condvar, LongMutex, channel, sleep, spawn};
use std::io::{self, Read};
use std::net::SocketAddr;

fn address(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// Threads that wait for one another in every way that there is; what happened, in order.
fn story(seed: u64) -> (Vec<String>, u64) {
    let threads = SimThreads::new(seed, "a test");
    let told = Arc::new(Mutex::new(Vec::new()));
    threads.run(|| {
        let shared = Arc::new((LongMutex::new(0), Condvar::new()));
        let (send, receive) = channel();
        for number in 0..4_u64 {
            let (shared, told, send) = (Arc::clone(&shared), Arc::clone(&told), send.clone());
            let body = move || {
                sleep(Duration::from_micros(10));
                let mut count = shared.0.lock();
                told.lock().push(format!("{number} has it"));
                // Held by one while the others want it.
                sleep(Duration::from_micros(5));
                *count += 1;
                shared.1.notify_all();
                drop(count);
                send.send(number).expect("somebody receives");
            };
            spawn(&format!("thread {number}"), None, body).expect("starts");
        }
        drop(send);
        let mut count = shared.0.lock();
        while *count < 4 {
            shared.1.wait(&mut count);
        }
        drop(count);
        let mut sum = 0;
        while let Ok(number) = receive.recv() {
            sum += number;
        }
        assert_eq!(sum, 6);
        let at = threads.now().as_nanos();
        told.lock().push(format!("all, at {at}"));
    });
    let told = std::mem::take(&mut *told.lock());
    (told, threads.switches())
}

#[test]
fn a_seed_gives_one_order_and_seeds_differ() {
    let first = story(1);
    assert_eq!(first.0.len(), 5);
    let seeds = || (0..20).map(story);
    assert!(seeds().eq(seeds()));
    let orders: std::collections::BTreeSet<_> = seeds().map(|(told, _)| told).collect();
    assert!(orders.len() > 3, "{orders:?}");
}

/// Sends a byte at a time; what the other end has read, how that ended, and when.
fn transfer(seed: u64, disturb: impl FnOnce(&SimThreads)) -> (Vec<u8>, io::Result<usize>, Instant) {
    let threads = SimThreads::new(seed, "a test");
    threads.run(|| {
        let network = threads.network();
        let heard = Arc::new(Mutex::new(None));
        let hears = Arc::clone(&heard);
        let body = move || {
            let network = SimNetwork::current().expect("it is simulated");
            let listener = network.listen(address(7)).expect("listens");
            let (mut stream, _) = listener.accept().expect("accepts");
            stream.set_read_timeout(Duration::from_secs(2));
            let mut bytes = Vec::new();
            let ended = loop {
                let mut one = [0; 3];
                match stream.read(&mut one) {
                    Ok(count @ 1..) => bytes.extend_from_slice(&one[..count]),
                    ended => break ended,
                }
            };
            *hears.lock() = Some((bytes, ended));
        };
        let listening = threads.spawn_in(1, "listens", body).expect("starts");
        sleep(Duration::from_millis(1));
        let stream = network.connect(address(7), Duration::from_secs(1));
        let stream = stream.expect("connects");
        stream.write_all(b"some bytes").expect("is sent");
        disturb(&threads);
        let _may_be_broken = stream.write_all(b" and more");
        stream.shut_down();
        listening.join().expect("ends");
        let (bytes, ended) = heard.lock().take().expect("has ended");
        (bytes, ended, threads.now())
    })
}

#[test]
fn bytes_come_in_order_and_then_the_end() {
    for seed in 0..10 {
        let (bytes, ended, _) = transfer(seed, |_| {});
        assert_eq!(bytes, b"some bytes and more");
        assert_eq!(ended.expect("the end"), 0);
    }
}

#[test]
fn of_a_broken_connection_some_bytes_come() {
    let lengths: std::collections::BTreeSet<usize> = (0..60)
        .map(|seed| {
            let (bytes, ended, _) = transfer(seed, |threads| {
                threads.network().break_connections(1, None, 1);
            });
            assert!(b"some bytes".starts_with(&bytes), "{bytes:?}");
            let error = ended.expect_err("it is broken");
            assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
            bytes.len()
        })
        .collect();
    assert!(lengths.len() > 5 && lengths.contains(&0), "{lengths:?}");
}

#[test]
fn what_is_cut_comes_when_it_is_mended_or_too_late() {
    let cut = |threads: &SimThreads, time| {
        threads.network().cut((0, 1));
        sleep(time);
        threads.network().mend();
    };
    let (bytes, ended, at) = transfer(1, |threads| cut(threads, Duration::from_secs(1)));
    assert_eq!(bytes, b"some bytes and more");
    assert_eq!(ended.expect("the end"), 0);
    assert!(at.as_nanos() > 1_000_000_000);
    let (bytes, ended, _) = transfer(1, |threads| cut(threads, Duration::from_secs(3)));
    assert_eq!(bytes, b"");
    assert_eq!(
        ended.expect_err("too late").kind(),
        io::ErrorKind::WouldBlock
    );
}

#[test]
fn a_process_that_stands_still_hears_later() {
    let (bytes, _, at) = transfer(3, |threads| threads.pause(1, Duration::from_secs(5)));
    assert_eq!(bytes, b"some bytes and more");
    assert!(at.as_nanos() > 5_000_000_000);
}

/// Says so when it is dropped.
struct Dropped(Arc<Mutex<Vec<&'static str>>>);

impl Drop for Dropped {
    fn drop(&mut self) {
        // What is dropped may wait.
        sleep(Duration::from_millis(1));
        self.0.lock().push("dropped");
    }
}

#[test]
fn of_a_killed_process_only_what_it_has_is_dropped() {
    let threads = SimThreads::new(5, "a test");
    let told = Arc::new(Mutex::new(Vec::new()));
    threads.run(|| {
        let (tells, held) = (Arc::clone(&told), Dropped(Arc::clone(&told)));
        let body = move || {
            let _held = held;
            let _is_not_its_fault = crate::abort_on_panic("being killed");
            tells.lock().push("begun");
            sleep(Duration::from_secs(1));
            tells.lock().push("gone on");
        };
        let killed = threads.spawn_in(3, "is killed", body).expect("starts");
        sleep(Duration::from_millis(500));
        threads.kill(3);
        killed.join().expect("ends");
        assert!(threads.now().as_nanos() < 1_000_000_000);
        // Nor does anything begin there.
        let tells = Arc::clone(&told);
        let late = threads.spawn_in(3, "comes late", move || tells.lock().push("late"));
        late.expect("starts").join().expect("ends");
    });
    assert_eq!(*told.lock(), ["begun", "dropped"]);
}

#[test]
fn a_channel_ends_with_its_senders_and_waits_no_longer_than_told() {
    let threads = SimThreads::new(6, "a test");
    threads.run(|| {
        let (send, receive) = channel();
        let body = move || {
            sleep(Duration::from_secs(2));
            send.send(7).expect("somebody receives");
        };
        spawn("sends", None, body).expect("starts");
        let early = receive.recv_timeout(Duration::from_secs(1));
        assert_eq!(early, Err(std::sync::mpsc::RecvTimeoutError::Timeout));
        assert_eq!(receive.recv_timeout(Duration::from_secs(5)), Ok(7));
        let gone = receive.recv_timeout(Duration::from_secs(5));
        assert_eq!(gone, Err(std::sync::mpsc::RecvTimeoutError::Disconnected));
        assert!(threads.now().as_nanos() < 3_000_000_000);
    });
}
