//! The bucket on the wire: raw requests, signed by hand, and what they are answered.

use super::*;
use crate::signature::{hex, sign_for_tests};
use s3s::crypto::{Checksum, Sha256};
use std::io::{Read, Write};

const DIRECTORY: &str = "b--z1--x-s3";
const GENERAL: &str = "general";
const KEYS: (&str, &str) = ("AKEXAMPLE", "a secret");

fn start(change: impl FnOnce(&mut DevBucketOptions)) -> DevBucket {
    let mut options = DevBucketOptions::new(KEYS.0, KEYS.1);
    options.buckets = vec![DIRECTORY.to_owned(), GENERAL.to_owned()];
    change(&mut options);
    DevBucket::start(options, &Env::real()).expect("starts")
}

/// An answer.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut values = lines.filter(|(known, _)| known.eq_ignore_ascii_case(name));
        values.next().map(|(_, value)| value)
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Status and the error's code.
    fn error(&self) -> (u16, String) {
        (self.status, between(&self.text(), "Code").concat())
    }

    fn tag(&self) -> String {
        self.header("etag").expect("has an ETag").to_owned()
    }
}

/// What stands in every element of this name.
fn between(xml: &str, element: &str) -> Vec<String> {
    let (begin, end) = (format!("<{element}>"), format!("</{element}>"));
    let pieces = xml.split(&begin).skip(1);
    pieces
        .map(|piece| piece.split(&end).next().unwrap_or_default().to_owned())
        .collect()
}

/// A request, to be changed and sent.
struct Ask<'a> {
    method: &'a str,
    path: String,
    query: &'a str,
    headers: Vec<(&'a str, String)>,
    body: &'a [u8],
    keys: (&'a str, &'a str),
    service: &'a str,
    /// Of the body, instead of its own.
    hash: Option<String>,
    /// Bytes of the body that are sent before the connection is cut.
    cut: Option<usize>,
}

fn ask<'a>(method: &'a str, bucket: &str, key: &str) -> Ask<'a> {
    Ask {
        method,
        path: format!("/{bucket}/{key}").trim_end_matches('/').to_owned(),
        query: "",
        headers: Vec::new(),
        body: b"",
        keys: KEYS,
        service: "s3",
        hash: None,
        cut: None,
    }
}

impl<'a> Ask<'a> {
    fn query(mut self, query: &'a str) -> Self {
        self.query = query;
        self
    }

    fn header(mut self, name: &'a str, value: impl ToString) -> Self {
        self.headers.push((name, value.to_string()));
        self
    }

    fn body(mut self, body: &'a [u8]) -> Self {
        self.body = body;
        self
    }

    /// The time of the signature is now: the server looks at its clock.
    fn send(mut self, to: &DevBucket) -> Answer {
        let hash = hex(Sha256::checksum(self.body).as_ref());
        let date = amz_date(Env::real().clock.now_micros_since_2000());
        let own_hash = self.hash.take().unwrap_or(hash);
        self.headers.push(("host", to.address().to_string()));
        self.headers.push(("x-amz-content-sha256", own_hash));
        self.headers.push(("x-amz-date", date));
        self.headers.sort();
        let authorization = sign_for_tests(
            self.method,
            &self.path,
            self.query,
            &self.headers,
            self.keys,
            self.service,
        );
        self.headers.push(("authorization", authorization));
        self.headers
            .push(("content-length", self.body.len().to_string()));
        self.headers.push(("connection", "close".to_owned()));
        self.send_as_it_is(to)
    }

