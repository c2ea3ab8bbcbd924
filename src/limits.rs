//! Every bound and timeout of the host: what it bounds, its unit, and what happens when it is reached.
//!
//! The wire's own bounds are in `rexec_sh::protocol::wire`, because the shim keeps them too.

mod callers;
mod environments;
mod exec_server;
mod gates;
mod journal;
mod kept;
mod mcp;
mod ports;
mod projects;
mod reports;
mod rpc;
mod scripts;
mod spans;
mod spares;
mod stdio;
mod undo;

use std::time::Duration;

pub use {callers::*, environments::*, exec_server::*, gates::*, journal::*, kept::*, mcp::*, ports::*, spares::*};
pub use {projects::*, reports::*, rpc::*, scripts::*, spans::*, stdio::*, undo::*};

/// Commands that run at once. More commands wait in order of arrival; their callers only see a later start.
pub const RUNNING_MAX: usize = 1_000;
/// Commands in the background that run at once, besides those of [`RUNNING_MAX`], which thus never wait for the end of a
/// server. One more is refused.
pub const BACKGROUND_MAX: usize = 1_000;
/// Commands that the host knows at once, waiting ones included. The caller of one more is told to try again, with code
/// 125.
pub const JOBS_MAX: usize = 4_096;
/// Connections at once. More callers wait in the kernel's queue until a connection ends.
pub const PEERS_MAX: usize = 4_096;
/// Descriptors that the host keeps for itself, spare guards included.
pub const OWN_DESCRIPTORS: u64 = 32;
/// Descriptors that a command takes in the host: connection, directory, standard input, guard, terminal, a pipe.
pub const DESCRIPTORS_PER_COMMAND: u64 = 6;

/// Connections at once with this limit on descriptors.
#[must_use]
pub fn peers_max(descriptors: u64) -> usize {
    let commands = descriptors.saturating_sub(OWN_DESCRIPTORS) / DESCRIPTORS_PER_COMMAND;
    usize::try_from(commands).unwrap_or(PEERS_MAX).clamp(1, PEERS_MAX)
}

/// Connections that the loop accepts in one turn. The others wait for the next turn.
pub const ACCEPTS_PER_TURN: usize = 64;
/// Requests of one connection that the host serves in one turn. The others wait for the next turn.
pub const REQUESTS_PER_TURN: usize = 32;
/// Signals for the host that it takes in one turn: one of each kind, and no more, because the kernel keeps no more. Those
/// that come meanwhile wait for the next turn.
pub const SIGNALS_PER_TURN: usize = 8;

/// Output kept for the slowest reader of one command, bytes. When the caller is that far behind, the host stops reading
/// the command's terminal, and the command blocks as on a full pipe. A reader that may miss output is told how much it
/// missed.
pub const LOG_BYTES: usize = 128 << 10;
/// The end of what was written to one command's terminal, for terminals that come later, bytes. Its memory may be twice as
/// much.
pub const TERMINAL_TAIL_BYTES: usize = 256 << 10;
/// The memory for these ends over all commands. Beyond it, each command has an equal share.
pub const TERMINAL_TAILS_BYTES: usize = 16 << 20;
/// Output kept over all commands, bytes. Beyond it the host drops what only the console and the journal have not read,
/// from the oldest command on, and tells them how much.
pub const LOGS_BYTES: usize = 16 << 20;
/// What each entry of a log counts besides its bytes, bytes. So a million short writes are bounded too.
pub const ENTRY_OVERHEAD_BYTES: usize = 64;
/// Bytes read from one source before the next one gets its turn.
pub const READ_BUDGET_BYTES: usize = 128 << 10;
/// Bytes read from a command's output at least, even where its log has room for less: what a terminal has at once.
pub const READ_LEAST_BYTES: usize = 4 << 10;
/// Frames queued for one connection, bytes. Beyond it the host queues nothing more until some are sent.
pub const OUTLET_HIGH_BYTES: usize = 64 << 10;

