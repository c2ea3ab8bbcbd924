//! No host, or one that must not be trusted: what the caller is told, and that nothing was sent.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use crate::host::{Place, frames, outcome};
use nix::fcntl::{Flock, FlockArg};
use rexec_sh::protocol::process::Exit;
use rexec_sh::protocol::wire::FromHost;

/// Words by which agents tell that a sandbox denied a command, and then offer to leave it.
const AVOIDED: [&str; 5] = ["sandbox", "permission", "permitted", "denied", "seccomp"];

fn run_with(place: &Place, socket: &Path) -> (Option<i32>, String, String) {
    let found = outcome(&place.bash("echo ran").env("REXEC_SOCKET", socket).output().unwrap());
    let stderr = found.2.to_lowercase();
    assert!(AVOIDED.iter().all(|word| !stderr.contains(word)), "{stderr}");
    found
}

#[test]
fn without_a_host_the_model_is_told_what_to_do() {
    let place = Place::new();
    let socket = place.socket();
    let expected = format!(
        "HOST NOT FOUND\nrexec: no rexec-host is listening on {}\nhint: start rexec-host in a terminal, then run the \
         command again\n",
        socket.display()
    );
    assert_eq!(run_with(&place, &socket), (Some(127), String::new(), expected.clone()));
    drop(UnixListener::bind(&socket).unwrap());
    assert_eq!(run_with(&place, &socket), (Some(127), String::new(), expected), "a socket without a listener");
}

#[test]
fn a_socket_in_a_missing_directory_or_a_fifo_in_its_place_is_no_host() {
    let place = Place::new();
    for socket in [place.dir.join("none/host.sock"), place.dir.join("fifo")] {
        if socket.ends_with("fifo") {
            nix::unistd::mkfifo(&socket, nix::sys::stat::Mode::S_IRWXU).unwrap();
        }
        let (code, stdout, stderr) = run_with(&place, &socket);
        assert_eq!((code, stdout.as_str()), (Some(127), ""));
        assert!(stderr.starts_with("HOST NOT FOUND\n"), "{stderr}");
    }
}

#[test]
fn the_fallback_is_the_real_shell_when_there_is_no_host() {
    let place = Place::new();
    let script = "echo \"$0 $1 ${REXEC_INSIDE-unset}\"; exit 9";
    let output = place.bash(script).args(["zero", "one"]).env("REXEC_FALLBACK", "shell").output().unwrap();
    assert_eq!(outcome(&output), (Some(9), "zero one unset\n".into(), String::new()));
}

#[test]
fn an_unsafe_directory_gets_no_byte_and_no_fallback() {
    let place = Place::new();
    let dirs = ["open", "link", "file", "fifo"].map(|name| place.dir.join(name));
    fs::create_dir(&dirs[0]).unwrap();
    fs::set_permissions(&dirs[0], Permissions::from_mode(0o755)).unwrap();
    let listener = UnixListener::bind(dirs[0].join("host.sock")).unwrap();
    symlink(&place.dir, &dirs[1]).unwrap();
    let linked = UnixListener::bind(place.socket()).unwrap();
    File::create(&dirs[2]).unwrap();
    nix::unistd::mkfifo(&dirs[3], nix::sys::stat::Mode::S_IRWXU).unwrap();
    for dir in dirs {
        let mut command = place.bash("echo ran");
        command.env("REXEC_SOCKET", dir.join("host.sock")).env("REXEC_FALLBACK", "shell");
        let (code, stdout, stderr) = outcome(&command.output().unwrap());
        assert_eq!((code, stdout.as_str()), (Some(127), ""), "{}", dir.display());
        let expected = "rexec: the directory of the host's socket cannot be trusted: ";
        assert!(stderr.starts_with(expected) && stderr.contains("\nhint: "), "{stderr}");
    }
    for listener in [listener, linked] {
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err(), "the shim connected");
    }
}

