//! What we encode, read back by an independent implementation of the protocol.

use bytes::BytesMut;
use logstead_sql_types::SqlError;
use logstead_types::SqlState;
use logstead_wire::encode;
use pgwire::messages::{DecodeContext, Message, data, response, startup};

fn read<M: Message>(bytes: &[u8]) -> M {
    let mut buffer = BytesMut::from(bytes);
    let message = M::decode(&mut buffer, &DecodeContext::default())
        .unwrap()
        .unwrap();
    assert!(buffer.is_empty(), "length is right");
    message
}

#[test]
fn errors_carry_their_fields() {
    let error = SqlError::new(SqlState::UNIQUE_VIOLATION, "duplicate")
        .detail("why")
        .constraint("t_pkey")
        .at(Some(7));
    let mut out = Vec::new();
    encode::error_response(&mut out, "ERROR", error.fields());
    let message: response::ErrorResponse = read(&out);
    let field = |code: u8| {
        message
            .fields
            .iter()
            .find(|(c, _)| *c == code)
            .map(|(_, text)| text.as_str())
    };
    assert_eq!(field(b'S'), Some("ERROR"));
    assert_eq!(field(b'C'), Some("23505"));
    assert_eq!(field(b'D'), Some("why"));
    assert_eq!(field(b'n'), Some("t_pkey"));
    assert_eq!(field(b'P'), Some("7"));
    assert_eq!(field(b'H'), None);
    assert_eq!(field(b'F'), Some("encode.rs"));
    assert_eq!(field(b'L'), Some("20"));
    assert_eq!(field(b'R'), Some("encode"));
}

#[test]
fn descriptions_and_statuses() {
    let mut out = Vec::new();
    let field = encode::Field {
        name: "a",
        table: 5,
        attribute: 1,
        ty: 23,
        length: 4,
        modifier: -1,
        binary: true,
    };
    encode::row_description(&mut out, [field].into_iter());
    let message: data::RowDescription = read(&out);
    assert_eq!(message.fields.len(), 1);
    assert_eq!(
        (message.fields[0].name.as_str(), message.fields[0].type_id),
        ("a", 23)
    );
    out.clear();
    encode::parameter_status(&mut out, "TimeZone", "UTC");
    let message: startup::ParameterStatus = read(&out);
    assert_eq!(
        (message.name.as_str(), message.value.as_str()),
        ("TimeZone", "UTC")
    );
    out.clear();
    encode::command_complete(&mut out, &"INSERT 0 1");
    let message: response::CommandComplete = read(&out);
    assert_eq!(message.tag, "INSERT 0 1");
    out.clear();
    encode::ready_for_query(&mut out, b'T');
    let message: response::ReadyForQuery = read(&out);
    assert_eq!(message.status, response::TransactionStatus::Transaction);
}
