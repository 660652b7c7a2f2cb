//! The meter: every request to an object store passes here, on its way between the client library and the wire.
//!
//! It does three things that the library does not:
//!
//! 1. **Counts** each request by kind, and bytes up and down: repeated ones, questions for a length and sessions too.
//! 2. **Answers for the provider** where the library would look first: its append writers ask for the object's length
//!    and append at whatever they hear, which is no fence (T14). During an append that question never leaves the
//!    process: its answer is the offset that the caller gave, and the provider compares it with the truth, in one step
//!    with the append. An append that would go out with another offset is not sent at all.
//! 3. **Keeps the provider's answer** for [`outcome`](super::client::outcome): status and code as they came.
//!
//! Which operation a request belongs to is a task-local value: an operation is polled in one task.
//!
//! Does not: decide what an answer means, or send anything twice.

use super::client::outcome::Reply;
use crate::usage::{RequestKind, UsageCounters};
use futures_core::Stream;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use opendal::raw::oio::ReadStream;
use opendal::{Buffer, Error, ErrorKind, HttpBody, HttpTransport};
use parking_lot::Mutex;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

tokio::task_local! {
    /// The operation that this task is in.
    static CALL: Arc<MeteredCall>;
}

/// What an operation does with its object, as far as the meter has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MeteredAction {
    /// Appends at exactly this offset.
    Append(u64),
    /// Makes an object by the library's append writer, and appends its first bytes.
    Create,
    /// Anything else.
    Other,
}

/// How far an operation came.
#[derive(Clone, Debug, Default)]
pub(super) enum SendProgress {
    /// Nothing was sent yet.
    #[default]
    NothingSent,
    /// The last request was not sent: no connection.
    NotSent,
    /// An append was held back, because it had another offset than asked for.
    HeldBack(String),
    /// The last request may have arrived; there is no answer. `session`: it was the one for a session, so the operation
    /// itself was not sent.
    Sent {
        /// See above.
        session: bool,
    },
    /// The last answer.
    Answered(Reply),
}

/// One operation.
#[derive(Debug)]
pub(super) struct MeteredCall {
    act: MeteredAction,
    wire: Mutex<Progress>,
}

#[derive(Debug, Default)]
struct Progress {
    wire: SendProgress,
    /// A request of this operation that changes something was answered with success.
    changed: bool,
    /// Of the last successful answer.
    etag: Option<String>,
    /// Likewise: where its bytes begin, and the object's length, if only a range was asked for.
    range: Option<(u64, u64)>,
}

impl MeteredCall {
    pub(super) fn new(act: MeteredAction) -> Arc<MeteredCall> {
        Arc::new(MeteredCall {
            act,
            wire: Mutex::default(),
        })
    }

    /// Runs `operation` as this call.
    pub(super) fn run<F: Future>(
        self: &Arc<MeteredCall>,
        operation: F,
    ) -> tokio::task::futures::TaskLocalFuture<Arc<MeteredCall>, F> {
        CALL.scope(self.clone(), operation)
    }

    /// How far it came.
    pub(super) fn wire(&self) -> SendProgress {
        self.wire.lock().wire.clone()
    }

    /// A part of it has certainly changed something.
    pub(super) fn changed(&self) -> bool {
        self.wire.lock().changed
    }

    /// The object's state by the last successful answer.
    pub(super) fn etag(&self) -> Option<String> {
        self.wire.lock().etag.clone()
    }

    /// Where the bytes begin, and the object's length, by the last successful answer to a question for a range.
    pub(super) fn range(&self) -> Option<(u64, u64)> {
        self.wire.lock().range
    }

    fn set(&self, wire: SendProgress) {
        self.wire.lock().wire = wire;
    }
}

/// The header that says where an append goes.
const OFFSETS: [&str; 2] = ["x-amz-write-offset-bytes", "x-ms-blob-condition-appendpos"];

fn offset(headers: &HeaderMap) -> Option<&str> {
    let mut values = OFFSETS.iter().filter_map(|name| headers.get(*name));
    values.next()?.to_str().ok()
}

