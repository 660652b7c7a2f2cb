//! The client for object stores against servers that say what a test wants them to say: what goes out on the wire, how
//! often, and what the caller may conclude from each answer.

use bytes::Bytes;
use logstead_env::{Env, listen, spawn};
use logstead_home::bucket::{Bucket, BucketError, ETag, ListEntry, Outcome, open_with};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

/// A request as it came.
#[derive(Clone, Debug, Default)]
struct Seen {
    line: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Seen {
    fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let (_, value) = headers.find(|(key, _)| key.eq_ignore_ascii_case(name))?;
        Some(value)
    }
}

/// What the server does with a request.
#[derive(Clone)]
enum Then {
    /// Writes these bytes and goes on.
    Answer(String),
    /// Writes these bytes and closes.
    Cut(String),
    /// Never answers.
    Hang,
}

/// A server that plays a script, one line per request.
struct Server {
    address: SocketAddr,
    /// It lets a client wait for ever somewhere, so the client should not wait long.
    hangs: bool,
    seen: Arc<Mutex<Vec<Seen>>>,
}

fn read_request(stream: &mut BufReader<TcpStream>) -> Option<Seen> {
    let mut seen = Seen::default();
    stream
        .read_line(&mut seen.line)
        .ok()
        .filter(|len| *len > 0)?;
    seen.line = seen.line.trim().to_owned();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok().filter(|len| *len > 0)?;
        match line.trim().split_once(':') {
            Some((name, value)) => seen
                .headers
                .push((name.to_owned(), value.trim().to_owned())),
            None => break,
        }
    }
    let len = seen
        .header("content-length")
        .map_or(0, |len| len.parse().expect("a length"));
    seen.body = vec![0; len];
    stream.read_exact(&mut seen.body).ok()?;
    Some(seen)
}

impl Server {
    fn start(script: impl IntoIterator<Item = Then>) -> Server {
        let listener = listen("127.0.0.1:0".parse().expect("an address")).expect("a port");
        listener.set_nonblocking(false).expect("a socket");
        let address = listener.local_addr().expect("an address");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let script: VecDeque<Then> = script.into_iter().collect();
        let hangs = script.iter().any(|then| matches!(then, Then::Hang));
        let script = Arc::new(Mutex::new(script));
        let record = seen.clone();
        spawn("server", None, move || {
            for stream in listener.incoming().flatten() {
                let (record, script) = (record.clone(), script.clone());
                spawn("connection", None, move || serve(stream, &record, &script))
                    .expect("a thread");
            }
        })
        .expect("a thread");
        Server {
            address,
            hangs,
            seen,
        }
    }

    fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("not poisoned").clone()
    }

    fn bucket(&self, scheme: &str) -> Arc<dyn Bucket> {
        let azure_key = ("AZURE_STORAGE_KEY", "a2V5");
        self.bucket_with(scheme, azure_key)
    }

    fn bucket_with(&self, scheme: &str, azure: (&str, &str)) -> Arc<dyn Bucket> {
        let timeout = if self.hangs { 1000 } else { 60_000 };
        at(scheme, self.address, timeout, azure)
    }
}

fn serve(stream: TcpStream, record: &Mutex<Vec<Seen>>, script: &Mutex<VecDeque<Then>>) {
    let mut writer = stream.try_clone().expect("a socket");
    let mut stream = BufReader::new(stream);
    while let Some(seen) = read_request(&mut stream) {
        record.lock().expect("not poisoned").push(seen);
        let then = script.lock().expect("not poisoned").pop_front();
        match then {
            Some(Then::Answer(text)) => writer.write_all(text.as_bytes()).expect("written"),
            Some(Then::Cut(text)) => {
                writer.write_all(text.as_bytes()).expect("written");
                writer.shutdown(Shutdown::Both).ok();
                return;
            }
            Some(Then::Hang) | None => {}
        }
    }
}

