//! Blocks, entries, records and manifests from arbitrary bytes: every answer is fine, a panic is not. What decodes must
//! encode to the same bytes again, because each thing has one encoding.
#![no_main]

use logstead_wal::block::{HEADER_LEN, HEADER_LEN_V1, Header};
use logstead_wal::entry::EntryReader;
use logstead_wal::manifest::Manifest;
use logstead_wal::{EntryBody, RecordReader};

fn records(bytes: &[u8]) {
    let mut again = Vec::new();
    let mut whole = true;
    for record in RecordReader::new(bytes) {
        match record {
            Ok(record) => record.encode(&mut again),
            Err(_) => whole = false,
        }
    }
    assert!(!whole || again == bytes, "records have one encoding");
}

fn entries(bytes: &[u8]) {
    let mut again = Vec::new();
    let mut whole = true;
    for entry in EntryReader::new(bytes) {
        match entry {
            Ok(entry) => {
                entry.encode(&mut again);
                if let EntryBody::Inline(body) = entry.body {
                    records(body);
                }
            }
            Err(_) => whole = false,
        }
    }
    assert!(!whole || again == bytes, "entries have one encoding");
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok((header, crc)) = Header::decode(data) {
        let (bytes, again) = header.encode();
        let len = header.header_len();
        assert!(crc == again && bytes[..len] == data[..len], "headers have one encoding");
        let _any_answer_will_do = header.check_payload(&data[len..]);
    }
    if let Ok(manifest) = Manifest::decode(data) {
        assert!(manifest.encode() == data, "manifests have one encoding");
    }
    entries(data);
    for len in [HEADER_LEN_V1, HEADER_LEN] {
        entries(data.get(len..).unwrap_or(&[]));
    }
    records(data);
});
