//! Quoting, bytes that are not text, and the ways to pass arguments.

use super::case::{Case, Mode, PLAIN, Place};

const TABLE: &[Case] = &[
    Case { name: "single quotes", script: br#"echo 'a  "b" $HOME \n'"#, ..PLAIN },
    Case { name: "double quotes", script: br#"echo "a  'b' \"c\" \$HOME $(echo x)""#, ..PLAIN },
    Case { name: "quotes in quotes", script: br#"eval 'echo '"'"'it'"'"'"'"'"'"'"'"'s'"'"''"#, ..PLAIN },
    Case { name: "ANSI-C quotes", script: br"echo -n $'a\tb\x41\u00e9\n'", ..PLAIN },
    Case { name: "backslashes", script: br"echo a\ \ b \\ \$HOME", ..PLAIN },
    Case { name: "backquotes", script: b"echo `echo a; echo b`", ..PLAIN },
    Case { name: "lines", script: b"echo one\necho two\n\n\necho three\n", ..PLAIN },
    Case { name: "a line that goes on", script: b"echo one \\\n  two", ..PLAIN },
    Case { name: "carriage returns in the script", script: b"echo one\r\necho two\r\n", ..PLAIN },
    Case { name: "a heredoc", script: b"cat <<EOF\n$((1+2)) 'x'\n\ttab\nEOF\necho end", ..PLAIN },
    Case { name: "a quoted heredoc", script: b"cat <<'EOF'\n$HOME `x` \\\nEOF", ..PLAIN },
    Case { name: "a herestring", script: b"cat <<<\"$(printf 'a\\nb')\"", ..PLAIN },
    Case { name: "a heredoc without an end", script: b"cat <<EOF\nbody", ..PLAIN },
    Case { name: "globs", script: b"touch a.x b.x 'c d.x' .h; echo *.x; ls -1; shopt -s dotglob; echo *", ..PLAIN },
    Case { name: "braces", script: b"echo {a,b}{1..3}", ..PLAIN },
    Case { name: "arithmetic", script: b"echo $((2**40)) $((7/2)) $((1/0)); echo after", ..PLAIN },
    Case {
        name: "arrays",
        script: b"a=(x 'y z' w); echo ${#a[@]} \"${a[1]}\"; declare -A m=([k]=v); echo ${m[k]}",
        ..PLAIN
    },
    Case { name: "functions", script: b"f() { local x=$1; echo \"f:$x:$#\"; return 3; }; f 'a b' c; echo $?", ..PLAIN },
    Case { name: "special parameters", script: b"echo $# $@ $- $?; set -- a 'b c'; echo $# \"$*\"", ..PLAIN },
    Case { name: "its own text", script: b"printf %s \"$BASH_EXECUTION_STRING\" | od -c", ..PLAIN },
    Case { name: "text that is not UTF-8", script: b"echo \xff\xfe\x80 caf\xe9 | od -c; echo done", ..PLAIN },
    Case { name: "an overlong encoding", script: b"printf %s '\xc0\xaf\xed\xa0\x80' | od -An -tx1", ..PLAIN },
    Case { name: "control bytes", script: b"printf %s '\x01\x02\x07\x08\x0e\x1b\x7f' | od -An -tx1", ..PLAIN },
    Case {
        name: "many scripts of the world",
        script: "echo 'żółć 日本語 🦀 e\u{301}'; echo ${#HOME}".as_bytes(),
        ..PLAIN
    },
    Case { name: "output that is not UTF-8", script: b"printf '\\xff\\xfe caf\\xe9 \\x80\\n'", ..PLAIN },
    Case {
        name: "a directory that is not UTF-8",
        script: b"pwd | sed 's/.*\\///' | od -c; touch here",
        place: Place::OddName,
        ..PLAIN
    },
    Case {
        name: "a deleted directory",
        script: b"echo in; test -e .; echo $?; cd / && echo out",
        place: Place::Deleted,
        ..PLAIN
    },
    Case {
        name: "a forbidden directory",
        script: b"echo in; touch x; ls; cd / && echo out",
        place: Place::Forbidden,
        ..PLAIN
    },
    Case { name: "a file whose name is not UTF-8", script: b"echo x > $'\\xff\\xfe name'; ls -b", ..PLAIN },
    Case {
        name: "positional arguments",
        script: b"echo $0 $# \"$1\" \"$2\"",
        args: &[b"name", b"a b", b"$c"],
        ..PLAIN
    },
    Case {
        name: "an argument that is empty",
        script: b"echo $# \"[$1]\" \"[$2]\"",
        args: &[b"name", b"", b"x"],
        ..PLAIN
    },
    Case {
        name: "arguments that are not UTF-8",
        script: b"printf %s \"$@\" | od -c",
        args: &[b"name", b"\xff", b"caf\xe9"],
        ..PLAIN
    },
    Case {
        name: "arguments that look like options",
        script: b"echo $0 \"$@\"",
        args: &[b"-x", b"--help", b"-c", b"false"],
        ..PLAIN
    },
    Case { name: "a script that looks like an option", script: b"-x", ..PLAIN },
    Case { name: "-lc", options: &["-lc"], script: b"shopt -q login_shell && echo login", ..PLAIN },
    Case { name: "-c -l", options: &["-c", "-l"], script: b"shopt -q login_shell && echo login; echo $-", ..PLAIN },
    Case { name: "-l -c", options: &["-l", "-c"], script: b"shopt -q login_shell && echo login; echo $0", ..PLAIN },
    Case { name: "--login -c", options: &["--login", "-c"], script: b"shopt -q login_shell && echo login", ..PLAIN },
    Case { name: "-cl", options: &["-cl"], script: b"shopt -q login_shell && echo login", ..PLAIN },
    Case { name: "-ec", options: &["-ec"], script: b"false; echo not reached", ..PLAIN },
    Case { name: "-xc", options: &["-xc"], script: b"echo traced", ..PLAIN },
    Case { name: "-c -x -e", options: &["-c", "-x", "-e"], script: b"echo traced; false; echo not reached", ..PLAIN },
    Case { name: "-o pipefail -c", options: &["-o", "pipefail", "-c"], script: b"false | true", ..PLAIN },
    Case { name: "-c -o pipefail", options: &["-c", "-o", "pipefail"], script: b"false | true", ..PLAIN },
    Case { name: "-euo pipefail -c", options: &["-euo", "pipefail", "-c"], script: b"false | true; echo no", ..PLAIN },
    Case { name: "-O extglob -c", options: &["-O", "extglob", "-c"], script: b"touch a b; echo !(a)", ..PLAIN },
    Case { name: "+O extglob -c", options: &["+O", "extglob", "-c"], script: b"shopt extglob", ..PLAIN },
    Case { name: "--norc --noprofile -c", options: &["--norc", "--noprofile", "-c"], script: b"echo $-", ..PLAIN },
    Case {
        name: "--posix -c",
        options: &["--posix", "-c"],
        script: b"echo $POSIXLY_CORRECT; set -o | grep posix",
        ..PLAIN
    },
    Case { name: "-c --", options: &["-c", "--"], script: b"echo dashes $0", ..PLAIN },
    Case { name: "-p -c", options: &["-p", "-c"], script: b"echo $-", ..PLAIN },
    Case { name: "an option that does not exist", options: &["--no-such-option", "-c"], script: b"echo no", ..PLAIN },
    Case { name: "-c without a script", options: &["-c"], script: b"", ..PLAIN },
    Case { name: "a bare name", argv0: "bash", script: b"echo $0; no-such-command", ..PLAIN },
    Case { name: "a link's path", shell: "rexec-bash", script: b"echo $0 $BASH; no-such-command; if", ..PLAIN },
    Case {
        name: "a link's bare name",
        shell: "rexec-bash",
        argv0: "rexec-bash",
        script: b"echo $0; no-such-command; cd /nonexistent",
        ..PLAIN
    },
    Case { name: "a link's path, sh", shell: "rexec-sh", script: b"echo $0; no-such-command", ..PLAIN },
    Case {
        name: "a link's path, an option that does not exist",
        shell: "rexec-bash",
        options: &["-Z", "-c"],
        script: b"echo no",
        ..PLAIN
    },
    Case {
        name: "a link's path, zsh",
        shell: "rexec-zsh",
        needs: &["zsh"],
        script: b"echo $0; no-such-command; [[ -o restricted ]]",
        ..PLAIN
    },
    Case {
        name: "a link's bare name, zsh",
        shell: "rexec-zsh",
        argv0: "rexec-zsh",
        needs: &["zsh"],
        script: b"echo $0; no-such-command; [[ -o restricted ]]",
        ..PLAIN
    },
    Case {
        name: "a shell of the caller's choice",
        shell: "rexec-bash",
        env: &[b"REXEC_SHELL=/bin/bash"],
        script: b"echo $0; no-such-command",
        ..PLAIN
    },
    Case { name: "a full path as its name", argv0: "/some/where/bash", script: b"echo $0; no-such-command", ..PLAIN },
    Case {
        name: "sh: options",
        shell: "sh",
        argv0: "sh",
        options: &["-ec"],
        script: b"echo a; false; echo b",
        ..PLAIN
    },
    Case { name: "sh: arguments", shell: "sh", argv0: "sh", script: b"echo $0 $1", args: &[b"n", b"one"], ..PLAIN },
];

/// Where the shim becomes the real shell, that shell has the same name as by way of the host.
const AT_ONCE: &[Case] = &[
    Case { name: "at once: a link's path", shell: "rexec-bash", ..FROM_STDIN },
    Case { name: "at once: a link's bare name", shell: "rexec-sh", argv0: "rexec-sh", ..FROM_STDIN },
    Case { name: "at once: a login shell", shell: "rexec-bash", argv0: "-rexec-bash", ..FROM_STDIN },
    Case { name: "at once: zsh", shell: "rexec-zsh", needs: &["zsh"], ..FROM_STDIN },
    Case { name: "at once: a login zsh", shell: "rexec-zsh", argv0: "-rexec-zsh", needs: &["zsh"], ..FROM_STDIN },
];

const FROM_STDIN: Case = Case {
    options: &["-s"],
    input: crate::support::call::Input::Data(b"echo $0 $-\nno-such-command\n"),
    modes: &[Mode::Pipe],
    ..PLAIN
};

/// What is no `-c` goes to the real shell without a host, and never to a terminal.
const DIRECT: &[Case] = &[
    Case { name: "--version", options: &["--version"], modes: &[Mode::Pipe], ..PLAIN },
    Case { name: "--help", options: &["--help"], modes: &[Mode::Pipe], ..PLAIN },
    Case {
        name: "-s",
        options: &["-s"],
        args: &[b"one"],
        input: crate::support::call::Input::Data(b"echo $1 $-; exit 4\n"),
        modes: &[Mode::Pipe],
        ..PLAIN
    },
    Case {
        name: "a script by stdin",
        options: &[],
        input: crate::support::call::Input::Data(b"echo from stdin; exit 5\n"),
        modes: &[Mode::Pipe],
        ..PLAIN
    },
    Case {
        name: "a script file",
        options: &["/dev/fd/3"],
        third: Some(b"echo from a file $0 $1; exit 6\n"),
        args: &[b"one"],
        modes: &[Mode::Pipe],
        ..PLAIN
    },
    Case { name: "a script file that is missing", options: &["/nonexistent/script"], modes: &[Mode::Pipe], ..PLAIN },
    Case {
        name: "-n with a script",
        options: &["-n", "/dev/fd/3"],
        third: Some(b"echo no; fi\n"),
        modes: &[Mode::Pipe],
        ..PLAIN
    },
];

#[test]
fn some_scripts_are_read_alike() {
    super::case::check_some(TABLE);
}

#[test]
#[ignore = "long: every case, as every user"]
fn scripts_are_read_alike() {
    super::case::check(TABLE);
}

#[test]
fn a_shell_that_the_shim_becomes_has_its_own_name() {
    super::case::check(AT_ONCE);
}

#[test]
fn other_forms_go_to_the_real_shell() {
    super::case::check(DIRECT);
}

#[test]
fn every_byte_and_the_longest_script_arrive() {
    let bytes: Vec<u8> = (1..=255).filter(|byte| *byte != b'\'').collect();
    let every = [b"printf %s '".as_slice(), &bytes, b"' | od -An -v -tx1".as_slice()].concat();
    let tail = b"\nprintf %s \"$BASH_EXECUTION_STRING\" | cksum";
    let mut longest = b"# ".to_vec();
    longest.resize(131_071 - tail.len(), b'x');
    longest.extend_from_slice(tail);
    super::case::check(&[
        Case { name: "every byte", script: every.leak(), ..PLAIN },
        Case { name: "131,071 bytes", script: longest.leak(), ..PLAIN },
    ]);
}
