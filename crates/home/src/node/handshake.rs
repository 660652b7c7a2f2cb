//! How a server and a storage node make sure of each other.
//!
//! ```text
//! server: "logstead node 1\n", nonce, u8 length, the volume's name
//! node:   "logstead node 1\n", nonce
//! server: proof
//! node:   u8 status, proof if it is 0, else u16 length and words
//! ```
//! A proof is HMAC-SHA256, with the volume's key, over who proves, both nonces, the volume's name and, where the
//! connection is encrypted, its channel binding: so nobody who sits between two encrypted connections can pass proofs
//! on, whatever certificates say. The volume's key is HMAC-SHA256, with the fleet's secret, over its name: who has one
//! volume's key can open no other volume. The server proves first, so that a node tells nobody anything by which the
//! secret could be guessed; a server tells it whoever has the node's address, so the secret is long and drawn at
//! random.
//!
//! Does not: encrypt.

use crate::HomeError;
use logstead_env::Env;
use logstead_link::LinkStream;
use ring::hmac;
use std::io::{self, Read};

const MAGIC: &[u8; 16] = b"logstead node 1\n";
/// Longest name of a volume.
pub const VOLUME_NAME_BYTES_MAX: usize = 200;
/// Longest words with which a node refuses.
const WORDS_BYTES_MAX: usize = 1000;

/// The key of a volume.
#[derive(Clone)]
pub struct VolumeKey(hmac::Key);

impl VolumeKey {
    /// The key that the fleet's secret makes for a volume.
    pub fn of_secret(secret: &[u8], volume: &str) -> VolumeKey {
        let secret = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let mut derived = hmac::Context::with_key(&secret);
        derived.update(b"logstead volume\0");
        derived.update(volume.as_bytes());
        VolumeKey(hmac::Key::new(hmac::HMAC_SHA256, derived.sign().as_ref()))
    }
}

/// Is this a name that a volume may have: words of letters, digits, `-` and `_`, with slashes between them?
pub fn is_volume_name(name: &str) -> bool {
    let word = |word: &str| {
        let letter = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        !word.is_empty() && word.chars().all(letter)
    };
    name.len() <= VOLUME_NAME_BYTES_MAX && name.split('/').all(word)
}

/// What both sides know of a connection.
struct Transcript {
    server_nonce: [u8; 32],
    node_nonce: [u8; 32],
    binding: [u8; 32],
    volume: String,
}

impl Transcript {
    fn message(&self, who: &[u8]) -> Vec<u8> {
        let volume = self.volume.as_bytes();
        let nonces = [self.server_nonce, self.node_nonce, self.binding].concat();
        [who, nonces.as_slice(), volume].concat()
    }

    fn prove(&self, key: &VolumeKey, who: &[u8]) -> hmac::Tag {
        hmac::sign(&key.0, &self.message(who))
    }

    fn is_proof(&self, key: &VolumeKey, who: &[u8], proof: &[u8]) -> bool {
        hmac::verify(&key.0, &self.message(who), proof).is_ok()
    }
}

const SERVER: &[u8] = b"server\0";
const NODE: &[u8] = b"node\0";

fn binding_of(stream: &LinkStream) -> io::Result<[u8; 32]> {
    match stream {
        LinkStream::Tls(stream) => stream.channel_binding(),
        LinkStream::Tcp(_) | LinkStream::Unix(_) | LinkStream::Simulated(_) => Ok([0; 32]),
    }
}

fn nonce(env: &Env) -> [u8; 32] {
    let mut nonce = [0; 32];
    env.random.fill(&mut nonce);
    nonce
}