/// What a request is, for the bill.
fn kind_of(request: &Request<Buffer>) -> RequestKind {
    let query = request.uri().query().unwrap_or_default();
    let has = |name: &str| {
        query
            .split('&')
            .any(|pair| pair.split('=').next() == Some(name))
    };
    match *request.method() {
        Method::HEAD => RequestKind::Head,
        Method::DELETE => RequestKind::Delete,
        Method::GET if query == "session" => RequestKind::Session,
        Method::GET if has("list-type") || query.contains("comp=list") => RequestKind::List,
        Method::GET => RequestKind::Get,
        // Azure's deletion of several, which is one request.
        Method::POST if has("delete") || query.contains("comp=batch") => RequestKind::Delete,
        _ if offset(request.headers()).is_some() => RequestKind::Append,
        _ => RequestKind::Put,
    }
}

fn changes(kind: RequestKind) -> bool {
    matches!(
        kind,
        RequestKind::Append | RequestKind::Put | RequestKind::Delete
    )
}

/// The transport that the client library is given.
pub(super) struct Meter<T> {
    wire: T,
    /// Host and port of the object store; requests to others (for credentials) are not its bill.
    authority: String,
    /// The bucket's name and a dot: the store's host names may begin with it.
    host_prefix: String,
    counters: Arc<UsageCounters>,
}

impl<T> Meter<T> {
    pub(super) fn new(
        wire: T,
        authority: String,
        bucket: &str,
        counters: Arc<UsageCounters>,
    ) -> Meter<T> {
        Meter {
            wire,
            authority,
            host_prefix: format!("{bucket}."),
            counters,
        }
    }

    fn is_ours(&self, request: &Request<Buffer>) -> bool {
        let authority = request.uri().authority().map(|it| it.as_str());
        authority.is_some_and(|authority| {
            authority == self.authority || authority.starts_with(&self.host_prefix)
        })
    }
}

/// A body that is known already.
struct Known(Option<Buffer>);

impl Stream for Known {
    type Item = opendal::Result<Buffer>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.take().filter(|it| !it.is_empty()).map(Ok))
    }
}

/// A body whose bytes are counted as they come.
struct Counted<S> {
    body: S,
    counters: Arc<UsageCounters>,
}

impl<S: Stream<Item = opendal::Result<Buffer>> + Unpin> Stream for Counted<S> {
    type Item = opendal::Result<Buffer>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = Pin::new(&mut self.body).poll_next(context);
        if let Poll::Ready(Some(Ok(bytes))) = &next {
            self.counters.count_read(bytes.len() as u64);
        }
        next
    }
}

/// The answer to a question for the length that is not asked.
fn length_as_told(act: MeteredAction) -> opendal::Result<Option<Response<HttpBody>>> {
    let answer = match act {
        MeteredAction::Append(offset) => Response::builder()
            .status(StatusCode::OK)
            .header("content-length", offset)
            .header("x-ms-blob-type", "AppendBlob"),
        MeteredAction::Create => Response::builder().status(StatusCode::NOT_FOUND),
        MeteredAction::Other => return Ok(None),
    };
    let body = HttpBody::new(Known(None), None);
    let answer = answer.body(body).map_err(|why| {
        Error::new(ErrorKind::Unexpected, "cannot build an answer").set_source(why)
    })?;
    Ok(Some(answer))
}

/// `bytes FIRST-LAST/LENGTH`
fn range(text: &str) -> Option<(u64, u64)> {
    let (range, len) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (first, _) = range.split_once('-')?;
    Some((first.parse().ok()?, len.parse().ok()?))
}

/// No connection came about: nothing was sent.
fn not_connected(error: &Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<reqwest::Error>() {
            return error.is_connect();
        }
        cause = error.source();
    }
    false
}

/// An error and what is behind it, on one line.
pub(super) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}