/// A connection that has not said hello after this time is ended.
pub const HELLO_TIMEOUT: Duration = Duration::from_secs(5);
/// A connection in the one-shot language that has its answer is ended when no other request begins within this time. It
/// holds for clients that have asked whether the host is there (ping): those keep their connections.
pub const NEXT_REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The same for a client that has not: most of them wait for the end of the connection.
pub const ONE_SHOT_TIMEOUT: Duration = Duration::from_millis(100);
/// A connection whose request is not whole after this time is ended.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The same for one that has said something which a busy host has put off or not read yet.
pub const UNREAD_REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Requests that are still arriving, over all connections, bytes. Beyond it a caller with a long request is told to try
/// again.
pub const REQUESTS_BYTES: usize = 64 << 20;
/// Whole requests that no guard has yet, over all commands, bytes. Beyond it a caller is told to try again, with code
/// 125.
pub const QUEUED_REQUESTS_BYTES: usize = 256 << 20;
/// Callers for which the console says, once each, that their control group is closed to the host. For more callers it
/// says nothing.
pub const NAMES_TOLD_MAX: usize = 64;
/// The longest timeout of a JSONL request. A longer one is refused.
pub const TIMEOUT_MAX: Duration = Duration::from_secs(365 * 24 * 3_600);
/// The longest line of a JSONL request, bytes. A longer one ends the connection with an error.
pub const JSON_LINE_BYTES_MAX: usize = 1 << 20;
/// How much `rexec ps` gets of a command, of its directory and of its caller's name, bytes each. The rest is cut.
pub const ROSTER_TEXT_BYTES: usize = 256;
/// Blocks of memory from this size on, bytes, go back to the system when they are freed.
pub const LARGE_BLOCK_BYTES: i32 = 512 << 10;
/// Free memory at the end of the heap that the host and its recorder keep, bytes. More goes back to the system.
pub const KEPT_HEAP_BYTES: i32 = 1 << 20;
/// Output filtered for one reader at a time, bytes read or made. Then the host looks at the reader's queue and at the
/// clock.
pub const FILTERED_BYTES: usize = 16 << 10;
/// Output filtered at a time within that, bytes. Then the host looks at how much it became.
pub const FILTERED_PIECE_BYTES: usize = 4 << 10;
/// Time for one reader before the next one gets its turn, however costly a program makes its output.
pub const PUMP_TIME: Duration = Duration::from_millis(10);
/// How long a line without an end is held back, from its first byte on that the caller lacks. One that is rewritten is held
/// until it has not changed for twice as long, and eight times as long at most.
pub const REDRAW_HOLD: Duration = Duration::from_millis(250);
/// After its command's end, a caller that takes none of its remaining output for this long is let go.
pub const FAREWELL_TIMEOUT: Duration = Duration::from_secs(600);

