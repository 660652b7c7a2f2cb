use super::world::plan;

#[test]
fn scratch() {
    let Ok(text) = std::fs::read_to_string("/tmp/plans.sql") else { return };
    for sql in text.split(";\n").filter(|s| !s.trim().is_empty()) {
        println!("-- {sql}\n{}\n", plan(sql));
    }
}
