//! JSON-RPC as types of TypeScript, for `rexec schema rpc --typescript`. They are made of the OpenRPC document, so both say
//! the same.

use std::fmt::Write;

use serde_json::{Map, Value};

/// The first lines.
const HEAD: &str = "\
// JSON-RPC on rexec-host's socket, a line of JSON each: see rexec help protocol.
// A client sends {id, method, params}. The host answers {id, result} or {id, error},
// and sends {method, params} for each event.
";

/// The last lines.
const TAIL: &str = "
export interface RpcError {
  code: ErrorCode;
  message: string;
  data?: { hint?: string; run?: number; input?: string };
}

export type Call = { [M in keyof Methods]: { id?: number | string; method: M; params: Methods[M][\"params\"] } }[keyof Methods];
export type Event = { [E in keyof Events]: { method: E; params: Events[E] } }[keyof Events];
";

/// The types of this document.
#[must_use]
pub fn types(document: &Value) -> String {
    let mut text = HEAD.to_owned();
    for (name, schema) in fields_of(&document["components"]["schemas"]) {
        text += &format!("\n{}export interface {name} {}\n", comment(schema, ""), object(schema, ""));
    }
    text += "\n/** All methods, by their names. */\nexport interface Methods {\n";
    for method in items_of(&document["methods"]) {
        let name = &method["name"];
        let _ = writeln!(text, "  /** {} */\n  {name}: {{", method["summary"].as_str().unwrap_or_default());
        text += "    params: {\n";
        for param in items_of(&method["params"]) {
            let mark = if param["required"] == true { "" } else { "?" };
            let _ = writeln!(
                text,
                "      {}{mark}: {};",
                param["name"].as_str().unwrap_or_default(),
                kind(&param["schema"], "      ")
            );
        }
        let _ = writeln!(text, "    }};\n    result: {};\n  }};", kind(&method["result"]["schema"], "    "));
    }
    text += "}\n\n/** All events, by their names. */\nexport interface Events {\n";
    for event in items_of(&document["x-notifications"]) {
        let _ = writeln!(text, "{}  {}: {};", comment(event, "  "), event["title"], kind(event, "  "));
    }
    text += "}\n\n/** The codes of errors. */\nexport type ErrorCode =";
    for (_, error) in fields_of(&document["components"]["errors"]) {
        let _ = write!(text, "\n  /** {} */\n  | {}", error["message"].as_str().unwrap_or_default(), error["code"]);
    }
    text + ";\n" + TAIL
}

fn fields_of(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn items_of(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn comment(schema: &Value, indent: &str) -> String {
    let text = schema["description"].as_str().unwrap_or_default();
    if text.is_empty() { String::new() } else { format!("{indent}/** {text} */\n") }
}

/// An object with named fields.
fn object(schema: &Value, indent: &str) -> String {
    let required: Vec<&Value> = items_of(&schema["required"]).collect();
    let inner = format!("{indent}  ");
    let mut text = "{\n".to_owned();
    for (name, field) in fields_of(&schema["properties"]) {
        let mark = if required.iter().any(|known| *known == name) { "" } else { "?" };
        let _ = writeln!(text, "{}{inner}{name}{mark}: {};", comment(field, &inner), kind(field, &inner));
    }
    text + indent + "}"
}

/// The type of a JSON Schema, of the words that the document uses.
fn kind(schema: &Value, indent: &str) -> String {
    let union = |all: &Value, each: &dyn Fn(&Value) -> String| items_of(all).map(each).collect::<Vec<_>>().join(" | ");
    if let Some(path) = schema["$ref"].as_str() {
        return path.rsplit('/').next().unwrap_or_default().to_owned();
    }
    match schema {
        _ if schema["const"].is_string() => schema["const"].to_string(),
        _ if schema["enum"].is_array() => union(&schema["enum"], &Value::to_string),
        _ if schema["oneOf"].is_array() => union(&schema["oneOf"], &|one| kind(one, indent)),
        _ if schema["type"].is_array() => union(&schema["type"], &|name| named(name, schema, indent)),
        _ => named(&schema["type"], schema, indent),
    }
}

/// The type that JSON Schema calls so.
fn named(name: &Value, schema: &Value, indent: &str) -> String {
    match name.as_str() {
        Some("integer" | "number") => "number".to_owned(),
        Some("array") => match &schema["items"] {
            Value::Array(parts) => {
                format!("[{}]", parts.iter().map(|part| kind(part, indent)).collect::<Vec<_>>().join(", "))
            }
            item => format!("Array<{}>", kind(item, indent)),
        },
        Some("object") if schema["properties"].as_object().is_some_and(|fields| !Map::is_empty(fields)) => {
            object(schema, indent)
        }
        Some("object") => match &schema["additionalProperties"] {
            Value::Object(_) => format!("Record<string, {}>", kind(&schema["additionalProperties"], indent)),
            _ => "Record<string, unknown>".to_owned(),
        },
        Some(name) => name.to_owned(),
        None => "unknown".to_owned(),
    }
}