/// After the shell's end, a stream that a process still holds open counts as finished after this much silence. With 100
/// ms the output of `echo late > >(sleep .05; cat)` was sometimes lost on two busy cores.
pub const DRAIN_IDLE: Duration = Duration::from_millis(200);
/// So long before that silence is over, the guard looks for processes that are not through with what the shell has fed
/// them. If there are any, another silence begins.
pub const DRAIN_LOOK_BEFORE: Duration = Duration::from_millis(50);
/// Processes that such a look considers. An ended shell leaves few, and each costs a few system calls.
pub const DRAIN_LOOK_PROCESSES: usize = 256;
/// After the shell's end, a stream that a process still holds open counts as finished after this time in any case.
pub const DRAIN_MAX: Duration = Duration::from_secs(1);
/// After [`DRAIN_MAX`], a stream that brought this much since the shell's end, bytes, counts as finished although its
/// reader cannot keep up. A pipe that a shell has left holds less, so all of it is from other processes.
pub const DRAIN_BYTES: usize = 1 << 20;
/// From SIGTERM to SIGKILL when the caller or the host is gone, or a timeout is over. Agents kill with SIGKILL only and
/// wait for no clean end.
pub const GRACE_CALLER_GONE: Duration = Duration::from_millis(200);
/// From the end of a command's output until its caller is told. Most commands end with their outputs, and this saves them
/// a frame; a reader of the output waits this long for its end of file.
pub const OUTPUT_ENDED_AFTER: Duration = Duration::from_millis(20);
/// From a line that a person typed until what the command writes to a pipe is read although the terminal has not shown the
/// line yet. It shows it within microseconds, unless it is not let write or the machine is busy.
pub const ECHO_PATIENCE: Duration = Duration::from_millis(50);
/// While a command is stopped, its guard looks after this whether the caller's process group was orphaned; each time after
/// twice the time before …
pub const ORPHANED_GROUP_LOOK: Duration = Duration::from_millis(50);
/// … up to this.
pub const ORPHANED_GROUP_LOOK_MAX: Duration = Duration::from_secs(2);
/// When the shim of a continued shell is not stopped yet, it is looked at again after this; each time after twice the time
/// before …
pub const STOPPED_SHIM_LOOK: Duration = Duration::from_millis(5);
/// … up to this. By then it goes on, or was never stopped.
pub const STOPPED_SHIM_LOOK_MAX: Duration = Duration::from_secs(4);
/// For callers that kill their shell's process group: from the end of the output to that kill. Codex itself waits 27 to
/// 36 ms after the shell's exit, and 76 to 88 ms when a process holds the streams. Processes that want to leave the
/// group do so in this time.
pub const GROUP_LEAVE: Duration = Duration::from_millis(30);
/// From SIGTERM to SIGKILL when a person ends a command (`--grace`).
pub const GRACE: Duration = Duration::from_secs(2);
/// The longest time that `--grace` takes.
pub const GRACE_MAX: Duration = Duration::from_secs(3_600);
/// After SIGKILL the guard hunts the processes of its tree. What lives longer than this is reported as unkillable.
pub const KILL_TIMEOUT: Duration = Duration::from_secs(6);
/// Walks through its tree after which a guard reports what it could not kill.
pub const KILL_ROUNDS_MAX: u32 = 100;
/// Peers that see the console on terminals of their own. The next one is refused.
pub const VIEWERS_MAX: usize = 4;
/// What is queued for one of them, bytes. Beyond it, its console leaves output out and counts it.
pub const VIEWER_HIGH_BYTES: usize = 64 << 10;
/// Commands that have ended and that a client of the transcript has not taken. One that is behind further is let go.
pub const TRANSCRIPT_WAITING_MAX: usize = 1_000;
/// Walks through its tree after which a guard that pauses it lets be: a fork bomb could outrun it for ever.
pub const PAUSE_ROUNDS_MAX: u32 = 100;
/// Time after which a guard reports what it could not kill.
pub const KILL_HUNT: Duration = Duration::from_secs(3);
/// A guard that has not begun with its command after this time, although it was continued repeatedly, is killed, and
/// another guard gets the command. A guard that can run needs a millisecond; the rest is for a very busy machine. The
/// time doubles with each guard.
pub const START_PATIENCE: Duration = Duration::from_secs(10);
/// A command begins without waiting longer than this for anybody to let go of what it may let go of: for the host and the shim,
/// and for the guard's close of a file whose server does not answer.
pub const LET_GO_PATIENCE: Duration = Duration::from_millis(500);
/// A guard that has not confirmed the order to kill after this time is killed, and the host hunts in its place.
pub const ORDER_PATIENCE: Duration = Duration::from_secs(2);
/// A guard that owes an answer is continued this often, because its command may have stopped it.
pub const WAKE_EVERY: Duration = Duration::from_millis(100);
/// A guard that was killed and still exists after this time counts as gone. For one that never began,
/// [`START_PATIENCE`] holds instead: while it lives, its command may still start.
pub const DEATH_PATIENCE: Duration = Duration::from_secs(1);
/// How long the host hunts what a dead guard left, before it names what it could not kill.
pub const ORPHAN_HUNT: Duration = Duration::from_millis(1_500);
/// How often the host looks whether processes without a guard have ended.
pub const ORPHAN_LOOK: Duration = Duration::from_secs(1);
/// A request to end a command is answered after this time at the latest.
pub const KILL_ANSWER: Duration = Duration::from_secs(9);
/// How long a prompt waits for a person's answer before it gets end of file (`--prompt-wait`).
pub const PROMPT_WAIT: Duration = Duration::from_secs(60);
/// The longest time that `--prompt-wait` takes.
pub const PROMPT_WAIT_MAX: Duration = Duration::from_secs(24 * 3_600);
/// A console on which no key was pressed for this long counts as unattended: with `--prompts auto`, prompts get end of
/// file.
pub const ATTENDED: Duration = Duration::from_secs(300);
/// The end of a command's output that may be the words of a prompt, bytes. Of a longer line only this much is shown.
pub const PROMPT_BYTES: usize = 512;
/// Keys of a person's answer that wait for room in the command's terminal, bytes. More are refused.
pub const ANSWER_BYTES: usize = 64 << 10;
/// When a person who answered leaves, how long the command may take to read what was typed. The rest is dropped when
/// the next answer begins.
pub const ANSWER_READ: Duration = Duration::from_secs(1);
/// How long a process group that asked for terminal input owns the foreground: long enough to read the end of file.
pub const FOREGROUND_SLICE: Duration = Duration::from_millis(40);
/// Terminal-input stops after which the asking process gets SIGHUP; the counter then restarts. A second SIGHUP for the
/// same process is SIGKILL instead.
pub const INPUT_STOPS_MAX: u32 = 5;
/// How long a command whose standard input is empty when it begins is watched for something in it: callers write the input
/// of a program just after they have started it. Of `spawnSync({input})` of Node.js, 77 % had done so at once and all within
/// 2 ms; a busy machine takes much longer.
pub const LATE_INPUT: Duration = Duration::from_millis(500);
/// How long after the end of its terminal, and then after its SIGHUP, a program that reads on and gets nothing is ended.
pub const ENDLESS_LOOK: Duration = Duration::from_secs(1);
/// How long a guard waits for the other members of a process group to stop, when the first one was stopped at the
/// terminal. Then it takes what still runs for the asker.
pub const GROUP_STOP_WAIT: Duration = Duration::from_millis(20);
/// How long a guard waits for the end of a process that got SIGHUP, before it restores the terminal and lets the shell
/// go on. A process that takes longer restores the terminal itself, or not at all.
pub const HANG_UP_WAIT: Duration = Duration::from_millis(100);
/// Processes of a command that get SIGHUP one by one. The next one gets it with its whole process group, the shell
/// included: a loop around a prompt would not end otherwise.
pub const HANG_UPS_MAX: usize = 8;
/// After this much silence of a command, its guard looks for stopped processes that are not its own children …
pub const LOOK_AFTER: Duration = Duration::from_millis(500);
/// … or after this much, once one was stopped, because it will soon ask again …
pub const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// … and again at intervals that double up to this. Output delays a look by no more than this either.
pub const LOOK_EVERY_MAX: Duration = Duration::from_secs(2);
/// After a SIGPIPE that may have come too late, output within this time brings no second one.
pub const BROKEN_PIPE_PAUSE: Duration = Duration::from_millis(50);

