//! When the shim executes the real shell instead, and which shell that is. No host listens in these tests.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crate::host::{Place, outcome};
use rexec_sh::protocol::mark::{ProcessStat, is_guard_above};
use rexec_sh::protocol::process::Pid;

#[test]
fn what_is_no_command_string_is_the_real_shell_with_untouched_arguments() {
    let place = Place::new();
    let script = place.dir.join("script");
    fs::write(&script, "echo \"${0##*/} $*\"\n").unwrap();
    let run = |arguments: &[&str]| {
        let mut command = place.shim("rexec-bash");
        outcome(&command.args(arguments).output().unwrap())
    };
    let path = script.to_str().unwrap();
    assert_eq!(run(&[path, "-c", "x"]), (Some(0), "script -c x\n".into(), String::new()));
    assert!(run(&["--version"]).1.starts_with("GNU bash"));
    assert_eq!(run(&[]), (Some(0), String::new(), String::new()));
    assert_eq!(run(&["-s", "a"]), (Some(0), String::new(), String::new()));
    assert_eq!(run(&["-c"]).0, Some(2));
}

#[test]
fn a_command_inside_a_run_is_the_real_shell() {
    let place = Place::new();
    // To the shim a guard is a session leader of that name, however far above.
    let guard = "printf rexec-guard >/proc/$$/comm; export REXEC_INSIDE=1";
    for (below, out) in [
        ("\"$0\" -c 'echo \"$0 $REXEC_SOCKET\"; exit 3'", format!("/bin/bash {}\n", place.socket().display())),
        ("bash -c '\"$0\" -c \"echo below; exit 3\"; exit $?' \"$0\"", "below\n".to_owned()),
    ] {
        let script = format!(
            "exec setsid --wait bash -c '{}' \"$0\"",
            format!("{guard}; {below}; exit $?").replace('\'', "'\\''")
        );
        let output = place.real_shell(&script).output().unwrap();
        assert_eq!(outcome(&output), (Some(3), out, String::new()), "{below}");
    }
}

/// An agent's settings may hold anything, and then the host's human would see nothing of it.
#[test]
fn what_says_that_it_is_inside_a_run_is_not_believed() {
    use std::os::unix::fs::MetadataExt;
    let stat_of = |pid: Pid| ProcessStat::read(&fs::read(format!("/proc/{pid}/stat")).ok()?);
    let is_below_a_guard = is_guard_above(Pid::new(std::process::id().cast_signed()), stat_of);
    if is_below_a_guard || fs::metadata("/proc/self/ns/pid").unwrap().ino() != 0xEFFF_FFFC {
        // The tests themselves are a command of a host. In a pid namespace below the first, a guard may be above and
        // out of sight.
        return;
    }
    let place = Place::new();
    for forged in ["1", "yes", "0"] {
        let output = place.bash("echo ran").env("REXEC_INSIDE", forged).output().unwrap();
        let (code, out, err) = outcome(&output);
        assert_eq!((code, out.as_str()), (Some(127), ""), "{forged}");
        assert!(err.starts_with("HOST NOT FOUND\n"), "{forged}: {err}");
    }
}

#[test]
fn the_name_chooses_the_shell() {
    let place = Place::new();
    let asks = "echo ${BASH_VERSION:+bash}";
    for (name, expected) in [("rexec-bash", "bash\n"), ("bash", "bash\n")] {
        let output = place.shim(name).args(["-c", asks]).env("REXEC_FALLBACK", "shell").output().unwrap();
        assert_eq!(outcome(&output).1, expected);
    }
    let sh =
        place.shim("rexec-sh").args(["-c", "readlink /proc/$$/exe"]).env("REXEC_FALLBACK", "shell").output().unwrap();
    let real = fs::canonicalize("/bin/sh").unwrap();
    assert_eq!(outcome(&sh).1.trim_end(), real.to_str().unwrap());
    // A caller may set argv[0] to anything; then the file's name counts.
    let script = format!("REXEC_FALLBACK=shell exec -a recorder \"$0\" -c '{asks}'");
    assert_eq!(outcome(&place.real_shell(&script).output().unwrap()).1, "bash\n");
}

#[test]
fn the_real_shell_has_the_name_that_it_would_have_without_us() {
    let place = Place::new();
    let asks = "echo $0; no-such-command";
    for (name, argv0) in [("rexec-bash", "/bin/bash"), ("bash", "/bin/bash"), ("rexec-sh", "/bin/sh")] {
        let ours = place.shim(name).args(["-c", asks]).env("REXEC_FALLBACK", "shell").output().unwrap();
        let theirs = place.program(Path::new(argv0)).args(["-c", asks]).output().unwrap();
        assert_eq!(outcome(&ours), outcome(&theirs), "{name}");
    }
    for (given, expected) in
        [("rexec-bash", "bash"), ("bash", "bash"), ("-rexec-bash", "-bash"), ("anything", "anything")]
    {
        let script = format!("REXEC_FALLBACK=shell exec -a {given} \"$0\" -c '{asks}'");
        let (code, out, err) = outcome(&place.real_shell(&script).output().unwrap());
        let said = format!("{expected}: line 1: no-such-command: command not found\n");
        assert_eq!((code, out, err), (Some(127), format!("{expected}\n"), said), "{given}");
    }
    let chosen = place.dir.join("chosen-bash");
    std::os::unix::fs::symlink("/bin/bash", &chosen).unwrap();
    let output = place.bash("echo $0").env("REXEC_FALLBACK", "shell").env("REXEC_SHELL", &chosen).output().unwrap();
    assert_eq!(outcome(&output).1, format!("{}\n", chosen.display()));
}

