use super::world::error;

#[test]
fn scratch() {
    let Ok(text) = std::fs::read_to_string("/tmp/errors.sql") else { return };
    for sql in text.split(";\n").filter(|s| !s.trim().is_empty()) {
        println!("@@{}", error(sql));
    }
}
