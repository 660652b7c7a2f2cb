//! S3's requests, as `s3s` reads them, put to the store.
//!
//! What is not listed here (multipart uploads, copies, versions, metadata, ACLs, ...) is answered with 501
//! NotImplemented.

use crate::listing::{self, Line};
use crate::object::Object;
use crate::signature::{Authenticator, SESSION_TIME};
use crate::store::{Bucket, BucketKind, Condition, Match, Refusal, Store};
use crate::{Latency, OBJECT_BYTES_MAX};
use bytes::{Bytes, BytesMut};
use hyper::StatusCode;
use hyper::body::Body as _;
use logstead_env::Env;
use s3s::checksum::ChecksumHasher;
use s3s::crypto::{Checksum as _, Crc32, Crc32c, Crc64Nvme, Md5, Sha1, Sha256};
use s3s::dto::{
    BucketLocationName, CommonPrefix, CreateBucketInput, CreateBucketOutput, CreateSessionInput,
    CreateSessionOutput, DeleteObjectInput, DeleteObjectOutput, DeleteObjectsInput,
    DeleteObjectsOutput, DeletedObject, ETag, ETagCondition, Error as KeyError, GetObjectInput,
    GetObjectOutput, HeadBucketInput, HeadBucketOutput, HeadObjectInput, HeadObjectOutput,
    ListBucketsInput, ListBucketsOutput, ListObjectsV2Input, ListObjectsV2Output,
    Object as ListedObject, ObjectStorageClass, PutObjectInput, PutObjectOutput, Range,
    SessionCredentials, SessionMode, StreamingBlob, Timestamp,
};
use s3s::{Body, S3, S3Error, S3ErrorCode, S3Request, S3Response, S3Result, TrailingHeaders};
use std::future::poll_fn;
use std::ops;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Keys on one page of a listing, and in one DeleteObjects, at most.
const KEYS_MAX: usize = 1000;

/// The service.
#[derive(Clone)]
pub(crate) struct Service {
    pub(crate) env: Env,
    pub(crate) store: Arc<Store>,
    pub(crate) guests: Authenticator,
    pub(crate) latency: Option<Arc<dyn Latency>>,
}

/// An error whose code `s3s` does not know.
fn custom(status: StatusCode, code: &'static str, why: &'static str) -> S3Error {
    let Ok(code) = code.parse::<S3ErrorCode>();
    let mut error = S3Error::with_message(code, why);
    error.set_status_code(status);
    error
}

fn error(code: S3ErrorCode, why: &'static str) -> S3Error {
    S3Error::with_message(code, why)
}

/// <https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html#ErrorCodeList>, and for appends
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObject.html#API_PutObject_Errors>.
impl From<Refusal> for S3Error {
    fn from(refusal: Refusal) -> S3Error {
        match refusal {
            Refusal::NoSuchKey => no_such_key(),
            Refusal::Precondition => error(
                S3ErrorCode::PreconditionFailed,
                "At least one of the pre-conditions you specified did not hold",
            ),
            Refusal::Conflict => error(
                S3ErrorCode::ConditionalRequestConflict,
                "A conflicting conditional operation is currently in progress against this resource.",
            ),
            Refusal::WrongOffset => custom(
                StatusCode::BAD_REQUEST,
                "InvalidWriteOffset",
                "The write offset value that you specified does not match the current object size.",
            ),
            Refusal::TooManyParts => custom(
                StatusCode::BAD_REQUEST,
                "TooManyParts",
                "You have attempted to add more parts than the maximum that is allowed for this object.",
            ),
            // S3 has no quotas; this is what Ceph says.
            Refusal::QuotaExceeded => custom(
                StatusCode::FORBIDDEN,
                "QuotaExceeded",
                "The bucket's quota does not allow so many bytes.",
            ),
            Refusal::NotSatisfiable => S3ErrorCode::InvalidRange.into(),
            Refusal::Failed(failed) => {
                S3Error::with_message(S3ErrorCode::InternalError, failed.to_string())
            }
        }
    }
}