fn at(scheme: &str, address: SocketAddr, timeout: u64, azure: (&str, &str)) -> Arc<dyn Bucket> {
    let url = if scheme == "azure" {
        format!("azure://logs/db?endpoint=http://{address}/acc&account=acc&timeout={timeout}")
    } else {
        format!("{scheme}://logs/db?endpoint=http://{address}&timeout={timeout}")
    };
    let variable = |name: &str| {
        Some(match name {
            "AWS_ACCESS_KEY_ID" => "key".to_owned(),
            "AWS_SECRET_ACCESS_KEY" => "secret".to_owned(),
            name if name == azure.0 => azure.1.to_owned(),
            _ => return None,
        })
    };
    open_with(&url, &Env::real(), &variable).expect("a bucket")
}

fn run<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(future)
}

fn answer(status: &str, headers: &[&str], body: &str) -> Then {
    let headers: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
    let len = body.len();
    Then::Answer(format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {len}\r\n\r\n{body}"
    ))
}

fn ok() -> Then {
    answer("200 OK", &["etag: \"1\""], "")
}

fn failed(status: &str, code: &str) -> Then {
    let body = format!("<Error><Code>{code}</Code><Message>so it is</Message></Error>");
    answer(status, &[], &body)
}

fn bytes() -> Bytes {
    Bytes::from_static(b"bytes")
}

fn outcome<T: std::fmt::Debug>(answer: Result<T, BucketError>) -> Outcome {
    answer.expect_err("it must fail").outcome
}

/// The library would ask for the length first, and append wherever it hears: a writer that was cut off would go on
/// behind its successor's fence.
#[test]
fn an_append_goes_out_once_with_the_callers_offset_and_nothing_looks_first() {
    let server = Server::start([ok(), ok()]);
    let bucket = server.bucket("s3express");
    run(async {
        bucket.append("lane/1", 7, bytes()).await.expect("appended");
        bucket.append("lane/1", 3, bytes()).await.expect("appended");
    });
    let seen = server.seen();
    assert_eq!(seen.len(), 2);
    for (seen, offset) in seen.iter().zip(["7", "3"]) {
        assert_eq!(seen.line, "PUT /logs/db/lane/1 HTTP/1.1");
        assert_eq!(seen.header("x-amz-write-offset-bytes"), Some(offset));
        assert_eq!(seen.body, b"bytes");
        // Over plain HTTP nothing else would notice a damaged byte.
        assert!(seen.header("x-amz-checksum-crc32c").is_some());
    }
    let usage = bucket.usage();
    assert_eq!((usage.appends, usage.append_bytes, usage.heads), (2, 10, 0));
}

#[test]
fn azure_appends_are_conditional_on_the_position() {
    let server = Server::start([answer("201 Created", &[], "")]);
    let bucket = server.bucket("azure");
    run(bucket.append("lane/1", 9, bytes())).expect("appended");
    let seen = server.seen();
    assert_eq!(seen.len(), 1);
    assert_eq!(
        seen[0].line,
        "PUT /acc/logs/db/lane/1?comp=appendblock HTTP/1.1"
    );
    assert_eq!(seen[0].header("x-ms-blob-condition-appendpos"), Some("9"));
}

#[test]
fn conditional_writes_carry_their_conditions() {
    let server = Server::start([ok(), ok(), ok()]);
    let bucket = server.bucket("s3express");
    run(async {
        bucket.create("a", bytes()).await.expect("made");
        let tag = bucket.put_if_absent("b", bytes()).await.expect("put");
        assert_eq!(tag, Some(ETag("\"1\"".into())));
        let tag = tag.expect("a tag");
        bucket.replace("b", &tag, bytes()).await.expect("replaced");
    });
    let seen = server.seen();
    assert_eq!(seen.len(), 3);
    assert_eq!(seen[0].header("if-none-match"), Some("*"));
    assert_eq!(seen[0].header("x-amz-write-offset-bytes"), None);
    assert_eq!(seen[1].header("if-none-match"), Some("*"));
    assert_eq!(seen[2].header("if-match"), Some("\"1\""));
    assert_eq!(bucket.usage().writes, 3);
}

