//! What a provider's answer means: from HTTP status and code to [`Outcome`].
//!
//! The rule: an outcome that says "nothing was changed" needs a provider's documented word for it. Whatever is not
//! listed, and may come from a proxy on the way or from a server in trouble, is [`Outcome::Unknown`].
//!
//! Does not: read the client library's own errors, whose kinds throw several of these cases together.

use crate::bucket::{Outcome, Service};
use http::HeaderMap;

/// An answer, as far as it matters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::bucket) struct Reply {
    /// HTTP's status.
    pub(in crate::bucket) status: u16,
    /// The provider's name for the error; empty if it gave none.
    pub(in crate::bucket) code: String,
    /// Its explanation for people.
    pub(in crate::bucket) message: String,
    /// It was the answer to the request for a session: the operation itself was not sent.
    pub(in crate::bucket) session: bool,
}

/// Most characters of an explanation that are passed on.
const MESSAGE_CHARS_MAX: usize = 300;

/// What stands in the first element of this name.
fn element(text: &str, name: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    let (inside, _) = rest.split_once(&format!("</{name}>"))?;
    let inside = inside
        .replace("&quot;", "\"")
        .replace("&apos;", "'")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&");
    Some(inside.split_whitespace().collect::<Vec<_>>().join(" "))
}

impl Reply {
    /// One without a complaint.
    pub(in crate::bucket) fn ok(status: u16) -> Reply {
        Reply {
            status,
            ..Reply::default()
        }
    }

    /// Reads an error.
    pub(in crate::bucket) fn of(status: u16, headers: &HeaderMap, body: &[u8]) -> Reply {
        let body = String::from_utf8_lossy(body);
        let header = headers.get("x-ms-error-code");
        let header = header
            .and_then(|code| code.to_str().ok())
            .map(str::to_owned);
        let message = element(&body, "Message").unwrap_or_default();
        Reply {
            status,
            code: header
                .or_else(|| element(&body, "Code"))
                .unwrap_or_default(),
            message: message.chars().take(MESSAGE_CHARS_MAX).collect(),
            session: false,
        }
    }

    /// For people.
    pub(in crate::bucket) fn describe(&self) -> String {
        let mut text = format!("HTTP status {}", self.status);
        for more in [&self.code, &self.message] {
            if !more.is_empty() {
                text.push_str(", ");
                text.push_str(more);
            }
        }
        text
    }

    /// What it means. `appends`: the request was an append. `worked`: these credentials have worked before, so a
    /// provider that does not know them now has not got to know new ones yet.
    pub(in crate::bucket) fn outcome(
        &self,
        service: Service,
        appends: bool,
        worked: bool,
    ) -> Outcome {
        let outcome = match service {
            Service::S3 | Service::S3Express => self.s3(appends, worked),
            Service::Azure => self.azure(worked),
        };
        match outcome {
            // Only the session was asked for.
            Outcome::Unknown | Outcome::Absent | Outcome::Precondition if self.session => {
                Outcome::NotNow
            }
            outcome => outcome,
        }
    }