fn no_such_key() -> S3Error {
    error(S3ErrorCode::NoSuchKey, "The specified key does not exist.")
}

fn not_offered(what: &'static str) -> S3Error {
    error(S3ErrorCode::NotImplemented, what)
}

impl Service {
    fn bucket(&self, name: &str) -> S3Result<Arc<Bucket>> {
        self.store.find(name).ok_or_else(|| {
            error(
                S3ErrorCode::NoSuchBucket,
                "The specified bucket does not exist",
            )
        })
    }

    /// Does what may wait for a disk where that disturbs nobody else.
    async fn blocking<T: Send + 'static, E: Into<S3Error> + Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, E> + Send + 'static,
    ) -> S3Result<T> {
        let done = tokio::task::spawn_blocking(work).await;
        done.map_err(S3Error::internal_error)?.map_err(E::into)
    }

    /// Begins to count the time that a request takes.
    fn taking(&self) -> Taking {
        Taking {
            service: self.clone(),
            begun: self.env.clock.monotonic(),
        }
    }
}

/// A request under way.
struct Taking {
    service: Service,
    begun: logstead_env::Instant,
}

impl Taking {
    /// Waits until the request has taken what the model says.
    async fn read(self, bytes: usize) -> S3Result<()> {
        let latency = self.service.latency.as_ref();
        let time = latency.map(|latency| latency.read(bytes));
        self.wait(time).await
    }

    async fn write(self, bytes: usize) -> S3Result<()> {
        let latency = self.service.latency.as_ref();
        let time = latency.map(|latency| latency.write(bytes));
        self.wait(time).await
    }

    async fn wait(self, time: Option<Duration>) -> S3Result<()> {
        let Some(time) = time else {
            return Ok(());
        };
        let taken = self.service.env.clock.monotonic().since(self.begun);
        let rest = time.saturating_sub(taken);
        // The runtime's own timer counts in milliseconds, too coarse for what takes a few of them.
        let slept = tokio::task::spawn_blocking(move || {
            logstead_env::minimize_timer_slack();
            logstead_env::sleep(rest);
        });
        slept.await.map_err(S3Error::internal_error)
    }
}

fn tag(object: &Object) -> ETag {
    ETag::Strong(object.tag.to_string())
}

/// Microseconds between 1970 and 2000.
const MICROS_TO_2000: i64 = 946_684_800_000_000;

fn modified(object: &Object) -> Timestamp {
    timestamp(object.modified)
}

fn timestamp(micros_since_2000: i64) -> Timestamp {
    let micros = micros_since_2000.saturating_add(MICROS_TO_2000);
    let since = Duration::from_micros(u64::try_from(micros).unwrap_or(0));
    Timestamp::from(SystemTime::UNIX_EPOCH + since)
}

fn matcher(condition: ETagCondition) -> Match {
    match condition {
        ETagCondition::Any => Match::Any,
        ETagCondition::ETag(tag) => Match::Tag(tag.into_value()),
    }
}

/// Whether a read's conditions let it through.
fn readable(
    object: &Object,
    if_match: Option<ETagCondition>,
    if_none_match: Option<ETagCondition>,
) -> S3Result<()> {
    if if_match.is_some_and(|wanted| !matcher(wanted).accepts(object)) {
        return Err(Refusal::Precondition.into());
    }
    if if_none_match.is_some_and(|unwanted| matcher(unwanted).accepts(object)) {
        return Err(S3ErrorCode::NotModified.into());
    }
    Ok(())
}

/// Which bytes are asked for, and how the answer names them.
fn ranged(object: &Object, range: Option<Range>) -> S3Result<(ops::Range<u64>, Option<String>)> {
    let Some(range) = range else {
        return Ok((0..object.len(), None));
    };
    let range = range.check(object.len())?;
    let name = format!(
        "bytes {}-{}/{}",
        range.start,
        range.end.saturating_sub(1),
        object.len()
    );
    Ok((range, Some(name)))
}