    fn send_as_it_is(&self, to: &DevBucket) -> Answer {
        let query = match self.query {
            "" => String::new(),
            query => format!("?{query}"),
        };
        let mut text = format!("{} {}{query} HTTP/1.1\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            text += &format!("{name}: {value}\r\n");
        }
        text += "\r\n";
        let timeout = Duration::from_secs(60);
        let mut stream = logstead_env::connect(to.address(), timeout).expect("connects");
        let mut bytes = text.into_bytes();
        bytes.extend_from_slice(&self.body[..self.cut.unwrap_or(self.body.len())]);
        stream.write_all(&bytes).expect("sends");
        if self.cut.is_some() {
            stream
                .shutdown(std::net::Shutdown::Write)
                .expect("shuts down");
        }
        let mut answer = Vec::new();
        // A cut-off request may get no answer.
        let _cut = stream.read_to_end(&mut answer);
        let at = answer
            .windows(4)
            .position(|window| window == b"\r\n\r\n")
            .unwrap_or(answer.len());
        let head = String::from_utf8_lossy(&answer[..at]).into_owned();
        let status = head.split(' ').nth(1).and_then(|text| text.parse().ok());
        Answer {
            status: status.unwrap_or(0),
            head,
            body: answer.split_off((at + 4).min(answer.len())),
        }
    }
}

