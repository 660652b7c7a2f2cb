//! URLs of buckets: `s3express://BUCKET/PREFIX`, `s3://…`, `azure://CONTAINER/PREFIX`, with options behind `?`.
//!
//! | option | meaning |
//! |---|---|
//! | `endpoint=URL` | the server to talk to, `http://` or `https://` |
//! | `region=NAME` | the region that requests are signed for (S3) |
//! | `profile=NAME` | the profile of the AWS files (S3) |
//! | `virtual_host=true\|false` | the bucket's name is part of the host's name, or of the path (S3) |
//! | `account=NAME` | the storage account (Azure) |
//! | `checksum=crc32c\|none` | whether writes carry a checksum of their own (S3) |
//! | `appends=N` | how many appends an object takes, if fewer than Amazon's or Azure's do (s3express, azure) |
//! | `timeout=MS` | how long a small request may take |
//!
//! Bytes outside of names, and `%`, `&`, `?`, are written as percent escapes, as in any URL.
//!
//! Invariant: a URL never holds a credential, and no error shows what stands where one may have been put.

use crate::HomeError;
use std::time::Duration;

/// Which protocol an object store speaks, and how the log uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Service {
    /// S3 whose objects can be appended to.
    S3Express,
    /// S3, objects written once.
    S3,
    /// Azure's append blobs.
    Azure,
}

/// A bucket's URL in its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketUrl {
    /// What kind of store.
    pub service: Service,
    /// The bucket, or container.
    pub bucket: String,
    /// What all names begin with: empty, or without `/` at either end.
    pub prefix: String,
    /// `endpoint`
    pub endpoint: Option<String>,
    /// `region`
    pub region: Option<String>,
    /// `profile`
    pub profile: Option<String>,
    /// `virtual_host`
    pub virtual_host: Option<bool>,
    /// `account`
    pub account: Option<String>,
    /// `checksum`: `true` for CRC-32C.
    pub checksum: Option<bool>,
    /// `appends`
    pub appends: Option<u64>,
    /// `timeout`
    pub timeout: Option<Duration>,
}

impl Service {
    /// The scheme of its URLs.
    pub fn scheme(self) -> &'static str {
        match self {
            Service::S3Express => "s3express",
            Service::S3 => "s3",
            Service::Azure => "azure",
        }
    }
}

/// What may be said about a URL that cannot be opened: nothing behind `?`, nothing before `@`.
fn shown(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let host = host.rsplit('@').next().unwrap_or_default();
            format!("{scheme}://{host}{path}")
        }
        None => url.to_owned(),
    }
}

/// An error about a URL.
pub(super) fn wrong(url: &str, what: impl Into<String>) -> HomeError {
    HomeError::Url {
        url: shown(url),
        what: what.into(),
    }
}

fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        if first != b'%' {
            bytes.push(first);
            rest = after;
            continue;
        }
        let digit = |index: usize| char::from(*after.get(index)?).to_digit(16);
        bytes.push(u8::try_from(digit(0)? * 16 + digit(1)?).ok()?);
        rest = &after[2..];
    }
    String::from_utf8(bytes).ok()
}

/// Words in an option's name that say it is a credential.
const SECRETS: [&str; 7] = [
    "key",
    "secret",
    "token",
    "password",
    "credential",
    "sas",
    "sig",
];

