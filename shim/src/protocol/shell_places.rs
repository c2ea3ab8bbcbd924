//! The fixed places of real shells. PATH is never searched, because the shim itself may stand there. It may only decide
//! which of these places comes first.

use std::ffi::CStr;

use crate::protocol::invocation::Shell;

/// The number of places for each shell.
const PLACES: usize = 5;

/// The usual places of a program.
macro_rules! usual {
    ($name:literal) => {
        [
            text(concat!("/bin/", $name, "\0")),
            text(concat!("/usr/bin/", $name, "\0")),
            text(concat!("/usr/local/bin/", $name, "\0")),
            text(concat!("/run/current-system/sw/bin/", $name, "\0")),
            text(concat!("/opt/homebrew/bin/", $name, "\0")),
        ]
    };
}

/// Places of sh. The shim may stand at the first ones; dash then serves as well.
const SH: [&CStr; PLACES] = [c"/bin/sh", c"/usr/bin/sh", c"/usr/local/bin/sh", c"/bin/dash", c"/usr/bin/dash"];
const BASH: [&CStr; PLACES] = usual!("bash");
const ZSH: [&CStr; PLACES] = usual!("zsh");
const DASH: [&CStr; PLACES] = usual!("dash");
const KSH: [&CStr; PLACES] = usual!("ksh");
const MKSH: [&CStr; PLACES] = usual!("mksh");
const FISH: [&CStr; PLACES] = usual!("fish");
const BUSYBOX: [&CStr; PLACES] = usual!("busybox");

const fn text(bytes: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(bytes.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("the only NUL is the last byte"),
    }
}

/// Possible paths of a shell of this kind, the likelier ones first.
#[must_use]
pub fn places(shell: Shell) -> &'static [&'static CStr; PLACES] {
    match shell {
        Shell::Sh => &SH,
        Shell::Bash => &BASH,
        Shell::Zsh => &ZSH,
        Shell::Dash => &DASH,
        Shell::Ksh => &KSH,
        Shell::Mksh => &MKSH,
        Shell::Fish => &FISH,
        Shell::Busybox => &BUSYBOX,
    }
}

/// Returns true if a place lies in this folder.
#[must_use]
pub fn is_in(place: &CStr, folder: &[u8]) -> bool {
    let folder = folder.strip_suffix(b"/").unwrap_or(folder);
    let rest = place.to_bytes().strip_prefix(folder);
    rest.and_then(|rest| rest.strip_prefix(b"/")).is_some_and(|name| !name.contains(&b'/'))
}
