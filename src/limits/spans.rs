//! The bounds of exported spans (`--otlp`).

use std::time::Duration;

/// Spans on their way to the exporter, bytes. Beyond it, spans are dropped and counted.
pub const SPANS_QUEUED_BYTES: usize = 512 << 10;
/// Spans that the exporter keeps while its collector cannot be reached. Older ones are dropped and counted.
pub const SPANS_WAITING_MAX: usize = 2_048;
/// Spans in one request to a collector.
pub const SPANS_AT_ONCE: usize = 256;
/// How long a collector may take for one request. It is what OpenTelemetry's own exporters wait.
pub const SPANS_PATIENCE: Duration = Duration::from_secs(10);
/// How often it is looked meanwhile for what the host sends, and whether it has ended.
pub const SPANS_LOOK: Duration = Duration::from_millis(100);
/// After a request failed, the next one comes after this time.
pub const SPANS_RETRY: Duration = Duration::from_secs(2);
/// A collector that asks for more time (`Retry-After`) gets this much at most.
pub const SPANS_RETRY_MAX: Duration = Duration::from_secs(60);
/// Columns of a collector's reason on the console. The rest is cut.
pub const SPANS_REASON_COLUMNS: usize = 200;
/// At the host's end, how long the exporter may take for each request.
pub const SPANS_FAREWELL: Duration = Duration::from_millis(500);
/// How much of a collector's answer is read, bytes.
pub const SPANS_ANSWER_BYTES: usize = 4 << 10;
/// The longest command and directory in a span, bytes each. The rest is cut.
pub const SPAN_TEXT_BYTES: usize = 4 << 10;