/// `20261121T173000Z`, of days since 2000 by the civil calendar.
fn amz_date(micros_since_2000: i64) -> String {
    let seconds = micros_since_2000 / 1_000_000;
    let (mut days, second) = (seconds / 86_400, seconds % 86_400);
    let mut year = 2000;
    let leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    while days >= 365 + i64::from(leap(year)) {
        days -= 365 + i64::from(leap(year));
        year += 1;
    }
    let february = 28 + i64::from(leap(year));
    let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= months[month] {
        days -= months[month];
        month += 1;
    }
    format!(
        "{year:04}{:02}{:02}T{:02}{:02}{:02}Z",
        month + 1,
        days + 1,
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

fn append(to: &DevBucket, key: &str, offset: i64, body: &[u8]) -> Answer {
    ask("PUT", DIRECTORY, key)
        .header("x-amz-write-offset-bytes", offset)
        .body(body)
        .send(to)
}

fn get(to: &DevBucket, bucket: &str, key: &str) -> Answer {
    ask("GET", bucket, key).send(to)
}

#[test]
fn appends_are_for_the_object_s_length_only() {
    let bucket = start(|options| options.parts_max = 4);
    assert_eq!(
        append(&bucket, "dir/o", 5, b"x").error(),
        (400, "InvalidWriteOffset".to_owned())
    );
    let first = append(&bucket, "dir/o", 0, b"abc");
    assert_eq!(
        (first.status, first.header("x-amz-object-size")),
        (200, Some("3"))
    );
    // The same again, as after a lost answer; and a hole.
    for offset in [0, 2, 4] {
        assert_eq!(
            append(&bucket, "dir/o", offset, b"abc").error(),
            (400, "InvalidWriteOffset".to_owned())
        );
    }
    assert_eq!(
        append(&bucket, "dir/o", -1, b"x").error(),
        (400, "InvalidArgument".to_owned())
    );
    let second = append(&bucket, "dir/o", 3, b"defg");
    assert_eq!(second.header("x-amz-object-size"), Some("7"));
    assert_ne!(first.tag(), second.tag());
    let head = ask("HEAD", DIRECTORY, "dir/o").send(&bucket);
    assert_eq!(
        (head.header("content-length"), head.tag()),
        (Some("7"), second.tag())
    );
    assert_eq!(get(&bucket, DIRECTORY, "dir/o").text(), "abcdefg");
    assert_eq!(append(&bucket, "dir/o", 7, b"h").status, 200);
    assert_eq!(append(&bucket, "dir/o", 8, b"i").status, 200);
    assert_eq!(
        append(&bucket, "dir/o", 9, b"j").error(),
        (400, "TooManyParts".to_owned())
    );
    assert_eq!(get(&bucket, DIRECTORY, "dir/o").text(), "abcdefghi");
    // A whole write begins a new object, with one part.
    let whole = ask("PUT", DIRECTORY, "dir/o").body(b"new").send(&bucket);
    assert_eq!(
        (whole.status, whole.header("x-amz-object-size")),
        (200, None)
    );
    assert_eq!(append(&bucket, "dir/o", 3, b"er").status, 200);
    // A general bucket takes no appends, and does not pass over the header either.
    let general = ask("PUT", GENERAL, "o")
        .header("x-amz-write-offset-bytes", 0)
        .body(b"abc")
        .send(&bucket);
    assert_eq!(general.error(), (501, "NotImplemented".to_owned()));
    assert_eq!(
        get(&bucket, GENERAL, "o").error(),
        (404, "NoSuchKey".to_owned())
    );
}

#[test]
fn of_appends_at_the_same_offset_one_wins() {
    let bucket = start(|_| {});
    for round in 0..10u64 {
        let (offset, number) = (round * 3, 8u8);
        let statuses: Vec<u16> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..number)
                .map(|writer| {
                    let bucket = &bucket;
                    scope.spawn(move || {
                        append(bucket, "o", offset as i64, &[b'a' + writer; 3]).status
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().expect("ends"))
                .collect()
        });
        let won = statuses.iter().filter(|status| **status == 200).count();
        assert_eq!(won, 1, "{statuses:?}");
    }
    let body = get(&bucket, DIRECTORY, "o").body;
    assert_eq!(body.len(), 30);
    assert!(body.chunks(3).all(|piece| piece == [piece[0]; 3]));
}

#[test]
fn conditions_of_writes_are_kept() {
    let bucket = start(|_| {});
    for name in [DIRECTORY, GENERAL] {
        let put = |header: &'static str, value: &str, body: &'static [u8]| {
            ask("PUT", name, "manifest")
                .header(header, value)
                .body(body)
                .send(&bucket)
        };
        let none = put("if-match", "\"00\"", b"zero");
        assert_eq!(none.error(), (404, "NoSuchKey".to_owned()));
        let one = put("if-none-match", "*", b"one");
        assert_eq!(one.status, 200);
        let again = put("if-none-match", "*", b"one");
        assert_eq!(again.error(), (412, "PreconditionFailed".to_owned()));
        let two = put("if-match", &one.tag(), b"two");
        assert_eq!(two.status, 200);
        let stale = put("if-match", &one.tag(), b"three");
        assert_eq!(stale.error(), (412, "PreconditionFailed".to_owned()));
        let odd = put("if-none-match", &one.tag(), b"three");
        assert_eq!(odd.error(), (501, "NotImplemented".to_owned()));
        assert_eq!(get(&bucket, name, "manifest").text(), "two");
        let read = ask("GET", name, "manifest").header("if-match", one.tag());
        assert_eq!(read.send(&bucket).status, 412);
        let read = ask("GET", name, "manifest").header("if-none-match", two.tag());
        assert_eq!(read.send(&bucket).status, 304);
    }
    // With an append: the state must fit too.
    let tag = append(&bucket, "o", 0, b"a").tag();
    let conditional = |tag: &str, offset: u64| {
        ask("PUT", DIRECTORY, "o")
            .header("if-match", tag)
            .header("x-amz-write-offset-bytes", offset)
            .body(b"b")
            .send(&bucket)
    };
    assert_eq!(conditional(&tag, 1).status, 200);
    assert_eq!(conditional(&tag, 2).error().1, "PreconditionFailed");
}

#[test]
fn ranges_are_read_as_http_has_them() {
    let bucket = start(|_| {});
    append(&bucket, "o", 0, b"0123");
    append(&bucket, "o", 4, b"4567");
    let range = |range: &str| {
        ask("GET", DIRECTORY, "o")
            .header("range", range)
            .send(&bucket)
    };
    for (wanted, bytes, name) in [
        ("bytes=0-0", "0", "bytes 0-0/8"),
        ("bytes=2-5", "2345", "bytes 2-5/8"),
        ("bytes=6-100", "67", "bytes 6-7/8"),
        ("bytes=3-", "34567", "bytes 3-7/8"),
        ("bytes=-3", "567", "bytes 5-7/8"),
    ] {
        let answer = range(wanted);
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (206, bytes),
            "{wanted}"
        );
        assert_eq!(answer.header("content-range"), Some(name));
    }
    assert_eq!(range("bytes=8-9").error(), (416, "InvalidRange".to_owned()));
}

#[test]
fn who_is_not_known_or_signs_wrongly_is_refused() {
    let bucket = start(|_| {});
    let mut stranger = ask("GET", DIRECTORY, "o");
    stranger.keys = ("STRANGER", "a secret");
    assert_eq!(
        stranger.send(&bucket).error(),
        (403, "InvalidAccessKeyId".to_owned())
    );
    for service in ["s3", "s3express"] {
        let mut liar = ask("PUT", DIRECTORY, "o").body(b"x");
        (liar.keys, liar.service) = ((KEYS.0, "another secret"), service);
        assert_eq!(
            liar.send(&bucket).error(),
            (403, "SignatureDoesNotMatch".to_owned()),
            "{service}"
        );
    }
    let mut unsigned = ask("GET", DIRECTORY, "o");
    unsigned.headers = vec![("host", "x".to_owned()), ("connection", "close".to_owned())];
    assert_eq!(
        unsigned.send_as_it_is(&bucket).error(),
        (403, "AccessDenied".to_owned())
    );
    unsigned
        .headers
        .push(("authorization", "AWS AKEXAMPLE:c2lnbmF0dXJl".to_owned()));
    assert_eq!(
        unsigned.send_as_it_is(&bucket).error(),
        (400, "InvalidRequest".to_owned())
    );
    assert_eq!(get(&bucket, DIRECTORY, "o").status, 404);
}

#[test]
fn a_body_that_is_cut_or_not_what_was_signed_changes_nothing() {
    let bucket = start(|_| {});
    append(&bucket, "o", 0, b"abc");
    let mut other = ask("PUT", DIRECTORY, "o")
        .header("x-amz-write-offset-bytes", 3)
        .body(b"def");
    other.hash = Some(hex(Sha256::checksum(b"deg").as_ref()));
    assert_eq!(
        other.send(&bucket).error(),
        (400, "XAmzContentSHA256Mismatch".to_owned())
    );
    for cut in [0, 1, 2] {
        let mut short = ask("PUT", DIRECTORY, "o")
            .header("x-amz-write-offset-bytes", 3)
            .body(b"def");
        short.cut = Some(cut);
        assert_ne!(short.send(&bucket).status, 200);
    }
    for (name, value) in [
        ("x-amz-checksum-crc32c", "AAAAAA=="),
        ("content-md5", "AAAAAAAAAAAAAAAAAAAAAA=="),
    ] {
        let bad = ask("PUT", DIRECTORY, "o").header(name, value).body(b"def");
        assert_eq!(bad.send(&bucket).error(), (400, "BadDigest".to_owned()));
    }
    assert_eq!(get(&bucket, DIRECTORY, "o").text(), "abc");
    // CRC-32C of "123456789" is e3069283.
    let good = ask("PUT", DIRECTORY, "o")
        .header("x-amz-checksum-crc32c", "4waSgw==")
        .body(b"123456789");
    assert_eq!(good.send(&bucket).status, 200);
}

#[test]
fn sessions_are_one_bucket_s_and_end() {
    let bucket = start(|options| options.buckets.push("other--z1--x-s3".to_owned()));
    let session = |of: &str, mode: &str| {
        let mut begin = ask("GET", of, "").query("session=");
        begin.service = "s3express";
        if !mode.is_empty() {
            begin = begin.header("x-amz-create-session-mode", mode);
        }
        begin.send(&bucket)
    };
    assert_eq!(session(GENERAL, "").status, 400);
    let begun = session(DIRECTORY, "");
    let field = |answer: &Answer, name: &str| between(&answer.text(), name).concat();
    let keys = |answer: &Answer| {
        (
            field(answer, "AccessKeyId"),
            field(answer, "SecretAccessKey"),
            field(answer, "SessionToken"),
        )
    };
    let (access_key, secret_key, token) = keys(&begun);
    let with = |method: &'static str, of: &str, token: &str| {
        let mut request = ask(method, of, "o")
            .header("x-amz-s3session-token", token)
            .body(b"abc");
        request.service = "s3express";
        request.keys = (&access_key, &secret_key);
        request.send(&bucket)
    };
    assert_eq!(with("PUT", DIRECTORY, &token).status, 200);
    assert_eq!(get(&bucket, DIRECTORY, "o").text(), "abc");
    assert_eq!(with("PUT", DIRECTORY, "guess").error().1, "InvalidToken");
    assert_eq!(
        with("PUT", "other--z1--x-s3", &token).error(),
        (403, "AccessDenied".to_owned())
    );
    let mut for_s3 = ask("GET", DIRECTORY, "o");
    for_s3.keys = (&access_key, &secret_key);
    assert_eq!(for_s3.send(&bucket).status, 400);
    let (access_key, secret_key, token) = keys(&session(DIRECTORY, "ReadOnly"));
    for (method, status) in [("GET", 200), ("PUT", 403), ("DELETE", 403)] {
        let mut request = ask(method, DIRECTORY, "o").header("x-amz-s3session-token", &token);
        (request.service, request.keys) = ("s3express", (&*access_key, &*secret_key));
        assert_eq!(request.send(&bucket).status, status, "{method}");
    }
}

