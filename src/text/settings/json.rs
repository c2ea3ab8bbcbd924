//! JSON, and the JSON with comments and trailing commas that some agents read: a member goes into its text, or out of it.
//!
//! Invariant: serde_json judges every edit. It reads the text before and after, and finds no difference but the setting.

use std::ops::Range;

use serde_json::{Map, Value};

use super::lines::{indentation, line_end};
use super::{Setting, SettingChange, SettingEdit, SettingValue, SettingsError, Splice, applied, reverted};

/// One step of indentation where the text shows none.
const STEP: &str = "  ";

const BYTE_ORDER_MARK: char = '\u{feff}';

pub(super) fn set(
    text: &str,
    has_comments: bool,
    setting: &Setting,
    force: bool,
) -> Result<SettingChange, SettingsError> {
    if text.starts_with(BYTE_ORDER_MARK) {
        return Err(SettingsError::at(text, 0, "a byte order mark is before the settings"));
    }
    let json = JsonText::read(text, has_comments)?;
    let (path, wanted) = (json.path(&setting.keys)?, value(setting));
    let edit = match path.last().filter(|_| path.len() == setting.keys.len()) {
        Some(_) if has(&json.value, setting) => return Ok(SettingChange::Same),
        Some(member) if !force => return Ok(SettingChange::Taken(text[member.value()].to_owned())),
        Some(member) => SettingEdit {
            splices: vec![Splice::replace(text, member.value(), wanted.to_string())],
            was: Some(text[member.value()].to_owned()),
            made: 0,
        },
        None => SettingEdit {
            splices: vec![json.insertion(&path, &setting.keys[path.len()..], &wanted)?],
            was: None,
            made: setting.keys.len() - path.len() - 1,
        },
    };
    let is_right = |after: &String| {
        let after = JsonText::read(after, has_comments).map(|json| json.value);
        after.is_ok_and(|after| with(&json.value, setting) == Some(after))
    };
    match applied(text, &edit.splices).filter(is_right) {
        Some(_) => Ok(SettingChange::Edit(edit)),
        None => Err(SettingsError::at(text, 0, "the text is written in a way that rexec does not know")),
    }
}

/// Returns the text without the setting, or `None` if it is gone. Somebody may have written comments since, and an
/// earlier release has edited texts that [`set`] refuses.
pub(super) fn undo(text: &str, setting: &Setting, edit: &SettingEdit) -> Result<Option<String>, SettingsError> {
    let has_comments = JsonText::read(text, false).is_err();
    let json = JsonText::read(text, has_comments)?;
    if !has(&json.value, setting) {
        return Ok(None);
    }
    let path = json.path(&setting.keys).unwrap_or_default();
    let by_key = match (&edit.was, path.last()) {
        (Some(was), Some(member)) => vec![vec![Splice::replace(text, member.value(), was.clone())]],
        // The objects made for the setting go with it, unless they hold something else.
        _ => path.iter().rev().take(edit.made + 1).rev().map(|member| json.removal(member)).collect(),
    };
    let by_key = by_key.iter().filter_map(|splices| applied(text, splices));
    let is_right = |after: &String| {
        let after = JsonText::read(after, has_comments).map(|json| json.value);
        after.is_ok_and(|after| !has(&after, setting) && with(&after, setting).as_ref() == Some(&json.value))
    };
    match reverted(text, edit).into_iter().chain(by_key).find(is_right) {
        Some(after) => Ok(Some(after)),
        None => Err(SettingsError::at(text, 0, format!("`{}` cannot be removed without harm", setting.shown()))),
    }
}

pub(super) fn holds(text: &str, has_comments: bool, setting: &Setting) -> Result<bool, SettingsError> {
    Ok(has(&JsonText::read(text, has_comments)?.value, setting))
}

fn has(settings: &Value, setting: &Setting) -> bool {
    setting.keys.iter().try_fold(settings, |inner, key| inner.get(key)) == Some(&value(setting))
}