impl BucketUrl {
    /// Takes a URL apart.
    pub fn parse(url: &str) -> Result<BucketUrl, HomeError> {
        let wrong = |what: String| wrong(url, what);
        let (scheme, rest) = url.split_once("://").ok_or_else(|| {
            wrong(
                "a bucket's URL is s3express://BUCKET/PREFIX, s3://… or azure://CONTAINER/PREFIX"
                    .into(),
            )
        })?;
        let service = match scheme.to_ascii_lowercase().as_str() {
            "s3express" => Service::S3Express,
            "s3" => Service::S3,
            "azure" => Service::Azure,
            "gs" => {
                return Err(wrong(
                    "Google Cloud Storage's own protocol is not supported: the client library offers no conditional replacement of an object there, \
                     which the manifest needs"
                        .into(),
                ));
            }
            other => return Err(wrong(format!("{other}:// is no kind of bucket"))),
        };
        if rest.contains('#') {
            return Err(wrong("it has a part behind #".into()));
        }
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
        if bucket.contains('@') {
            return Err(wrong(
                "credentials do not belong into a URL: use the environment or the cloud's files"
                    .into(),
            ));
        }
        let bucket = unescape(bucket).ok_or_else(|| wrong("a bad percent escape".into()))?;
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '$');
        if bucket.is_empty() || !bucket.chars().all(allowed) || bucket.starts_with('.') {
            return Err(wrong(format!("\"{bucket}\" is no bucket's name")));
        }
        let prefix = unescape(prefix.trim_matches('/'))
            .ok_or_else(|| wrong("a bad percent escape".into()))?;
        let part =
            |part: &str| !matches!(part, "" | "." | "..") && !part.chars().any(char::is_control);
        if !prefix.is_empty() && !prefix.split('/').all(part) {
            return Err(wrong(
                "the prefix has an empty part, \".\", \"..\" or a control character in it".into(),
            ));
        }
        let mut parsed = BucketUrl {
            service,
            bucket,
            prefix,
            endpoint: None,
            region: None,
            profile: None,
            virtual_host: None,
            account: None,
            checksum: None,
            appends: None,
            timeout: None,
        };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = unescape(value)
                .filter(|value| !value.is_empty() && !value.chars().any(char::is_control))
                .ok_or_else(|| wrong(format!("option \"{name}\" has no proper value")))?;
            parsed.set(name, value).map_err(wrong)?;
        }
        Ok(parsed)
    }

    fn set(&mut self, name: &str, value: String) -> Result<(), String> {
        let s3 = self.service != Service::Azure;
        match name {
            "endpoint" => self.endpoint = Some(endpoint(&value)?),
            "region" if s3 => self.region = Some(value),
            "profile" if s3 => self.profile = Some(value),
            "virtual_host" if s3 => {
                self.virtual_host = Some(match value.as_str() {
                    "true" => true,
                    "false" => false,
                    _ => return Err("virtual_host is true or false".into()),
                });
            }
            "checksum" if s3 => {
                self.checksum = Some(match value.as_str() {
                    "crc32c" => true,
                    "none" => false,
                    _ => return Err("checksum is crc32c or none".into()),
                });
            }
            "account" if !s3 => self.account = Some(value),
            "appends" if self.service != Service::S3 => {
                // A few are kept for the object's head and for fences.
                let appends = value.parse().ok().filter(|appends| *appends >= 10);
                self.appends = Some(appends.ok_or("appends is a number, 10 at least")?);
            }
            "timeout" => {
                let millis = value.parse().ok();
                let millis = millis.filter(|millis| (10..=3_600_000).contains(millis));
                let millis =
                    millis.ok_or("timeout is a number of milliseconds, from 10 to 3600000")?;
                self.timeout = Some(Duration::from_millis(millis));
            }
            _ if SECRETS
                .iter()
                .any(|word| name.to_ascii_lowercase().contains(word)) =>
            {
                return Err(format!(
                    "\"{name}\" looks like a credential, which does not belong into a URL: use the environment or the cloud's files"
                ));
            }
            _ => {
                let options = match self.service {
                    Service::S3 => {
                        "endpoint, region, profile, virtual_host, checksum and timeout are"
                    }
                    Service::S3Express => {
                        "endpoint, region, profile, virtual_host, checksum, appends and timeout are"
                    }
                    Service::Azure => "endpoint, account, appends and timeout are",
                };
                return Err(format!(
                    "\"{name}\" is no option of {}://; {options}",
                    self.service.scheme()
                ));
            }
        }
        Ok(())
    }

    /// For people, without credentials: there are none in it.
    pub fn describe(&self) -> String {
        let mut text = format!("{}://{}", self.service.scheme(), self.bucket);
        if !self.prefix.is_empty() {
            text.push('/');
            text.push_str(&self.prefix);
        }
        if let Some(endpoint) = &self.endpoint {
            text.push_str(" at ");
            text.push_str(endpoint);
        }
        text
    }
}