impl<T: HttpTransport> HttpTransport for Meter<T> {
    async fn fetch(&self, request: Request<Buffer>) -> opendal::Result<Response<HttpBody>> {
        let call = CALL.try_with(Arc::clone).ok();
        if !self.is_ours(&request) {
            return self.wire.fetch(request).await;
        }
        let kind = kind_of(&request);
        let act = call.as_ref().map_or(MeteredAction::Other, |call| call.act);
        if kind == RequestKind::Head
            && let Some(answer) = length_as_told(act)?
        {
            return Ok(answer);
        }
        if kind == RequestKind::Append {
            let asked = match act {
                MeteredAction::Append(offset) => Some(offset),
                MeteredAction::Create => Some(0),
                MeteredAction::Other => None,
            };
            let going = offset(request.headers()).and_then(|text| text.parse::<u64>().ok());
            if asked.is_none() || asked != going {
                let why = format!("an append at {asked:?} was about to go out at {going:?}");
                if let Some(call) = &call {
                    call.set(SendProgress::HeldBack(why.clone()));
                }
                return Err(Error::new(ErrorKind::ConditionNotMatch, why));
            }
        }
        self.counters.count(kind, request.body().len() as u64);
        if let Some(call) = &call {
            let session = kind == RequestKind::Session;
            call.set(SendProgress::Sent { session });
        }
        let response = match self.wire.fetch(request).await {
            Ok(response) => response,
            Err(error) => {
                if let Some(call) = &call
                    && not_connected(&error)
                {
                    call.set(SendProgress::NotSent);
                }
                return Err(error);
            }
        };
        let (parts, body) = response.into_parts();
        let counters = self.counters.clone();
        let counted = |body: HttpBody| body.map_inner(|body| Box::new(Counted { body, counters }));
        let body = if kind == RequestKind::Get {
            counted(body)
        } else {
            body
        };
        let Some(call) = call else {
            return Ok(Response::from_parts(parts, body));
        };
        if parts.status.is_success() {
            let mut progress = call.wire.lock();
            progress.changed |= changes(kind);
            let header = |name: &str| parts.headers.get(name)?.to_str().ok();
            progress.etag = header("etag").map(str::to_owned);
            progress.range = header("content-range").and_then(range);
            progress.wire = SendProgress::Answered(Reply::ok(parts.status.as_u16()));
            drop(progress);
            return Ok(Response::from_parts(parts, body));
        }
        // The answer says why in its body; the library gets to read it too.
        let mut body = body;
        let text = read_all(&mut body).await?;
        let mut reply = Reply::of(parts.status.as_u16(), &parts.headers, &text.to_bytes());
        reply.session = kind == RequestKind::Session;
        call.set(SendProgress::Answered(reply));
        let body = HttpBody::new(Known(Some(text)), None);
        Ok(Response::from_parts(parts, body))
    }
}

/// Most bytes that an error's explanation may have.
const REASON_BYTES_MAX: usize = 1 << 20;

