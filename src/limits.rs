//! Every bound and timeout of the host, each with what happens when it is reached.
//!
//! The wire's own bounds are in `rexec_sh::protocol::wire`, because the shim keeps them too.

use std::time::Duration;

/// Commands running at once. Beyond it they queue in order of arrival; the caller only sees a later start.
pub const RUNNING_MAX: usize = 1_000;
/// Commands known at once, queued ones included. Beyond it a caller is told to try again, with code 125.
pub const JOBS_MAX: usize = 4_096;
/// Connections at once. Beyond it callers wait in the kernel's queue until somebody leaves.
pub const PEERS_MAX: usize = 4_096;
/// Descriptors that the host keeps for itself, spare guards included.
pub const OWN_DESCRIPTORS: u64 = 32;
/// Descriptors that a command takes: connection, directory, standard input, guard, terminal, a pipe.
pub const DESCRIPTORS_PER_COMMAND: u64 = 6;

/// Connections at once with this limit on descriptors.
#[must_use]
pub fn peers_max(descriptors: u64) -> usize {
    let commands = descriptors.saturating_sub(OWN_DESCRIPTORS) / DESCRIPTORS_PER_COMMAND;
    usize::try_from(commands).unwrap_or(PEERS_MAX).clamp(1, PEERS_MAX)
}
/// Connections accepted in one turn of the loop. The rest waits for the next turn.
pub const ACCEPTS_PER_TURN: usize = 64;

/// Output kept for one command's slowest reader, bytes. When the caller is that far behind, the command's terminal is
/// not read further and the command blocks, as on a full pipe. A reader that may be skipped is told what it lost.
pub const LOG_BYTES: usize = 128 << 10;
/// Output kept over all commands, bytes. Beyond it what only the console and the journal have not read is dropped,
/// oldest command first, and they are told how much.
pub const LOGS_BYTES: usize = 16 << 20;
/// What an entry of a log weighs beside its bytes, so that a million short writes are bounded too.
pub const ENTRY_OVERHEAD_BYTES: usize = 64;
/// One source is read this far, bytes, before the next one gets its turn.
pub const READ_BUDGET_BYTES: usize = 128 << 10;
/// Frames queued for one connection, bytes, above which nothing more is put there until it has moved.
pub const OUTLET_HIGH_BYTES: usize = 128 << 10;

/// A connection that has not said hello by then is ended.
pub const HELLO_TIMEOUT: Duration = Duration::from_secs(5);
/// A connection whose request is not whole by then is ended.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Requests that have not come whole yet, over all connections, bytes. Beyond it who sends more of one is told to try
/// again.
pub const REQUESTS_BYTES: usize = 64 << 20;
/// Requests that have come whole and are not with a guard yet, over all commands, bytes. Beyond it a caller is told to try
/// again, with code 125.
pub const QUEUED_REQUESTS_BYTES: usize = 256 << 20;
/// Callers of whom the console says once that their control group is closed to the host. Beyond it nothing is said.
pub const NAMES_TOLD_MAX: usize = 64;
/// The longest timeout that a JSONL request may give; more is refused.
pub const TIMEOUT_MAX: Duration = Duration::from_secs(365 * 24 * 3_600);
/// The longest JSONL request, bytes; a longer line ends the connection with an error.
pub const JSON_LINE_BYTES_MAX: usize = 1 << 20;
/// Bytes of a command, its directory and its caller's name that `rexec ps` is told; longer ones are cut.
pub const ROSTER_TEXT_BYTES: usize = 256;
/// Output that one JSONL response holds, bytes; the rest is counted.
pub const JSON_OUTPUT_BYTES_MAX: usize = 8 << 20;
/// Output in all JSONL responses that are not taken yet, bytes; beyond it the rest is counted too …
pub const JSON_OUTPUTS_BYTES: usize = 64 << 20;
/// … but for this much of each, bytes, which is always there.
pub const JSON_OUTPUT_OWN_BYTES: usize = 16 << 10;
/// From this size on, bytes, a block of memory goes back to the system once it is free.
pub const LARGE_BLOCK_BYTES: i32 = 512 << 10;
/// Output for one reader is treated this far at a time, bytes taken or made; then its outlet and the clock are looked at.
pub const FILTERED_BYTES: usize = 16 << 10;
/// Of that, what is treated between two looks at how much became of it, bytes.
pub const FILTERED_PIECE_BYTES: usize = 4 << 10;
/// After this long with one reader the next one gets its turn, whatever a program has found to make its output costly.
pub const PUMP_TIME: Duration = Duration::from_millis(10);
/// A line that is redrawn is given to the caller once it has stood still this long.
pub const REDRAW_HOLD: Duration = Duration::from_millis(250);
/// A caller that takes nothing for this long of what is left for it after its command's end is let go.
pub const FAREWELL_TIMEOUT: Duration = Duration::from_secs(600);

