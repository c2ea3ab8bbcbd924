//! The sentry: nobody's command leaves a sandbox by way of the host.
//!
//! When a request has come whole, its caller is looked at. One that is not confined just as the host is gets its
//! command back: the shim runs the real shell where it is, and says nothing, because agents read what their shell says.
//! The console tells, the journal has no run of it. The look comes that late because a caller can enter a sandbox after
//! it connected, and it never leaves one.

use rexec_sh::protocol::exit_code::OWN_FAILURE;
use rexec_sh::protocol::notice::Notice;

use super::{Host, HostOptions, PeerId};
use crate::limits;
use crate::sys::confinement::{Doubt, Moment, Purpose, Standard};
use crate::text::count::counted;
use crate::text::ends::escape_ends;
use crate::text::escape::name_of;
use crate::text::reason::reason;

/// The longest command in a line about one that was left to its caller, columns.
const COMMAND_COLUMNS: usize = 400;

/// Who looks at the callers.
#[derive(Debug)]
pub(super) struct SandboxCheck {
    duty: Duty,
    /// Commands that callers run themselves without a line on the console, which had no room.
    unsaid: u64,
}

#[derive(Debug)]
enum Duty {
    /// Everybody is let in.
    Off,
    /// Callers are compared with the host.
    Compare(Box<Standard>),
    /// The host could not be read itself, so nobody is let in.
    Close(String),
}

impl SandboxCheck {
    /// The host is read as it is now.
    pub(super) fn new(options: &HostOptions) -> Self {
        let duty = match Standard::read() {
            _ if options.allow_sandboxed => Duty::Off,
            Ok(standard) if options.unseen_landlock => Duty::Compare(Box::new(standard.waiving_landlock())),
            Ok(standard) => Duty::Compare(Box::new(standard)),
            Err(error) => Duty::Close(reason(&error).to_string()),
        };
        Self { duty, unsaid: 0 }
    }

    /// What a person has to know who starts a host that lets nobody in, or whom it should not.
    pub(super) fn warning(&self) -> Option<String> {
        let left = "every command is left to its caller";
        Some(match &self.duty {
            Duty::Off => "--allow-sandboxed: commands of sandboxed callers run outside of their sandboxes".to_owned(),
            Duty::Compare(standard) if standard.is_blind() => format!(
                "Landlock sandboxes of callers cannot be seen (this host has no_new_privs): {left}; --unseen-landlock \
                 runs those of callers that differ in nothing else, --allow-sandboxed all of them"
            ),
            Duty::Compare(standard) if standard.overlooks_landlock() => {
                "--unseen-landlock: this host has no_new_privs, so commands of callers in a Landlock sandbox run \
                 outside of it; every other sandbox is seen"
                    .to_owned()
            }
            Duty::Compare(_) => return None,
            Duty::Close(why) => {
                format!("sandboxes of callers cannot be seen ({why}): {left}; --allow-sandboxed lets all of them in")
            }
        })
    }

    /// What is to be said against the process at the other side of a socket. `is_shared`: another one than that has
    /// written to it.
    pub(super) fn doubt(
        &self,
        socket: &impl std::os::fd::AsFd,
        accepted: Moment,
        is_shared: bool,
        purpose: Purpose,
    ) -> Option<Doubt> {
        match &self.duty {
            Duty::Off => None,
            Duty::Compare(_) if is_shared => Some(Doubt::Differs("another process than the one that connected asks")),
            Duty::Compare(standard) => standard.compare(socket, accepted, purpose).err(),
            Duty::Close(_) => Some(Doubt::Differs("sandboxes cannot be seen")),
        }
    }
}

impl Host {
    /// Whether a command may be run here. If not, its caller has been answered and the console told.
    pub(super) fn examine(&mut self, peer: PeerId, whoami: &str, command: &[u8]) -> bool {
        match self.doubt(peer, Purpose::Run) {
            None => return true,
            Some(Doubt::Shortage) => self.part(peer, &super::BUSY),
            Some(Doubt::Differs(why)) => {
                self.tell_refusal(why, whoami, command);
                let problem = format_args!("the caller is sandboxed ({why}); its commands run in its sandbox only");
                let hint = "run the command without rexec, or start rexec-host with --allow-sandboxed";
                self.refuse(peer, &Notice::new(OWN_FAILURE, problem, hint));
            }
        }
        false
    }

    fn tell_refusal(&mut self, why: &str, whoami: &str, command: &[u8]) {
        let command = escape_ends(&String::from_utf8_lossy(command), COMMAND_COLUMNS);
        let whoami = name_of(whoami, limits::WHOAMI_COLUMNS);
        self.tell_unseen(&format!(
            "… {whoami} is sandboxed ({why}): its command runs in its sandbox, unseen: {command}"
        ));
    }

    /// Says that a caller runs a command without this host.
    pub(super) fn tell_left(&mut self, whoami: &str, why: &str, command: &str) {
        let whoami = name_of(if whoami.is_empty() { "shell" } else { whoami }, limits::WHOAMI_COLUMNS);
        let command = escape_ends(command, COMMAND_COLUMNS);
        self.tell_unseen(&format!("… {whoami} runs a command without this host ({why}), unseen: {command}"));
    }

    /// Says that a caller has begun an interactive shell, which is none of this host's.
    pub(super) fn tell_interactive(&mut self, whoami: &str) {
        let whoami = name_of(if whoami.is_empty() { "a caller" } else { whoami }, limits::WHOAMI_COLUMNS);
        self.tell_unseen(&format!("… not shown: interactive shell of {whoami}"));
    }

    /// Callers that ask faster than the console can show are counted.
    fn tell_unseen(&mut self, line: &str) {
        if self.screen.out.pending() >= limits::CONSOLE_HIGH_BYTES {
            self.sandbox_check.unsaid += 1;
            return;
        }
        let out = self.screen.out.buffer();
        let unsaid = std::mem::take(&mut self.sandbox_check.unsaid);
        if unsaid > 0 {
            self.console.say(
                &format!("… {} more that callers run themselves, not shown", counted(unsaid, "command", "commands")),
                out,
            );
        }
        self.console.say(line, out);
    }
}