    fn s3(&self, appends: bool, worked: bool) -> Outcome {
        match (self.status, self.code.as_str()) {
            (404, "NoSuchBucket") => Outcome::Refused,
            (404, _) => Outcome::Absent,
            (_, "InvalidWriteOffset") => Outcome::WrongOffset,
            (_, "TooManyParts") => Outcome::Full,
            // S3 itself has no quotas; what speaks its protocol says so in these ways (Ceph, MinIO, S3 on Outposts).
            (507, _)
            | (
                _,
                "QuotaExceeded"
                | "XMinioAdminBucketQuotaExceeded"
                | "XMinioStorageFull"
                | "InsufficientCapacity",
            ) => Outcome::NoSpace,
            (412, _) if appends => Outcome::WrongOffset,
            (412, _) => Outcome::Precondition,
            // "A conflicting operation occurred. If using PutObject you can retry the request."
            (409, "ConditionalRequestConflict" | "OperationAborted") => Outcome::NotNow,
            // Keys that have run out, or a request that was on its way for too long.
            (
                _,
                "ExpiredToken"
                | "ExpiredTokenException"
                | "TokenRefreshRequired"
                | "RequestTimeTooSkewed"
                | "RequestExpired",
            ) => Outcome::NotNow,
            // The request arrived damaged, and was thrown away.
            (
                400,
                "BadDigest"
                | "IncompleteBody"
                | "InvalidDigest"
                | "XAmzContentChecksumMismatch"
                | "XAmzContentSHA256Mismatch",
            ) => Outcome::NotNow,
            (400, "RequestTimeout") => Outcome::Unknown,
            (
                _,
                "SlowDown"
                | "SlowDownRead"
                | "SlowDownWrite"
                | "Throttling"
                | "ThrottlingException"
                | "ThrottledException"
                | "RequestLimitExceeded"
                | "RequestThrottled"
                | "RequestThrottledException"
                | "TooManyRequests"
                | "TooManyRequestsException"
                | "ServerBusy"
                | "BandwidthLimitExceeded",
            ) => Outcome::NotNow,
            // Questions for a length are refused without a code.
            (
                400 | 401 | 403,
                "InvalidAccessKeyId" | "InvalidToken" | "SignatureDoesNotMatch" | "",
            ) if worked => Outcome::NotNow,
            (status, _) => other(status),
        }
    }

    fn azure(&self, worked: bool) -> Outcome {
        match (self.status, self.code.as_str()) {
            (404, "ContainerNotFound" | "ContainerDisabled" | "ResourceTypeMismatch") => {
                Outcome::Refused
            }
            (404, _) => Outcome::Absent,
            (412, "AppendPositionConditionNotMet") => Outcome::WrongOffset,
            (409, "BlockCountExceedsLimit") | (412, "MaxBlobSizeConditionNotMet") => Outcome::Full,
            (409, "BlobAlreadyExists" | "ResourceAlreadyExists") => Outcome::Precondition,
            (412, "ConditionNotMet" | "TargetConditionNotMet" | "SourceConditionNotMet" | "") => {
                Outcome::Precondition
            }
            (412, _) => Outcome::Refused,
            (
                409,
                "InvalidBlobType"
                | "BlobImmutableDueToPolicy"
                | "BlobImmutableDueToLegalHold"
                | "BlobArchived"
                | "SnapshotsPresent"
                | "ContainerBeingDeleted"
                | "ContainerDisabled"
                | "FeatureVersionMismatch"
                | "LeaseAlreadyPresent",
            ) => Outcome::Refused,
            (400, "Md5Mismatch" | "Crc64Mismatch") => Outcome::NotNow,
            (503, "ServerBusy") => Outcome::NotNow,
            (
                401 | 403,
                "AuthenticationFailed"
                | "InvalidAuthenticationInfo"
                | "NoAuthenticationInformation"
                | "",
            ) if worked => Outcome::NotNow,
            (status, _) => other(status),
        }
    }
}