/// After the shell's end, a stream that somebody still holds open counts as finished after this much silence. With 100 ms
/// the output of `echo late > >(sleep .05; cat)` was lost at times on two busy cores.
pub const DRAIN_IDLE: Duration = Duration::from_millis(200);
/// After the shell's end, a stream that somebody still holds open counts as finished after this time in any case.
pub const DRAIN_MAX: Duration = Duration::from_secs(1);
/// After that time, a stream that brought this much since the shell's end counts as finished although its reader cannot
/// keep up, bytes: no pipe that a shell has left holds more, so all of it is from somebody else.
pub const DRAIN_BYTES: usize = 1 << 20;
/// From TERM to KILL when the caller or the host went away: agents kill with SIGKILL only, nobody waits for a clean
/// end.
pub const GRACE_CALLER_GONE: Duration = Duration::from_millis(200);
/// For callers that kill their shell's group: from the end of the output to the kill. Codex itself lets 27 to 36 ms go by
/// after the shell's exit, 76 to 88 ms when somebody holds the streams; what is to leave the group does so meanwhile.
pub const GROUP_LEAVE: Duration = Duration::from_millis(30);
/// From TERM to KILL when a person asked (`--grace`).
pub const GRACE: Duration = Duration::from_secs(2);
/// The longest grace that `--grace` takes.
pub const GRACE_MAX: Duration = Duration::from_secs(3_600);
/// After KILL the guard hunts the tree; what lives longer than this is reported as unkillable.
pub const KILL_TIMEOUT: Duration = Duration::from_secs(6);
/// A guard walks its tree this often at most before it reports what it could not kill.
pub const KILL_ROUNDS_MAX: u32 = 100;
/// How long a guard hunts before it reports what it could not kill.
pub const KILL_HUNT: Duration = Duration::from_secs(3);
/// A guard that has not begun with its command after this time, although it was continued again and again, is killed, and
/// another one gets the command. A guard that can run needs a millisecond; the rest is for a machine that is very busy. The
/// time doubles with each guard.
pub const START_PATIENCE: Duration = Duration::from_secs(10);
/// A guard that has not said after this time that it obeys the order to kill is killed, and the host hunts in its place.
pub const ORDER_PATIENCE: Duration = Duration::from_secs(2);
/// A guard that owes an answer is continued this often: its command may have stopped it.
pub const WAKE_EVERY: Duration = Duration::from_millis(100);
/// A guard that was killed and is not gone after this time counts as gone. One that never began has [`START_PATIENCE`]
/// for it, because as long as it lives nobody knows whether its command runs.
pub const DEATH_PATIENCE: Duration = Duration::from_secs(1);
/// How long the host hunts what a dead guard left before it names what it could not kill.
pub const ORPHAN_HUNT: Duration = Duration::from_millis(1_500);
/// What lives on without its guard is looked at this often, to learn of its end.
pub const ORPHAN_LOOK: Duration = Duration::from_secs(1);
/// Who asked for a command's end is answered after this time at the latest.
pub const KILL_ANSWER: Duration = Duration::from_secs(9);
/// A group that asked for terminal input owns the foreground this long, long enough to read the end of file.
pub const FOREGROUND_SLICE: Duration = Duration::from_millis(40);
/// The stop for terminal input at which who asks is hung up; then the count begins afresh. Who was hung up and is so
/// again is killed.
pub const INPUT_STOPS_MAX: u32 = 5;
/// A guard waits this long for the end of who was hung up, before it puts the terminal back and lets the shell go on. Who
/// takes longer puts it back itself, or not at all.
pub const HANG_UP_WAIT: Duration = Duration::from_millis(100);
/// Processes of a command that are hung up one by one. Whoever asks after them is hung up with its whole group, the
/// shell included: a loop around a prompt would not end otherwise.
pub const HANG_UPS_MAX: usize = 8;
/// After this much silence of a command its guard looks for stopped processes that are not its own children …
pub const LOOK_AFTER: Duration = Duration::from_millis(500);
/// … or this much, once one has stopped: it will ask again soon …
pub const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// … and again at doubling intervals up to this, which is also the longest that output puts a look off.
pub const LOOK_EVERY_MAX: Duration = Duration::from_secs(2);
/// What a command writes within this time of a SIGPIPE, for which it may have been too late, brings it no other one.
pub const BROKEN_PIPE_PAUSE: Duration = Duration::from_millis(50);

