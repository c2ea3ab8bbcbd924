//! The fixed places where real shells are looked for. PATH is never searched, because the shim itself may stand there.

use std::ffi::CStr;

use crate::protocol::invocation::Shell;

/// Places of sh. The shim may stand in the place of the first ones; dash then serves as well.
const SH: [&CStr; 5] = [c"/bin/sh", c"/usr/bin/sh", c"/usr/local/bin/sh", c"/bin/dash", c"/usr/bin/dash"];
const BASH: [&CStr; 5] = [
    c"/bin/bash",
    c"/usr/bin/bash",
    c"/usr/local/bin/bash",
    c"/run/current-system/sw/bin/bash",
    c"/opt/homebrew/bin/bash",
];
const ZSH: [&CStr; 5] =
    [c"/bin/zsh", c"/usr/bin/zsh", c"/usr/local/bin/zsh", c"/run/current-system/sw/bin/zsh", c"/opt/homebrew/bin/zsh"];

/// Paths at which a shell of this kind may be, the likelier ones first.
#[must_use]
pub fn places(shell: Shell) -> &'static [&'static CStr; 5] {
    match shell {
        Shell::Sh => &SH,
        Shell::Bash => &BASH,
        Shell::Zsh => &ZSH,
    }
}
