//! `rexec schema`: the fields of every record of the journal and of every JSON form, as JSON Schema.
//!
//! The table in `help/schema.txt` is the source: one line for a form, and below it a line for each field. The answers and
//! events of JSON-RPC in it are printed as a part of an OpenRPC document.

use std::collections::BTreeMap;

use rexec_sh::protocol::notice::Notice;
use serde::Serialize;

use super::verb::{Call, Group, Opt, Values, Verb, Words};
use crate::front::rpc::{openrpc, typescript};

pub(super) const VERB: Verb = Verb {
    term: "schema",
    group: Group::Past,
    summary: "print the fields of records and of --json as JSON Schema",
    text: "\
One JSON Schema in each line: for every record of the journal, as in record
end, and for what verbs about the past print with --json, as in json log. FORM
is the last word of a title. Fields may be added without a new version: skip
those that you do not know. With rpc, the methods, answers and events of
JSON-RPC (rexec help protocol) are printed as one OpenRPC document, or as types
of TypeScript.
",
    codes: &[(1, "there is no such form")],
    examples: &["rexec schema end", "rexec schema | jq -r .title", "rexec schema rpc --typescript >rexec.d.ts"],
    call: &Call::<SchemaCall> {
        options: &[Opt::flag("--typescript", |q| q.is_typescript = true, "with rpc: print types of TypeScript")],
        words: Words::one("[FORM]", Values::Nothing, |q, w| q.wanted = Some(w.text())),
        run: print,
    },
};

#[derive(Default)]
struct SchemaCall {
    wanted: Option<String>,
    is_typescript: bool,
}

fn print(SchemaCall { wanted, is_typescript }: SchemaCall) -> Result<u8, Notice> {
    if wanted.as_deref() == Some("rpc") {
        let document = openrpc::document(forms().iter().map(|form| (form.title, form)));
        return super::say(&if is_typescript { typescript::types(&document) } else { format!("{document:#}\n") });
    }
    if is_typescript {
        return Err(VERB.missing("rpc with --typescript"));
    }
    let is_wanted = |form: &Schema| wanted.as_ref().is_none_or(|name| form.title.split(' ').next_back() == Some(name));
    let is_apart = |form: &Schema| !openrpc::has_form(form.title);
    let forms: Vec<Schema> = forms().into_iter().filter(|form| is_wanted(form) && is_apart(form)).collect();
    if forms.is_empty() {
        let problem = format!("there is no form {}", super::quoted(wanted.unwrap_or_default()));
        return Err(Notice::failed(problem, "rexec schema | jq -r .title shows all forms"));
    }
    let lines: String = forms.iter().map(super::bare_json_line).collect();
    super::say(&lines)
}

const TABLE: &str = include_str!("help/schema.txt");

/// A form as JSON Schema.
#[derive(Debug, Serialize)]
struct Schema {
    #[serde(rename = "$schema")]
    dialect: &'static str,
    title: &'static str,
    description: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
    properties: BTreeMap<&'static str, FieldSchema>,
    required: Vec<&'static str>,
}

#[derive(Debug, Default, Serialize)]
struct FieldSchema {
    #[serde(skip_serializing_if = "Option::is_none")]
    r#const: Option<&'static str>,
    /// The place of another form.
    #[serde(rename = "$ref", skip_serializing_if = "Option::is_none")]
    form: Option<String>,
    #[serde(rename = "type", skip_serializing_if = "Vec::is_empty")]
    kinds: Vec<&'static str>,
    /// The kind of an array's items.
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<Box<FieldSchema>>,
    /// The kind of an object's values under names that are not fixed.
    #[serde(rename = "additionalProperties", skip_serializing_if = "Option::is_none")]
    values: Option<Box<FieldSchema>>,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'static str,
}

fn forms() -> Vec<Schema> {
    let mut forms: Vec<Schema> = Vec::new();
    for line in TABLE.lines().filter(|line| !line.is_empty()) {
        let (front, description) = line.split_once(": ").unwrap_or((line, ""));
        match (front.strip_prefix("  "), forms.last_mut()) {
            (Some(field), Some(form)) => form.add(field, description),
            _ => forms.push(Schema {
                dialect: "https://json-schema.org/draft/2020-12/schema",
                title: front,
                description,
                kind: "object",
                properties: BTreeMap::new(),
                required: Vec::new(),
            }),
        }
    }
    forms
}

impl Schema {
    fn add(&mut self, field: &'static str, description: &'static str) {
        let (name, kind) = field.split_once(' ').unwrap_or((field, "object"));
        let bare = name.trim_end_matches('?');
        if bare == name {
            self.required.push(name);
        }
        self.properties.insert(bare, FieldSchema { description, ..FieldSchema::of(kind) });
    }
}

impl FieldSchema {
    /// `string`, `string|null`, `[string]`, `{string}`, `"end"`, `any`, or the name of an answer.
    fn of(kind: &'static str) -> Self {
        let within = |ends: [char; 2]| kind.strip_prefix(ends[0])?.strip_suffix(ends[1]);
        let of = |kind| Some(Box::new(Self::of(kind)));
        if let Some(value) = within(['"', '"']) {
            Self { r#const: Some(value), ..Self::default() }
        } else if let Some(item) = within(['[', ']']) {
            Self { kinds: vec!["array"], items: of(item), ..Self::default() }
        } else if let Some(value) = within(['{', '}']) {
            Self { kinds: vec!["object"], values: of(value), ..Self::default() }
        } else if kind == "any" {
            Self::default()
        } else if kind.starts_with(|first: char| first.is_ascii_uppercase()) {
            Self { form: Some(format!("#/components/schemas/{kind}")), ..Self::default() }
        } else {
            Self { kinds: kind.split('|').collect(), ..Self::default() }
        }
    }
}