fn other(status: u16) -> Outcome {
    match status {
        // "Temporary Redirect": the other place has not been asked.
        307 | 429 => Outcome::NotNow,
        408 | 409 | 425 => Outcome::Unknown,
        300..=499 | 501 | 505 => Outcome::Refused,
        _ => Outcome::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Outcome::*;

    fn s3_body(code: &str) -> String {
        format!(
            "<?xml version=\"1.0\"?>\n<Error><Code>{code}</Code><Message>no &amp;\n no</Message></Error>"
        )
    }

    #[test]
    fn s3_answers() {
        for (status, code, appends, worked, outcome) in [
            (404, "NoSuchKey", false, true, Absent),
            (404, "", false, true, Absent),
            (404, "NoSuchBucket", false, true, Refused),
            (412, "PreconditionFailed", false, true, Precondition),
            (412, "PreconditionFailed", true, true, WrongOffset),
            (400, "InvalidWriteOffset", true, true, WrongOffset),
            (400, "TooManyParts", true, true, Full),
            (403, "QuotaExceeded", true, true, NoSpace),
            (400, "XMinioAdminBucketQuotaExceeded", false, true, NoSpace),
            (507, "XMinioStorageFull", false, true, NoSpace),
            (409, "ConditionalRequestConflict", false, true, NotNow),
            (409, "OperationAborted", false, true, NotNow),
            (409, "SomethingElse", false, true, Unknown),
            (400, "ExpiredToken", true, true, NotNow),
            (400, "ExpiredToken", true, false, NotNow),
            (403, "RequestTimeTooSkewed", true, true, NotNow),
            (403, "AccessDenied", true, true, Refused),
            (403, "SignatureDoesNotMatch", false, false, Refused),
            (403, "SignatureDoesNotMatch", false, true, NotNow),
            (403, "", false, true, NotNow),
            (403, "", false, false, Refused),
            (400, "BadDigest", true, true, NotNow),
            (400, "RequestTimeout", true, true, Unknown),
            (400, "InvalidArgument", true, true, Refused),
            (503, "SlowDown", true, true, NotNow),
            (429, "", true, true, NotNow),
            // It may come from something in between, after the request was passed on.
            (503, "", true, true, Unknown),
            (503, "ServiceUnavailable", true, true, Unknown),
            (500, "InternalError", true, true, Unknown),
            (502, "", true, true, Unknown),
            (504, "", true, true, Unknown),
            (501, "NotImplemented", true, true, Refused),
            (301, "PermanentRedirect", false, false, Refused),
            (307, "TemporaryRedirect", false, false, NotNow),
        ] {
            let reply = Reply::of(status, &HeaderMap::new(), s3_body(code).as_bytes());
            assert_eq!(reply.code, code);
            assert_eq!(reply.message, "no & no");
            let got = reply.outcome(Service::S3Express, appends, worked);
            assert_eq!(got, outcome, "{status} {code} {worked}");
        }
    }

    #[test]
    fn azure_answers() {
        for (status, code, worked, outcome) in [
            (404, "BlobNotFound", true, Absent),
            (404, "ContainerNotFound", true, Refused),
            (412, "AppendPositionConditionNotMet", true, WrongOffset),
            (412, "ConditionNotMet", true, Precondition),
            (412, "LeaseIdMissing", true, Refused),
            (409, "BlockCountExceedsLimit", true, Full),
            (409, "BlobAlreadyExists", true, Precondition),
            (409, "InvalidBlobType", true, Refused),
            (409, "SystemInUse", true, Unknown),
            (403, "AuthenticationFailed", false, Refused),
            (403, "AuthenticationFailed", true, NotNow),
            (403, "AuthorizationPermissionMismatch", true, Refused),
            (503, "ServerBusy", true, NotNow),
            (503, "", true, Unknown),
            (500, "OperationTimedOut", true, Unknown),
            (500, "InternalError", true, Unknown),
        ] {
            let mut headers = HeaderMap::new();
            if !code.is_empty() {
                headers.insert("x-ms-error-code", code.parse().expect("a header"));
            }
            let reply = Reply::of(status, &headers, b"");
            let got = reply.outcome(Service::Azure, true, worked);
            assert_eq!(got, outcome, "{status} {code} {worked}");
        }
    }

    #[test]
    fn without_a_session_nothing_was_sent() {
        for (status, code, outcome) in [
            (500, "InternalError", NotNow),
            (404, "", NotNow),
            (404, "NoSuchBucket", Refused),
            (403, "AccessDenied", Refused),
        ] {
            let mut reply = Reply::of(status, &HeaderMap::new(), s3_body(code).as_bytes());
            reply.session = true;
            assert_eq!(reply.outcome(Service::S3Express, true, true), outcome);
        }
    }
}
