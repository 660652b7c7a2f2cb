//! Extensions that can be made: `uuid-ossp` and the digests of `pgcrypto`. Their functions are built in, and in sight
//! of statements once CREATE EXTENSION has been run: [`TypeLookup::extension`] says in which schema.
//!
//! Does not: encrypt, or hash passwords (`crypt`, `gen_salt`, `pgp_...` of pgcrypto are no functions here).

use super::Volatility::{Immutable, Volatile};
use super::{Function, FunctionContext, FunctionImpl, RandomNumbers, digests, encodings};
use crate::function as f;
use logstead_sql_types::FunctionId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::names::quote_identifier as quote_ident;
use logstead_sql_types::value::oid::*;
use logstead_sql_types::value::user::{TypeLookup, TypeSpelling};
use logstead_sql_types::value::{Datum, Oid};
use logstead_types::SqlState;

/// An extension that can be made.
#[derive(Debug)]
pub struct AvailableExtension {
    /// `pg_extension.oid`: beyond what is ever given to a user's object, and what dumps take for one.
    pub oid: Oid,
    /// Name.
    pub name: &'static str,
    /// The one version.
    pub version: &'static str,
    /// What it says of itself.
    pub comment: &'static str,
    /// Numbers of its functions.
    pub functions: std::ops::Range<FunctionId>,
}

/// All of them, by name.
pub static AVAILABLE: &[AvailableExtension] = &[
    AvailableExtension {
        oid: 2_147_483_001,
        name: "pgcrypto",
        version: "1.3",
        comment: "cryptographic functions",
        functions: FunctionId::new(15_920)..FunctionId::new(15_940),
    },
    AvailableExtension {
        oid: 2_147_483_002,
        name: "uuid-ossp",
        version: "1.1",
        comment: "generate universally unique identifiers (UUIDs)",
        functions: FunctionId::new(15_900)..FunctionId::new(15_920),
    },
];

/// The extension that a function is of.
pub fn of_function(function: &Function) -> Option<&'static str> {
    let of = |a: &&AvailableExtension| a.functions.contains(&function.oid);
    AVAILABLE.iter().find(of).map(|a| a.name)
}

/// A stored text as it is shown: with the names that its types have now, and the functions of extensions as [`shown`]
/// has them.
pub fn stored_text_shown(stored: &str, types: TypeSpelling<'_>) -> String {
    shown(types.shown(stored), types.types)
}

/// A stored text, in which functions of extensions have their schema, as it is shown: without it where that is
/// searched.
pub fn shown(mut text: String, types: TypeLookup<'_>) -> String {
    for available in AVAILABLE {
        let Some((extension, true)) = types.extension(available.name) else {
            continue;
        };
        let schema = quote_ident(&extension.schema_name);
        let of = |f: &&Function| available.functions.contains(&f.oid);
        for function in FUNCTIONS.iter().filter(of) {
            let qualified = format!("{schema}.{}(", function.name);
            if text.contains(&qualified) {
                text = text.replace(&qualified, &format!("{}(", function.name));
            }
        }
    }
    text
}

/// Functions. PostgreSQL gives them any numbers; these are below those of users' objects, which dumps would name one by
/// one.
#[rustfmt::skip]
pub(super) static FUNCTIONS: &[Function] = &[
    f(15_900, "uuid_generate_v1", &[], None, UUID, true, Volatile, FunctionImpl::Context(uuid_v1)),
    f(15_901, "uuid_generate_v1mc", &[], None, UUID, true, Volatile, FunctionImpl::Context(uuid_v1)),
    f(15_902, "uuid_generate_v3", &[UUID, TEXT], None, UUID, true, Immutable, FunctionImpl::Pure(uuid_v3)),
    f(15_903, "uuid_generate_v4", &[], None, UUID, true, Volatile, FunctionImpl::Random(super::system::random_uuid)),
    f(15_904, "uuid_generate_v5", &[UUID, TEXT], None, UUID, true, Immutable, FunctionImpl::Pure(uuid_v5)),
    f(15_905, "uuid_nil", &[], None, UUID, true, Immutable, FunctionImpl::Pure(uuid_nil)),
    f(15_906, "uuid_ns_dns", &[], None, UUID, true, Immutable, FunctionImpl::Pure(uuid_ns_dns)),
    f(15_907, "uuid_ns_oid", &[], None, UUID, true, Immutable, FunctionImpl::Pure(uuid_ns_oid)),
    f(15_908, "uuid_ns_url", &[], None, UUID, true, Immutable, FunctionImpl::Pure(uuid_ns_url)),
    f(15_909, "uuid_ns_x500", &[], None, UUID, true, Immutable, FunctionImpl::Pure(uuid_ns_x500)),
    f(15_920, "digest", &[BYTEA, TEXT], None, BYTEA, true, Immutable, FunctionImpl::Pure(digest)),
    f(15_921, "digest", &[TEXT, TEXT], None, BYTEA, true, Immutable, FunctionImpl::Pure(digest)),
    f(15_922, "gen_random_bytes", &[INT4], None, BYTEA, true, Volatile, FunctionImpl::Random(random_bytes)),
    f(15_923, "hmac", &[BYTEA, BYTEA, TEXT], None, BYTEA, true, Immutable, FunctionImpl::Pure(hmac)),
    f(15_924, "hmac", &[TEXT, TEXT, TEXT], None, BYTEA, true, Immutable, FunctionImpl::Pure(hmac)),
];

