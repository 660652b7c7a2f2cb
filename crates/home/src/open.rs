//! Homes by URL: the one place that knows which home a URL means.
//!
//! | URL | home |
//! |---|---|
//! | `file:///dir`, `/dir`, `dir` | [`LocalHome`]; `file:///dir?way=pwrite` says how it writes |
//! | the same with a block device's path, or a preallocated file's | [`LocalHome`] on that device |
//! | `memory:` | [`MemoryHome`], empty |
//! | `sim://?model=s3express&seed=1` | [`SimulatedHome`]; [`SimulatedOptions::parse`](crate::SimulatedOptions::parse) has its options |
//! | `s3express://BUCKET/PREFIX`, `azure://CONTAINER/PREFIX` (or `az://`) | [`ObjectHome`] of objects that are appended to; [`BucketUrl`](crate::bucket::BucketUrl) has the options |
//! | `node://HOST:PORT/VOLUME` | [`NodeHome`](crate::NodeHome): a volume on one storage node |
//! | `fleet://HOST:PORT,HOST:PORT,…/VOLUME` | the same on several, a majority of which is enough |
//! | `s3://BUCKET/PREFIX` | [`ObjectHome`] of objects that are written once |
//!
//! A list of URLs, with commas between them, is a [`ReplicatedHome`]; each must begin with its scheme.
//!
//! A file URL's path may hold percent escapes; a plain path is taken as it is, unless it begins like a URL
//! (`scheme:`, two characters or more).
//!
//! A bucket is opened for writing only if it has passed the [`probe`], and if its prefix holds a log or nothing.
//! Credentials are never part of a URL, so errors and logs may show it.

use crate::bucket::{self, Bucket, BucketError, Outcome, PatientBucket, ReadOnlyBucket, probe};
use crate::node;
use crate::{
    DamageCheck, HomeError, LocalHome, LocalObjects, LocalOptions, LogHome, MemoryHome, ObjectHome,
    ObjectOptions, ObjectReader, OpenPurpose, ReplicatedHome, ReplicatedOptions, SimulatedHome,
    Source, WriteConcern,
};
use logstead_env::{DataDirMode, Env, FileKind};
use parking_lot::Mutex;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tracing::{info, warn};

/// How often a bucket is asked when a home is opened, and how long the pauses between two tries are: from the first
/// one, they double up to the longest.
#[derive(Clone, Copy)]
struct RetryPolicy {
    tries: u32,
    first: Duration,
    longest: Duration,
}

/// With a bucket that has not answered yet: long enough for a hiccup, short enough for whoever waits at a terminal to
/// be told of a wrong endpoint.
const STRANGER: RetryPolicy = RetryPolicy {
    tries: 6,
    first: Duration::from_millis(100),
    longest: Duration::from_secs(2),
};
/// With one that has just passed the probe: it is the right one and has a bad minute, so that a start does better to
/// wait than to end.
const KNOWN: RetryPolicy = RetryPolicy {
    tries: 24,
    ..STRANGER
};
/// How long each home of a list is waited for where every one must answer: for several requests that are lost, one
/// after the other.
const ALL_PATIENCE: Duration = Duration::from_secs(60);
/// The log's root, the one name that every log in a bucket has.
const MANIFEST: &str = "manifest";
/// Scratch objects of a start that was killed: nobody's data.
const SCRATCH: &str = "probe/";

/// Options of every home that a URL may mean.
#[derive(Clone, Debug, Default)]
pub struct HomeOptions {
    /// Of the local home; its segment size is the memory home's too.
    pub local: LocalOptions,
    /// Of homes in buckets.
    pub objects: ObjectOptions,
    /// Of a list of homes: when an append is durable.
    pub ack: WriteConcern,
    /// The place was named for this log, by a number that was drawn: see [`OpenPurpose::NewPlace`].
    pub new_place: bool,
    /// Of several homes: see [`ReplicatedOptions::damage`].
    pub damage: Option<DamageCheck>,
    /// A bucket that was out of reach, or full, for so long is given up: what was asked of it fails. `None`: never.
    pub patience: Option<Duration>,
}

/// A URL in its parts.
struct Url<'u> {
    whole: &'u str,
    /// Lower case; `None`: a plain path.
    scheme: Option<String>,
    /// What follows the scheme, up to the query.
    rest: &'u str,
    query: Option<&'u str>,
}

