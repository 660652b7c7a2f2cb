//! SCRAM-SHA-256 (RFC 5802, RFC 7677), the server's part: the verifier of a password, and the exchange that proves one.
//!
//! Pure: messages in, messages out. Random bytes and the certificate's hash are given; the protocol around the messages
//! is `wire`'s.
//!
//! Invariants:
//! - A password is never kept: only its verifier, from which it cannot be had, and with which nobody can log in.
//! - An exchange for a role that does not exist, or has no password, takes the same messages and the same time, and
//!   fails at the end.
//! - The client proves which channel binding it used: neither side can be talked out of it by who sits between them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::{digest, hmac, pbkdf2};
use std::fmt;
use std::num::NonZeroU32;

/// The mechanism without channel binding.
pub const MECHANISM: &str = "SCRAM-SHA-256";
/// The mechanism with it.
pub const MECHANISM_PLUS: &str = "SCRAM-SHA-256-PLUS";
/// The kind of channel binding.
const BINDING: &str = "tls-server-end-point";
/// Rounds for new passwords, PostgreSQL's number.
const ITERATIONS: NonZeroU32 = match NonZeroU32::new(4096) {
    Some(rounds) => rounds,
    None => NonZeroU32::MIN,
};
/// Bytes of a salt.
pub const SALT_BYTES: usize = 16;
/// Bytes of randomness in the server's nonce.
pub const NONCE_BYTES: usize = 18;
const KEY_BYTES: usize = digest::SHA256_OUTPUT_LEN;

type Key = [u8; KEY_BYTES];

/// What the server keeps of a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Verifier {
    iterations: NonZeroU32,
    salt: Vec<u8>,
    stored_key: Key,
    server_key: Key,
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier").finish_non_exhaustive()
    }
}

impl fmt::Display for Verifier {
    /// PostgreSQL's form.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{MECHANISM}${}:{}${}:{}",
            self.iterations,
            BASE64.encode(&self.salt),
            BASE64.encode(self.stored_key),
            BASE64.encode(self.server_key)
        )
    }
}

fn mac(key: &[u8], message: &[u8]) -> Key {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message);
    let mut out = [0; KEY_BYTES];
    out.copy_from_slice(tag.as_ref());
    out
}

fn hash(bytes: &[u8]) -> Key {
    let mut out = [0; KEY_BYTES];
    out.copy_from_slice(digest::digest(&digest::SHA256, bytes).as_ref());
    out
}

impl Verifier {
    /// The verifier of a password.
    pub fn of(password: &str, salt: [u8; SALT_BYTES]) -> Verifier {
        Verifier::with(password, salt.to_vec(), ITERATIONS)
    }

    fn with(password: &str, salt: Vec<u8>, iterations: NonZeroU32) -> Verifier {
        // What is no SASLprep text is used as it is, by servers and clients alike.
        let prepared = stringprep::saslprep(password);
        let password = prepared.as_deref().unwrap_or(password);
        let mut salted = [0; KEY_BYTES];
        let algorithm = pbkdf2::PBKDF2_HMAC_SHA256;
        pbkdf2::derive(
            algorithm,
            iterations,
            &salt,
            password.as_bytes(),
            &mut salted,
        );
        Verifier {
            iterations,
            salt,
            stored_key: hash(&mac(&salted, b"Client Key")),
            server_key: mac(&salted, b"Server Key"),
        }
    }

    /// Is it the verifier of that password? One of more rounds than anybody waits for is not computed.
    pub fn is_of(&self, password: &str) -> bool {
        const ROUNDS_MAX: u32 = 100_000;
        self.iterations.get() <= ROUNDS_MAX
            && Verifier::with(password, self.salt.clone(), self.iterations).stored_key
                == self.stored_key
    }

    /// Reads PostgreSQL's form.
    pub fn parse(text: &str) -> Option<Verifier> {
        let rest = text.strip_prefix(MECHANISM)?.strip_prefix('$')?;
        let (iterations, rest) = rest.split_once(':')?;
        let (salt, keys) = rest.split_once('$')?;
        let (stored_key, server_key) = keys.split_once(':')?;
        let key = |text: &str| Key::try_from(BASE64.decode(text).ok()?).ok();
        // A sign would be read, too.
        let plain = iterations.bytes().all(|b| b.is_ascii_digit());
        Some(Verifier {
            iterations: iterations.parse().ok().filter(|_| plain)?,
            salt: BASE64.decode(salt).ok().filter(|salt| !salt.is_empty())?,
            stored_key: key(stored_key)?,
            server_key: key(server_key)?,
        })
    }

