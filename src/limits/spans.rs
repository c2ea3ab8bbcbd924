//! The bounds of exported spans (`rexec otlp`).

use std::time::Duration;

/// How often `rexec otlp --follow` looks for commands that have ended.
pub const SPANS_LOOK: Duration = Duration::from_millis(250);
/// Spans that wait while a collector cannot be reached. Older ones are dropped and counted.
pub const SPANS_WAITING_MAX: usize = 2_048;
/// Spans in one request to a collector.
pub const SPANS_AT_ONCE: usize = 256;
/// How long a collector may take for one request. It is what OpenTelemetry's own exporters wait.
pub const SPANS_PATIENCE: Duration = Duration::from_secs(10);
/// After a request failed, the next one comes after this time.
pub const SPANS_RETRY: Duration = Duration::from_secs(2);
/// A collector that asks for more time (`Retry-After`) gets this much at most.
pub const SPANS_RETRY_MAX: Duration = Duration::from_secs(60);
/// Columns of a collector's reason that are shown. The rest is cut.
pub const SPANS_REASON_COLUMNS: usize = 200;
/// How much of a collector's answer is read, bytes.
pub const SPANS_ANSWER_BYTES: usize = 4 << 10;
/// The longest command and directory in a span, bytes each. The rest is cut.
pub const SPAN_TEXT_BYTES: usize = 4 << 10;