impl<'u> Url<'u> {
    fn parse(whole: &'u str) -> Url<'u> {
        let is_scheme = |text: &str| {
            text.len() > 1
                && text.starts_with(|c: char| c.is_ascii_alphabetic())
                && text
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
        };
        match whole
            .split_once(':')
            .filter(|(scheme, _)| is_scheme(scheme))
        {
            None => Url {
                whole,
                scheme: None,
                rest: whole,
                query: None,
            },
            Some((scheme, rest)) => {
                let (rest, query) = match rest.split_once('?') {
                    Some((rest, query)) => (rest, Some(query)),
                    None => (rest, None),
                };
                Url {
                    whole,
                    scheme: Some(scheme.to_ascii_lowercase()),
                    rest,
                    query,
                }
            }
        }
    }

    fn wrong(&self, what: impl Into<String>) -> HomeError {
        HomeError::Url {
            url: self.whole.to_owned(),
            what: what.into(),
        }
    }

    /// A file URL's path.
    fn path(&self) -> Result<PathBuf, HomeError> {
        let path = match self.rest.strip_prefix("//") {
            // The part between the second and the third slash is a host: none, or this one.
            Some(rest) => rest.strip_prefix("localhost").unwrap_or(rest),
            None => self.rest,
        };
        if !path.starts_with('/') {
            return Err(self.wrong("a file URL is file:///PATH, with an absolute path"));
        }
        Ok(PathBuf::from(OsString::from_vec(self.unescape(path)?)))
    }

    fn unescape(&self, text: &str) -> Result<Vec<u8>, HomeError> {
        let mut bytes = Vec::with_capacity(text.len());
        let mut rest = text.as_bytes();
        while let Some((&first, after)) = rest.split_first() {
            if first != b'%' {
                bytes.push(first);
                rest = after;
                continue;
            }
            let digit = |index: usize| {
                let digit = after.get(index).copied().map(char::from);
                digit.and_then(|digit| digit.to_digit(16))
            };
            let byte = match (digit(0), digit(1)) {
                (Some(high), Some(low)) => u8::try_from(high * 16 + low).ok(),
                _ => None,
            };
            let byte = byte.filter(|byte| *byte != 0);
            bytes.push(byte.ok_or_else(|| self.wrong("a bad percent escape"))?);
            rest = &after[2..];
        }
        Ok(bytes)
    }

    /// The options, as a file URL's query changes them.
    fn local_options(&self, options: &LocalOptions) -> Result<LocalOptions, HomeError> {
        let mut options = options.clone();
        for pair in self
            .query
            .unwrap_or("")
            .split('&')
            .filter(|p| !p.is_empty())
        {
            match pair.split_once('=') {
                Some(("way", name)) => {
                    options.way = name.parse().map_err(|wrong: String| self.wrong(wrong))?;
                }
                _ => {
                    let what = format!("\"{pair}\" is no option of it; way=NAME is");
                    return Err(self.wrong(what));
                }
            }
        }
        Ok(options)
    }

    fn is_bucket(&self) -> bool {
        matches!(
            self.scheme.as_deref(),
            Some("s3" | "s3express" | "azure" | "az" | "gs")
        )
    }

    /// As the bucket's own parser takes it.
    fn bucket_url(&self) -> String {
        match self.scheme.as_deref() {
            Some("az") => format!("azure{}", &self.whole["az".len()..]),
            _ => self.whole.to_owned(),
        }
    }

    fn no_query(&self) -> Result<(), HomeError> {
        match self.query {
            None | Some("") => Ok(()),
            Some(query) => Err(self.wrong(format!("it takes no options, but has \"{query}\""))),
        }
    }
}

/// The homes of a list: with commas between them, each with its scheme.
fn list_of(urls: &str) -> Option<Vec<&str>> {
    // The commas between its nodes are its own.
    if Url::parse(urls).scheme.as_deref() == Some("fleet") {
        return None;
    }
    let list: Vec<&str> = urls.split(',').map(str::trim).collect();
    let each = list.iter().all(|url| Url::parse(url).scheme.is_some());
    (list.len() > 1 && each).then_some(list)
}

/// The homes of a list as one; `open` opens each of them.
fn open_list(
    urls: &[&str],
    env: &Env,
    options: ReplicatedOptions,
    open: impl Fn(&str, &Env) -> Result<LogHome, HomeError> + Clone + Send + Sync + 'static,
) -> Result<LogHome, HomeError> {
    let sources = sources_of(urls, env, open);
    Ok(ReplicatedHome::open(sources, env, options)?.into())
}

/// The homes of these URLs, to be opened by `open`.
fn sources_of(
    urls: &[&str],
    env: &Env,
    open: impl Fn(&str, &Env) -> Result<LogHome, HomeError> + Clone + Send + Sync + 'static,
) -> Vec<Source> {
    let source = |url: &&str| {
        let (whole, env, open) = ((*url).to_owned(), env.clone(), open.clone());
        // What this process keeps itself is opened once: it comes back as it was.
        let is_kept = matches!(
            Url::parse(&whole).scheme.as_deref(),
            Some("memory") | Some("sim")
        );
        let kept: Mutex<Option<LogHome>> = Mutex::default();
        Source {
            url: whole.clone(),
            open: Arc::new(move || {
                let mut kept = kept.lock();
                if let Some(home) = &*kept {
                    return Ok(home.clone());
                }
                let home = open(&whole, &env)?;
                *kept = is_kept.then(|| home.clone());
                Ok(home)
            }),
        }
    };
    urls.iter().map(source).collect()
}

/// How several homes are opened as one.
fn options_of(ack: WriteConcern, purpose: OpenPurpose) -> ReplicatedOptions {
    let default = ReplicatedOptions::default();
    ReplicatedOptions {
        ack,
        purpose,
        patience: match (ack, purpose) {
            // Nothing is won by giving one up that is slow: without it there is no log.
            (WriteConcern::All, OpenPurpose::Log | OpenPurpose::NewPlace) => ALL_PATIENCE,
            (WriteConcern::Majority, _) | (_, OpenPurpose::Reading) => default.patience,
        },
        ..default
    }
}

/// Opens (or makes) the home that `url` names, for writing.
pub fn open(url: &str, env: &Env, options: &HomeOptions) -> Result<LogHome, HomeError> {
    if let Some(urls) = list_of(url) {
        let purpose = match options.new_place {
            true => OpenPurpose::NewPlace,
            false => OpenPurpose::Log,
        };
        let each = options.clone();
        let open = move |url: &str, env: &Env| open(url, env, &each);
        let options = ReplicatedOptions {
            damage: options.damage,
            ..options_of(options.ack, purpose)
        };
        return open_list(&urls, env, options, open);
    }
    let parts = Url::parse(url);
    match parts.scheme.as_deref() {
        None if url.is_empty() => Err(parts.wrong("it is empty")),
        None => Ok(LocalHome::open(url, env, options.local.clone())?.into()),
        Some("file") => {
            let local = parts.local_options(&options.local)?;
            Ok(LocalHome::open(parts.path()?, env, local)?.into())
        }
        Some("memory") => {
            parts.no_query()?;
            if !parts.rest.is_empty() {
                return Err(parts.wrong("the home in memory is just memory:"));
            }
            Ok(MemoryHome::new(options.local.segment_size_bytes).into())
        }
        Some("sim") => {
            if !matches!(parts.rest, "" | "/" | "//" | "///") {
                return Err(parts
                    .wrong("a simulated home is sim://?model=NAME, with more options behind &"));
            }
            let home = SimulatedHome::open(parts.query.unwrap_or_default(), env)?;
            Ok(home.into())
        }
        Some(_) if parts.is_bucket() => {
            let bucket = bucket::open(&parts.bucket_url(), env)?;
            prepare(bucket.as_ref(), env, [STRANGER, KNOWN])?;
            let bucket = match options.patience {
                Some(patience) => {
                    let clock = Arc::clone(&env.clock);
                    Arc::new(PatientBucket::new(bucket, clock, patience))
                }
                None => bucket,
            };
            let home = ObjectHome::open(bucket, env, options.objects.clone())?;
            Ok(home.into())
        }
        Some("node") => Ok(node::open_node(url, env, true)?.into()),
        Some("fleet") => {
            let purpose = match options.new_place {
                true => OpenPurpose::NewPlace,
                false => OpenPurpose::Log,
            };
            node::open_fleet(url, env, purpose, options.damage)
        }
        Some(scheme) => Err(parts.wrong(format!("homes of kind {scheme}: are not supported"))),
    }
}

/// Opens the home that `url` names for reading only: nothing is changed. A local one must be used by no server
/// meanwhile; a bucket may be. A home that is not there is [`HomeError::Missing`], at the latest when its manifest is
/// read. Of a list a majority must be there.
pub fn open_read_only(url: &str, env: &Env) -> Result<LogHome, HomeError> {
    open_to_read(url, env, LocalHome::open_read_only)
}

/// The same beside a server that may be at work there, at a local home in a directory too ([`LocalHome::open_beside`]).
pub fn open_beside(url: &str, env: &Env) -> Result<LogHome, HomeError> {
    open_to_read(url, env, LocalHome::open_beside)
}

/// The same for who follows the log there, as servers come and go ([`LocalHome::open_to_follow`]).
pub fn open_to_follow(url: &str, env: &Env) -> Result<LogHome, HomeError> {
    open_to_read(url, env, LocalHome::open_to_follow)
}

/// The same for who stores immutable objects there, under numbers that the server at work has given it, and changes
/// nothing else. Of several homes those that do not answer are left out as long as it is open: it is for one errand.
/// Nothing is added to the objects of a branch's parent.
pub fn open_to_store_objects(url: &str, env: &Env) -> Result<LogHome, HomeError> {
    let opening = Opening {
        local: LocalHome::open_to_store_objects,
        stores_objects: true,
    };
    open_beside_server(url, env, opening)
}

/// How a home is opened by who is not its server.
#[derive(Clone, Copy)]
struct Opening {
    local: fn(PathBuf, &Env) -> Result<LocalHome, HomeError>,
    stores_objects: bool,
}

impl Opening {
    fn bucket(self, bucket: Arc<dyn Bucket>) -> ReadOnlyBucket {
        match self.stores_objects {
            true => ReadOnlyBucket::with_puts(bucket, crate::objects::OBJECTS),
            false => ReadOnlyBucket::new(bucket),
        }
    }
}

fn open_to_read(
    url: &str,
    env: &Env,
    local: fn(PathBuf, &Env) -> Result<LocalHome, HomeError>,
) -> Result<LogHome, HomeError> {
    let stores_objects = false;
    let opening = Opening {
        local,
        stores_objects,
    };
    open_beside_server(url, env, opening)
}

fn open_beside_server(url: &str, env: &Env, opening: Opening) -> Result<LogHome, HomeError> {
    let local = opening.local;
    if let Some(urls) = list_of(url) {
        let open = move |url: &str, env: &Env| open_beside_server(url, env, opening);
        let options = options_of(WriteConcern::All, OpenPurpose::Reading);
        return open_list(&urls, env, options, open);
    }
    let parts = Url::parse(url);
    match parts.scheme.as_deref() {
        None if url.is_empty() => Err(parts.wrong("it is empty")),
        None => Ok(local(PathBuf::from(url), env)?.into()),
        Some("file") => {
            // The options of a URL that a server is started with are fine here too.
            parts.local_options(&LocalOptions::default())?;
            Ok(local(parts.path()?, env)?.into())
        }
        Some("memory") => {
            Err(parts.wrong("a home in memory is its process's own: there is nothing to read"))
        }
        Some(_) if parts.is_bucket() => {
            let bucket = bucket::open(&parts.bucket_url(), env)?;
            with_retries(env, bucket.as_ref(), STRANGER, async || {
                match bucket.stat(MANIFEST).await {
                    Ok(Some(_)) => Ok(Ok(())),
                    Ok(None) => Ok(Err(missing(bucket.as_ref()))),
                    Err(error) => Err(error),
                }
            })??;
            let bucket = Arc::new(opening.bucket(bucket));
            let home = ObjectHome::open(bucket, env, ObjectOptions::default())?;
            Ok(home.into())
        }
        Some("node") => Ok(node::open_node(url, env, opening.stores_objects)?.into()),
        Some("fleet") if opening.stores_objects => node::open_fleet_to_store_objects(url, env),
        Some("fleet") => node::open_fleet(url, env, OpenPurpose::Reading, None),
        Some(_) => open(url, env, &HomeOptions::default()),
    }
}

/// The directory of a local home.
fn directory(url: &str) -> Result<Option<PathBuf>, HomeError> {
    let parts = Url::parse(url);
    match parts.scheme.as_deref() {
        None => Ok(Some(PathBuf::from(url))),
        Some("file") => parts.path().map(Some),
        Some(_) => Ok(None),
    }
}

/// Who may read the home that `url` names, where it is a directory that is there; of a list, who may read all of them:
/// a copy or a branch of it is for the same.
pub fn readers_of(url: &str, env: &Env) -> DataDirMode {
    if let Some(urls) = list_of(url) {
        let all = |readers| urls.iter().all(|url| readers_of(url, env) == readers);
        return match all(DataDirMode::Group) {
            true => DataDirMode::Group,
            false => DataDirMode::Owner,
        };
    }
    let dir = directory(url).ok().flatten();
    let dir = dir.filter(|dir| matches!(env.files.kind(dir), Ok(Some(FileKind::Directory))));
    // What cannot be looked at is told when it is opened.
    dir.and_then(|dir| env.files.readers_of(&dir).ok())
        .unwrap_or_default()
}

/// May a database be copied from one home to another? Not to where it would be gone when the process ends, nor into a
/// directory with other things in it, or into the source itself. What is in a home that is there is for who opens it to
/// judge.
pub fn check_copy(from: &str, to: &str, env: &Env) -> Result<(), HomeError> {
    if let Some(urls) = list_of(to) {
        return urls.iter().try_for_each(|to| check_copy(from, to, env));
    }
    let parts = Url::parse(to);
    if let Some("memory" | "sim") = parts.scheme.as_deref() {
        return Err(parts.wrong("what is copied there is gone when this command ends"));
    }
    let Some(dir) = directory(to)? else {
        return Ok(());
    };
    let failed = |error| HomeError::io(format!("look at {}", dir.display()), error);
    let resolved = env.files.resolve(&dir).map_err(failed)?;
    for from in list_of(from).unwrap_or_else(|| vec![from]) {
        let Some(source) = directory(from)? else {
            continue;
        };
        if resolved.starts_with(env.files.resolve(&source).map_err(failed)?) {
            return Err(parts.wrong(format!("it lies within {from}, which is to be copied")));
        }
    }
    match env.files.kind(&dir).map_err(failed)? {
        Some(FileKind::Directory) => {}
        _ => return Ok(()),
    }
    let names = env.files.list(&dir).map_err(failed)?;
    let is_own = |name: &&String| {
        LocalHome::NAMES.contains(&name.as_str()) || name.ends_with(LocalHome::UNFINISHED)
    };
    let other = names.iter().find(|name| !is_own(name));
    match other.filter(|_| !names.iter().any(|name| name == MANIFEST)) {
        Some(other) => Err(parts.wrong(format!(
            "there are other things in that directory, such as \"{other}\": choose an empty one"
        ))),
        None => Ok(()),
    }
}

/// The URL of a home below the one that `url` names; of a list, of one below each. Its name is a path of plain words.
pub fn url_below(url: &str, below: &str) -> Result<String, HomeError> {
    if let Some(urls) = list_of(url) {
        let each: Result<Vec<String>, _> = urls.iter().map(|url| url_below(url, below)).collect();
        return Ok(each?.join(","));
    }
    let parts = Url::parse(url);
    let (head, query) = match parts.scheme {
        Some(_) => match url.split_once('?') {
            Some((head, query)) => (head, Some(query)),
            None => (url, None),
        },
        None if url.is_empty() => return Err(parts.wrong("it is empty")),
        None => (url, None),
    };
    let has_homes_below = matches!(
        parts.scheme.as_deref(),
        None | Some("file" | "node" | "fleet")
    );
    if !parts.is_bucket() && !has_homes_below {
        return Err(parts.wrong("there is no home below it"));
    }
    let head = head.trim_end_matches('/');
    Ok(match query {
        Some(query) => format!("{head}/{below}?{query}"),
        None => format!("{head}/{below}"),
    })
}

/// The objects of a home, and one of its named values.
pub type ObjectsAndValue = (Arc<dyn ObjectReader>, Option<Vec<u8>>);

/// Objects of the home that `url` names, to be read beside a server that may be at work there, and the named thing
/// `name` as it is now. Changes nothing, and takes no lock.
pub fn open_objects(url: &str, env: &Env, name: &str) -> Result<ObjectsAndValue, HomeError> {
    let parts = Url::parse(url);
    let dir = match parts.scheme.as_deref() {
        None => PathBuf::from(url),
        Some("file") if list_of(url).is_none() => parts.path()?,
        _ => {
            let home = open_read_only(url, env)?;
            let named = home.names.get(name)?.map(|(bytes, _)| bytes);
            return Ok((home.objects, named));
        }
    };
    let path = dir.join(name);
    let named = match env.files.read(&path) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(HomeError::io(format!("read {}", path.display()), error)),
    };
    Ok((Arc::new(LocalObjects::open(dir, env)?), named))
}