/// The settings with one more; `None` if something that is no object is in its way.
fn with(settings: &Value, setting: &Setting) -> Option<Value> {
    let mut settings = settings.clone();
    let mut place = &mut settings;
    for key in &setting.keys {
        place = place.as_object_mut()?.entry(key).or_insert_with(|| Value::Object(Map::new()));
    }
    *place = value(setting);
    Some(settings)
}

fn value(setting: &Setting) -> Value {
    match &setting.value {
        SettingValue::Text(text) => Value::String(text.clone()),
        SettingValue::False => Value::Bool(false),
    }
}

/// The settings as members of the outermost object, for a person to paste.
pub(super) fn lines(settings: &[Setting]) -> String {
    let layout = MemberLayout { indent: Some(STEP.to_owned()), step: STEP, colon: ": ", end: "\n" };
    let members = settings.iter().map(|setting| format!("{STEP}{}", layout.member(&setting.keys, &value(setting))));
    members.collect::<Vec<_>>().join(",\n") + "\n"
}

/// The layout of members.
struct MemberLayout<'t> {
    /// The blanks before a member; `None` if all members are on one line.
    indent: Option<String>,
    step: &'t str,
    colon: &'t str,
    end: &'t str,
}

impl MemberLayout<'_> {
    /// A member, or nested objects with one member each.
    fn member(&self, keys: &[String], value: &Value) -> String {
        let (key, rest) = keys.split_first().expect("a setting has a key");
        let key = Value::from(key.as_str());
        if rest.is_empty() {
            return format!("{key}{}{value}", self.colon);
        }
        let indent = self.indent.as_ref().map(|indent| format!("{indent}{}", self.step));
        let inner = MemberLayout { indent, ..*self };
        format!("{key}{}{{{}}}", self.colon, self.inside(&inner, &inner.member(rest, value)))
    }

    /// The text between the braces of an object of this layout with one member of the inner one.
    fn inside(&self, inner: &MemberLayout<'_>, member: &str) -> String {
        match (&self.indent, &inner.indent) {
            (Some(outer), Some(indent)) => format!("{0}{indent}{member}{0}{outer}", self.end),
            _ => member.to_owned(),
        }
    }
}

/// A text that serde_json has read.
struct JsonText<'t> {
    text: &'t str,
    /// The text with blanks for its comments, so that every other byte has kept its place.
    plain: String,
    /// Each string, brace, bracket, comma, colon, and other word of the plain text.
    tokens: Vec<Range<usize>>,
    value: Value,
}

/// A member of an object, as the tokens of its key and of its value.
struct JsonMember<'j> {
    json: &'j JsonText<'j>,
    key: usize,
    first: usize,
    last: usize,
}

impl JsonMember<'_> {
    fn value(&self) -> Range<usize> {
        self.json.tokens[self.first].start..self.json.tokens[self.last].end
    }
}

impl<'t> JsonText<'t> {
    fn read(text: &'t str, has_comments: bool) -> Result<Self, SettingsError> {
        let plain = if has_comments { without_comments(text) } else { text.to_owned() };
        let mut json = Self { text, tokens: tokens(&plain), plain, value: Value::Object(Map::new()) };
        if json.tokens.is_empty() {
            return Ok(json);
        }
        let mut strict = json.plain.clone();
        if has_comments {
            json.trailing_commas().for_each(|comma| strict.replace_range(comma, " "));
        }
        json.value = serde_json::from_str(&strict).map_err(|error| {
            let problem = error.to_string();
            let problem = problem.split(" at line ").next().unwrap_or_default();
            // If the end of a line is wrong, the error is before the first column of the next one.
            SettingsError { line: error.line() - usize::from(error.column() == 0), problem: problem.to_owned() }
        })?;
        match json.value.is_object() {
            true => Ok(json),
            false => Err(SettingsError::at(text, json.tokens[0].start, "the settings are not an object")),
        }
    }

