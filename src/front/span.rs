//! A command as a span of OpenTelemetry: its place in a trace, and its form in OTLP's JSON (opentelemetry.io, "OTLP
//! Specification" and "JSON Protobuf Encoding"; W3C, "Trace Context").
//!
//! Invariant: a span has the identifiers that its command got in `TRACEPARENT`, if it got any.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use serde::Deserialize;
use serde_json::{Value, json};

/// The columns of a command in a span's name.
const NAME_CHARS: usize = 60;

/// A span's place in its trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    trace: u128,
    span: u64,
    /// The caller's span.
    parent: Option<u64>,
    flags: u8,
}

/// Makes identifiers that no other host makes.
#[derive(Debug, Default)]
pub struct SpanIds(RandomState);

impl SpanIds {
    /// The context of a command. `caller` is the value of its `TRACEPARENT`, if it has one; an invalid one counts as
    /// missing, and the command begins a trace.
    #[must_use]
    pub fn context(&self, run: u64, caller: Option<&[u8]>) -> TraceContext {
        // Zero means no identifier.
        let id = |part: u8| self.0.hash_one((run, part)).max(1);
        match caller.and_then(read_parent) {
            Some((trace, parent, flags)) => TraceContext { trace, span: id(0), parent: Some(parent), flags },
            None => {
                let trace = u128::from(id(1)) << 64 | u128::from(id(2));
                TraceContext { trace, span: id(0), parent: None, flags: 1 }
            }
        }
    }
}

impl TraceContext {
    /// The context from a record: the command's `TRACEPARENT`, and its caller's span.
    #[must_use]
    pub fn recorded(header: &str, parent: &str) -> Option<Self> {
        let (trace, span, flags) = read_parent(header.as_bytes())?;
        Some(Self { trace, span, parent: u64::from_str_radix(parent, 16).ok(), flags })
    }

    /// The context of a command whose record has none: the same at each reading of its journal.
    #[must_use]
    pub fn of_run(session: &str, run: u64) -> Self {
        let id = |part: u8| fnv(session.bytes().chain(run.to_le_bytes()).chain([part])).max(1);
        Self { trace: u128::from(id(1)) << 64 | u128::from(id(2)), span: id(0), parent: None, flags: 1 }
    }

    /// The caller's span, in the form of a record.
    #[must_use]
    pub fn parent(&self) -> Option<String> {
        self.parent.map(|parent| format!("{parent:016x}"))
    }

    /// The value of `TRACEPARENT` for the command.
    #[must_use]
    pub fn header(&self) -> String {
        format!("00-{:032x}-{:016x}-{:02x}", self.trace, self.span, self.flags)
    }
}

/// FNV-1a, 64 bits.
fn fnv(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// Trace, span and flags of a header of version 00, or of the common part of a later version.
fn read_parent(value: &[u8]) -> Option<(u128, u64, u8)> {
    let text = std::str::from_utf8(value).ok()?;
    let mut fields = text.split('-');
    let mut field = |length: usize| {
        let is_hex = |field: &&str| field.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        fields.next().filter(|field| field.len() == length).filter(is_hex)
    };
    let version = field(2).filter(|version| *version != "ff")?;
    let trace = u128::from_str_radix(field(32)?, 16).ok().filter(|&trace| trace != 0)?;
    let span = u64::from_str_radix(field(16)?, 16).ok().filter(|&span| span != 0)?;
    let flags = u8::from_str_radix(field(2)?, 16).ok()?;
    (version != "00" || fields.next().is_none()).then_some((trace, span, flags))
}

/// An ended command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    pub context: TraceContext,
    pub seq: u64,
    /// The host's session, as the journal names it.
    pub host_session: String,
    /// Its start, nanoseconds since 1970.
    pub began_ns: u128,
    /// Its end, nanoseconds since 1970.
    pub ended_ns: u128,
    /// The command, masked.
    pub command: String,
    pub dir: String,
    pub whoami: String,
    /// The directory of the project session that it ran in, masked.
    pub project: Option<String>,
    pub exit: u8,
    /// The signal that ended it.
    pub signal: Option<u8>,
    /// The reason for an end by somebody else.
    pub error: Option<String>,
    /// The bytes of its output.
    pub bytes: u64,
    /// The parts of it that the journal could not keep, and the reasons.
    pub unkept: Vec<String>,
}

