//! A caller inside a sandbox gets its command run inside that sandbox, by the real shell, and never by the host.

#[expect(dead_code, reason = "every test file uses its part of the harness")]
mod support;

use support::call::Target;
use support::host::Host;
use support::programs;

struct Sandbox {
    name: &'static str,
    /// What puts the shim into the sandbox.
    enter: &'static str,
    /// A command, and what it prints inside when the sandbox holds.
    probe: &'static str,
    expected: &'static str,
    needs_root: bool,
}

const TABLE: &[Sandbox] = &[
    Sandbox {
        name: "no new privileges",
        enter: "setpriv --no-new-privs",
        probe: "grep NoNewPrivs /proc/self/status | tr -d '\\t'",
        expected: "NoNewPrivs:1\n",
        needs_root: false,
    },
    Sandbox {
        name: "a network of its own",
        enter: "unshare --net",
        probe: "test $(readlink /proc/self/ns/net) != $OUTSIDE_NET && echo inside",
        expected: "inside\n",
        needs_root: true,
    },
    Sandbox {
        name: "a name of its own",
        enter: "unshare --uts",
        probe: "test $(readlink /proc/self/ns/uts) != $OUTSIDE_UTS && echo inside",
        expected: "inside\n",
        needs_root: true,
    },
    Sandbox {
        name: "mounts of its own",
        enter: "unshare --mount",
        probe: "test $(readlink /proc/self/ns/mnt) != $OUTSIDE_MNT && echo inside",
        expected: "inside\n",
        needs_root: true,
    },
    Sandbox {
        name: "processes of its own",
        enter: "unshare --pid --fork",
        probe: "test $$ -lt 5 && echo inside",
        expected: "inside\n",
        needs_root: true,
    },
    Sandbox {
        name: "users of its own",
        enter: "unshare --user --map-root-user",
        probe: "test $(readlink /proc/self/ns/user) != $OUTSIDE_USER && echo inside",
        expected: "inside\n",
        needs_root: true,
    },
    Sandbox {
        name: "fewer capabilities to gain",
        enter: "setpriv --bounding-set=-sys_ptrace",
        probe: "test $(grep CapBnd /proc/self/status | cut -f 2) != $OUTSIDE_BND && echo inside",
        expected: "inside\n",
        needs_root: true,
    },
    Sandbox {
        name: "another group",
        enter: "setpriv --groups=4242",
        probe: "id -G | tr ' ' '\\n' | grep 4242",
        expected: "4242\n",
        needs_root: true,
    },
];

#[test]
fn commands_of_sandboxed_callers_stay_inside() {
    let host = Host::start();
    let is_root = nix::unistd::geteuid().is_root();
    let shim = programs::shims().join("bash");
    let mut wrong = Vec::new();
    for sandbox in TABLE.iter().filter(|sandbox| is_root || !sandbox.needs_root) {
        let tool = sandbox.enter.split(' ').next().expect("a program");
        if !programs::has(tool) {
            continue;
        }
        let script = format!(
            "for n in net uts mnt user; do export OUTSIDE_${{n^^}}=$(readlink /proc/self/ns/$n); done
            export OUTSIDE_BND=$(grep CapBnd /proc/self/status | cut -f 2)
            {} true 2>/dev/null || exit 77
            unset REXEC_INSIDE; exec {} '{}' -c \"$PROBE\"",
            sandbox.enter,
            sandbox.enter,
            shim.display()
        );
        let call = host.call(&script).env(&format!("REXEC_SOCKET={}", host.socket().display()));
        let seen = call.env(&format!("PROBE={}", sandbox.probe)).run(Target::Real);
        if seen.code() == 77 {
            programs::skipped(&format!("{} cannot be had here", sandbox.name));
            continue;
        }
        if (seen.out().as_str(), seen.err().as_str(), seen.code()) != (sandbox.expected, "", 0) {
            wrong.push(format!("{}: {:?} {:?} {}", sandbox.name, seen.out(), seen.err(), seen.code()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(host.run("echo outside").out(), "outside\n");
}