async fn read_all(body: &mut HttpBody) -> opendal::Result<Buffer> {
    let mut parts = Vec::new();
    let mut len = 0;
    loop {
        let part = body.read().await?;
        if part.is_empty() {
            return Ok(parts.into_iter().flatten().collect());
        }
        len += part.len();
        if len > REASON_BYTES_MAX {
            return Err(Error::new(ErrorKind::Unexpected, "an error without an end"));
        }
        parts.push(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts what reaches it, and answers that all is well.
    #[derive(Clone, Default)]
    struct Wired(Arc<Mutex<Vec<String>>>);

    impl HttpTransport for Wired {
        async fn fetch(&self, request: Request<Buffer>) -> opendal::Result<Response<HttpBody>> {
            let line = format!("{} {}", request.method(), request.uri());
            self.0.lock().push(line);
            let answer = Response::builder().status(200).header("etag", "\"1\"");
            let answer = answer.body(HttpBody::new(Known(None), None));
            Ok(answer.expect("an answer"))
        }
    }

    fn request(method: &str, uri: &str, offset: Option<&str>) -> Request<Buffer> {
        let mut builder = Request::builder().method(method).uri(uri);
        if let Some(offset) = offset {
            builder = builder.header(OFFSETS[0], offset);
        }
        builder.body(Buffer::from("bytes")).expect("a request")
    }

    fn metered() -> (Meter<Wired>, Wired, Arc<UsageCounters>) {
        let (wire, counters) = (Wired::default(), Arc::<UsageCounters>::default());
        let meter = Meter::new(wire.clone(), "host:9".into(), "logs", counters.clone());
        (meter, wire, counters)
    }

    fn run<F: Future>(future: F) -> F::Output {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.expect("a runtime").block_on(future)
    }

    #[test]
    fn an_append_at_another_offset_is_held_back() {
        for (act, going, sent) in [
            (MeteredAction::Append(5), Some("5"), true),
            (MeteredAction::Append(5), Some("6"), false),
            (MeteredAction::Append(5), Some("5x"), false),
            (MeteredAction::Create, Some("0"), true),
            (MeteredAction::Create, Some("1"), false),
            // Nobody said where.
            (MeteredAction::Other, Some("0"), false),
        ] {
            let (meter, wire, counters) = metered();
            let call = MeteredCall::new(act);
            let request = request("PUT", "http://host:9/logs/a", going);
            let answer = run(call.run(meter.fetch(request)));
            assert_eq!(answer.is_ok(), sent, "{act:?} {going:?}");
            assert_eq!(wire.0.lock().len(), usize::from(sent));
            assert_eq!(counters.usage().appends, u64::from(sent));
            assert_eq!(matches!(call.wire(), SendProgress::HeldBack(_)), !sent);
        }
        // Outside of any operation too.
        let (meter, wire, _) = metered();
        let stray = request("PUT", "http://host:9/logs/a", Some("0"));
        assert!(run(meter.fetch(stray)).is_err());
        assert_eq!(wire.0.lock().len(), 0);
    }

    #[test]
    fn the_length_is_the_callers_word() {
        let (meter, wire, counters) = metered();
        let head = || request("HEAD", "http://host:9/logs/a", None);
        let told = run(MeteredCall::new(MeteredAction::Append(77)).run(meter.fetch(head())))
            .expect("an answer");
        assert_eq!(told.headers()["content-length"], "77");
        let absent = run(MeteredCall::new(MeteredAction::Create).run(meter.fetch(head())))
            .expect("an answer");
        assert_eq!(absent.status(), 404);
        assert_eq!((wire.0.lock().len(), counters.usage().heads), (0, 0));
        run(MeteredCall::new(MeteredAction::Other).run(meter.fetch(head()))).expect("an answer");
        assert_eq!((wire.0.lock().len(), counters.usage().heads), (1, 1));
    }

    #[test]
    fn requests_count_by_kind_and_others_servers_do_not() {
        let (meter, wire, counters) = metered();
        for (method, uri) in [
            ("PUT", "http://host:9/logs/a"),
            ("PUT", "http://logs.other/a"),
            ("GET", "http://host:9/logs/a"),
            ("GET", "http://host:9/logs?list-type=2&prefix=x"),
            ("GET", "http://host:9/logs?restype=container&comp=list"),
            ("GET", "http://host:9/logs?session"),
            ("HEAD", "http://host:9/logs/a"),
            ("DELETE", "http://host:9/logs/a"),
            ("POST", "http://host:9/logs?delete"),
            ("PUT", "http://169.254.169.254/latest/api/token"),
            ("POST", "https://sts.amazonaws.com/"),
        ] {
            run(meter.fetch(request(method, uri, None))).expect("an answer");
        }
        assert_eq!(wire.0.lock().len(), 11);
        let usage = counters.usage();
        assert_eq!((usage.writes, usage.write_bytes), (2, 10));
        assert_eq!((usage.reads, usage.lists, usage.heads), (1, 2, 1));
        assert_eq!((usage.deletes, usage.sessions), (2, 1));
    }
}