/// Guards with terminal and session ready, kept ahead of demand. When none is left the next one is made on demand.
pub const SPARE_GUARDS: usize = 2;
/// Ended commands whose left-over processes are watched. Beyond it the oldest one's terminal is closed.
pub const STRAGGLERS_MAX: usize = 256;
/// Left-over processes of one command that are counted; beyond it there are more.
pub const STRAGGLERS_COUNTED_MAX: usize = 256;
/// Processes named in a record, of those that were left over and of those that could not be killed. The rest is not.
pub const STRAGGLERS_NAMED_MAX: usize = 16;

/// The whole of a shutdown. What has not ended by then is killed and left to the guards.
pub const SHUTDOWN_MAX: Duration = Duration::from_secs(5);
/// Of that, the grace commands get between TERM and KILL.
pub const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);

/// Descriptors the host asks for; the hard limit may be lower. Commands get their caller's limit, as far as that goes.
pub const HOST_DESCRIPTORS: u64 = 65_536;
/// After accept(2) failed for want of descriptors or memory it is tried again this much later.
pub const ACCEPT_RETRY: Duration = Duration::from_millis(100);
/// A socket that was removed and cannot be made again is tried again this often.
pub const SOCKET_RETRY: Duration = Duration::from_secs(1);
/// A command that cannot start for want of descriptors, terminals or processes is tried again this often, …
pub const START_RETRY: Duration = Duration::from_millis(100);
/// … and given up with code 125 after this time …
pub const START_TIMEOUT: Duration = Duration::from_secs(30);
/// … or after this time, when it has a guard and only the shell's own process is wanting. Bash waits 15 s for a process.
pub const FORK_TIMEOUT: Duration = Duration::from_secs(10);

/// The terminal's size when the console is not wider, rows.
pub const PTY_ROWS: u16 = 48;
/// The terminal's size when the console is not wider, columns. At 80, `ps aux` loses data that an agent needs.
pub const PTY_COLS: u16 = 160;

/// The largest terminal of a command, rows; a caller's larger window counts as this.
pub const WINDOW_ROWS_MAX: u16 = 300;
/// The largest terminal of a command, columns; a caller's larger window counts as this. With all rows full, what the
/// caller sees of a terminal of this size takes some megabytes of the host's memory.
pub const WINDOW_COLS_MAX: u16 = 1_000;
/// The size of a terminal that none of its command's streams is on, rows and columns: what programs assume without one.
pub const UNSEEN_ROWS: u16 = 24;
/// See [`UNSEEN_ROWS`].
pub const UNSEEN_COLS: u16 = 80;