fn length(number: u64) -> Option<i64> {
    i64::try_from(number).ok()
}

/// A whole body. A client that went away, or bytes that are not what was signed, leave nothing behind.
async fn whole(body: Option<StreamingBlob>, announced: Option<i64>) -> S3Result<Bytes> {
    let too_large = || {
        error(
            S3ErrorCode::EntityTooLarge,
            "Your proposed upload exceeds the maximum allowed object size.",
        )
    };
    let bytes_max = OBJECT_BYTES_MAX as usize;
    let announced = announced.map(|len| usize::try_from(len).unwrap_or(usize::MAX));
    if announced.is_some_and(|len| len > bytes_max) {
        return Err(too_large());
    }
    let Some(body) = body else {
        return Ok(Bytes::new());
    };
    let mut body = pin!(Body::from(body));
    let mut bytes = BytesMut::new();
    while let Some(frame) = poll_fn(|context| body.as_mut().poll_frame(context)).await {
        let frame = frame.map_err(|error| broken_body(&error))?;
        if let Ok(data) = frame.into_data() {
            bytes.extend_from_slice(&data);
        }
        if bytes.len() > bytes_max {
            return Err(too_large());
        }
    }
    if announced.is_some_and(|len| len != bytes.len()) {
        return Err(incomplete());
    }
    Ok(bytes.freeze())
}

fn incomplete() -> S3Error {
    error(
        S3ErrorCode::IncompleteBody,
        "You did not provide the number of bytes specified by the Content-Length HTTP header.",
    )
}

/// `s3s` does not export the types of these errors.
fn broken_body(why: &s3s::StdError) -> S3Error {
    let text = format!("{why} {why:?}");
    if text.contains("Sha256Mismatch") {
        return custom(
            StatusCode::BAD_REQUEST,
            "XAmzContentSHA256Mismatch",
            "The provided 'x-amz-content-sha256' header does not match what was computed.",
        );
    }
    if text.contains("SignatureMismatch") {
        return S3ErrorCode::SignatureDoesNotMatch.into();
    }
    incomplete()
}

/// Checks every checksum that came with the bytes, in front of them or behind.
fn check_sums(
    input: &PutObjectInput,
    trailing: Option<&TrailingHeaders>,
    bytes: &[u8],
) -> S3Result<()> {
    let trailer = |name: &str| {
        let value = trailing?.read(|headers| {
            let value = headers.get(name)?;
            Some(value.to_str().ok()?.to_owned())
        });
        value.flatten()
    };
    let given = |header: &Option<String>, name: &str| header.clone().or_else(|| trailer(name));
    let crc32 = given(&input.checksum_crc32, "x-amz-checksum-crc32");
    let crc32c = given(&input.checksum_crc32c, "x-amz-checksum-crc32c");
    let crc64 = given(&input.checksum_crc64nvme, "x-amz-checksum-crc64nvme");
    let sha1 = given(&input.checksum_sha1, "x-amz-checksum-sha1");
    let sha256 = given(&input.checksum_sha256, "x-amz-checksum-sha256");
    let mut hasher = ChecksumHasher {
        crc32: crc32.as_ref().map(|_| Crc32::new()),
        crc32c: crc32c.as_ref().map(|_| Crc32c::new()),
        crc64nvme: crc64.as_ref().map(|_| Crc64Nvme::new()),
        sha1: sha1.as_ref().map(|_| Sha1::new()),
        sha256: sha256.as_ref().map(|_| Sha256::new()),
    };
    hasher.update(bytes);
    let found = hasher.finalize();
    let good = crc32 == found.checksum_crc32
        && crc32c == found.checksum_crc32c
        && crc64 == found.checksum_crc64nvme
        && sha1 == found.checksum_sha1
        && sha256 == found.checksum_sha256;
    let md5 = |wanted: &String| {
        crate::base64::decode(wanted).is_some_and(|wanted| wanted == Md5::checksum(bytes))
    };
    if good && input.content_md5.as_ref().is_none_or(md5) {
        return Ok(());
    }
    Err(error(
        S3ErrorCode::BadDigest,
        "The checksum you specified did not match what we received.",
    ))
}