/// Ended commands whose left-over processes are watched. For one more, the terminal of the oldest is closed.
pub const STRAGGLERS_MAX: usize = 256;
/// Left-over processes of one command that are counted. Beyond it the count only says that there are more.
pub const STRAGGLERS_COUNTED_MAX: usize = 256;
/// Processes that a record names, of the left-over ones and of the unkillable ones each. The others are only counted.
pub const STRAGGLERS_NAMED_MAX: usize = 16;

/// The longest shutdown. What has not ended by then is killed and left to the guards.
pub const SHUTDOWN_MAX: Duration = Duration::from_secs(5);
/// The part of it that commands get between SIGTERM and SIGKILL.
pub const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);

/// How long a new host waits for the lock of one that was killed, whose children may hold it a moment longer.
pub const LOCK_PATIENCE: Duration = Duration::from_secs(2);
/// The time between two tries at that lock.
pub const LOCK_STEP: Duration = Duration::from_millis(5);
/// The limit on descriptors that the host asks for; the hard limit may be lower. Commands get their caller's limit, as
/// far as the host's allows.
pub const HOST_DESCRIPTORS: u64 = 65_536;
/// After accept(2) failed for lack of descriptors or memory, it is tried again after this time.
pub const ACCEPT_RETRY: Duration = Duration::from_millis(100);
/// A removed socket that cannot be made again is tried again this often.
pub const SOCKET_RETRY: Duration = Duration::from_secs(1);
/// A command that cannot start for lack of descriptors, terminals or processes is tried again this often …
pub const START_RETRY: Duration = Duration::from_millis(100);
/// … and given up with code 125 after this time …
pub const START_TIMEOUT: Duration = Duration::from_secs(30);
/// … or after this time, when it has a guard and only the shell's own process is missing. Bash waits 15 s for a
/// process.
pub const FORK_TIMEOUT: Duration = Duration::from_secs(10);