/// Console output queued, bytes, above which commands' output waits in their logs (and may be skipped).
pub const CONSOLE_HIGH_BYTES: usize = 256 << 10;
/// Blocks that wait for their turn on the console. Beyond it the oldest are shown as one line that counts them.
pub const CONSOLE_BLOCKS_MAX: usize = 2_048;
/// A command that has had the console this long yields it to those that wait.
pub const CONSOLE_FLOOR: Duration = Duration::from_secs(2);
/// A command that took longer than this gets an end line, even when all went well.
pub const CONSOLE_LONG: Duration = Duration::from_secs(10);
/// The console's last words may take this long at the host's end.
pub const CONSOLE_FAREWELL: Duration = Duration::from_millis(500);
/// The most of a command that stands in a banner on the console, columns. The journal has all of it.
pub const BANNER_COLUMNS: usize = 400;
/// The same as [`BANNER_COLUMNS`] in the banner under which a command goes on after others.
pub const BANNER_AGAIN_COLUMNS: usize = 60;
/// The most of the name that a caller gives itself, columns. The rest is cut.
pub const WHOAMI_COLUMNS: usize = 24;
/// An agent's look at the shell is one line on the console unless it writes more than this, bytes, …
pub const PROBE_BYTES_MAX: usize = 4 << 10;
/// … lasts longer than this, fails, or leaves processes behind: then it is shown like any command.
pub const PROBE_TIME_MAX: Duration = Duration::from_secs(1);
/// At the host's end with `--console raw`, the terminal may take this long to answer what commands have asked it …
pub const REPLIES_MAX: Duration = Duration::from_millis(500);
/// … and has answered everything when it was silent this long after the reply to the host's own question.
pub const REPLIES_SILENCE: Duration = Duration::from_millis(50);

/// Bytes on their way to the journal's recorder above which a command's output waits in its log …
pub const RECORDER_HIGH_BYTES: usize = 512 << 10;
/// … and after which, if the recorder gets no further for this long, output for the journal is skipped and counted.
pub const RECORDER_STALL: Duration = Duration::from_secs(1);
/// The first output of a command, bytes, for which there is more room, so that it does not wait for another's …
pub const RECORDER_FIRST_BYTES: u64 = 64 << 10;
/// … namely until so many bytes are on their way.
pub const RECORDER_FIRST_HIGH_BYTES: usize = 4 << 20;
/// Output waits this long for more on its way to the recorder, so that it is not woken for every line. Records of starts
/// and ends never wait.
pub const RECORDER_DELAY: Duration = Duration::from_millis(5);
/// Unless this much is queued, bytes.
pub const RECORDER_BATCH_BYTES: usize = 64 << 10;
/// Bytes of records and output that are kept for the next recorder until the file has them. Beyond it the records of new
/// commands are given up, and counted.
pub const RECORDER_HELD_BYTES: usize = 32 << 20;
/// Output that waits in the recorder, bytes, above which it takes nothing in.
pub const RECORDER_WAITING_BYTES: u64 = 5 << 20;
/// Output of one command that is kept for the next recorder, bytes. Of a longer one, what a dying recorder had is
/// missing in the record, and counted there.
pub const RECORDER_HELD_OUTPUT_BYTES: usize = 16 << 10;
/// The recorder is behind, and that is said, when what it was sent this long ago is not done.
pub const RECORDER_BEHIND: Duration = Duration::from_secs(3);
/// It has caught up when nothing older than this is waiting.
pub const RECORDER_CAUGHT_UP: Duration = Duration::from_millis(500);
/// A recorder that gets no further for this long is killed and replaced.
pub const RECORDER_STUCK: Duration = Duration::from_secs(15);
/// A host that is woken so much later than it wanted was stopped itself, and its recorder probably as well: that time is
/// not held against the recorder.
pub const HOST_STOPPED: Duration = Duration::from_secs(1);
/// A recorder that cannot be started, or dies at once, is replaced after this pause, which doubles when it had not even
/// written a record …
pub const RECORDER_RETRY: Duration = Duration::from_millis(100);
/// … up to this …
pub const RECORDER_RETRY_MAX: Duration = Duration::from_secs(1);
/// … and begins anew when one has lived this long.
pub const RECORDER_LIVED: Duration = Duration::from_secs(1);
/// At its start the host waits this long for the recorder to say which file it writes.
pub const RECORDER_FIRST_WORD: Duration = Duration::from_secs(3);
/// The recorder tells what it has done at the latest this long after it …
pub const RECORDER_TELL_AFTER: Duration = Duration::from_millis(20);
/// … or when this many bytes are dealt with …
pub const RECORDER_TELL_BYTES: u64 = 128 << 10;
/// … or this many records are written.
pub const RECORDER_TELL_RECORDS: usize = 64;
/// The recorder takes in what is new at the latest after this time, so that records overtake output.
pub const RECORDER_TURN: Duration = Duration::from_millis(5);

