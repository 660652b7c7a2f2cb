//! How two texts differ, for people.

/// Equal lines around what differs.
const CONTEXT: usize = 3;
/// Lines that are shown.
const SHOWN_MAX: usize = 60;
/// So many equal lines end a difference.
const EQUAL_MIN: usize = 2;

/// The differences in the form of `diff -u`; nothing of equal texts.
pub(crate) fn difference(expected: &str, printed: &str) -> Option<String> {
    let expected: Vec<&str> = expected.split_inclusive('\n').collect();
    let printed: Vec<&str> = printed.split_inclusive('\n').collect();
    let mut shown = Vec::new();
    let (mut e, mut p, mut shown_to) = (0, 0, 0);
    while e < expected.len() || p < printed.len() {
        if expected.get(e) == printed.get(p) {
            (e, p) = (e + 1, p + 1);
            continue;
        }
        let first = e.saturating_sub(CONTEXT).max(shown_to);
        shown.push(format!("@@ line {} of what is expected @@", e + 1));
        shown.extend(expected[first..e].iter().map(|line| format!(" {line}")));
        let (removed, added) = until_equal(&expected[e..], &printed[p..]);
        shown.extend(
            expected[e..e + removed]
                .iter()
                .map(|line| format!("-{line}")),
        );
        shown.extend(printed[p..p + added].iter().map(|line| format!("+{line}")));
        (e, p) = (e + removed, p + added);
        let equal = expected[e..].iter().zip(&printed[p..]);
        let equal = equal.take(CONTEXT).take_while(|(a, b)| a == b).count();
        shown.extend(expected[e..e + equal].iter().map(|line| format!(" {line}")));
        (e, p) = (e + equal, p + equal);
        shown_to = e;
    }
    if shown.is_empty() {
        return None;
    }
    let more = shown.len().saturating_sub(SHOWN_MAX);
    shown.truncate(SHOWN_MAX);
    if more > 0 {
        shown.push(format!("... and {more} more lines"));
    }
    let lines: Vec<&str> = shown
        .iter()
        .map(|line| line.trim_end_matches('\n'))
        .collect();
    Some(lines.join("\n"))
}

/// How many lines of each differ before both go on with the same: the fewest.
fn until_equal(expected: &[&str], printed: &[&str]) -> (usize, usize) {
    for total in 1..expected.len() + printed.len() {
        for removed in total.saturating_sub(printed.len())..=total.min(expected.len()) {
            let (e, p) = (&expected[removed..], &printed[total - removed..]);
            let equal = e.iter().zip(p).take(EQUAL_MIN).take_while(|(a, b)| a == b);
            let both_end = e.len() == p.len() && e.len() < EQUAL_MIN;
            if equal.count() == EQUAL_MIN || both_end && e == p {
                return (removed, total - removed);
            }
        }
    }
    (expected.len(), printed.len())
}