#[test]
fn every_refusal_is_understood_and_nothing_is_sent_twice() {
    for (then, expected) in [
        (
            failed("400 Bad Request", "InvalidWriteOffset"),
            Outcome::WrongOffset,
        ),
        (failed("400 Bad Request", "TooManyParts"), Outcome::Full),
        (failed("404 Not Found", "NoSuchKey"), Outcome::Absent),
        (failed("404 Not Found", "NoSuchBucket"), Outcome::Refused),
        (failed("503 Slow Down", "SlowDown"), Outcome::NotNow),
        (failed("429 Too Many Requests", ""), Outcome::NotNow),
        (failed("400 Bad Request", "ExpiredToken"), Outcome::NotNow),
        (failed("403 Forbidden", "AccessDenied"), Outcome::Refused),
        (
            failed("500 Internal Server Error", "InternalError"),
            Outcome::Unknown,
        ),
        (failed("503 Service Unavailable", ""), Outcome::Unknown),
        (failed("504 Gateway Timeout", ""), Outcome::Unknown),
        (
            failed("301 Moved Permanently", "PermanentRedirect"),
            Outcome::Refused,
        ),
        (Then::Cut(String::new()), Outcome::Unknown),
        (Then::Cut("HTTP/1.1 200 O".into()), Outcome::Unknown),
        // An explanation that breaks off explains nothing.
        (
            Then::Cut(
                "HTTP/1.1 400 Bad Request\r\ncontent-length: 99\r\n\r\n<Error><Code>Inv".into(),
            ),
            Outcome::Unknown,
        ),
        (Then::Hang, Outcome::Unknown),
    ] {
        // A first append, so that the connection is an old one.
        let server = Server::start([ok(), then, ok(), ok()]);
        let bucket = server.bucket("s3express");
        let got = run(async {
            bucket.append("lane/1", 0, bytes()).await.expect("appended");
            bucket.append("lane/1", 5, bytes()).await
        });
        assert_eq!(outcome(got), expected);
        assert_eq!(server.seen().len(), 2, "{expected:?}");
        assert_eq!(bucket.usage().appends, 2);
    }
}