#[test]
fn listings_come_in_pages() {
    let bucket = start(|_| {});
    let mut names: Vec<String> = (0..25).map(|n| format!("a/{n:02}")).collect();
    names.extend(["a/sub/1".to_owned(), "a/sub/2".to_owned()]);
    for of in [DIRECTORY, GENERAL] {
        for name in names.iter().map(String::as_str).chain(["b/x", "c"]) {
            assert_eq!(ask("PUT", of, name).body(b"1").send(&bucket).status, 200);
        }
        let listed = |delimiter: &str| {
            let (mut found, mut token, mut pages) = (Vec::new(), String::new(), 0);
            loop {
                let token_pair = match token.as_str() {
                    "" => String::new(),
                    token => format!("continuation-token={}&", token.replace('=', "%3D")),
                };
                let query = format!("{token_pair}{delimiter}list-type=2&max-keys=4&prefix=a%2F");
                let answer = ask("GET", of, "").query(&query).send(&bucket);
                assert_eq!(answer.status, 200, "{}", answer.text());
                let text = answer.text();
                let lines = between(&text, "Key").len() + between(&text, "CommonPrefixes").len();
                assert!(lines <= 4);
                found.extend(between(&text, "Key"));
                let prefixes = between(&text, "CommonPrefixes");
                found.extend(prefixes.iter().flat_map(|one| between(one, "Prefix")));
                pages += 1;
                if between(&text, "IsTruncated") == ["false"] {
                    return (found, pages);
                }
                token = between(&text, "NextContinuationToken").concat();
            }
        };
        let (all, pages) = listed("");
        assert_eq!(pages, 7);
        let is_ordered = all.is_sorted();
        assert_eq!(is_ordered, of == GENERAL, "{all:?}");
        let mut sorted = all;
        sorted.sort();
        assert_eq!(sorted, names);
        let (mut grouped, _) = listed("delimiter=%2F&");
        grouped.sort();
        let mut expected = names[..25].to_vec();
        expected.push("a/sub/".to_owned());
        assert_eq!(grouped, expected);
    }
    let list = |query| ask("GET", DIRECTORY, "").query(query).send(&bucket).error();
    let invalid = (400, "InvalidRequest".to_owned());
    assert_eq!(list("list-type=2&prefix=a"), invalid);
    assert_eq!(list("delimiter=-&list-type=2"), invalid);
    assert_eq!(list("list-type=2&start-after=a"), invalid);
    // Only the pages of what is there, deleted ones no more.
    let xml = b"<Delete><Object><Key>a/00</Key></Object><Object><Key>none</Key></Object></Delete>";
    let several = ask("POST", GENERAL, "").query("delete=").body(xml);
    let several = several.header("content-md5", base64::encode(&md5(xml)));
    let answer = several.send(&bucket);
    assert_eq!(
        (answer.status, between(&answer.text(), "Deleted").len()),
        (200, 2),
        "{}",
        answer.text()
    );
    assert_eq!(get(&bucket, GENERAL, "a/00").status, 404);
    assert_eq!(ask("DELETE", GENERAL, "a/01").send(&bucket).status, 204);
    assert_eq!(ask("DELETE", GENERAL, "a/01").send(&bucket).status, 204);
    assert_eq!(get(&bucket, GENERAL, "a/01").status, 404);
}

