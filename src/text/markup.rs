//! Styled lines as HTML, and text as Markdown.
//!
//! Invariants: nothing in the text can end its element or its fence; the HTML needs no other file and no script.

use super::styled::{Colour, StyledRun, TextStyle};

/// The palette's first sixteen colours as text on the light page.
const ON_LIGHT: [&str; 16] = [
    "#3b3b3b", "#c4302b", "#26803a", "#8a6700", "#2f6fd0", "#a03fa8", "#117a7f", "#6b6b6b", "#6e6e6e", "#d0402f",
    "#1f8038", "#946c00", "#2f70d8", "#b04ab8", "#147a80", "#757575",
];
/// The same on the dark page.
const ON_DARK: [&str; 16] = [
    "#909090", "#e8645c", "#4fb863", "#d0a53a", "#6ea2f0", "#cf7fd6", "#45b8bd", "#c8c8c8", "#909090", "#ff8177",
    "#6fd483", "#ecc35a", "#93bcff", "#e5a0ea", "#72d8dc", "#f4f4f4",
];
/// The same as backgrounds, and as text on a background.
const PALETTE: [&str; 16] = [
    "#3b3b3b", "#c4302b", "#2e8b3d", "#a67c00", "#2f6fd0", "#a03fa8", "#16868b", "#8a8a8a", "#6e6e6e", "#e0503f",
    "#35a64c", "#c09010", "#4b8bf0", "#c05cc8", "#20a5aa", "#b8b8b8",
];

const HEAD: &str = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
<meta name=\"viewport\" content=\"width=device-width\">\n";
const STYLE: &str = "<style>\n\
:root { color-scheme: light dark; --text: #1c1c1c; --page: #ffffff; --dim: #6b6b6b; --bar: #2f6fd0 }\n\
@media (prefers-color-scheme: dark) { :root { --text: #e4e4e4; --page: #141414; --dim: #9a9a9a } }\n\
body { color: var(--text); background: var(--page); margin: 2em; font: 15px/1.45 system-ui, sans-serif }\n\
h1 { font: 600 1.05em/1.4 ui-monospace, monospace; border-left: 4px solid var(--bar); padding-left: .6em;\n\
  white-space: pre-wrap; overflow-wrap: anywhere; margin: 0 0 .4em }\n\
p { color: var(--dim); margin: 0 0 1em }\n\
pre { font: 13px/1.4 ui-monospace, monospace; overflow-x: auto; tab-size: 8 }\n\
b { font-weight: 700 } i { font-style: italic } u { text-decoration: underline } s { text-decoration: line-through }\n\
</style>\n";

/// A page with the command as its heading, facts below it, and the output.
#[must_use]
pub fn html_page(command: &str, facts: &str, lines: &[Vec<StyledRun>]) -> String {
    let palettes = format!(
        "<style>\n{}\n@media (prefers-color-scheme: dark) {{ {} }}\n</style>\n",
        palette(&ON_LIGHT),
        palette(&ON_DARK)
    );
    let mut page = format!("{HEAD}<title>{}</title>\n{STYLE}{palettes}</head>\n<body>\n", html(command));
    page += &format!("<h1>{}</h1>\n<p>{}</p>\n<pre>", html(command), html(facts));
    // A line feed behind the opening tag is not part of the text.
    page.push('\n');
    for line in lines {
        line.iter().for_each(|run| push_run(run, &mut page));
        page.push('\n');
    }
    page + "</pre>\n</body>\n</html>\n"
}

/// The colours as variables of the page.
fn palette(colours: &[&str; 16]) -> String {
    let variables: Vec<String> =
        colours.iter().enumerate().map(|(index, colour)| format!("--c{index}: {colour}")).collect();
    format!(":root {{ {} }}", variables.join("; "))
}