    fn token(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |range| &self.plain[range.clone()])
    }

    /// The commas after a value with no value after them.
    fn trailing_commas(&self) -> impl Iterator<Item = Range<usize>> {
        let is_trailing = |at: &usize| {
            self.token(*at) == ","
                && matches!(self.token(at + 1), "}" | "]")
                && !matches!(self.token(at - 1), "{" | "[" | ",")
        };
        (1..self.tokens.len()).filter(is_trailing).map(|at| self.tokens[at].clone())
    }

    /// The members that lead to a setting, the outermost first, up to the first missing one.
    fn path(&self, keys: &[String]) -> Result<Vec<JsonMember<'_>>, SettingsError> {
        let (mut path, mut object) = (Vec::new(), 0);
        for key in keys {
            if self.token(object) != "{" {
                break;
            }
            let mut found = self.members(object).into_iter().filter(|member| self.is_key(member.key, key));
            let Some(member) = found.next() else { break };
            if let Some(again) = found.next() {
                return Err(SettingsError::at(
                    self.text,
                    self.tokens[again.key].start,
                    format!("`{key}` is there twice"),
                ));
            }
            object = member.first;
            path.push(member);
        }
        Ok(path)
    }

    fn is_key(&self, at: usize, key: &str) -> bool {
        serde_json::from_str::<String>(self.token(at)).is_ok_and(|written| written == key)
    }

    /// The members of the object that this brace token opens.
    fn members(&self, open: usize) -> Vec<JsonMember<'_>> {
        let (mut members, mut at) = (Vec::new(), open + 1);
        while self.token(at) != "}" {
            let (key, first) = (at, at + 2);
            let mut depth = 0_usize;
            let ends = |at: &usize| {
                match self.token(*at) {
                    "{" | "[" => depth += 1,
                    "}" | "]" => depth -= 1,
                    _ => {}
                }
                depth == 0
            };
            let last = (first..self.tokens.len()).find(ends).expect("serde_json has read the object to its end");
            members.push(JsonMember { json: self, key, first, last });
            at = last + 1 + usize::from(self.token(last + 1) == ",");
        }
        members
    }

    /// Puts a member after the opening brace of the innermost object of this path.
    fn insertion(&self, path: &[JsonMember<'_>], keys: &[String], value: &Value) -> Result<Splice, SettingsError> {
        let (text, end) = (self.text, line_end(self.text));
        let mut layout = MemberLayout { indent: Some(String::new()), step: STEP, colon: ": ", end };
        if self.tokens.is_empty() {
            let inner = MemberLayout { indent: Some(STEP.to_owned()), ..layout };
            let inside = layout.inside(&inner, &inner.member(keys, value));
            // A comment without an end of its line would go on.
            let before = if text.is_empty() || text.ends_with('\n') { "" } else { end };
            return Ok(Splice::insert(text.len(), format!("{before}{{{inside}}}{end}")));
        }
        let open = path.last().map_or(0, |member| member.first);
        if self.token(open) != "{" {
            let key = self.token(path.last().map_or(0, |member| member.key));
            return Err(SettingsError::at(text, self.tokens[open].start, format!("{key} is not an object")));
        }
        let (root, gap) = (self.gap(0), self.gap(open));
        if self.token(1) != "}" {
            let first = &self.tokens[1..4];
            layout.colon = if first[0].end + 1 == first[2].start { ":" } else { ": " };
            layout.step = Some(indentation(text, first[0].start)).filter(|step| !step.is_empty()).unwrap_or(STEP);
        }
        let (is_empty, is_blank) = (self.token(open + 1) == "}", text[gap.clone()].trim().is_empty());
        let has_lines = |gap: &Range<usize>| self.plain[gap.clone()].contains('\n');
        let is_line = !has_lines(&gap) && (!is_empty || (open > 0 && !has_lines(&root)));
        if is_line {
            layout.indent = None;
            let member = layout.member(keys, value);
            return Ok(match (is_empty, layout.colon) {
                (true, _) => Splice::insert(gap.start, member),
                (false, ":") => Splice::insert(gap.end, format!("{member},")),
                (false, _) => Splice::insert(gap.end, format!("{member}, ")),
            });
        }
        // A comment on the brace's line stays there.
        let line = gap.start + self.plain[gap.clone()].find(end).unwrap_or(0);
        let at = if text[gap.start..line].contains("/*") { gap.start } else { line };
        layout.indent = Some(indentation(text, self.tokens[open].start).to_owned());
        let indent = match is_empty {
            true => format!("{}{}", indentation(text, self.tokens[open].start), layout.step),
            false => indentation(text, gap.end).to_owned(),
        };
        let inner = MemberLayout { indent: Some(indent.clone()), ..layout };
        let member = inner.member(keys, value);
        Ok(match is_empty {
            true if is_blank => Splice::replace(text, gap, layout.inside(&inner, &member)),
            true if has_lines(&gap) => Splice::insert(at, format!("{end}{indent}{member}")),
            true => Splice::insert(at, layout.inside(&inner, &member)),
            false => Splice::insert(at, format!("{end}{indent}{member},")),
        })
    }

    /// The bytes between this token and the next one.
    fn gap(&self, at: usize) -> Range<usize> {
        self.tokens[at].end..self.tokens[at + 1].start
    }

    /// Removes a member with one of the commas beside it. A member whose value contains comments stays.
    fn removal(&self, member: &JsonMember<'_>) -> Vec<Splice> {
        let (text, start, mut end) = (self.text, self.tokens[member.key].start, member.value().end);
        if self.plain[member.value()] != text[member.value()] {
            return Vec::new();
        }
        let has_comma = self.token(member.last + 1) == ",";
        if has_comma {
            end = self.tokens[member.last + 1].end;
        }
        let gap = text[..start].trim_end().len()..start;
        let is_alone = self.token(member.key - 1) == "{" && self.token(member.last + 1 + usize::from(has_comma)) == "}";
        let inside = self.tokens[member.key - 1].end..self.tokens[member.last + 1].start;
        if is_alone && !has_comma && *text[inside.clone()].trim() == text[start..end] {
            return vec![Splice::replace(text, inside, "")];
        }
        // A comment on the line before would swallow what comes next.
        let behind = text[end..].trim_start_matches([' ', '\t', '\r']);
        let range = match behind.starts_with('\n') || !text[gap.clone()].contains('\n') {
            true => gap.start..end,
            false => start..text.len() - behind.len(),
        };
        let mut splices = vec![Splice::replace(text, range, "")];
        if !has_comma && self.token(member.key - 1) == "," {
            splices.push(Splice::replace(text, self.tokens[member.key - 1].clone(), ""));
        }
        splices
    }
}