#[test]
fn a_login_shell_is_the_real_shell() {
    let place = Place::new();
    let output = place.real_shell("HOME=/ exec -a -rexec-bash \"$0\" -c 'shopt -q login_shell && echo login'").output();
    assert_eq!(outcome(&output.unwrap()).1, "login\n");
}

#[test]
fn a_chosen_shell_must_be_real() {
    let place = Place::new();
    let other = place.dir.join("other");
    fs::write(&other, "#!/bin/sh\necho other \"$@\"\n").unwrap();
    let run = |shell: &str| {
        let mut command = place.bash("x");
        outcome(&command.env("REXEC_SHELL", shell).env("REXEC_FALLBACK", "shell").output().unwrap())
    };
    let (code, _, stderr) = run(other.to_str().unwrap());
    assert_eq!(code, Some(125));
    assert!(stderr.contains("is not an executable file") && stderr.contains("hint: "), "{stderr}");
    fs::set_permissions(&other, fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(run(other.to_str().unwrap()), (Some(0), "other -c x\n".into(), String::new()));
    for (shell, why) in [
        ("bin/bash", "is not an absolute path"),
        ("/nonexistent/bash", "cannot be found"),
        ("/bin", "is not an executable file"),
        (place.dir.join("bash").to_str().unwrap(), "is rexec-sh itself"),
    ] {
        let (code, stdout, stderr) = run(shell);
        assert_eq!((code, stdout.as_str()), (Some(125), ""));
        assert!(stderr.contains(why), "{shell}: {stderr}");
    }
}

#[test]
fn a_bash_that_hands_its_commands_to_the_shim_does_not_come_round() {
    let place = Place::new();
    let recipe = place.dir.join("rexec-env");
    let text = "if [ -n \"$BASH_EXECUTION_STRING\" ]; then exec \"$SHIM\" -c \"$BASH_EXECUTION_STRING\"; fi\n";
    fs::write(&recipe, text).unwrap();
    let mut command = place.bash("echo once ${BASH_ENV-unset}");
    command.env("BASH_ENV", &recipe).env("SHIM", place.dir.join("rexec-bash")).env("REXEC_FALLBACK", "shell");
    assert_eq!(outcome(&command.output().unwrap()), (Some(0), "once unset\n".into(), String::new()));
}

#[test]
fn a_link_is_the_shell_that_it_is_named_after() {
    let place = Place::new();
    let run = |name: &str| {
        symlink("rexec-sh", place.dir.join(name)).unwrap();
        let mut command = place.shim(name);
        outcome(&command.env("REXEC_FALLBACK", "shell").args(["-c", "readlink /proc/self/exe; true"]).output().unwrap())
    };
    for name in ["dash", "rexec-dash", "ksh", "mksh", "fish"] {
        let shell = name.strip_prefix("rexec-").unwrap_or(name);
        let is_there = ["/bin", "/usr/bin", "/usr/local/bin"].iter().any(|dir| Path::new(dir).join(shell).exists());
        let (code, out, err) = run(name);
        if is_there {
            // It is readlink(1) that runs, below the shell.
            assert_eq!((code, out.is_empty(), err.as_str()), (Some(0), false, ""), "{name}");
        } else {
            let word = format!("rexec: there is no {shell} in the usual places");
            assert!(code == Some(127) && err.starts_with(&word) && err.contains("\nhint: set REXEC_SHELL"), "{err}");
        }
    }
    let (code, out, err) = run("tcsh");
    assert!(code == Some(127) && out.is_empty() && err.starts_with("rexec: rexec-sh cannot stand for tcsh"), "{err}");
}

/// The caller would have found that one.
#[test]
fn where_path_leads_to_the_link_the_first_shell_in_path_is_the_real_one() {
    let place = Place::new();
    if !["/bin/bash", "/usr/bin/bash"].iter().all(|path| Path::new(path).exists()) {
        return;
    }
    let link = place.shim("bash");
    let links = Path::new(link.get_program()).parent().unwrap().display().to_string();
    for (path, user, expected) in [
        (format!("{links}:/usr/bin:/bin"), "/bin/bash", "/usr/bin/bash"),
        (format!("{links}:/bin:/usr/bin"), "/usr/bin/bash", "/bin/bash"),
        ("/usr/bin:/bin".to_owned(), "/usr/bin/bash", "/usr/bin/bash"),
        ("/usr/bin:/bin".to_owned(), "/bin/zsh", "/bin/bash"),
    ] {
        let mut command = place.shim("bash");
        command.env("REXEC_FALLBACK", "shell").env("PATH", &path).env("SHELL", user).args(["-c", "echo $BASH"]);
        assert_eq!(outcome(&command.output().unwrap()).1, format!("{expected}\n"), "{path} {user}");
    }
}