    /// What a role without a password is asked for: the same each time, and nothing fits it.
    pub fn mock(secret: &[u8], user: &str) -> Verifier {
        let mut salt = mac(secret, user.as_bytes()).to_vec();
        salt.truncate(SALT_BYTES);
        Verifier {
            iterations: ITERATIONS,
            salt,
            stored_key: [0; KEY_BYTES],
            server_key: [0; KEY_BYTES],
        }
    }
}

/// Why an exchange cannot go on: the client does not speak as it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScramError {
    /// 08P01, with this detail.
    Malformed(&'static str),
    /// 28000: the client believes that the server has no channel binding, and is wrong.
    Downgraded,
    /// 0A000.
    Unsupported(&'static str),
}

/// One exchange.
pub struct ScramExchange {
    verifier: Verifier,
    /// It fails, whatever the client proves.
    doomed: bool,
    /// What channel binding binds to, where it can be had.
    binding: Option<Vec<u8>>,
    nonce: String,
    /// What `c=` has to be.
    expected_binding: String,
    auth_message: String,
}

/// What came of an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScramOutcome {
    /// The client knows the password: what the server proves in its turn.
    Good(String),
    /// It does not.
    Bad,
}

/// A printable text without commas, as nonces are.
fn is_nonce(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|b| (0x21..=0x7e).contains(&b) && b != b',')
}

impl ScramExchange {
    /// An exchange: `doomed` if it must fail, `random` for the nonce, `binding` what channel binding binds to on an
    /// encrypted connection.
    pub fn new(
        verifier: Verifier,
        doomed: bool,
        random: [u8; NONCE_BYTES],
        binding: Option<Vec<u8>>,
    ) -> ScramExchange {
        ScramExchange {
            verifier,
            doomed,
            binding,
            nonce: BASE64.encode(random),
            expected_binding: String::new(),
            auth_message: String::new(),
        }
    }

