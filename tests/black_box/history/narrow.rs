//! Lists on terminals of all widths: a line of a list is one row.

use super::samples::Sample;
use crate::support::programs;
use crate::support::temp::TempDir;
use crate::verbs::live::shown_by;

/// The columns of a line: characters of East Asian scripts have two.
fn columns_of(line: &str) -> usize {
    line.chars().map(|c| if c >= '\u{1100}' && c != '…' { 2 } else { 1 }).sum()
}

#[test]
fn a_line_of_a_list_is_one_row_on_terminals_from_44_columns_on() {
    let home = TempDir::new(None);
    let home = home.path();
    let long = format!("cargo build {} {}", "--features=日本語".repeat(9), "x".repeat(300));
    Sample::new("2026-05-21-09:42:18")
        .run(1, &long, "\"exit\":101,\"duration_ms\":5000,\"bytes\":1000000,\"output\":\"a\\n\"")
        .run(
            2,
            "echo 日本語の出力",
            "\"exit\":0,\"duration_ms\":700000,\"bytes\":20,\"output\":\"b\\n\",\"sandbox\":\"codex read-only\"",
        )
        .run(3, &long, "\"exit\":143,\"signal\":15,\"duration_ms\":3,\"error\":\"aborted\"")
        .start(4, "runs")
        .line("{\"v\":1,\"type\":\"lost\",\"seq\":5,\"whoami\":\"A caller of a long name\",\"command\":\"日本\"}")
        .write(home);
    for columns in [44, 60, 79, 80, 120, 200] {
        for args in [&["log"][..], &["stats"], &["sessions"], &["diff", "1", "2"]] {
            for locale in ["C.UTF-8", "C"] {
                let mut command = programs::command(programs::rexec());
                command.args(args).env_clear().env("LC_ALL", locale).env("REXEC_HOME", home);
                command.env("REXEC_SOCKET", home.join("none"));
                let lines = shown_by(command, columns);
                let fits = |line: &String| columns_of(line) <= usize::from(columns);
                assert!(lines.len() > 1 && lines.iter().all(fits), "{args:?}, {columns} columns: {lines:#?}");
                // Whole columns give way, not the end of the head.
                let has_whole_head = args != ["stats"] || !lines[0].ends_with(['…', '.']);
                assert!(has_whole_head, "{columns} columns: {lines:#?}");
                let has_command = |line: &String| line.contains("cargo bui");
                assert!(args != ["log"] || lines.iter().any(has_command), "{columns} columns: {lines:#?}");
            }
        }
    }
}
