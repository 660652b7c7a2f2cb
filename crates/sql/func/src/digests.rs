//! MD5 and SHA-224, for the functions of these names only: nothing here protects anything.

use logstead_sql_types::error::Result;
use logstead_sql_types::interrupt::check_for_interrupts;
use logstead_sql_types::memory::STRIDE_BYTES;
use md5::{Digest, Md5};
use sha2::Sha224;

/// MD5 (RFC 1321).
pub(super) fn md5(input: &[u8]) -> Result<Vec<u8>> {
    digest::<Md5>(input)
}

/// SHA-224 (FIPS 180-4). The library of the other digests does not have it.
pub(super) fn sha224(input: &[u8]) -> Result<Vec<u8>> {
    digest::<Sha224>(input)
}

fn digest<D: Digest>(input: &[u8]) -> Result<Vec<u8>> {
    let mut digest = D::new();
    for part in input.chunks(STRIDE_BYTES) {
        digest.update(part);
        check_for_interrupts()?;
    }
    Ok(digest.finalize().to_vec())
}

#[cfg(test)]
mod tests {
    fn hex(b: &[u8]) -> String {
        b.iter().map(|b| format!("{b:02x}")).collect()
    }

    #[test]
    fn known_digests() {
        assert_eq!(
            hex(&super::md5(b"").unwrap()),
            "d41d8cd98f00b204e9800998ecf8427e"
        );
        assert_eq!(
            hex(&super::md5(b"abc").unwrap()),
            "900150983cd24fb0d6963f7d28e17f72"
        );
        assert_eq!(
            hex(&super::sha224(b"abc").unwrap()),
            "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7"
        );
    }
}
