//! The sandbox check: no command leaves its caller's sandbox by way of the host.
//!
//! The check looks at a caller when its request has come whole, because a caller can enter a sandbox after it connected,
//! and it never leaves one. Requests that the host has read together are served after one look. A caller that is not confined exactly as the host is gets its command back. The shim then
//! runs the real shell where it is and says nothing, because agents read what their shell says. The console shows it;
//! the journal has no run of it.

use super::options::HostOptions;
use super::peer::Peer;
use crate::sys::confinement::{Doubt, HostConfinement, Purpose};
use crate::text::reason::reason;

#[derive(Debug)]
pub(super) enum SandboxCheck {
    /// Every caller is let in.
    Off,
    /// Callers are compared with the host.
    Compare(Box<HostConfinement>),
    /// The host could not read its own confinement, so it lets no caller in. The text is the reason.
    RefuseAll(String),
}

impl SandboxCheck {
    /// Reads the host's own confinement, as it is now.
    pub(super) fn new(options: &HostOptions) -> Self {
        match HostConfinement::read() {
            _ if options.allow_sandboxed => Self::Off,
            Ok(standard) if options.unseen_landlock => Self::Compare(Box::new(standard.waiving_landlock())),
            Ok(standard) => Self::Compare(Box::new(standard)),
            Err(error) => Self::RefuseAll(reason(&error).to_string()),
        }
    }

    /// A warning for the person who starts the host, if the check lets in too many callers or none.
    pub(super) fn warning(&self) -> Option<String> {
        let left = "every command is left to its caller";
        Some(match self {
            Self::Off => "--allow-sandboxed: commands of sandboxed callers run outside of their sandboxes".to_owned(),
            Self::Compare(standard) if standard.is_blind() => format!(
                "Landlock sandboxes of callers cannot be seen (this host has no_new_privs): {left}; --unseen-landlock \
                 runs those of callers that differ in nothing else, --allow-sandboxed all of them"
            ),
            Self::Compare(standard) if standard.overlooks_landlock() => {
                "--unseen-landlock: this host has no_new_privs, so commands of callers in a Landlock sandbox run \
                 outside of it; every other sandbox is seen"
                    .to_owned()
            }
            Self::Compare(_) => return None,
            Self::RefuseAll(why) => {
                format!("sandboxes of callers cannot be seen ({why}): {left}; --allow-sandboxed lets all of them in")
            }
        })
    }

    /// Lets a caller run a command, or look at other commands, and notes what was seen of it.
    ///
    /// # Errors
    /// What speaks against it.
    pub(super) fn admit(&self, peer: &mut Peer, purpose: Purpose) -> Result<(), Doubt> {
        match self {
            Self::Off => Ok(()),
            Self::Compare(_) if peer.is_shared => {
                Err(Doubt::Differs("another process than the one that connected asks"))
            }
            Self::Compare(_) if peer.allowed.is_some_and(|known| known.includes(purpose)) => Ok(()),
            Self::Compare(standard) => {
                peer.parent = standard.compare(peer.port.fd(), peer.accepted, purpose)?;
                peer.allowed = Some(purpose);
                Ok(())
            }
            Self::RefuseAll(_) => Err(Doubt::Differs("sandboxes cannot be seen")),
        }
    }
}