/// A journal's file goes on in a new one before it becomes longer than this, bytes.
pub const JOURNAL_FILE_BYTES: u64 = 64 << 20;
/// Bytes of a journal's file after which it gets a mark, so that nobody who needs its end has to read all of it.
pub const JOURNAL_MARK_BYTES: u64 = 1 << 20;
/// The end of a file in which a mark is looked for, bytes: an interval, the longest line and the mark itself.
pub const JOURNAL_TAIL_BYTES: u64 = 4 << 20;
/// Of a file without marks, so much of the end is read, bytes. Earlier starts without an end are not found.
pub const JOURNAL_UNMARKED_BYTES: u64 = 64 << 20;
/// An argument longer than this, bytes, is written once per file, and records refer to it.
pub const JOURNAL_ARGUMENT_BYTES: usize = 4 << 10;
/// Texts of a file that later arguments are compared with, newest first. What is like none of them is written whole.
pub const JOURNAL_TEXTS_KNOWN: usize = 8;
/// Texts of a file that a reader keeps, bytes; what refers to a later one stays cut.
pub const JOURNAL_TEXTS_READ_BYTES: usize = 64 << 20;
/// What is kept of the beginning and of the end of a command's output in `raw/`, bytes each (`--raw-cap`). The middle is
/// counted.
pub const RAW_CAP_BYTES: u64 = 16 << 20;
/// The most that `--raw-cap` takes, MiB.
pub const RAW_CAP_MAX_MIB: u64 = 1 << 20;
/// At the host's end the recorder may take this long to write what is queued, on a disk that is slow; what it has not taken
/// by then is not in the journal.
pub const RECORDER_FAREWELL: Duration = Duration::from_secs(10);
/// Of that, this long without taking anything.
pub const RECORDER_FAREWELL_STALL: Duration = Duration::from_secs(3);
/// After a spare guard could not be made, or died younger than this, none is tried for this long.
pub const SPARE_PAUSE: Duration = Duration::from_secs(1);
/// Values of secret variables that are masked in one command's output and record; of more, the most plausible ones: of
/// several kinds of characters, and long.
pub const SECRETS_MAX: usize = 1024;
/// All of these values together, bytes. A value that does not fit is masked only by its name or its shape.
pub const SECRETS_BYTES_MAX: usize = 256 << 10;
/// What is held back at most because it may be the beginning of a value, bytes. A longer value counts as found once its
/// first bytes were.
pub const SECRET_PATTERN_BYTES_MAX: usize = 4 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_connections_as_descriptors_allow() {
        assert_eq!([1, 64, 1_024, 1 << 20].map(peers_max), [1, 5, 165, PEERS_MAX]);
    }
}
