//! A bucket for development and tests that speaks S3 Express's wire format: appends at an offset, conditional puts.
#![forbid(unsafe_code)]