/// Rows of a command's terminal, when the console has fewer.
pub const PTY_ROWS: u16 = 48;
/// Columns of a command's terminal, when the console has fewer. At 80, `ps aux` loses data that an agent needs.
pub const PTY_COLS: u16 = 160;

/// From a key at a terminal on demand to the first check whether the command has read it. The pauses then double.
pub const DEMAND_LOOK: Duration = Duration::from_millis(2);
/// How long a program keeps the terminal on demand after the last key that it has read, while it lives. An editor puts back
/// the modes before it ends: stopped and continued in between, it would change them again.
pub const DEMAND_KEPT: Duration = Duration::from_millis(500);
/// The longest of these pauses. When all keys are read by then, the next check comes with the next key.
pub const DEMAND_LOOK_MAX: Duration = Duration::from_millis(512);

/// Rows of the largest screen that a command's output is resolved on. A caller's larger window counts as this.
pub const WINDOW_ROWS_MAX: u16 = 300;
/// Columns of the largest screen. A screen of this size with all rows full takes some megabytes of the host's memory.
pub const WINDOW_COLS_MAX: u16 = 1_000;
/// Rows of a terminal that none of its command's streams is on: what programs assume without a terminal.
pub const UNSEEN_ROWS: u16 = 24;
/// Columns of such a terminal, see [`UNSEEN_ROWS`].
pub const UNSEEN_COLS: u16 = 80;