impl Span {
    /// The element of `resourceSpans`, on one line.
    #[must_use]
    pub fn element(&self) -> String {
        let text = |key: &str, value: &str| Some(json!({"key": key, "value": {"stringValue": value}}));
        // Integers of 64 bits are strings in protobuf's JSON.
        let number = |key: &str, value: u64| Some(json!({"key": key, "value": {"intValue": value.to_string()}}));
        let attributes: Vec<Value> = [
            text("exec.command", &self.command),
            number("exec.exit_code", self.exit.into()),
            text("exec.session_id", &self.host_session),
            self.project.as_ref().and_then(|project| text("exec.project_id", project)),
            number("exec.run", self.seq),
            text("exec.agent", &self.whoami),
            text("exec.directory", &self.dir),
            self.signal.and_then(|signal| number("exec.signal", signal.into())),
            self.error.as_ref().and_then(|error| text("exec.error", error)),
        ]
        .into_iter()
        .flatten()
        .collect();
        let event = |name: &str, attribute: Option<Value>| json!({"timeUnixNano": self.ended_ns.to_string(), "name": name, "attributes": [attribute]});
        let errors = self.error.iter().chain(&self.unkept);
        let events: Vec<Value> = std::iter::once(event("exec.output_end", number("exec.output_bytes", self.bytes)))
            .chain(errors.map(|error| event("exec.error", text("exec.error", error))))
            .collect();
        let first = self.command.lines().next().unwrap_or_default();
        let name: String = first.chars().take(NAME_CHARS).collect();
        let mut span = json!({
            "traceId": format!("{:032x}", self.context.trace),
            "spanId": format!("{:016x}", self.context.span),
            "flags": self.context.flags,
            "name": format!("exec: {name}"),
            "kind": 1,
            "startTimeUnixNano": self.began_ns.to_string(),
            "endTimeUnixNano": self.ended_ns.to_string(),
            "attributes": attributes,
            "events": events,
            "status": {"code": if self.exit == 0 { 1 } else { 2 }},
        });
        if let Some(parent) = self.context.parent {
            span["parentSpanId"] = format!("{parent:016x}").into();
        }
        let version = env!("CARGO_PKG_VERSION");
        let resource = [text("service.name", "rexec"), text("service.version", version)];
        json!({
            "resource": {"attributes": resource},
            "scopeSpans": [{"scope": {"name": "rexec", "version": version}, "spans": [span]}],
        })
        .to_string()
    }
}

/// The body of a collector's answer.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CollectorAnswer {
    partial_success: Option<PartialSuccess>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PartialSuccess {
    /// A number of 64 bits is a string in this JSON, and a number in that of some collectors.
    rejected_spans: Value,
    error_message: String,
}

/// The number of spans that a collector rejects in its answer, and the reason.
#[must_use]
pub fn rejected_spans(body: &[u8]) -> (u64, String) {
    let partial = serde_json::from_slice::<CollectorAnswer>(body).ok().and_then(|body| body.partial_success);
    let PartialSuccess { rejected_spans, error_message } = partial.unwrap_or_default();
    let rejected = match &rejected_spans {
        Value::String(number) => number.parse().unwrap_or_default(),
        number => number.as_u64().unwrap_or_default(),
    };
    (rejected, error_message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_command_continues_its_callers_trace_or_begins_one() {
        let ids = SpanIds::default();
        let child = ids.context(7, Some(PARENT.as_bytes())).header();
        assert_eq!((child.len(), &child[..36]), (PARENT.len(), &PARENT[..36]));
        assert_ne!(child[36..52], PARENT[36..52]);
        assert!(child.ends_with("-01"));
        let (own, other) = (ids.context(7, None), ids.context(8, None));
        assert!(own.trace != other.trace && own.span != other.span && own.parent.is_none());
        assert_eq!(ids.context(7, None), own, "the same command has the same");
        let known = TraceContext::recorded(&child, "b7ad6b7169203331");
        assert_eq!(known, Some(ids.context(7, Some(PARENT.as_bytes()))));
        let unknown = TraceContext::of_run("2026-05-21-09:42:18", 7);
        assert_eq!(unknown, TraceContext::of_run("2026-05-21-09:42:18", 7));
        assert_ne!(unknown.span, TraceContext::of_run("2026-05-21-09:42:18", 8).span);
        for bad in [
            "",
            "00",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
            "00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ] {
            assert_eq!(read_parent(bad.as_bytes()), None, "{bad}");
        }
        assert!(read_parent(b"01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00-new").is_some());
    }

    #[test]
    fn a_span_is_one_line_in_the_form_of_the_protocol() {
        let span = Span {
            context: SpanIds::default().context(3, Some(PARENT.as_bytes())),
            seq: 3,
            host_session: "2026-05-21-09:42:18".to_owned(),
            began_ns: 1_779_356_538_000_000_001,
            ended_ns: 1_779_356_539_000_000_002,
            command: "npm test\nnpm run lint".to_owned(),
            dir: "/srv/shop".to_owned(),
            whoami: "Codex".to_owned(),
            project: Some("/srv/shop".to_owned()),
            exit: 1,
            signal: None,
            error: Some("aborted".to_owned()),
            bytes: 7,
            unkept: vec!["No space left on device".to_owned()],
        };
        let line = span.element();
        assert!(!line.contains('\n'));
        let seen: Value = serde_json::from_str(&line).unwrap();
        let seen = &seen["scopeSpans"][0]["spans"][0];
        assert_eq!(seen["parentSpanId"], "b7ad6b7169203331");
        assert_eq!((&seen["name"], &seen["status"]["code"]), (&json!("exec: npm test"), &json!(2)));
        assert_eq!(seen["startTimeUnixNano"], "1779356538000000001");
        let events: Vec<_> =
            seen["events"].as_array().unwrap().iter().map(|event| &event["attributes"][0]["value"]).collect();
        let errors = [json!({"stringValue": "aborted"}), json!({"stringValue": "No space left on device"})];
        assert_eq!(events, [&json!({"intValue": "7"}), &errors[0], &errors[1]]);
        assert_eq!(seen["attributes"][1], json!({"key": "exec.exit_code", "value": {"intValue": "1"}}));
    }
}