#[test]
fn a_path_that_is_too_long_is_named() {
    let place = Place::new();
    let (code, _, stderr) = run_with(&place, &place.dir.join("x".repeat(120)));
    assert_eq!(code, Some(127));
    assert!(stderr.contains("107 at most"), "{stderr}");
}

#[test]
fn a_listener_of_another_user_gets_no_byte() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let place = Place::new();
    // It binds with our rights, and listens, which is what the shim gets to know of it, with another user's.
    let script = "import os,socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.bind(sys.argv[1])\n\
                  os.chmod(sys.argv[1],0o777)\n\
                  os.setuid(65534)\ns.listen(5)\nos.write(1,b'!')\nc,_=s.accept()\n\
                  os.write(1,str(len(c.recv(100))).encode())";
    let mut command = Command::new("python3");
    command.args(["-c", script]).arg(place.socket()).stdout(std::process::Stdio::piped());
    let Ok(mut host) = command.spawn() else { return };
    let mut stdout = host.stdout.take().unwrap();
    std::io::Read::read_exact(&mut stdout, &mut [0]).unwrap();
    let (code, ran, stderr) = run_with(&place, &place.socket());
    assert_eq!((code, ran.as_str()), (Some(127), ""));
    assert!(stderr.contains("belongs to another user (uid 65534)"), "{stderr}");
    let mut received = String::new();
    std::io::Read::read_to_string(&mut stdout, &mut received).unwrap();
    assert_eq!(received, "0");
    host.wait().unwrap();
}

#[test]
fn a_socket_that_is_denied_means_the_real_shell_and_silence() {
    if nix::unistd::geteuid().is_root() {
        return;
    }
    let place = Place::new();
    let dir = place.dir.join("closed");
    fs::create_dir(&dir).unwrap();
    fs::set_permissions(&dir, Permissions::from_mode(0o000)).unwrap();
    let found = run_with(&place, &dir.join("host.sock"));
    fs::set_permissions(&dir, Permissions::from_mode(0o700)).unwrap();
    assert_eq!(found, (Some(0), "ran\n".into(), String::new()));
}

#[test]
fn a_host_that_holds_its_lock_is_waited_for() {
    let place = Place::new();
    let lock = File::create(place.dir.join("host.sock.lock")).unwrap();
    let lock = Flock::lock(lock, FlockArg::LockExclusiveNonblock).unwrap();
    // Nobody ever listens: the shim gives up, but not before its retries.
    let start = std::time::Instant::now();
    assert_eq!(run_with(&place, &place.socket()).0, Some(127));
    assert!(start.elapsed().as_millis() >= 150);
    // Somebody listens while the shim waits. On a busy machine that may come too late, so one success is enough.
    let is_served = (0..50).any(|_| {
        let mut child = place.bash("true").spawn().unwrap();
        let host = place.answering(frames(|out| FromHost::Exit(Exit::Code(4)).encode(out)));
        let code = child.wait().unwrap().code();
        if code != Some(4) {
            // The host that came too late serves another one.
            assert_eq!((code, run_with(&place, &place.socket()).0), (Some(127), Some(4)));
        }
        host.join().unwrap();
        fs::remove_file(place.socket()).unwrap();
        code == Some(4)
    });
    assert!(is_served, "it never waited long enough");
    drop(lock);
}

#[test]
fn wrong_options_are_named_with_what_they_may_be() {
    let place = Place::new();
    for (name, value, allowed) in [
        ("REXEC_TTY", "sometimes", "auto, always, never"),
        ("REXEC_SANITIZE", "all", "raw, strip, collapse, tidy"),
        ("REXEC_FALLBACK", "yes", "shell"),
        ("REXEC_BUDGET", "2M", "a size from 1K to 1M, off"),
    ] {
        let (code, stdout, stderr) = outcome(&place.bash("echo ran").env(name, value).output().unwrap());
        let expected =
            format!("rexec: {name}: `{value}` is not a valid value ({allowed})\nhint: correct {name}, or unset it\n");
        assert_eq!((code, stdout, stderr), (Some(125), String::new(), expected));
    }
}
