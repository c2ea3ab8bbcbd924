//! A host with `no_new_privs` cannot see Landlock. It sees everything else.

use crate::support::call::{Outcome, Target};
use crate::support::host::{Host, PLAIN, Setup};
use crate::support::programs;

fn run(host: &Host, enter: &str, command: &str) -> Outcome {
    let shim = programs::shims().join("bash");
    let script = format!("unset REXEC_INSIDE; exec {enter} '{}' -c '{command}'", shim.display());
    host.call(&script).env(&format!("REXEC_SOCKET={}", host.socket().display())).run(Target::Real)
}

#[test]
fn unseen_landlock_waives_landlock_and_nothing_else() {
    if !super::has_sight() || !programs::has("setpriv") {
        return;
    }
    let wrapper = &["setpriv", "--no-new-privs"];
    let host = Host::with(Setup { wrapper, flags: &["--unseen-landlock", "--no-reports"], ..PLAIN });
    let said = host.console_text();
    assert!(said.contains("--unseen-landlock") && said.contains("Landlock"), "{said}");
    let outside = run(&host, "setpriv --no-new-privs", "echo seen");
    assert_eq!((outside.out().as_str(), outside.code()), ("seen\n", 0), "{outside:?}");
    host.wait_for("the command", |journal| journal.end_of("echo seen").cloned());
    let differs = run(&host, "", "echo without");
    assert_eq!((differs.out().as_str(), differs.err().as_str()), ("without\n", ""), "who differs runs it itself");
    if programs::has("bwrap") {
        let written = host.home.join("escaped");
        let write = format!("echo x >{} && echo wrote || echo kept", written.display());
        let caged = run(&host, "setpriv --no-new-privs bwrap --ro-bind / / --dev /dev --proc /proc", &write);
        if caged.out().is_empty() {
            programs::skipped("bwrap cannot be had here");
        } else {
            assert_eq!(caged.out(), "kept\n", "{caged:?}");
            assert!(!written.exists(), "it wrote outside of its sandbox");
        }
    }
    assert_eq!(host.journal().of_type("start").count(), 1, "{:#?}", host.journal());
}