fn md5(bytes: &[u8]) -> Vec<u8> {
    s3s::crypto::Md5::checksum(bytes).to_vec()
}

#[test]
fn buckets_are_made_once_and_must_be_there() {
    let bucket = start(|_| {});
    assert_eq!(ask("PUT", "made", "").send(&bucket).status, 200);
    assert_eq!(
        ask("PUT", "made", "").send(&bucket).error(),
        (409, "BucketAlreadyOwnedByYou".to_owned())
    );
    assert_eq!(ask("HEAD", "made", "").send(&bucket).status, 200);
    assert_eq!(
        get(&bucket, "nowhere", "o").error(),
        (404, "NoSuchBucket".to_owned())
    );
    let mut options = DevBucketOptions::new("a", "b");
    options.buckets = vec!["Not_A_Name".to_owned()];
    assert!(DevBucket::start(options, &Env::real()).is_err());
}

#[test]
fn a_directory_is_found_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let kept = |options: &mut DevBucketOptions| options.dir = Some(dir.path().to_owned());
    let bucket = start(kept);
    append(&bucket, "o", 0, b"abc");
    let tag = append(&bucket, "o", 3, b"def").tag();
    ask("PUT", GENERAL, "o").body(b"whole").send(&bucket);
    ask("PUT", "made", "").send(&bucket);
    // Another one cannot serve the same directory.
    let mut second = DevBucketOptions::new("a", "b");
    kept(&mut second);
    assert!(DevBucket::start(second, &Env::real()).is_err());
    drop(bucket);
    let bucket = start(kept);
    let found = get(&bucket, DIRECTORY, "o");
    assert_eq!((found.text().as_str(), found.tag()), ("abcdef", tag));
    assert_eq!(get(&bucket, GENERAL, "o").text(), "whole");
    assert_eq!(ask("HEAD", "made", "").send(&bucket).status, 200);
    assert_eq!(append(&bucket, "o", 6, b"ghi").status, 200);
}

#[test]
fn what_it_does_not_offer_is_not_passed_over() {
    let bucket = start(|_| {});
    for (name, value) in [
        ("x-amz-meta-colour", "red"),
        ("x-amz-tagging", "a=b"),
        ("x-amz-website-redirect-location", "/"),
    ] {
        let put = ask("PUT", GENERAL, "o").header(name, value).body(b"x");
        assert_eq!(
            put.send(&bucket).error(),
            (501, "NotImplemented".to_owned()),
            "{name}"
        );
    }
    let upload = ask("POST", GENERAL, "o").query("uploads=").send(&bucket);
    assert_eq!(upload.error(), (501, "NotImplemented".to_owned()));
    assert_eq!(get(&bucket, GENERAL, "o").status, 404);
}
