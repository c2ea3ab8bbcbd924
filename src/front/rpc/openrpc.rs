//! JSON-RPC as an OpenRPC document (<https://spec.open-rpc.org>), for `rexec schema rpc`.
//!
//! Methods, events and errors are those of the tables, and parameters those of the types that the host reads. The forms of
//! answers and events are given: the command line has them beside those of `--json`.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::error::ERRORS;
use super::events::{EVENT_ROWS, EventRow};
use super::methods::{ALIASES, METHOD_ROWS, MethodRow};
use super::shape::Shape;

/// The version of OpenRPC.
const OPENRPC: &str = "1.3.2";

/// The first words of the titles of the forms that this document has.
const ANSWER: &str = "answer ";
const EVENT: &str = "event ";

/// Where the forms of answers are in the document.
const SCHEMAS: &str = "#/components/schemas/";

/// Returns true if a form of this title belongs to this document.
#[must_use]
pub fn has_form(title: &str) -> bool {
    title.starts_with(ANSWER) || title.starts_with(EVENT)
}

/// The document. Each form comes with its title and as JSON Schema.
pub fn document<F: Serialize>(forms: impl Iterator<Item = (&'static str, F)>) -> Value {
    let (mut answers, mut notes) = (Map::new(), Map::new());
    for (title, form) in forms.filter(|(title, _)| has_form(title)) {
        let mut form = json!(form);
        form.as_object_mut().map(|fields| fields.remove("$schema"));
        if let Some(name) = title.strip_prefix(ANSWER) {
            form["title"] = json!(name);
            answers.insert(name.to_owned(), form);
        } else if let Some(name) = title.strip_prefix(EVENT) {
            notes.insert(name.to_owned(), form);
        }
    }
    let event = |row: &EventRow| {
        let mut form =
            notes.get(row.name).cloned().unwrap_or_else(|| json!({"$ref": format!("{SCHEMAS}{}", row.note)}));
        form["title"] = json!(row.name);
        form["description"] = json!(row.text.trim());
        form
    };
    let own = METHOD_ROWS.iter().map(|row| method(row, row.name, row.text.trim()));
    let others = ALIASES.iter().filter_map(|(name, of)| {
        let row = METHOD_ROWS.iter().find(|row| row.name == *of)?;
        Some(method(row, name, &format!("Another name of {of}.")))
    });
    let errors = ERRORS.iter().map(|(code, text)| (code.to_string(), json!({"code": code, "message": text})));
    json!({
        "openrpc": OPENRPC,
        "info": {
            "title": "rexec",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "JSON-RPC 2.0 on the host's socket, a line of JSON each; see rexec help protocol",
        },
        "methods": own.chain(others).collect::<Vec<Value>>(),
        "components": {"schemas": answers, "errors": errors.collect::<Map<_, _>>()},
        "x-notifications": EVENT_ROWS.iter().map(event).collect::<Vec<Value>>(),
    })
}

fn method(row: &MethodRow, name: &str, text: &str) -> Value {
    let params = match (row.params)() {
        Shape::Object(fields) => fields,
        _ => Vec::new(),
    };
    let params = params
        .iter()
        .map(|field| json!({"name": field.name, "required": field.is_required, "schema": schema(&field.shape)}));
    let errors = ERRORS.iter().map(|(code, _)| json!({"$ref": format!("#/components/errors/{code}")}));
    json!({
        "name": name,
        "summary": text,
        "paramStructure": "by-name",
        "params": params.collect::<Vec<Value>>(),
        "result": {"name": "result", "schema": {"$ref": format!("{SCHEMAS}{}", row.answer)}},
        "errors": errors.collect::<Vec<Value>>(),
    })
}

fn schema(shape: &Shape) -> Value {
    let all = |shapes: &[Shape]| shapes.iter().map(schema).collect::<Vec<Value>>();
    match shape {
        Shape::Anything => json!({}),
        Shape::Boolean => json!({"type": "boolean"}),
        Shape::Integer(first, last) => match u64::try_from(*last) {
            Ok(u64::MAX) => json!({"type": "integer", "minimum": i64::try_from(*first).unwrap_or(0)}),
            _ => {
                json!({"type": "integer", "minimum": i64::try_from(*first).ok(), "maximum": i64::try_from(*last).ok()})
            }
        },
        Shape::Number => json!({"type": "number"}),
        Shape::Text => json!({"type": "string"}),
        Shape::Word(words) => json!({"type": "string", "enum": words}),
        Shape::List(item) => json!({"type": "array", "items": schema(item)}),
        Shape::Tuple(parts) => {
            json!({"type": "array", "items": all(parts), "minItems": parts.len(), "maxItems": parts.len()})
        }
        Shape::Map(value) => json!({"type": "object", "additionalProperties": schema(value)}),
        Shape::Object(fields) => {
            let properties: Map<String, Value> =
                fields.iter().map(|field| (field.name.to_owned(), schema(&field.shape))).collect();
            let required: Vec<&str> = fields.iter().filter(|field| field.is_required).map(|field| field.name).collect();
            json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
        }
        Shape::OneOf(shapes) => json!({"oneOf": all(shapes)}),
    }
}