fn missing(bucket: &dyn Bucket) -> HomeError {
    HomeError::Missing(format!("a Logstead log in {}", bucket.describe()))
}

/// Asks a bucket, and again if it could not answer. The requests run to their end in this thread.
fn with_retries<T>(
    env: &Env,
    bucket: &dyn Bucket,
    patience: RetryPolicy,
    mut ask: impl AsyncFnMut() -> Result<T, BucketError>,
) -> Result<T, HomeError> {
    let cannot = |error: &dyn std::fmt::Display| HomeError::Url {
        url: bucket.describe(),
        what: error.to_string(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| cannot(&error))?;
    runtime.block_on(async {
        for attempt in 0.. {
            let error = match ask().await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let passes = matches!(error.outcome, Outcome::NotNow | Outcome::Unknown);
            if !passes {
                return Err(cannot(&error));
            }
            if attempt + 1 >= patience.tries {
                // Not wrong, but out of reach: a list of homes may do without it.
                let what = format!("cannot open the log at \"{}\"", bucket.describe());
                return Err(HomeError::io(what, std::io::Error::other(error)));
            }
            // Two servers that were started together do not stay in step.
            let pause = patience.first.saturating_mul(1 << attempt.min(16));
            let pause = pause.min(patience.longest);
            let jitter = env.random.u64() % 1000;
            info!("{}: {error}; trying again", bucket.describe());
            tokio::time::sleep(pause + pause.mul_f64(jitter as f64 / 2000.0)).await;
        }
        Err(HomeError::Unsupported("a try without end"))
    })
}

/// Makes sure that a bucket is fit for a log, and that its prefix is a log's or nobody's.
fn prepare(
    bucket: &dyn Bucket,
    env: &Env,
    [stranger, known]: [RetryPolicy; 2],
) -> Result<(), HomeError> {
    with_retries(env, bucket, stranger, async || {
        match probe::probe(bucket, env.random.u64()).await {
            Ok(()) => Ok(Ok(())),
            Err(probe::ProbeError::Failed(error)) => Err(error),
            Err(unfit @ probe::ProbeError::Unfit(_)) => Ok(Err(unfit.at(bucket))),
        }
    })??;
    with_retries(env, bucket, known, async || {
        if bucket.stat(MANIFEST).await?.is_some() {
            return Ok(Ok(()));
        }
        let found = bucket.list("").await?;
        let foreign = found
            .iter()
            .filter(|entry| !entry.name.starts_with(SCRATCH));
        let foreign: Vec<&str> = foreign.map(|entry| entry.name.as_str()).collect();
        if foreign.is_empty() {
            return Ok(Ok(()));
        }
        // Another server may have begun a new log there between the two looks.
        if bucket.stat(MANIFEST).await?.is_some() {
            return Ok(Ok(()));
        }
        warn!(
            "{}: {} objects and no manifest",
            bucket.describe(),
            foreign.len()
        );
        Ok(Err(HomeError::Url {
            url: bucket.describe(),
            what: format!(
                "there is no manifest of a log, but there are other objects, such as \"{}\": choose a prefix where nothing is, \
                 or restore the manifest if this was a log",
                foreign[0]
            ),
        }))
    })?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::memory::{Fault, MemoryBucket, MemoryOptions, RequestKind};

    fn opened(url: &str) -> Result<String, String> {
        let (env, _) = Env::simulated(1);
        let options = HomeOptions {
            local: LocalOptions {
                threads: false,
                ..LocalOptions::default()
            },
            ..HomeOptions::default()
        };
        match open(url, &env, &options) {
            Ok(home) => Ok(home.describe()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn urls_name_homes() {
        for (url, home) in [
            ("/data", "file:///data"),
            ("file:///data", "file:///data"),
            ("FILE://localhost/data", "file:///data"),
            ("file:/data", "file:///data"),
            ("file:///data?way=portable", "file:///data"),
            ("file:///with%20space%3f", "file:///with space?"),
            ("/as it is?%20", "file:///as it is?%20"),
            ("memory:", "memory"),
            (
                "sim://?model=s3express&seed=3",
                "a simulated s3express (seed 3)",
            ),
            ("memory:, memory:", "memory:,memory:"),
            ("file:///a,b", "file:///a,b"),
        ] {
            assert_eq!(opened(url).as_deref(), Ok(home), "{url}");
        }
    }

    #[test]
    fn homes_below_others_have_urls() {
        for (url, below) in [
            ("/data", "/data/b/x"),
            ("/data/", "/data/b/x"),
            ("file:///data?way=portable", "file:///data/b/x?way=portable"),
            ("s3://bucket", "s3://bucket/b/x"),
            (
                "s3express://bucket/p/?endpoint=http://h:1",
                "s3express://bucket/p/b/x?endpoint=http://h:1",
            ),
            (
                "az://c/p,s3://b/q?region=r",
                "az://c/p/b/x,s3://b/q/b/x?region=r",
            ),
        ] {
            assert_eq!(url_below(url, "b/x").expect(url), below);
        }
        for url in ["", "memory:", "sim://?model=s3express"] {
            assert!(url_below(url, "b/x").is_err(), "{url}");
        }
    }

    #[test]
    fn urls_that_name_nothing_say_why() {
        for (url, why) in [
            ("", "it is empty"),
            ("memory:,file:///data", "no fixed size"),
            ("memory:,sim:", "model is missing"),
            ("file://data", "absolute path"),
            ("file:///data%2", "percent escape"),
            ("file:///data%00", "percent escape"),
            ("file:///data%+1", "percent escape"),
            ("file:///data?colour=red", "colour=red"),
            ("file:///data?way=magic", "is no way of writing"),
            ("memory:more", "just memory:"),
            ("sim://?model=tape", "no model \"tape\""),
            ("sim:s3express", "sim://?model="),
            ("sim:", "model is missing"),
            ("ftp://bucket/prefix", "ftp: are not supported"),
            ("gs://bucket/prefix", "no conditional replacement"),
            ("s3://key:secret@bucket", "credentials do not belong"),
            ("az://container?region=x", "no option of azure://"),
        ] {
            let error = opened(url).expect_err(url);
            assert!(error.contains(why), "{url}: {error}");
        }
    }

    #[test]
    fn a_bucket_that_has_answered_gets_more_tries() {
        let (env, _) = Env::simulated(1);
        let at_once = |patience: RetryPolicy| RetryPolicy {
            first: Duration::ZERO,
            longest: Duration::ZERO,
            ..patience
        };
        let patience = [STRANGER, KNOWN].map(at_once);
        let try_with = |kind: RequestKind, name: &str, refusals: u32| {
            let bucket = MemoryBucket::new(MemoryOptions::appendable(100));
            for _ in 0..refusals {
                bucket.plan(kind, name, Fault::NotNow);
            }
            let prepared = prepare(&bucket, &env, patience);
            prepared.map(|()| assert_eq!(bucket.plans(), 0))
        };
        try_with(RequestKind::Stat, MANIFEST, KNOWN.tries - 1).expect("it has passed the probe");
        for (name, refusals) in [(MANIFEST, KNOWN.tries), (SCRATCH, STRANGER.tries)] {
            let kind = if name == MANIFEST {
                RequestKind::Stat
            } else {
                RequestKind::Create
            };
            let error = try_with(kind, name, refusals).expect_err("enough is enough");
            assert!(error.to_string().contains("cannot open the log"), "{error}");
        }
    }
}
