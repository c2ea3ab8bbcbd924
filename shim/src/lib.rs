//! rexec-sh, the shell that an agent calls. It sends a command string to rexec-host and becomes the real shell for
//! anything else.
//!
//! This library is the half that the host shares: the [`protocol`]. It is std only. The shim itself is the binary:
//!
//! ```text
//! main                      the whole way of one call
//! ├─ inside                 whether a guard is above already
//! ├─ shell                  finds the real shell, and becomes it
//! ├─ collect                what the command inherits: streams, limits, masks, descriptors
//! ├─ lifeline               whose end ends the command: its agent's, or else its parent's
//! ├─ connect                finds, checks and opens the host's socket
//! └─ client                 from the sent request to the exit code, one poll(2)
//!    ├─ incoming            frames from the host, output for the caller
//!    ├─ job_control         signals, keys, window sizes and stops
//!    ├─ line_ends           line ends where two terminals process output
//!    ├─ controlling_terminal  the caller's terminal while it is relayed
//!    └─ output_descriptor   writes without waiting
//! report                    begins a report on a command that runs in its caller's sandbox
//! ├─ reporter               writes records to the host's FIFO
//! └─ local_run              runs the shell as a child, and ends as it does
//!    ├─ output_relay        passes the output on
//!    └─ tree_end            ends the command when its agent has ended
//! unseen                    leaves a note about a command that no host sees
//! notice                    problems as text on standard error
//! sys                       the C `main` and all system calls
//! ```
//!
//! Reading order: `protocol::invocation` (which calls go to the host), `main`, `protocol::wire`, `client`, `sys`.

pub mod protocol;
