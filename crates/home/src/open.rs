//! Homes by URL: the one place that knows which home a URL means.
//!
//! | URL | home |
//! |---|---|
//! | `file:///dir`, `/dir`, `dir` | [`LocalHome`]; `file:///dir?way=pwrite` says how it writes |
//! | the same with a block device's path, or a preallocated file's | [`LocalHome`] on that device |
//! | `memory:` | [`MemoryHome`], empty |
//! | `sim://?model=s3express&seed=1` | [`SimulatedHome`]; [`SimulatedOptions::parse`](crate::SimulatedOptions::parse) has its options |
//!
//! A file URL's path may hold percent escapes; a plain path is taken as it is, unless it begins like a URL
//! (`scheme:`, two characters or more).

use crate::{HomeError, LocalHome, LocalOptions, LogHome, MemoryHome, SimulatedHome};
use logstead_env::Env;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Arc;

/// Options of every home that a URL may mean.
#[derive(Clone, Debug, Default)]
pub struct HomeOptions {
    /// Of the local home; its segment size is the memory home's too.
    pub local: LocalOptions,
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

    fn no_query(&self) -> Result<(), HomeError> {
        match self.query {
            None | Some("") => Ok(()),
            Some(query) => Err(self.wrong(format!("it takes no options, but has \"{query}\""))),
        }
    }
}

/// Opens (or makes) the home that `url` names, for writing.
pub fn open(url: &str, env: &Env, options: &HomeOptions) -> Result<Arc<dyn LogHome>, HomeError> {
    let parts = Url::parse(url);
    match parts.scheme.as_deref() {
        None if url.is_empty() => Err(parts.wrong("it is empty")),
        None => Ok(Arc::new(LocalHome::open(url, env, options.local.clone())?)),
        Some("file") => {
            let local = parts.local_options(&options.local)?;
            Ok(Arc::new(LocalHome::open(parts.path()?, env, local)?))
        }
        Some("memory") => {
            parts.no_query()?;
            if !parts.rest.is_empty() {
                return Err(parts.wrong("the home in memory is just memory:"));
            }
            Ok(Arc::new(MemoryHome::new(options.local.segment_size_bytes)))
        }
        Some("sim") => {
            if !matches!(parts.rest, "" | "/" | "//" | "///") {
                return Err(parts
                    .wrong("a simulated home is sim://?model=NAME, with more options behind &"));
            }
            let home = SimulatedHome::open(parts.query.unwrap_or_default(), env)?;
            Ok(Arc::new(home))
        }
        Some(scheme) => Err(parts.wrong(format!("homes of kind {scheme}: are not supported"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(url: &str) -> Result<String, String> {
        let (env, _) = Env::simulated(1);
        let options = HomeOptions {
            local: LocalOptions {
                threads: false,
                ..LocalOptions::default()
            },
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
        ] {
            assert_eq!(opened(url).as_deref(), Ok(home), "{url}");
        }
    }

    #[test]
    fn urls_that_name_nothing_say_why() {
        for (url, why) in [
            ("", "it is empty"),
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
            ("s3://bucket/prefix", "s3: are not supported"),
        ] {
            let error = opened(url).expect_err(url);
            assert!(error.contains(why), "{url}: {error}");
        }
    }
}
