//! Output on its way into lines of styled text.

use super::*;

fn lines(output: &str) -> Vec<String> {
    let mut styled = StyledOutput::new((4, 10));
    styled.push(output.as_bytes());
    let (lines, _, _) = styled.finish();
    lines.iter().map(|line| line.iter().map(|run| run.text.as_str()).collect()).collect()
}

#[test]
fn redraws_leave_their_last_state() {
    assert_eq!(lines("10 %\r50 %\r\ndone\r\n"), ["50 %", "done"]);
    assert_eq!(lines("one\r\ntwo\x1b[1A\r\x1b[2Knew\x1b[1B\r\nend"), ["new", "two", "end"]);
    assert_eq!(lines("0123456789abc\r\n日本\tx"), ["0123456789", "abc", "日本    x"]);
    assert_eq!(lines("a\x1b[?1049hhidden\x1b[?1049lb"), ["ab"]);
    assert_eq!(lines("e\u{301}\x1b]0;title\x07!  \r\n\r\n"), ["e\u{301}!"]);
}

#[test]
fn colours_are_kept() {
    let mut styled = StyledOutput::new((4, 80));
    styled.push(b"\x1b[1;31mred\x1b[0;38;5;200;48;2;1;2;3m256\x1b[38:2::9:8:7mrgb\x1b[m \x1b[7mturned\x1b[27;97mw");
    let (lines, _, _) = styled.finish();
    let plain = TextStyle::default();
    let background = Colour::Rgb(1, 2, 3);
    let expected = [
        (TextStyle { text: Colour::Index(1), is_bold: true, ..plain }, "red"),
        (TextStyle { text: Colour::Index(200), background, ..plain }, "256"),
        (TextStyle { text: Colour::Rgb(9, 8, 7), background, ..plain }, "rgb"),
        (plain, " "),
        (TextStyle { is_inverse: true, ..plain }, "turned"),
        (TextStyle { text: Colour::Index(15), ..plain }, "w"),
    ];
    let seen: Vec<(TextStyle, &str)> = lines[0].iter().map(|run| (run.style, run.text.as_str())).collect();
    assert_eq!(seen, expected);
}