/// Console output queued, bytes. Beyond it the commands' output waits in their blocks, see [`CONSOLE_HELD_BYTES`].
pub const CONSOLE_HIGH_BYTES: usize = 256 << 10;
/// Time between two attempts to write to a console's file whose disk is full.
pub const CONSOLE_DISK_RETRY: Duration = Duration::from_secs(1);
/// Blocks that wait for their turn on the console. Beyond it the oldest become one line that counts them.
pub const CONSOLE_BLOCKS_MAX: usize = 2_048;
/// What waits in all blocks, bytes. Beyond it the oldest blocks give up the beginning of what they hold, and then all of
/// it. It is counted.
pub const CONSOLE_HELD_BYTES: usize = 4 << 20;
/// What waits of the beginning of one command's output, bytes. The rest is counted, but for its end.
pub const CONSOLE_HEAD_BYTES: usize = 256 << 10;
/// What is kept of the end of one command's output, bytes …
pub const CONSOLE_TAIL_BYTES: usize = 32 << 10;
/// … and lines. On a terminal they are shown when the command ends or falls silent.
pub const CONSOLE_TAIL_LINES: usize = 40;
/// Lines of a command that a terminal shows as they come. Beyond it they are counted.
pub const CONSOLE_LIVE_LINES: usize = 200;
/// Rows of a terminal that one line takes. The rest of a longer line is counted.
pub const CONSOLE_LINE_ROWS: u16 = 4;
/// Lines that are shown of what a command wrote while others had the floor. The others are counted.
pub const CONSOLE_COMEBACK_LINES: usize = 20;
/// A flood is over when its command writes next to nothing for this long.
pub const CONSOLE_QUIET: Duration = Duration::from_secs(2);
/// A command that has had the floor for this long yields it to those that wait, also within a line.
pub const CONSOLE_FLOOR: Duration = Duration::from_secs(2);
/// In a file or on a pipe, a command that took longer than this gets an end line even when it succeeded.
pub const CONSOLE_LONG: Duration = Duration::from_secs(10);
/// A second ^C on the console within this time kills the command that the first one interrupted …
pub const KEYS_KILL: Duration = Duration::from_secs(1);
/// … and ends the host within this time, when nothing runs.
pub const KEYS_END: Duration = Duration::from_secs(2);
/// `y` within this time after `q` does not end the host: somebody types a word.
pub const KEYS_CONFIRM: Duration = Duration::from_millis(300);
/// Keys behind the end of an answer do nothing until a return that is followed by this much silence …
pub const KEYS_SILENCE: Duration = Duration::from_secs(1);
/// … or until no key has come for this long.
pub const KEYS_HELD_MAX: Duration = Duration::from_secs(30);
/// A prompt that is younger than this is not answered by a key, which was meant for something else.
pub const PROMPT_YOUNG: Duration = Duration::from_millis(500);
/// A command that the status line named as waiting within this time before a key may be what the key was meant for.
pub const PROMPT_NAMED: Duration = Duration::from_secs(2);
/// A command whose shell ends within this time after ^C was stopped by the person who typed it.
pub const INTERRUPT_COUNTS: Duration = Duration::from_secs(10);
/// An escape sequence among the keys that does not go on for this long is over.
pub const KEYS_SEQUENCE: Duration = Duration::from_millis(100);
/// This many keys at once were pasted and do nothing.
pub const KEYS_PASTED_BYTES: usize = 8;
/// Characters of a reason that the status line shows while it is typed: the last ones.
pub const KEYS_REASON_SHOWN: usize = 40;
/// Digits of a command's number that can be typed on the console.
pub const KEYS_DIGITS_MAX: usize = 15;
/// Agents' sessions of one day that the status line counts.
pub const AGENTS_COUNTED_MAX: usize = 1_000;
/// Commands of `--notify` that run at once for commands that wait. Another one is not started.
pub const NOTIFY_MAX: usize = 8;
/// Those that are started within [`LATER_KEPT`] for commands that were refused because nobody was there: for one agent, and
/// in all, as also run at once. An agent may try one command after the other, and waits for none.
pub const NOTIFY_REFUSED_OF_AGENT_MAX: usize = 8;
pub const NOTIFY_REFUSED_MAX: usize = 32;
/// The host remembers the sessions of this many commands of `--notify`, so that what they leave in the background is not
/// taken for what a dead guard has left.
pub const NOTIFY_SESSIONS_MAX: usize = 64;
/// The status line is drawn at most this often.
pub const STATUS_EVERY: Duration = Duration::from_millis(250);
/// How long the status line says what a key did.
pub const STATUS_MESSAGE: Duration = Duration::from_secs(5);
/// A terminal with fewer rows has no status line.
pub const STATUS_ROWS_MIN: u16 = 6;
/// A terminal with fewer rows shows no full-screen program: the last row is the host's, and margins need two.
pub const TAKEN_ROWS_MIN: u16 = 3;
/// How long the console's last lines may take at the host's end.
pub const CONSOLE_FAREWELL: Duration = Duration::from_millis(500);
/// Columns of a command in its banner on the console. The rest is cut there; the journal has all of it.
pub const BANNER_COLUMNS: usize = 400;
/// The same as [`BANNER_COLUMNS`], in the banner of a command that goes on after others.
pub const BANNER_AGAIN_COLUMNS: usize = 60;
/// Columns of the name that a caller gives itself. The rest is cut.
pub const WHOAMI_COLUMNS: usize = 24;
/// An agent's look at the shell is one line on the console. It is shown like any command when it writes more than this,
/// bytes …
pub const PROBE_BYTES_MAX: usize = 4 << 10;
/// … lasts longer than this, fails, or leaves processes behind.
pub const PROBE_TIME_MAX: Duration = Duration::from_secs(1);
/// At the host's end with `--console raw`, how long the terminal may take to answer what commands have asked it …
pub const REPLIES_MAX: Duration = Duration::from_millis(500);
/// … and how long it must be silent, after its reply to the host's own question, to have answered everything.
pub const REPLIES_SILENCE: Duration = Duration::from_millis(50);