#[test]
fn a_server_that_is_not_there_has_done_nothing() {
    let listener = listen("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let bucket = at("s3", address, 60_000, ("", ""));
    assert_eq!(
        outcome(run(bucket.put_if_absent("a", bytes()))),
        Outcome::NotNow
    );
    assert_eq!(outcome(run(bucket.stat("a"))), Outcome::NotNow);
}

#[test]
fn keys_that_worked_once_are_waited_for() {
    let denied = || failed("403 Forbidden", "InvalidAccessKeyId");
    let server = Server::start([denied(), ok(), denied()]);
    let bucket = server.bucket("s3");
    let put = || bucket.put_if_absent("a", bytes());
    run(async {
        assert_eq!(outcome(put().await), Outcome::Refused);
        put().await.expect("put");
        assert_eq!(outcome(put().await), Outcome::NotNow);
    });
}

#[test]
fn azure_objects_that_are_half_made_are_in_doubt() {
    let made = || answer("201 Created", &[], "");
    let azure =
        |status: &str, code: &str| answer(status, &[&format!("x-ms-error-code: {code}")], "");
    for (script, expected, requests) in [
        (vec![made(), made()], None, 2),
        (
            vec![azure("409 Conflict", "BlobAlreadyExists")],
            Some(Outcome::Precondition),
            1,
        ),
        (
            vec![azure("503 Busy", "ServerBusy")],
            Some(Outcome::NotNow),
            1,
        ),
        (
            vec![made(), azure("503 Busy", "ServerBusy")],
            Some(Outcome::Unknown),
            2,
        ),
        (
            vec![made(), azure("412 No", "AppendPositionConditionNotMet")],
            Some(Outcome::Unknown),
            2,
        ),
        (
            vec![made(), Then::Cut(String::new())],
            Some(Outcome::Unknown),
            2,
        ),
    ] {
        let server = Server::start(script);
        let bucket = server.bucket("azure");
        let got = run(bucket.create("lane/1", bytes()));
        assert_eq!(got.err().map(|error| error.outcome), expected);
        let seen = server.seen();
        assert_eq!(seen.len(), requests);
        assert_eq!(seen[0].header("if-none-match"), Some("*"));
        assert_eq!(seen[0].header("x-ms-blob-type"), Some("AppendBlob"));
        if let Some(second) = seen.get(1) {
            assert_eq!(second.header("x-ms-blob-condition-appendpos"), Some("0"));
        }
    }
}

#[test]
fn reads_are_whole_or_fail() {
    let ranged = |range: &str, body: &str| {
        answer(
            "206 Partial Content",
            &[&format!("content-range: bytes {range}")],
            body,
        )
    };
    for (then, expected) in [
        (ranged("2-5/20", "cdef"), Ok("cdef")),
        // The object ends inside of the range, and before it.
        (ranged("2-3/4", "cd"), Ok("cd")),
        (failed("416 Range Not Satisfiable", "InvalidRange"), Ok("")),
        // Fewer bytes than there are.
        (ranged("2-3/20", "cd"), Err(Outcome::Unknown)),
        (
            Then::Cut(
                "HTTP/1.1 206 OK\r\ncontent-range: bytes 2-5/20\r\ncontent-length: 4\r\n\r\ncd"
                    .into(),
            ),
            Err(Outcome::Unknown),
        ),
        // Other bytes than asked for.
        (ranged("3-6/20", "defg"), Err(Outcome::Unknown)),
        (answer("200 OK", &[], "abcd"), Err(Outcome::Unknown)),
        (failed("404 Not Found", "NoSuchKey"), Err(Outcome::Absent)),
        // Another place, which nobody asked for.
        (
            answer("307 Temporary Redirect", &["location: /logs/db/b"], ""),
            Err(Outcome::NotNow),
        ),
        (Then::Hang, Err(Outcome::Unknown)),
    ] {
        let server = Server::start([then]);
        let bucket = server.bucket("s3");
        let got = run(bucket.get_range("a", 2, 4)).map_err(|error| error.outcome);
        assert_eq!(
            got,
            expected.map(|text| Bytes::from_static(text.as_bytes()))
        );
        let seen = server.seen();
        assert_eq!(seen.len(), 1);
        assert_eq!(seen[0].header("range"), Some("bytes=2-5"));
    }
    let cut = "HTTP/1.1 200 OK\r\netag: \"1\"\r\ncontent-length: 9\r\n\r\nabc";
    let whole = answer("200 OK", &["etag: \"2\""], "abc");
    let server = Server::start([Then::Cut(cut.into()), whole]);
    let bucket = server.bucket("s3");
    assert_eq!(outcome(run(bucket.get("a"))), Outcome::Unknown);
    let (read, tag) = run(bucket.get("a")).expect("read");
    assert_eq!(
        (read, tag),
        (Bytes::from_static(b"abc"), Some(ETag("\"2\"".into())))
    );
    // One request each: nothing asks for the length first.
    assert_eq!(server.seen().len(), 2);
    assert_eq!((bucket.usage().reads, bucket.usage().heads), (2, 0));
}

#[test]
fn lists_have_all_pages_in_order() {
    let page = |keys: &[(&str, u64)], next: Option<&str>| {
        let keys: String = keys
            .iter()
            .map(|(key, len)| format!("<Contents><Key>db/{key}</Key><Size>{len}</Size><LastModified>2026-11-21T00:00:00.000Z</LastModified></Contents>"))
            .collect();
        let next = next.map_or("<IsTruncated>false</IsTruncated>".to_owned(), |next| {
            format!("<IsTruncated>true</IsTruncated><NextContinuationToken>{next}</NextContinuationToken>")
        });
        answer(
            "200 OK",
            &[],
            &format!("<ListBucketResult>{next}{keys}</ListBucketResult>"),
        )
    };
    let pages = [
        page(&[("manifest", 1)], None),
        page(&[("lane/2", 2), ("lane/1/b", 3)], Some("more")),
        page(&[("lane/1/a", 0)], None),
    ];
    let server = Server::start(pages);
    let bucket = server.bucket("s3");
    let entry = |name: &str, len| ListEntry {
        name: name.into(),
        len,
    };
    assert_eq!(
        run(bucket.list("")).expect("listed"),
        [entry("manifest", 1)]
    );
    let found = run(bucket.list("lane/")).expect("listed");
    assert_eq!(
        found,
        [
            entry("lane/1/a", 0),
            entry("lane/1/b", 3),
            entry("lane/2", 2)
        ]
    );
    assert_eq!(bucket.usage().lists, 3);
    let seen = &server.seen()[1..];
    assert!(
        seen[0].line.contains("prefix=db/lane/") || seen[0].line.contains("prefix=db%2Flane%2F"),
        "{}",
        seen[0].line
    );
    assert!(
        seen[1].line.contains("continuation-token=more"),
        "{}",
        seen[1].line
    );
    // A page that breaks off is no shorter list.
    let cut = "HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n<ListBucketResult>";
    let server = Server::start([Then::Cut(cut.into())]);
    assert_eq!(
        outcome(run(server.bucket("s3").list("lane/"))),
        Outcome::Unknown
    );
}

#[test]
fn what_is_missing_has_no_state_and_is_deleted_already() {
    let missing = || answer("404 Not Found", &[], "");
    let there = answer("200 OK", &["etag: \"7\""], "");
    let server = Server::start([
        missing(),
        missing(),
        there,
        answer("204 No Content", &[], ""),
    ]);
    let bucket = server.bucket("s3");
    run(async {
        assert_eq!(bucket.stat("a").await.expect("looked"), None);
        bucket.delete("a").await.expect("deleted");
        let stat = bucket.stat("a").await.expect("looked").expect("there");
        assert_eq!((stat.len, stat.etag), (0, Some(ETag("\"7\"".into()))));
        bucket.delete("a").await.expect("deleted");
    });
    assert_eq!((bucket.usage().heads, bucket.usage().deletes), (2, 2));
}

/// A server opens its home on one runtime and works with it on another.
#[test]
fn a_bucket_outlives_the_runtime_it_was_used_on() {
    let server = Server::start([ok(), ok(), ok()]);
    let bucket = server.bucket("s3");
    for name in ["a", "b", "c"] {
        run(bucket.put(name, bytes())).expect("put");
    }
    assert_eq!(server.seen().len(), 3);
}

/// An Azure SAS token is part of each request's URL, which the library likes to mention.
#[test]
fn no_error_shows_a_credential() {
    let cut = |status: &str| {
        let headers = "etag: \"1\"\r\ncontent-range: bytes 0-4/5\r\ncontent-length: 5";
        Then::Cut(format!("HTTP/1.1 {status}\r\n{headers}\r\n\r\nab"))
    };
    for then in [
        cut("200 OK"),
        cut("206 Partial Content"),
        cut("403 Forbidden"),
        Then::Cut(String::new()),
        Then::Cut("HTTP/1.1 nonsense".into()),
        answer("200 OK", &["last-modified: never"], "<no list>"),
        answer("201 Created", &["last-modified: never"], ""),
        failed("403 Forbidden", "AuthenticationFailed"),
        Then::Hang,
    ] {
        for act in 0..5 {
            // Once is enough for what takes time.
            if matches!(then, Then::Hang) && act != 2 {
                continue;
            }
            let server = Server::start([then.clone()]);
            let sas = ("AZURE_STORAGE_SAS_TOKEN", "sv=2022-11-02&sig=hidden%3D");
            let bucket = server.bucket_with("azure", sas);
            let answer = run(async {
                match act {
                    0 => bucket.get("a").await.map(drop),
                    1 => bucket.get_range("a", 0, 5).await.map(drop),
                    2 => bucket.append("a", 0, bytes()).await,
                    3 => bucket.list("a/").await.map(drop),
                    _ => bucket.stat("a").await.map(drop),
                }
            });
            assert!(
                server.seen()[0].line.contains("sig=hidden"),
                "the token is used"
            );
            if let Err(error) = answer {
                let text = format!("{error} {error:?}");
                assert!(!text.contains("hidden"), "{text}");
            }
        }
    }
}
