//! What a printed diff says: the text that it makes of another one.

/// The text that this diff of one file makes of `before`. What follows the diff does not count.
pub(super) fn patched(before: &str, diff: &str) -> String {
    const NO_END: &str = "\\ No newline at end of file";
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let (mut after, mut at) = (String::new(), 0);
    let mut lines = diff.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        if let Some(head) = line.strip_prefix("@@ -") {
            let from: usize = head.split_once(',').expect("a range").0.parse().expect("a number");
            let count: usize = head.split([',', ' ']).nth(1).expect("a count").parse().expect("a number");
            // An empty range names the line before it.
            let from = if count == 0 { from } else { from - 1 };
            after.extend(old[at..from].iter().copied());
            at = from;
            continue;
        }
        let (sign, text) = line.split_at(1);
        if !matches!(sign, " " | "-" | "+") || line.starts_with("--- ") || line.starts_with("+++ ") {
            continue;
        }
        let has_end = lines.peek().is_none_or(|next| !next.starts_with(NO_END));
        let text = if has_end { text } else { text.trim_end_matches('\n') };
        if sign != "+" {
            assert_eq!(old[at], text, "the diff is of this text: {diff}");
            at += 1;
        }
        if sign != "-" {
            after.push_str(text);
        }
    }
    after.extend(old[at..].iter().copied());
    after
}