/// Bytes on their way to the recorder. Beyond it a command's output waits in its log …
pub const RECORDER_HIGH_BYTES: usize = 512 << 10;
/// … and when the recorder gets no further for this long, output for the journal is skipped and counted.
pub const RECORDER_STALL: Duration = Duration::from_secs(1);
/// The first output of a command, bytes, has more room, so that it does not wait for another command's …
pub const RECORDER_FIRST_BYTES: u64 = 64 << 10;
/// … namely until this many bytes are on their way.
pub const RECORDER_FIRST_HIGH_BYTES: usize = 4 << 20;
/// How long output waits for more on its way to the recorder, so that the recorder does not wake for every line.
/// Records of starts and ends never wait.
pub const RECORDER_DELAY: Duration = Duration::from_millis(5);
/// Output queued for the recorder, bytes, that does not wait for more.
pub const RECORDER_BATCH_BYTES: usize = 64 << 10;
/// Records and output kept for the next recorder until the file has them, bytes. Beyond it the records of new commands
/// are dropped and counted.
pub const RECORDER_HELD_BYTES: usize = 32 << 20;
/// Output waiting in the recorder, bytes. Beyond it the recorder takes nothing in.
pub const RECORDER_WAITING_BYTES: u64 = 5 << 20;
/// Commands that write more than anybody keeps, and of which the recorder has [`RAW_CAP_BYTES`] in memory to know the end,
/// each. It deals with all output of more such commands.
pub const RECORDER_FLOODS_MAX: usize = 3;
/// How long such a command's output waits, if so little more comes that nothing has to be left out.
pub const RECORDER_FLOOD_WAIT: Duration = Duration::from_secs(1);
/// Behind output that was left out, the recorder reads this much only to know whether what follows begins within a secret,
/// bytes. It is left out, too.
pub const END_CONTEXT_BYTES: usize = 256 << 10;
/// Output of one command kept for the next recorder, bytes. When a recorder dies, the record of a longer output lacks
/// what that recorder had, and counts it.
pub const RECORDER_HELD_OUTPUT_BYTES: usize = 16 << 10;
/// Answers of people, and notes of commands without a host, that are kept for the next recorder until the file has them.
/// Beyond it they are lost with a recorder that dies, and counted.
pub const RECORDER_ASIDES_MAX: usize = 1000;
/// The recorder counts as behind, and the console says so, when it has not finished what it was sent this long ago.
pub const RECORDER_BEHIND: Duration = Duration::from_secs(3);
/// It has caught up when nothing older than this is waiting.
pub const RECORDER_CAUGHT_UP: Duration = Duration::from_millis(500);
/// Records that are given up are told of once in this time.
pub const RECORDER_GIVEN_UP_PAUSE: Duration = Duration::from_secs(1);
/// A recorder that gets no further for this long is killed and replaced.
pub const RECORDER_STUCK: Duration = Duration::from_secs(15);
/// A host that wakes this much later than it wanted was stopped itself, and its recorder probably too. That time does
/// not count against the recorder.
pub const HOST_STOPPED: Duration = Duration::from_secs(1);
/// A recorder that cannot be started, or dies at once, is replaced after this pause. The pause doubles when the
/// recorder had not even written a record …
pub const RECORDER_RETRY: Duration = Duration::from_millis(100);
/// … up to this …
pub const RECORDER_RETRY_MAX: Duration = Duration::from_secs(1);
/// … and starts again from the first one when a recorder has lived this long.
pub const RECORDER_LIVED: Duration = Duration::from_secs(1);
/// How long the host waits at its start for the recorder to say which file it writes.
pub const RECORDER_FIRST_WORD: Duration = Duration::from_secs(3);
/// The recorder reports what it has done after this time at the latest …
pub const RECORDER_TELL_AFTER: Duration = Duration::from_millis(20);
/// … or after this many bytes …
pub const RECORDER_TELL_BYTES: u64 = 256 << 10;
/// … or after this many records.
pub const RECORDER_TELL_RECORDS: usize = 64;
/// The recorder takes in what is new after this time at the latest, so that records overtake output.
pub const RECORDER_TURN: Duration = Duration::from_millis(5);
/// What receiving one message costs at least, in bytes of the budget for a visit.
pub const MESSAGE_COST_BYTES: usize = READ_BUDGET_BYTES / 32;
/// What was given to the closers is picked up within this time, or else all of them wait and one more is made …
pub const CLOSER_PATIENCE: Duration = Duration::from_millis(50);
/// … up to this many. Then all are killed and made anew.
pub const CLOSERS_MAX: usize = 32;
/// What waits for a server of files does not end when it is killed. With so many of those no more are made, and what is
/// given to the closers of files stays open.
pub const CLOSERS_KILLED_MAX: usize = 1_024;
/// A closer beyond the first ends when it has nothing to do for this long, milliseconds.
pub const CLOSER_IDLE_MS: i32 = 500;
/// The looker is asked how it is after each so many milliseconds without an answer.
pub const LOOK_STEP_MS: u8 = 1;
/// How long the looker may wait for a process that it looks at. One that frees much memory while it executes a program makes
/// it wait for a moment, too.
pub const LOOK_PATIENCE: Duration = Duration::from_millis(20);
/// How long the looker is waited for that does not wait itself: it has no processor.
pub const LOOK_WAIT_MAX: Duration = Duration::from_secs(2);
/// How long the host waits in all for looks that it gives up, in each [`LOOK_ALLOWANCE_TIME`]. Then it has no patience.
pub const LOOK_ALLOWANCE: Duration = Duration::from_millis(200);
/// See [`LOOK_ALLOWANCE`].
pub const LOOK_ALLOWANCE_TIME: Duration = Duration::from_secs(10);
/// A process that made a look wait is not looked at for this long.
pub const LOOK_SILENT_TIME: Duration = Duration::from_secs(10);
/// How many such processes are remembered.
pub const LOOK_SILENT_MAX: usize = 256;
/// How long the host waits until a new guard has descriptors of its own, where it must not get those of callers.
pub const OWN_TABLE_PATIENCE: Duration = Duration::from_millis(200);
/// How long the helper that gives the terminal back after the host's death waits for room in it.
pub const KEEPER_PATIENCE: Duration = Duration::from_secs(2);
/// At the host's end, how long the recorder may take to write what is queued, on a slow disk. What it has not taken by
/// then is not in the journal.
pub const RECORDER_FAREWELL: Duration = Duration::from_secs(10);
/// How much of that time may pass without the recorder taking anything in.
pub const RECORDER_FAREWELL_STALL: Duration = Duration::from_secs(3);

/// Values of secret variables that are masked in one command's output and record. Of more values, the most plausible
/// ones are: long, and of several kinds of characters.
pub const SECRETS_MAX: usize = 1024;
/// All of these values together, bytes. A value beyond it is masked only by its name or its shape.
pub const SECRETS_BYTES_MAX: usize = 256 << 10;
/// Output held back because it may be the beginning of a value, bytes. A longer value counts as found when its first
/// bytes are.
pub const SECRET_PATTERN_BYTES_MAX: usize = 4 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_connections_as_descriptors_allow() {
        assert_eq!([1, 64, 1_024, 1 << 20].map(peers_max), [1, 5, 165, PEERS_MAX]);
    }
}