fn push_run(run: &StyledRun, page: &mut String) {
    let TextStyle { mut text, mut background, is_bold, is_dim, is_italic, is_underlined, is_struck, is_inverse } =
        run.style;
    let mut css = String::new();
    if is_inverse {
        std::mem::swap(&mut text, &mut background);
    }
    let is_mixed = text != Colour::Default && background != Colour::Default;
    for (property, colour, turned) in [("color", text, "var(--page)"), ("background", background, "var(--text)")] {
        match colour {
            Colour::Default if is_inverse => css += &format!("{property}:{turned};"),
            Colour::Default => {}
            // Beside a colour of the page it has to differ from the page's other one.
            Colour::Index(index @ 0..=15) if !is_mixed && (property == "color" || is_inverse) => {
                css += &format!("{property}:var(--c{index});");
            }
            // Black and the two whites are the text of coloured bars.
            Colour::Index(0) if property == "color" => css += "color:#000000;",
            Colour::Index(7 | 15) if property == "color" => css += "color:#ffffff;",
            Colour::Index(index) => css += &format!("{property}:{};", of_palette(index)),
            Colour::Rgb(red, green, blue) => css += &format!("{property}:#{red:02x}{green:02x}{blue:02x};"),
        }
    }
    if is_dim {
        css += "opacity:.65;";
    }
    let tags = [(is_bold, "b"), (is_italic, "i"), (is_underlined, "u"), (is_struck, "s")];
    let tags: Vec<&str> = tags.into_iter().filter_map(|(is_on, tag)| is_on.then_some(tag)).collect();
    if !css.is_empty() {
        *page += &format!("<span style=\"{}\">", css.trim_end_matches(';'));
    }
    tags.iter().for_each(|tag| *page += &format!("<{tag}>"));
    *page += &html(&run.text);
    tags.iter().rev().for_each(|tag| *page += &format!("</{tag}>"));
    if !css.is_empty() {
        *page += "</span>";
    }
}

/// A colour of xterm's palette of 256.
fn of_palette(index: u8) -> String {
    match index {
        0..=15 => PALETTE[usize::from(index)].to_owned(),
        16..=231 => {
            let level = |at: u8| if at == 0 { 0 } else { 55 + 40 * at };
            let cube = index - 16;
            format!("#{:02x}{:02x}{:02x}", level(cube / 36), level(cube / 6 % 6), level(cube % 6))
        }
        232.. => {
            let grey = 8 + 10 * (index - 232);
            format!("#{grey:02x}{grey:02x}{grey:02x}")
        }
    }
}

/// Text in which no character begins markup.
fn html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Text in which no character begins markup in Markdown.
#[must_use]
pub fn markdown(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|' | '~' | '&' | '@' | '!') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// A block of code in Markdown. Its fence is longer than any row of backticks in the text.
#[must_use]
pub fn fenced(language: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}{language}\n{text}{end}{fence}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text_in_html() {
        let run = |text: &str, style| StyledRun { text: text.to_owned(), style };
        let bold = TextStyle { is_bold: true, text: Colour::Index(1), ..TextStyle::default() };
        let turned = TextStyle { is_inverse: true, background: Colour::Rgb(1, 2, 3), ..TextStyle::default() };
        let lines = [vec![run("</pre><script>\"'&", TextStyle::default()), run("x", bold)], vec![run("y", turned)]];
        let page = html_page("a <b> & c", "exit 1", &lines);
        assert!(page.contains("<h1>a &lt;b&gt; &amp; c</h1>"));
        assert!(
            page.contains(
                "&lt;/pre&gt;&lt;script&gt;&quot;&#39;&amp;<span style=\"color:var(--c1)\"><b>x</b></span>\n"
            )
        );
        assert!(page.contains("<span style=\"color:#010203;background:var(--text)\">y</span>\n"));
        assert!(!page.contains("<script"));
        assert_eq!([of_palette(16), of_palette(231), of_palette(255)], ["#000000", "#ffffff", "#eeeeee"]);
    }

    /// The contrast of two colours (WCAG 2.2).
    fn contrast(one: &str, other: &str) -> f64 {
        let light = |colour: &str| {
            let part = |at: usize| {
                let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
                if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
            };
            0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5) + 0.05
        };
        let (one, other) = (light(one), light(other));
        one.max(other) / one.min(other)
    }

    #[test]
    fn coloured_text_can_be_read_on_both_pages() {
        for (page, colours) in [("#ffffff", ON_LIGHT), ("#141414", ON_DARK)] {
            assert!(STYLE.contains(&format!("--page: {page}")));
            for colour in colours {
                assert!(contrast(page, colour) >= 4.5, "{colour} on {page}: {}", contrast(page, colour));
            }
        }
        let styled = |text, background| {
            let style = TextStyle { text, background, ..TextStyle::default() };
            html_page("", "", &[vec![StyledRun { text: "x".to_owned(), style }]])
        };
        let bar = styled(Colour::Index(15), Colour::Index(1));
        assert!(bar.contains("style=\"color:#ffffff;background:#c4302b\""), "{bar}");
        let tick = styled(Colour::Index(2), Colour::Default);
        assert!(tick.contains("style=\"color:var(--c2)\"") && tick.contains("--c2: #26803a"), "{tick}");
    }

    #[test]
    fn a_fence_is_longer_than_any_in_the_text() {
        assert_eq!(fenced("text", "one\n"), "```text\none\n```\n");
        assert_eq!(fenced("", "a\n````\nb"), "`````\na\n````\nb\n`````\n");
        assert_eq!(fenced("", ""), "```\n```\n");
    }
}