    /// What the server offers, best first.
    pub fn mechanisms(&self) -> Vec<&'static str> {
        let plus = self.binding.is_some().then_some(MECHANISM_PLUS);
        plus.into_iter().chain([MECHANISM]).collect()
    }

    /// The client's first message; gives the server's.
    pub fn first(&mut self, mechanism: &str, message: &[u8]) -> Result<String, ScramError> {
        use ScramError::Malformed;
        let plus = match mechanism {
            MECHANISM => false,
            MECHANISM_PLUS if self.binding.is_some() => true,
            _ => {
                return Err(Malformed(
                    "client selected an invalid SASL authentication mechanism",
                ));
            }
        };
        let message = std::str::from_utf8(message).map_err(|_| Malformed("not UTF-8 text"))?;
        let mut parts = message.splitn(3, ',');
        let (Some(flag), Some(identity), Some(bare)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(Malformed("a message ends early"));
        };
        match (flag, plus) {
            ("n", false) => {}
            ("y", false) if self.binding.is_some() => return Err(ScramError::Downgraded),
            ("y", false) => {}
            ("n" | "y", true) => {
                return Err(Malformed(
                    "the client selected SCRAM-SHA-256-PLUS, but the SCRAM message does not include channel binding data",
                ));
            }
            (flag, plus) if flag.starts_with("p=") => {
                if !plus {
                    return Err(Malformed(
                        "the client selected SCRAM-SHA-256 without channel binding, but the SCRAM message includes channel binding data",
                    ));
                }
                if flag.strip_prefix("p=") != Some(BINDING) {
                    return Err(Malformed("unsupported SCRAM channel-binding type"));
                }
            }
            _ => return Err(Malformed("unexpected channel-binding flag")),
        }
        if !identity.is_empty() {
            return Err(ScramError::Unsupported(
                "client uses authorization identity, but it is not supported",
            ));
        }
        if bare.starts_with("m=") {
            return Err(ScramError::Unsupported(
                "client requires an unsupported SCRAM extension",
            ));
        }
        // The name in the startup packet counts, not this one.
        let mut attributes = bare.split(',');
        let named = attributes.next().is_some_and(|name| name.starts_with("n="));
        let nonce = attributes.next().and_then(|nonce| nonce.strip_prefix("r="));
        let Some(client_nonce) = nonce.filter(|nonce| named && is_nonce(nonce)) else {
            return Err(Malformed("a name and a nonce are expected"));
        };
        let mut binding = format!("{flag},,").into_bytes();
        if plus {
            binding.extend_from_slice(self.binding.as_deref().unwrap_or_default());
        }
        self.expected_binding = BASE64.encode(binding);
        self.nonce.insert_str(0, client_nonce);
        let answer = format!(
            "r={},s={},i={}",
            self.nonce,
            BASE64.encode(&self.verifier.salt),
            self.verifier.iterations
        );
        self.auth_message = format!("{bare},{answer}");
        Ok(answer)
    }

    /// The client's last message: is it who it says it is?
    pub fn last(&mut self, message: &[u8]) -> Result<ScramOutcome, ScramError> {
        use ScramError::Malformed;
        let message = std::str::from_utf8(message).map_err(|_| Malformed("not UTF-8 text"))?;
        let (without_proof, proof) = message
            .rsplit_once(",p=")
            .ok_or(Malformed("there is no proof"))?;
        let mut attributes = without_proof.split(',');
        let binding = attributes.next().and_then(|c| c.strip_prefix("c="));
        if self.expected_binding.is_empty() || binding != Some(&*self.expected_binding) {
            return Err(Malformed("SCRAM channel binding check failed"));
        }
        let nonce = attributes.next().and_then(|r| r.strip_prefix("r="));
        if nonce != Some(&*self.nonce) {
            return Err(Malformed("nonce does not match"));
        }
        let proof = BASE64.decode(proof).ok();
        let Some(proof) = proof.and_then(|proof| Key::try_from(proof).ok()) else {
            return Err(Malformed("malformed proof"));
        };
        self.auth_message.push(',');
        self.auth_message.push_str(without_proof);
        let message = self.auth_message.as_bytes();
        let signature = mac(&self.verifier.stored_key, message);
        let mut client_key = proof;
        for (byte, mask) in client_key.iter_mut().zip(signature) {
            *byte ^= mask;
        }
        // In constant time: two macs under a key that the client does not know are compared, by who does it so.
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.verifier.server_key);
        let wanted = hmac::sign(&key, &self.verifier.stored_key);
        let fits = hmac::verify(&key, &hash(&client_key), wanted.as_ref());
        if fits.is_err() || self.doomed {
            return Ok(ScramOutcome::Bad);
        }
        let signature = mac(&self.verifier.server_key, message);
        Ok(ScramOutcome::Good(format!(
            "v={}",
            BASE64.encode(signature)
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7677, section 3.
    const CLIENT_FIRST: &str = "n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
    const SERVER_FIRST: &str =
        "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
    const CLIENT_LAST: &str = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
    const SERVER_LAST: &str = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";

    fn rfc(password: &str) -> ScramExchange {
        let salt = BASE64.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let verifier = Verifier::with(password, salt, ITERATIONS);
        let mut exchange = ScramExchange::new(verifier, false, [0; NONCE_BYTES], None);
        exchange.nonce = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0".to_owned();
        exchange
    }

    fn run(exchange: &mut ScramExchange) -> Result<ScramOutcome, ScramError> {
        let first = exchange.first(MECHANISM, CLIENT_FIRST.as_bytes())?;
        assert_eq!(first, SERVER_FIRST);
        exchange.last(CLIENT_LAST.as_bytes())
    }

    #[test]
    fn the_exchange_of_the_rfc() {
        let proved = run(&mut rfc("pencil"));
        assert_eq!(proved, Ok(ScramOutcome::Good(SERVER_LAST.to_owned())));
        assert_eq!(run(&mut rfc("pencils")), Ok(ScramOutcome::Bad));
        let mut doomed = rfc("pencil");
        doomed.doomed = true;
        assert_eq!(run(&mut doomed), Ok(ScramOutcome::Bad));
    }

    #[test]
    fn a_verifier_reads_back_and_nothing_else_does() {
        let verifier = Verifier::of("geheim", [7; SALT_BYTES]);
        let text = verifier.to_string();
        assert!(text.starts_with("SCRAM-SHA-256$4096:BwcHBwcHBwcHBwcHBwcHBw==$"));
        assert_eq!(Verifier::parse(&text), Some(verifier));
        for wrong in [
            "",
            "geheim",
            "SCRAM-SHA-256",
            "SCRAM-SHA-256$0:BwcH$AA==:AA==",
            &text.replace("4096", "0"),
            &text.replace("4096", "+1"),
            &text[..text.len() - 4],
            &text.replace("BwcHBwcHBwcHBwcHBwcHBw==", ""),
            &text.replace("256$", "1$"),
        ] {
            assert_eq!(Verifier::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn passwords_are_prepared() {
        // A no-break space is a space, an Angstrom sign the letter.
        let same =
            |a: &str, b: &str| Verifier::of(a, [1; SALT_BYTES]) == Verifier::of(b, [1; SALT_BYTES]);
        assert!(same("a\u{a0}b", "a b"));
        assert!(same("\u{212b}", "\u{c5}"));
        assert!(!same("a", "A"));
        // No text of SASLprep, and a password none the less.
        assert!(same("\u{7}", "\u{7}"));
        assert!(!same("\u{7}", "\u{8}"));
    }

    #[test]
    fn nobody_is_talked_out_of_channel_binding() {
        let bound = || {
            ScramExchange::new(
                Verifier::of("x", [1; SALT_BYTES]),
                false,
                [2; NONCE_BYTES],
                Some(b"hash of the certificate".to_vec()),
            )
        };
        assert_eq!(bound().mechanisms(), [MECHANISM_PLUS, MECHANISM]);
        let first = |exchange: &mut ScramExchange, mechanism: &str, header: &str| {
            exchange.first(mechanism, format!("{header}n=,r=abc").as_bytes())
        };
        // The client could, and was told that the server cannot.
        assert_eq!(
            first(&mut bound(), MECHANISM, "y,,"),
            Err(ScramError::Downgraded)
        );
        assert!(first(&mut bound(), MECHANISM, "n,,").is_ok());
        for (mechanism, header) in [
            (MECHANISM, "p=tls-server-end-point,,"),
            (MECHANISM_PLUS, "n,,"),
            (MECHANISM_PLUS, "y,,"),
            (MECHANISM_PLUS, "p=tls-unique,,"),
            ("PLAIN", "n,,"),
            (MECHANISM, "x,,"),
            (MECHANISM, ""),
        ] {
            let refused = first(&mut bound(), mechanism, header);
            assert!(
                matches!(refused, Err(ScramError::Malformed(_))),
                "{mechanism} {header}"
            );
        }
        let unbound = &mut ScramExchange::new(
            Verifier::of("x", [1; SALT_BYTES]),
            false,
            [2; NONCE_BYTES],
            None,
        );
        assert!(first(unbound, MECHANISM_PLUS, "p=tls-server-end-point,,").is_err());
        // Bound to another certificate: somebody sits in between.
        let mut exchange = bound();
        let answer = first(&mut exchange, MECHANISM_PLUS, "p=tls-server-end-point,,").unwrap();
        let nonce = answer.split(',').next().unwrap();
        let other = BASE64.encode(b"p=tls-server-end-point,,hash of another one");
        let proof = BASE64.encode([0; KEY_BYTES]);
        let last = format!("c={other},{nonce},p={proof}");
        assert_eq!(
            exchange.last(last.as_bytes()),
            Err(ScramError::Malformed("SCRAM channel binding check failed"))
        );
    }

    #[test]
    fn broken_messages_are_errors() {
        let unsupported = |first: &str| {
            let refused = rfc("pencil").first(MECHANISM, first.as_bytes());
            matches!(refused, Err(ScramError::Unsupported(_)))
        };
        assert!(unsupported("n,a=postgres,n=,r=abc"));
        assert!(unsupported("n,,m=x,n=,r=abc"));
        for first in [
            "",
            "n",
            "n,",
            "n,,",
            "n,,n=",
            "n,,n=,r=",
            "n,,r=abc,n=",
            "n,,n=,r=a\u{1}",
        ] {
            let refused = rfc("pencil").first(MECHANISM, first.as_bytes());
            assert!(matches!(refused, Err(ScramError::Malformed(_))), "{first}");
        }
        for (right, wrong) in [
            ("c=biws", "c=eSws"),
            ("k0,p=", "k1,p="),
            (",p=dHz", ",p=d"),
            (",p=", ",q="),
            ("c=biws,", ""),
        ] {
            let mut exchange = rfc("pencil");
            exchange.first(MECHANISM, CLIENT_FIRST.as_bytes()).unwrap();
            let last = CLIENT_LAST.replacen(right, wrong, 1);
            let refused = exchange.last(last.as_bytes());
            assert!(matches!(refused, Err(ScramError::Malformed(_))), "{last}");
        }
        // The last before the first.
        assert!(rfc("pencil").last(CLIENT_LAST.as_bytes()).is_err());
    }

    #[test]
    fn who_is_not_there_is_asked_the_same_each_time() {
        let mock = |secret: &[u8], user| Verifier::mock(secret, user);
        assert_eq!(mock(b"s", "nobody"), mock(b"s", "nobody"));
        assert_ne!(mock(b"s", "nobody").salt, mock(b"s", "somebody").salt);
        assert_ne!(mock(b"s", "nobody").salt, mock(b"t", "nobody").salt);
        assert_eq!(mock(b"s", "nobody").salt.len(), SALT_BYTES);
    }
}
