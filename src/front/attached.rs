//! The language of `rexec attach`, once the host has accepted it: a person's keys and sizes in, a command's output and
//! exit out, in the frames of `rexec_sh::protocol::wire`.
//!
//! Output is not filtered: the person's terminal stands for the command's, so that full-screen programs work.

use rexec_sh::protocol::exit_code::OWN_FAILURE;
use rexec_sh::protocol::notice::{Notice, remark};
use rexec_sh::protocol::wire::{self, Decoded, FromShim};

use super::{PeerRequest, TerminalEvent};
use crate::core::entry::Entry;
use crate::core::log::Item;
use crate::text::count;

#[derive(Debug, Default)]
pub struct Attached;

impl Attached {
    /// Takes whole frames off the front of `inbox`; returns the next event, if there is one.
    ///
    /// # Errors
    /// A frame is not of this language.
    pub fn take(&mut self, inbox: &mut Vec<u8>) -> Result<Option<PeerRequest>, Notice> {
        loop {
            let not_valid =
                |problem: &str| Notice::new(OWN_FAILURE, problem, "install rexec and rexec-host of the same release");
            let decoded = FromShim::decode(inbox).map_err(|error| not_valid(&error.to_string()))?;
            let (event, taken) = match decoded {
                Decoded::Incomplete => return Ok(None),
                Decoded::Skip(taken) => (None, taken),
                Decoded::Item(FromShim::Keys(keys), taken) => (Some(TerminalEvent::Keys(keys.to_vec())), taken),
                Decoded::Item(FromShim::Size((rows, cols)), taken) => (Some(TerminalEvent::Size(rows, cols)), taken),
                Decoded::Item(..) => return Err(not_valid("a frame that does not belong to rexec attach")),
            };
            inbox.drain(..taken);
            if let Some(event) = event {
                return Ok(Some(PeerRequest::Terminal(event)));
            }
        }
    }

    /// Translates one item of the command's log.
    pub fn accept(&self, item: &Item<'_>, out: &mut Vec<u8>) {
        match item {
            Item::Entry(Entry::Output { bytes, .. }) => wire::encode_output(wire::CallerStream::Out, bytes, out),
            Item::Missed { bytes } => {
                let note = format!("{} not shown, for lack of time", count::bytes(*bytes));
                wire::FromHost::Note(remark(note).as_bytes()).encode(out);
            }
            Item::Entry(Entry::Ended(end)) => match end.exit() {
                Some(exit) => wire::FromHost::Exit(exit).encode(out),
                None => self.fail(&LOST, out),
            },
            Item::Entry(_) => {}
        }
    }

    /// Writes the last message.
    pub fn fail(&self, notice: &Notice, out: &mut Vec<u8>) {
        wire::FromHost::Fail { code: notice.code, text: notice.to_string().as_bytes() }.encode(out);
    }
}

const LOST: Notice =
    Notice::fixed(OWN_FAILURE, "how the command ended is not known", "rexec show has what is known of it");