/// What would change the meaning of a write if it were passed over.
fn only_offered(input: &PutObjectInput) -> S3Result<()> {
    let no = |given: bool, what| {
        if given {
            Err(not_offered(what))
        } else {
            Ok(())
        }
    };
    no(
        input.metadata.as_ref().is_some_and(|all| !all.is_empty()),
        "the development bucket keeps no metadata",
    )?;
    no(
        input.tagging.is_some(),
        "the development bucket keeps no tags",
    )?;
    no(
        input.object_lock_mode.is_some()
            || input.object_lock_legal_hold_status.is_some()
            || input.object_lock_retain_until_date.is_some(),
        "the development bucket has no object lock",
    )?;
    no(
        input.sse_customer_key.is_some() || input.ssekms_key_id.is_some(),
        "the development bucket does not encrypt",
    )?;
    no(
        input.website_redirect_location.is_some(),
        "the development bucket serves no websites",
    )
}

/// Names in a listing, with `encoding-type=url`.
fn encoded(name: &str, url: bool) -> String {
    if !url {
        return name.to_owned();
    }
    name.bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

#[async_trait::async_trait]
impl S3 for Service {
    async fn put_object(
        &self,
        request: S3Request<PutObjectInput>,
    ) -> S3Result<S3Response<PutObjectOutput>> {
        let taking = self.taking();
        let mut input = request.input;
        let bucket = self.bucket(&input.bucket)?;
        only_offered(&input)?;
        let absent = match input.if_none_match.take() {
            None => false,
            Some(ETagCondition::Any) => true,
            Some(ETagCondition::ETag(_)) => {
                return Err(not_offered("If-None-Match of a write can only be *"));
            }
        };
        let condition = Condition {
            absent,
            matches: input.if_match.take().map(matcher),
            existed: bucket.find(&input.key).is_some(),
        };
        let offset = match input.write_offset_bytes {
            None => None,
            Some(_) if bucket.kind == BucketKind::General => {
                return Err(not_offered(
                    "x-amz-write-offset-bytes is for directory buckets, whose names end with --x-s3",
                ));
            }
            Some(offset) => Some(u64::try_from(offset).map_err(|_| {
                error(
                    S3ErrorCode::InvalidArgument,
                    "x-amz-write-offset-bytes must not be negative",
                )
            })?),
        };
        // With chunks, Content-Length counts what is around them too.
        let chunked = request.headers.contains_key("x-amz-decoded-content-length");
        let announced = input.content_length.filter(|_| !chunked);
        let bytes = whole(input.body.take(), announced).await?;
        check_sums(&input, request.trailing_headers.as_ref(), &bytes)?;
        let (key, len) = (input.key, bytes.len());
        let object = self
            .blocking(move || match offset {
                Some(offset) => bucket.append(&key, offset, bytes, &condition),
                None => bucket.put(&key, bytes, &condition),
            })
            .await?;
        taking.write(len).await?;
        Ok(S3Response::new(PutObjectOutput {
            e_tag: Some(tag(&object)),
            // Only for appends, as the API's reference says.
            size: offset.and_then(|_| length(object.len())),
            ..PutObjectOutput::default()
        }))
    }

    async fn get_object(
        &self,
        request: S3Request<GetObjectInput>,
    ) -> S3Result<S3Response<GetObjectOutput>> {
        let taking = self.taking();
        let input = request.input;
        if input.part_number.is_some() || input.version_id.is_some() {
            return Err(not_offered(
                "the development bucket has no versions, and reads no parts",
            ));
        }
        let bucket = self.bucket(&input.bucket)?;
        let found = self
            .blocking(move || -> S3Result<_> {
                let Some(opened) = bucket.open(&input.key)? else {
                    return Ok(None);
                };
                readable(&opened.object, input.if_match, input.if_none_match)?;
                let (range, name) = ranged(&opened.object, input.range)?;
                let bytes = bucket.read(&opened, range)?;
                Ok(Some((opened.object, name, bytes)))
            })
            .await?;
        let Some((object, name, bytes)) = found else {
            taking.read(0).await?;
            return Err(no_such_key());
        };
        taking.read(bytes.len()).await?;
        Ok(S3Response::new(GetObjectOutput {
            accept_ranges: Some("bytes".to_owned()),
            content_length: length(bytes.len() as u64),
            content_range: name,
            content_type: Some("binary/octet-stream".to_owned()),
            e_tag: Some(tag(&object)),
            last_modified: Some(modified(&object)),
            body: Some(StreamingBlob::from(Body::from(bytes))),
            ..GetObjectOutput::default()
        }))
    }

    async fn head_object(
        &self,
        request: S3Request<HeadObjectInput>,
    ) -> S3Result<S3Response<HeadObjectOutput>> {
        let taking = self.taking();
        let input = request.input;
        if input.part_number.is_some() || input.version_id.is_some() {
            return Err(not_offered(
                "the development bucket has no versions, and reads no parts",
            ));
        }
        let found = self.bucket(&input.bucket)?.find(&input.key);
        taking.read(0).await?;
        let object = found.ok_or_else(no_such_key)?;
        readable(&object, input.if_match, input.if_none_match)?;
        let (range, name) = ranged(&object, input.range)?;
        Ok(S3Response::new(HeadObjectOutput {
            accept_ranges: Some("bytes".to_owned()),
            content_length: length(range.end - range.start),
            content_range: name,
            content_type: Some("binary/octet-stream".to_owned()),
            e_tag: Some(tag(&object)),
            last_modified: Some(modified(&object)),
            ..HeadObjectOutput::default()
        }))
    }

    async fn delete_object(
        &self,
        request: S3Request<DeleteObjectInput>,
    ) -> S3Result<S3Response<DeleteObjectOutput>> {
        let taking = self.taking();
        let input = request.input;
        let conditional = input.if_match.is_some()
            || input.if_match_last_modified_time.is_some()
            || input.if_match_size.is_some();
        if conditional || input.version_id.is_some() {
            return Err(not_offered(
                "the development bucket deletes without conditions or versions",
            ));
        }
        let bucket = self.bucket(&input.bucket)?;
        self.blocking(move || bucket.delete(&input.key)).await?;
        taking.write(0).await?;
        Ok(S3Response::new(DeleteObjectOutput::default()))
    }

    async fn delete_objects(
        &self,
        request: S3Request<DeleteObjectsInput>,
    ) -> S3Result<S3Response<DeleteObjectsOutput>> {
        let taking = self.taking();
        let input = request.input;
        let bucket = self.bucket(&input.bucket)?;
        let named = input.delete.objects;
        if named.is_empty() || named.len() > KEYS_MAX {
            return Err(S3ErrorCode::MalformedXML.into());
        }
        let conditional = named.iter().any(|one| {
            one.e_tag.is_some()
                || one.size.is_some()
                || one.last_modified_time.is_some()
                || one.version_id.is_some()
        });
        if conditional {
            return Err(not_offered(
                "the development bucket deletes without conditions or versions",
            ));
        }
        let quiet = input.delete.quiet.unwrap_or(false);
        let output = self
            .blocking(move || {
                let (mut deleted, mut errors) = (Vec::new(), Vec::new());
                for one in named {
                    match bucket.delete(&one.key) {
                        Ok(()) if quiet => {}
                        Ok(()) => deleted.push(DeletedObject {
                            key: Some(one.key),
                            ..DeletedObject::default()
                        }),
                        Err(refusal) => {
                            let error = S3Error::from(refusal);
                            errors.push(KeyError {
                                code: Some(error.code().as_str().to_owned()),
                                key: Some(one.key),
                                message: error.message().map(str::to_owned),
                                version_id: None,
                            });
                        }
                    }
                }
                Ok::<_, Refusal>(DeleteObjectsOutput {
                    deleted: Some(deleted),
                    errors: Some(errors).filter(|errors| !errors.is_empty()),
                    request_charged: None,
                })
            })
            .await?;
        taking.write(0).await?;
        Ok(S3Response::new(output))
    }

    async fn list_objects_v2(
        &self,
        request: S3Request<ListObjectsV2Input>,
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        let taking = self.taking();
        let input = request.input;
        let bucket = self.bucket(&input.bucket)?;
        let prefix = input.prefix.clone().unwrap_or_default();
        let delimiter = input.delimiter.clone().filter(|text| !text.is_empty());
        if bucket.kind == BucketKind::Directory {
            let why = if !prefix.is_empty() && !prefix.ends_with('/') {
                Some(
                    "For directory buckets, only prefixes that end in a delimiter (/) are supported.",
                )
            } else if delimiter.as_deref().is_some_and(|text| text != "/") {
                Some("For directory buckets, / is the only supported delimiter.")
            } else if input.start_after.is_some() {
                Some("StartAfter is not supported for directory buckets.")
            } else {
                None
            };
            if let Some(why) = why {
                return Err(error(S3ErrorCode::InvalidRequest, why));
            }
        }
        let asked = match input.max_keys {
            None => KEYS_MAX,
            Some(number) => usize::try_from(number).map_err(|_| {
                error(
                    S3ErrorCode::InvalidArgument,
                    "max-keys must not be negative",
                )
            })?,
        };
        let after = match &input.continuation_token {
            None => input.start_after.clone(),
            Some(token) => Some(crate::base64::decode_text(token).ok_or_else(|| {
                error(
                    S3ErrorCode::InvalidArgument,
                    "The continuation token provided is incorrect",
                )
            })?),
        };
        let lines_max = asked.min(KEYS_MAX);
        let page = listing::page(
            &bucket,
            &prefix,
            delimiter.as_deref(),
            after.as_deref(),
            lines_max,
        );
        let is_truncated = page.is_truncated && lines_max > 0;
        let next = page.lines.last().filter(|_| is_truncated);
        let next = next.map(|(name, _)| crate::base64::encode(name.as_bytes()));
        let url = input
            .encoding_type
            .as_ref()
            .is_some_and(|encoding| encoding.as_str() == "url");
        let count = page.lines.len();
        let (mut contents, mut prefixes) = (Vec::new(), Vec::new());
        for (name, line) in page.lines {
            let name = encoded(&name, url);
            match line {
                Line::Prefix => prefixes.push(CommonPrefix { prefix: Some(name) }),
                Line::Object(object) => contents.push(ListedObject {
                    e_tag: Some(tag(&object)),
                    key: Some(name),
                    last_modified: Some(modified(&object)),
                    size: length(object.len()),
                    storage_class: Some(ObjectStorageClass::from_static(match bucket.kind {
                        BucketKind::Directory => "EXPRESS_ONEZONE",
                        BucketKind::General => "STANDARD",
                    })),
                    ..ListedObject::default()
                }),
            }
        }
        taking.read(0).await?;
        Ok(S3Response::new(ListObjectsV2Output {
            name: Some(input.bucket),
            prefix: Some(encoded(&prefix, url)),
            max_keys: i32::try_from(lines_max).ok(),
            key_count: i32::try_from(count).ok(),
            continuation_token: input.continuation_token,
            is_truncated: Some(is_truncated),
            next_continuation_token: next,
            contents: Some(contents),
            common_prefixes: Some(prefixes),
            delimiter,
            encoding_type: input.encoding_type,
            start_after: input.start_after,
            request_charged: None,
        }))
    }

    async fn create_bucket(
        &self,
        request: S3Request<CreateBucketInput>,
    ) -> S3Result<S3Response<CreateBucketOutput>> {
        let taking = self.taking();
        let name = request.input.bucket;
        let (store, wanted) = (Arc::clone(&self.store), name.clone());
        let created = self
            .blocking(move || Ok::<_, Refusal>(store.create(&wanted)?))
            .await?;
        taking.write(0).await?;
        if !created {
            return Err(error(
                S3ErrorCode::BucketAlreadyOwnedByYou,
                "Your previous request to create the named bucket succeeded and you already own it.",
            ));
        }
        Ok(S3Response::new(CreateBucketOutput {
            location: Some(format!("/{name}")),
        }))
    }

    async fn head_bucket(
        &self,
        request: S3Request<HeadBucketInput>,
    ) -> S3Result<S3Response<HeadBucketOutput>> {
        let taking = self.taking();
        let bucket = self.bucket(&request.input.bucket);
        taking.read(0).await?;
        let zone = match bucket?.kind {
            BucketKind::General => None,
            BucketKind::Directory => zone(&request.input.bucket),
        };
        Ok(S3Response::new(HeadBucketOutput {
            bucket_location_name: zone,
            ..HeadBucketOutput::default()
        }))
    }

    async fn list_buckets(
        &self,
        _request: S3Request<ListBucketsInput>,
    ) -> S3Result<S3Response<ListBucketsOutput>> {
        let taking = self.taking();
        let names = self.store.names();
        // Directory buckets have a request of their own, ListDirectoryBuckets.
        let names = names
            .into_iter()
            .filter(|name| BucketKind::of(name) == BucketKind::General);
        let buckets = names.map(|name| s3s::dto::Bucket {
            name: Some(name),
            ..s3s::dto::Bucket::default()
        });
        let buckets = Some(buckets.collect());
        taking.read(0).await?;
        Ok(S3Response::new(ListBucketsOutput {
            buckets,
            ..ListBucketsOutput::default()
        }))
    }

    async fn create_session(
        &self,
        request: S3Request<CreateSessionInput>,
    ) -> S3Result<S3Response<CreateSessionOutput>> {
        let taking = self.taking();
        let input = request.input;
        if self.bucket(&input.bucket)?.kind == BucketKind::General {
            return Err(error(
                S3ErrorCode::InvalidRequest,
                "sessions are for directory buckets, whose names end with --x-s3",
            ));
        }
        let mode = input.session_mode.as_ref().map(SessionMode::as_str);
        let read_only = match mode {
            None | Some(SessionMode::READ_WRITE) => false,
            Some(SessionMode::READ_ONLY) => true,
            Some(_) => return Err(S3ErrorCode::InvalidArgument.into()),
        };
        let (access_key, session) = self.guests.begin_session(&input.bucket, read_only);
        let now = self.env.clock.now_micros_since_2000();
        let lifetime = i64::try_from(SESSION_TIME.as_micros()).unwrap_or(0);
        taking.read(0).await?;
        Ok(S3Response::new(CreateSessionOutput {
            bucket_key_enabled: None,
            credentials: SessionCredentials {
                access_key_id: access_key,
                expiration: timestamp(now + lifetime),
                secret_access_key: session.secret_key,
                session_token: session.token,
            },
            ssekms_encryption_context: None,
            ssekms_key_id: None,
            server_side_encryption: None,
        }))
    }
}

/// The zone in a directory bucket's name.
fn zone(bucket: &str) -> Option<BucketLocationName> {
    let mut parts = bucket.rsplit("--");
    parts.next()?;
    parts.next().map(str::to_owned)
}
