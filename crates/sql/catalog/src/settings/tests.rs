//! Reading, showing and the transactional life of settings.

use super::session::split_identifiers;
use super::*;
use std::sync::Arc;

fn session() -> SessionSettings {
    SessionSettings::new(Arc::default(), "postgres").unwrap()
}

#[test]
fn every_default_is_canonical() {
    for setting in all() {
        assert_eq!(
            setting.canonical(setting.default).unwrap(),
            setting.default,
            "{}",
            setting.name
        );
        assert!(!setting.doc.is_empty());
        let found = find(setting.name).unwrap();
        assert!(
            std::ptr::eq(found, setting),
            "{} is there twice",
            setting.name
        );
    }
    let read = postgresql::postgresql();
    assert_eq!(
        read.len(),
        postgresql::lines().count(),
        "every line is read"
    );
    for table in [
        TABLE,
        log::LOG,
        ignored_planner::ACCEPTED,
        ignored::ACCEPTED,
        read,
    ] {
        let names: Vec<String> = table.iter().map(|s| s.name.to_ascii_lowercase()).collect();
        assert!(names.is_sorted(), "sorted by name");
    }
}

#[test]
fn numbers_have_units() {
    let timeout = find("statement_timeout").unwrap();
    assert_eq!(timeout.canonical("1min").unwrap(), "60000");
    assert_eq!(timeout.canonical("1.5s").unwrap(), "1500");
    assert_eq!(timeout.show("90000"), "90s");
    assert_eq!(timeout.show("0"), "0");
    assert_eq!(
        timeout.canonical("1 parsec").unwrap_err().code().as_str(),
        "22023"
    );
    assert_eq!(
        timeout.canonical("-1").unwrap_err().fields().message,
        "-1 ms is outside the valid range for parameter \"statement_timeout\" (0 .. 2147483647)"
    );
}

#[test]
fn rollback_and_local() {
    let mut s = session();
    s.set("work_mem", "1MB", false).unwrap();
    s.commit();
    s.set("work_mem", "2MB", true).unwrap();
    assert_eq!(s.show("work_mem").unwrap(), "2MB");
    s.commit();
    assert_eq!(s.show("work_mem").unwrap(), "1MB");
    s.set("work_mem", "3MB", false).unwrap();
    s.savepoint();
    s.set("work_mem", "4MB", false).unwrap();
    s.rollback_to(0);
    assert_eq!(s.show("work_mem").unwrap(), "3MB");
    s.rollback();
    assert_eq!(s.show("work_mem").unwrap(), "1MB");
    assert_eq!(s.typed().work_mem_bytes, 1 << 20);
}

#[test]
fn changes_are_reported_once() {
    let mut s = session();
    s.set("timezone", "europe/berlin", false).unwrap();
    assert_eq!(s.take_changed(), [("TimeZone", "Europe/Berlin".to_owned())]);
    assert!(s.take_changed().is_empty());
    s.rollback();
    assert_eq!(s.take_changed(), [("TimeZone", "UTC".to_owned())]);
}

#[test]
fn errors_are_postgresqls() {
    let mut s = session();
    assert_eq!(
        s.set("nonsense", "1", false).unwrap_err().code().as_str(),
        "42704"
    );
    assert_eq!(
        s.set("server_version", "1", false)
            .unwrap_err()
            .code()
            .as_str(),
        "55P02"
    );
    assert_eq!(
        s.set("client_encoding", "LATIN11", false)
            .unwrap_err()
            .code()
            .as_str(),
        "22023"
    );
    // What is not done is not promised; what is done may be said.
    let refused = s.set("log_statement", "all", false).unwrap_err();
    assert_eq!(refused.code().as_str(), "0A000");
    let refused = s.set("log_statement", "most", false).unwrap_err();
    assert_eq!(refused.code().as_str(), "22023");
    s.set("log_statement", "NONE", false).unwrap();
    let unsafe_way = find("dependency_tracking").unwrap().canonical("LeanStore");
    let refused = unsafe_way.unwrap_err();
    assert_eq!(refused.code().as_str(), "0A000");
    assert!(
        refused
            .fields()
            .message
            .contains("loses acknowledged commits")
    );
    s.set("my.value", "x", false).unwrap();
    assert_eq!(s.show("my.value").unwrap(), "x");
    // What is taken back leaves the place, empty.
    s.reset("my.value", false).unwrap();
    assert_eq!(s.show("my.value").unwrap(), "");
    s.set("my.other", "x", false).unwrap();
    s.rollback();
    assert_eq!(s.show("my.other").unwrap(), "");
    assert_eq!(s.show("my.third"), None);
    // A place for values of applications, not for settings of the server that do not exist.
    let refused = s.set("Logstead.other", "x", false).unwrap_err();
    assert_eq!(refused.code().as_str(), "42704");
    // What it names is looked up by the session.
    s.set("logstead.as_of", "now", false).unwrap();
    assert_eq!(&*s.typed().as_of, "now");
    let refused = s.set("logstead.as_of_point", "x", false).unwrap_err();
    assert_eq!(refused.code().as_str(), "55P02");
}

#[test]
fn search_path_is_a_list_of_names() {
    assert_eq!(
        split_identifiers("\"$user\", public").unwrap(),
        ["$user", "public"]
    );
    assert_eq!(split_identifiers("A, \"B \"\"c\"").unwrap(), ["a", "B \"c"]);
    assert!(split_identifiers("a b").is_none());
    assert!(split_identifiers("a,").is_none());
    assert_eq!(&*session().typed().search_path, ["postgres", "public"]);
}