fn other_protocol() -> io::Error {
    let what = "it does not speak the protocol of storage nodes, or another version of it";
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn read_magic(stream: &mut LinkStream) -> io::Result<[u8; 32]> {
    let mut magic = [0; 16];
    stream.read_exact(&mut magic)?;
    if &magic != MAGIC {
        return Err(other_protocol());
    }
    let mut nonce = [0; 32];
    stream.read_exact(&mut nonce)?;
    Ok(nonce)
}

/// The server's side. A node that refuses says why.
pub(super) fn greet(
    stream: &mut LinkStream,
    env: &Env,
    volume: &str,
    key: &VolumeKey,
) -> Result<(), HomeError> {
    let failed = |error| HomeError::io("greet a storage node", error);
    let server_nonce = nonce(env);
    let mut hello = MAGIC.to_vec();
    hello.extend_from_slice(&server_nonce);
    hello.push(volume.len() as u8);
    hello.extend_from_slice(volume.as_bytes());
    stream.write_all(&hello).map_err(failed)?;
    let transcript = Transcript {
        server_nonce,
        node_nonce: read_magic(stream).map_err(failed)?,
        binding: binding_of(stream).map_err(failed)?,
        volume: volume.to_owned(),
    };
    let proof = transcript.prove(key, SERVER);
    stream.write_all(proof.as_ref()).map_err(failed)?;
    let mut status = [0];
    stream.read_exact(&mut status).map_err(failed)?;
    if status == [0] {
        let mut proof = [0; 32];
        stream.read_exact(&mut proof).map_err(failed)?;
        if transcript.is_proof(key, NODE, &proof) {
            return Ok(());
        }
        let what = "it does not know the volume's key: it is no node of this fleet";
        return Err(failed(io::Error::new(
            io::ErrorKind::PermissionDenied,
            what,
        )));
    }
    let mut length = [0; 2];
    stream.read_exact(&mut length).map_err(failed)?;
    let length = usize::from(u16::from_le_bytes(length)).min(WORDS_BYTES_MAX);
    let mut words = vec![0; length];
    stream.read_exact(&mut words).map_err(failed)?;
    let words = String::from_utf8_lossy(&words).into_owned();
    Err(failed(io::Error::new(
        io::ErrorKind::PermissionDenied,
        words,
    )))
}

/// The node's side: which volume the server wants, if it has its key. `key_of` makes the key of a volume.
pub fn receive(
    stream: &mut LinkStream,
    env: &Env,
    key_of: impl Fn(&str) -> VolumeKey,
) -> io::Result<String> {
    let server_nonce = read_magic(stream)?;
    let mut length = [0];
    stream.read_exact(&mut length)?;
    let mut volume = vec![0; usize::from(length[0])];
    stream.read_exact(&mut volume)?;
    let node_nonce = nonce(env);
    let mut answer = MAGIC.to_vec();
    answer.extend_from_slice(&node_nonce);
    stream.write_all(&answer)?;
    let mut proof = [0; 32];
    stream.read_exact(&mut proof)?;
    let volume = String::from_utf8(volume).unwrap_or_default();
    if !is_volume_name(&volume) {
        let words =
            "that is no name of a volume: letters, digits, - and _, with slashes between words";
        return Err(refuse(stream, words));
    }
    let transcript = Transcript {
        server_nonce,
        node_nonce,
        binding: binding_of(stream)?,
        volume,
    };
    let key = key_of(&transcript.volume);
    if !transcript.is_proof(&key, SERVER, &proof) {
        return Err(refuse(stream, "the key of the volume is wrong"));
    }
    let mut accepted = vec![0];
    accepted.extend_from_slice(transcript.prove(&key, NODE).as_ref());
    stream.write_all(&accepted)?;
    Ok(transcript.volume)
}

/// Tells the other side why it is refused.
pub(super) fn refuse(stream: &mut LinkStream, words: &str) -> io::Error {
    let mut refusal = vec![1];
    refusal.extend_from_slice(&(words.len() as u16).to_le_bytes());
    refusal.extend_from_slice(words.as_bytes());
    let _it_may_be_gone = stream.write_all(&refusal);
    io::Error::new(io::ErrorKind::PermissionDenied, words.to_owned())
}