/// The text with a blank for each byte of a comment, and of a byte order mark.
fn without_comments(text: &str) -> String {
    let mut rest = text.trim_start_matches(BYTE_ORDER_MARK);
    let mut plain = " ".repeat(text.len() - rest.len());
    while let Some(c) = rest.chars().next() {
        let comment = match rest.get(..2) {
            Some("//") => Some(rest.find('\n').unwrap_or(rest.len())),
            Some("/*") => rest[2..].find("*/").map(|end| end + 4),
            _ => None,
        };
        let length = match c {
            '"' => string_length(rest),
            _ => comment.unwrap_or(c.len_utf8()),
        };
        let (part, behind) = rest.split_at(length);
        match comment {
            Some(_) => plain.extend(part.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' })),
            None => plain.push_str(part),
        }
        rest = behind;
    }
    plain
}

/// The length of the string that begins here. One without an end goes on to the end of the text.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    let ends = |byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    };
    text.bytes().skip(1).position(ends).map_or(text.len(), |end| end + 2)
}

fn tokens(plain: &str) -> Vec<Range<usize>> {
    let is_mark = |c: char| "{}[],:\"".contains(c);
    let is_blank = |c: char| " \t\r\n".contains(c);
    let (mut tokens, mut at) = (Vec::new(), 0);
    while let Some(blanks) = plain[at..].find(|c| !is_blank(c)) {
        let rest = &plain[at + blanks..];
        let length = match rest.chars().next() {
            Some('"') => string_length(rest),
            Some(c) if is_mark(c) => 1,
            _ => rest.find(|c| is_mark(c) || is_blank(c)).unwrap_or(rest.len()),
        };
        at += blanks + length;
        tokens.push(at - length..at);
    }
    tokens
}