/// An endpoint as it is used: no `/` at its end, and neither credentials nor a query in it.
pub(super) fn endpoint(text: &str) -> Result<String, String> {
    let url = reqwest::Url::parse(text)
        .map_err(|why| format!("the endpoint is no URL like https://host:port ({why})"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err("an endpoint is a URL like https://host:port or http://host:port".into());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("credentials do not belong into an endpoint".into());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("an endpoint has no part behind ? or #".into());
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_come_apart() {
        let url = BucketUrl::parse(
            "S3express://logs--use1-az4--x-s3/prod/db%201/?endpoint=http://127.0.0.1:9000/&region=eu-1&timeout=2500&appends=40",
        )
        .expect("a URL");
        assert_eq!(url.service, Service::S3Express);
        assert_eq!(url.bucket, "logs--use1-az4--x-s3");
        assert_eq!(url.prefix, "prod/db 1");
        assert_eq!(url.endpoint.as_deref(), Some("http://127.0.0.1:9000"));
        assert_eq!(url.region.as_deref(), Some("eu-1"));
        assert_eq!(url.timeout, Some(Duration::from_millis(2500)));
        assert_eq!(url.appends, Some(40));
        assert_eq!(
            url.describe(),
            "s3express://logs--use1-az4--x-s3/prod/db 1 at http://127.0.0.1:9000"
        );
        let bare = BucketUrl::parse("azure://logs").expect("a URL");
        assert_eq!((bare.bucket.as_str(), bare.prefix.as_str()), ("logs", ""));
    }

    #[test]
    fn what_is_no_bucket_says_why() {
        for (url, why) in [
            ("s3:bucket", "a bucket's URL is"),
            ("ftp://bucket", "ftp:// is no kind of bucket"),
            ("gs://bucket", "no conditional replacement"),
            ("s3://", "no bucket's name"),
            ("s3://b%zz/", "percent escape"),
            ("s3://bucket/a//b", "empty part"),
            ("s3://bucket/a/../b", "\"..\""),
            ("s3://bucket/a#b", "behind #"),
            ("s3://bucket?colour=red", "\"colour\" is no option of s3://"),
            ("azure://c?region=x", "\"region\" is no option of azure://"),
            ("s3://bucket?account=x", "\"account\" is no option"),
            ("s3://bucket?region=", "\"region\" has no proper value"),
            ("s3://bucket?virtual_host=1", "true or false"),
            ("s3://bucket?timeout=soon", "milliseconds"),
            ("s3://bucket?endpoint=127.0.0.1:9000", "no URL like"),
            (
                "s3://bucket?appends=40",
                "\"appends\" is no option of s3://",
            ),
            ("azure://c?appends=9", "10 at least"),
            ("s3://bucket?endpoint=ftp://x", "an endpoint is a URL"),
            ("s3://bucket?endpoint=http://a:b@x", "credentials"),
        ] {
            let error = BucketUrl::parse(url).expect_err(url).to_string();
            assert!(error.contains(why), "{url}: {error}");
        }
    }

    #[test]
    fn credentials_are_refused_and_not_shown() {
        for url in [
            "s3://AKIA:hidden@bucket/prefix",
            "s3://bucket?access_key=hidden",
            "s3://bucket?AWS_SECRET_ACCESS_KEY=hidden",
            "azure://c?sas_token=hidden",
            "azure://c?sig=hidden",
            "s3://bucket?endpoint=http://AKIA:hidden@host",
        ] {
            let error = BucketUrl::parse(url).expect_err(url).to_string();
            assert!(error.contains("redential"), "{url}: {error}");
            assert!(!error.contains("hidden"), "{url}: {error}");
        }
    }
}