/// The namespaces of RFC 4122 are this one with other fourth bytes.
fn namespace(number: u8) -> Result<Datum> {
    let name_space = [
        0x6b, 0xa7, 0xb8, number, 0x9d, 0xad, 0x11, 0xd1, 0x80, 0xb4, 0x00, 0xc0, 0x4f, 0xd4, 0x30,
        0xc8,
    ];
    Ok(Datum::Uuid(Box::new(name_space)))
}

fn uuid_ns_dns(_: &[Datum]) -> Result<Datum> {
    namespace(0x10)
}

fn uuid_ns_url(_: &[Datum]) -> Result<Datum> {
    namespace(0x11)
}

fn uuid_ns_oid(_: &[Datum]) -> Result<Datum> {
    namespace(0x12)
}

fn uuid_ns_x500(_: &[Datum]) -> Result<Datum> {
    namespace(0x14)
}

fn uuid_nil(_: &[Datum]) -> Result<Datum> {
    Ok(Datum::Uuid(Box::new([0; 16])))
}

/// Sets version and variant.
fn stamped(mut bytes: [u8; 16], version: u8) -> Datum {
    bytes[6] = (bytes[6] & 0x0f) | (version << 4);
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    Datum::Uuid(Box::new(bytes))
}

/// Version 1: the time in units of 100 ns since 1582, and a random multicast address in place of a network card's,
/// which tells of no machine.
fn uuid_v1(cx: &dyn FunctionContext, _: &[Datum]) -> Result<Datum> {
    /// From 15 October 1582 to the year 2000, in microseconds.
    const BEFORE_2000_US: i64 = 13_165_977_600_000_000;
    let random = cx.random()?.random_u64();
    let since_us = cx.clock_time()?.saturating_add(BEFORE_2000_US);
    // The random digit below a microsecond keeps two of one microsecond apart, with the clock sequence.
    let ticks = since_us.unsigned_abs() * 10 + random % 10;
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&ticks.to_be_bytes()[4..]);
    bytes[4..6].copy_from_slice(&ticks.to_be_bytes()[2..4]);
    bytes[6..8].copy_from_slice(&ticks.to_be_bytes()[..2]);
    bytes[8..].copy_from_slice(&random.to_be_bytes());
    bytes[10] |= 1;
    Ok(stamped(bytes, 1))
}

/// Of a namespace and a name, by the digest of both.
fn uuid_named(a: &[Datum], version: u8, digest: &str) -> Result<Datum> {
    let mut input = a[0].as_uuid()?.to_vec();
    input.extend_from_slice(a[1].as_str()?.as_bytes());
    let mut bytes = [0; 16];
    for (to, from) in bytes.iter_mut().zip(digest_of(&input, digest)?) {
        *to = from;
    }
    Ok(stamped(bytes, version))
}

fn uuid_v3(a: &[Datum]) -> Result<Datum> {
    uuid_named(a, 3, "md5")
}

fn uuid_v5(a: &[Datum]) -> Result<Datum> {
    uuid_named(a, 5, "sha1")
}

fn digest_of(input: &[u8], name: &str) -> Result<Vec<u8>> {
    let of = |algorithm| ring::digest::digest(algorithm, input).as_ref().to_vec();
    Ok(match name.to_ascii_lowercase().as_str() {
        "md5" => digests::md5(input)?,
        "sha1" => of(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY),
        "sha224" => digests::sha224(input)?,
        "sha256" => of(&ring::digest::SHA256),
        "sha384" => of(&ring::digest::SHA384),
        "sha512" => of(&ring::digest::SHA512),
        _ => {
            return Err(SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("Cannot use \"{name}\": No such hash algorithm"),
            ));
        }
    })
}

fn digest(a: &[Datum]) -> Result<Datum> {
    let found = digest_of(encodings::input_bytes(&a[..1])?, a[1].as_str()?)?;
    Ok(Datum::Bytea(found.into()))
}

/// RFC 2104.
fn hmac(a: &[Datum]) -> Result<Datum> {
    let (data, key) = (
        encodings::input_bytes(&a[..1])?,
        encodings::input_bytes(&a[1..2])?,
    );
    let name = a[2].as_str()?;
    let block_bytes = match name.to_ascii_lowercase().as_str() {
        "sha384" | "sha512" => 128,
        _ => 64,
    };
    let mut padded = match key.len() > block_bytes {
        true => digest_of(key, name)?,
        false => key.to_vec(),
    };
    padded.resize(block_bytes, 0);
    let keyed = |pad: u8, rest: &[u8]| {
        let mut input: Vec<u8> = padded.iter().map(|b| b ^ pad).collect();
        input.extend_from_slice(rest);
        digest_of(&input, name)
    };
    Ok(Datum::Bytea(keyed(0x5c, &keyed(0x36, data)?)?.into()))
}

fn random_bytes(cx: &dyn RandomNumbers, a: &[Datum]) -> Result<Datum> {
    let length = usize::try_from(a[0].as_integer()?).unwrap_or(0);
    if !(1..=1024).contains(&length) {
        return Err(SqlError::new(
            SqlState::EXTERNAL_ROUTINE_INVOCATION_EXCEPTION,
            "Length not in range",
        ));
    }
    let mut bytes = vec![0; length];
    for piece in bytes.chunks_mut(8) {
        let random = cx.random_u64().to_ne_bytes();
        piece.copy_from_slice(&random[..piece.len()]);
    }
    Ok(Datum::Bytea(bytes.into()))
}
