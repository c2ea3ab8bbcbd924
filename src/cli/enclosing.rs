//! Finds the socket and the journals of the host that this process runs below, if there is one.
//!
//! A command sees none of the host's own variables. A host that was started with `REXEC_SOCKET` would then not be found
//! by a `rexec` in its commands, which would start another one. So this reads the variables of the host itself, which
//! is the parent of the guard above (`/proc/PID/environ`, proc(5)).

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rexec_sh::protocol::mark::{ProcessStat, guard_above};
use rexec_sh::protocol::process::Pid;

use super::{HOME_VARIABLE, SOCKET_VARIABLE};

/// The value of this path variable in the host above. `None` without a host above, and if this process has one of these
/// variables itself: then it means another host.
pub(super) fn path(name: &str) -> Option<OsString> {
    if !is_set("REXEC_INSIDE") || is_set(SOCKET_VARIABLE) || is_set(HOME_VARIABLE) {
        return None;
    }
    let host = guard()?.parent;
    let place = PathBuf::from(format!("/proc/{host}"));
    let value = value(&std::fs::read(place.join("environ")).ok()?, name)?;
    // A relative path is relative to the host's directory.
    let directory = || std::fs::read_link(place.join("cwd")).ok();
    if Path::new(&value).is_absolute() { Some(value) } else { Some(directory()?.join(value).into_os_string()) }
}

/// Returns true if this process belongs to a command of a host, as far as is seen.
pub(super) fn is_inside() -> bool {
    is_set("REXEC_INSIDE") || guard().is_some()
}

/// The host above this process.
pub(super) fn host() -> Option<Pid> {
    Some(guard()?.parent)
}

fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}

/// The guard above this process.
fn guard() -> Option<ProcessStat> {
    guard_above(Pid::new(std::os::unix::process::parent_id().try_into().ok()?), stat_of)
}

fn stat_of(pid: Pid) -> Option<ProcessStat> {
    ProcessStat::read(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// A variable's value in an environment as the kernel shows it. One that is set to nothing counts as unset.
fn value(environment: &[u8], name: &str) -> Option<OsString> {
    let of = |entry: &[u8]| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=").map(<[u8]>::to_vec);
    let value = environment.split(|&byte| byte == 0).find_map(of)?;
    (!value.is_empty()).then(|| OsString::from_vec(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_by_its_whole_name() {
        let environment = b"REXEC_SOCKETS=/a\0X=REXEC_SOCKET=/b\0REXEC_SOCKET=/c=d\0REXEC_HOME=\0";
        assert_eq!(value(environment, "REXEC_SOCKET"), Some("/c=d".into()));
        assert_eq!((value(environment, "REXEC_HOME"), value(environment, "REXEC")), (None, None));
    }
}
