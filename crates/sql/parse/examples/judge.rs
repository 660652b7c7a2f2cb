//! Reads texts from standard input, each ended by a zero byte, and tells for each what the grammar answers, in a
//! line: `ok`, or SQLSTATE, position and message. `tests/grammar` compares that with PostgreSQL's answers.

use logstead_sql_parse::grammar;
use std::io::{Read, Write};

fn main() -> std::io::Result<()> {
    let mut input = Vec::new();
    std::io::stdin().lock().read_to_end(&mut input)?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for text in input.split(|byte| *byte == 0) {
        let text = String::from_utf8_lossy(text);
        match grammar::parse(&text) {
            Ok(_) => writeln!(out, "ok")?,
            Err(error) => {
                let fields = error.fields();
                let position = fields.position.map_or(String::from("-"), |p| p.to_string());
                let message = fields.message.replace('\\', "\\\\").replace('\n', "\\n");
                writeln!(out, "{}\t{position}\t{message}", fields.code.as_str())?;
            }
        }
    }
    out.flush()
}
