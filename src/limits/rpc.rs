//! The bounds of JSON-RPC: what one client may ask for, and what is kept of the output of its commands. The output in
//! JSONL responses has its bounds here, too.

use std::time::Duration;

/// Foreground commands of one connection. One more is refused.
pub const RPC_RUNS_MAX: usize = 256;
/// Requests of one connection that wait for something. One more is refused.
pub const RPC_WAITING_MAX: usize = 1_024;
/// Requests that wait for something about one run, over all connections. One more is refused.
pub const RPC_RUN_WAITING_MAX: usize = 4_096;
/// Those among them that wait for a text. One more is refused.
pub const RPC_TEXT_WAITS_MAX: usize = 64;
/// A text that is waited for, bytes. A longer one is refused.
pub const RPC_TEXT_BYTES: usize = 256;
/// Connections that speak JSON-RPC of one agent, or of one other program that starts the processes which connect. One more
/// is refused.
pub const RPC_CONNECTIONS_MAX: usize = 128;
/// Time for requests in one turn. When it is over, the connections that are left have theirs in the next turns, one after
/// the other, and everybody else has had one meanwhile. A request that takes longer is followed by a pause of as long.
pub const RPC_TURN: Duration = Duration::from_micros(500);
/// Subscriptions of one connection. One more is refused.
pub const RPC_SUBSCRIPTIONS_MAX: usize = 16;
/// Subscriptions to what one command writes as it is written. One more is refused.
pub const RPC_TERMINALS_MAX: usize = 16;
/// Runs that one subscription names. With more, it is refused.
pub const RPC_SUBSCRIBED_MAX: usize = 1_024;
/// Events that are kept for clients which come back, of all commands together. Beyond it the oldest go …
pub const RPC_EVENTS_MAX: usize = 4_096;
/// … and beyond so many bytes, but for the last one.
pub const RPC_EVENTS_BYTES: usize = 1 << 20;
/// How long events are noted for clients that may come back, after the last subscription that can be resumed.
pub const RPC_EVENTS_AGE: Duration = Duration::from_secs(600);
/// Processes that read the journal for clients at once. Further questions wait …
pub const HISTORY_LOOKUPS_MAX: usize = 4;
/// … up to this many. One more is refused.
pub const HISTORY_WAITING_MAX: usize = 64;
/// How long a question about the past may take. Then it is answered with an error.
pub const HISTORY_WAIT: Duration = Duration::from_secs(30);
/// What is kept of an answer about the past, bytes. Further lines are left out.
pub const HISTORY_BYTES: usize = 1 << 20;
/// A word in a question about the past, bytes. With a longer one, it is refused.
pub const HISTORY_WORD_BYTES: usize = 8 << 10;
/// Runs in one answer about the past, if the client does not say.
pub const HISTORY_RUNS: u16 = 100;
/// The largest number of these that a client may ask for. More counts as this.
pub const HISTORY_RUNS_MAX: u16 = 1_000;
/// The name of a command, bytes. A longer one is refused.
pub const RPC_NAME_BYTES: usize = 64;
/// The longest chunk of output, bytes. A filter can make a chunk a little longer.
pub const RPC_CHUNK_BYTES: usize = 64 << 10;
/// Output that is kept of one command for later reading, bytes. Beyond it the oldest chunks go.
pub const RPC_KEPT_RUN_BYTES: usize = 1 << 20;
/// Output that is kept of all commands, bytes. Beyond it the chunks of the oldest commands go.
pub const RPC_KEPT_BYTES: usize = 16 << 20;
/// Ended commands whose output is kept. Beyond it the oldest are forgotten; the journal has them.
pub const RPC_KEPT_RUNS_MAX: usize = 1_024;
/// How long the output of an ended command is kept.
pub const RPC_KEPT_AGE: Duration = Duration::from_secs(3_600);
/// Chunks that have gone of which it is known how many bytes came before each.
pub const RPC_GONE_KNOWN: usize = 4_096;
/// Bytes of output in one answer of `exec.output`, if the client does not say.
pub const RPC_READ_BYTES: usize = 64 << 10;
/// The largest number of these bytes that a client may ask for. More counts as this.
pub const RPC_READ_BYTES_MAX: usize = 4 << 20;
/// An answer of `exec.output` ends before it becomes longer than this in JSON, bytes, although it has less output than was
/// asked for. It has one chunk at least.
pub const RPC_READ_JSON_BYTES: usize = 2 << 20;
/// Answers that all clients have not taken yet, bytes. Beyond it, an answer of `exec.output` has one chunk.
pub const RPC_UNREAD_BYTES: usize = 8 << 20;
/// Long answers that are written in one turn, bytes. Others follow in the next turns.
pub const RPC_ANSWERS_PER_TURN: usize = 1 << 20;
/// Bytes of output in the answer of `exec.run`, if the client does not say.
pub const RPC_ANSWER_BYTES: usize = 1 << 20;
/// The largest number of these bytes that a client may ask for. More counts as this.
pub const RPC_ANSWER_BYTES_MAX: usize = 8 << 20;
/// Input that waits for room in one command's pipe or terminal, bytes. More is refused until some is taken.
pub const RPC_INPUT_BYTES: usize = 4 << 20;
/// Prompts of one command that its watchers are told. Further ones are not.
pub const RPC_PROMPTS_MAX: usize = 64;
/// Remarks of the host about one command that its watchers are told. Further ones are not.
pub const RPC_REMARKS_MAX: usize = 64;
/// How often it is looked for the ports on which a command listens, while a client waits for one.
pub const RPC_PORT_LOOK: Duration = Duration::from_millis(100);
/// The longest time between two looks for the ports of a command that a client watches for them. After output it is
/// [`RPC_PORT_LOOK`] again, and then doubles.
pub const RPC_PORT_LOOK_MAX: Duration = Duration::from_secs(5);
/// The time between two such looks at any commands. Where many are watched, each waits its turn.
pub const RPC_PORT_LOOK_PAUSE: Duration = Duration::from_millis(25);
/// Ports of one command that its watchers are told. Further ones are not.
pub const RPC_PORTS_MAX: usize = 64;

/// Output in one JSONL response, bytes. The rest is only counted.
pub const JSON_OUTPUT_BYTES_MAX: usize = 8 << 20;
/// Output in all JSONL responses and answers to `exec.run` that are not sent yet, bytes. Beyond it the rest is only
/// counted …
pub const JSON_OUTPUTS_BYTES: usize = 64 << 20;
/// … except this much of each response, bytes.
pub const JSON_OUTPUT_OWN_BYTES: usize = 16 << 10;
