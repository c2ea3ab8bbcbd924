//! The environment: odd entries one by one, and many random ones, compared with `env -0`.

use super::case::{self, Bench, Case, PLAIN};
use crate::support::call::{Call, Target, usual_env};
use crate::support::dice::Dice;
use crate::support::host::{Host, MIRROR, Setup};
use crate::support::temp::TempDir;
use crate::support::waiting;

/// Sorted, and without what a host may add to an environment that lacks it.
const SHOW: &[u8] =
    b"env -0 | grep -zvE '^(PAGER|GIT_PAGER|GH_PAGER|MANPAGER|SYSTEMD_PAGER|AWS_PAGER)=' | sort -z | od -c";

const TABLE: &[Case] = &[
    Case { name: "the usual", script: SHOW, ..PLAIN },
    Case { name: "an empty value", script: SHOW, env: &[b"EMPTY="], ..PLAIN },
    Case { name: "a value with everything", script: SHOW, env: &[b"ODD=a=b c\n\t'\"\\ $x"], ..PLAIN },
    Case { name: "values that are not UTF-8", script: SHOW, env: &[b"BAD=\xff\xfe", b"CAF\xc9=\xe9"], ..PLAIN },
    Case { name: "names that are no shell names", script: SHOW, env: &[b"a.b=1", b"x-y=2", b"1z=3", b" =4"], ..PLAIN },
    Case { name: "entries without =", script: SHOW, env: &[b"NOTHING", b"AFTER=1"], ..PLAIN },
    Case { name: "entries without a name", script: SHOW, env: &[b"=value", b"AFTER=1"], ..PLAIN },
    Case { name: "twice the same name", script: SHOW, env: &[b"TWICE=1", b"TWICE=2"], ..PLAIN },
    Case { name: "a long value", script: b"echo ${#LONG}", env: &[&LONG], ..PLAIN },
    Case {
        name: "a function",
        script: b"f; type f",
        env: &[b"BASH_FUNC_f%%=() { echo from the environment; }"],
        ..PLAIN
    },
    Case {
        name: "a function in place of a program",
        script: b"ls /; env ls -d /",
        env: &[b"BASH_FUNC_ls%%=() { echo mine; }"],
        ..PLAIN
    },
    Case { name: "a broken function", script: b"f; echo $?", env: &[b"BASH_FUNC_f%%=() { echo broken"], ..PLAIN },
    Case {
        name: "BASH_ENV",
        script: b"echo main $X",
        env: &[b"BASH_ENV=/dev/fd/3"],
        third: Some(b"X=set; echo early\n"),
        ..PLAIN
    },
    Case { name: "BASH_ENV that is missing", script: b"echo main", env: &[b"BASH_ENV=/nonexistent/file"], ..PLAIN },
    Case {
        name: "sh: ENV is not read",
        script: b"echo main",
        shell: "sh",
        argv0: "sh",
        env: &[b"ENV=/nonexistent/file"],
        ..PLAIN
    },
    Case { name: "SHELLOPTS", script: b"echo traced", env: &[b"SHELLOPTS=xtrace", b"PS4=+trace "], ..PLAIN },
    Case { name: "BASHOPTS", script: b"shopt -p extglob", env: &[b"BASHOPTS=extglob"], ..PLAIN },
    Case { name: "POSIXLY_CORRECT", script: b"set -o | grep posix", env: &[b"POSIXLY_CORRECT=1"], ..PLAIN },
    Case { name: "IFS is not inherited", script: b"x='a:b c'; echo $x; printf '[%s]' $x", env: &[b"IFS=:"], ..PLAIN },
    Case { name: "a TERM of its own", script: b"echo $TERM", env: &[b"TERM=dumb"], ..PLAIN },
    Case {
        name: "pagers of its own",
        script: b"echo $PAGER $GIT_PAGER $MANPAGER",
        env: &[b"PAGER=more", b"GIT_PAGER=", b"MANPAGER=x"],
        ..PLAIN
    },
    Case {
        name: "LINES and COLUMNS",
        script: b"echo $LINES $COLUMNS; env | grep -E '^(LINES|COLUMNS)='",
        env: &[b"LINES=7", b"COLUMNS=33"],
        ..PLAIN
    },
    Case { name: "OLDPWD and PWD", script: b"echo $PWD $OLDPWD; cd -", env: &[b"OLDPWD=/usr", b"PWD=/wrong"], ..PLAIN },
    Case { name: "SHLVL", script: b"echo $SHLVL", env: &[b"SHLVL=41"], ..PLAIN },
    Case {
        name: "LD_LIBRARY_PATH and PYTHONPATH",
        script: SHOW,
        env: &[b"LD_LIBRARY_PATH=/nonexistent", b"PYTHONPATH=/x"],
        ..PLAIN
    },
    Case { name: "secrets pass", script: SHOW, env: &[b"API_KEY=sk-0123456789abcdef", b"GITHUB_TOKEN=ghp_x"], ..PLAIN },
    Case {
        name: "locale",
        script: b"printf '\\u00e9' | od -An -tx1; ls -d /tmp; sort --version | head -n 1",
        env: &[b"LC_ALL=C"],
        ..PLAIN
    },
    Case { name: "time zone", script: b"date -d @0 +%H%Z", env: &[b"TZ=Europe/Zurich"], ..PLAIN },
];

static LONG: [u8; 131_071] = {
    let mut bytes = [b'v'; 131_071];
    let name = *b"LONG=";
    let mut n = 0;
    while n < name.len() {
        bytes[n] = name[n];
        n += 1;
    }
    bytes
};

#[test]
fn some_environments_arrive_alike() {
    case::check_some(TABLE);
}

#[test]
#[ignore = "long: every case, as every user"]
fn environments_arrive_alike() {
    case::check(TABLE);
}

fn random_entry(dice: &mut Dice) -> Vec<u8> {
    const NAMES: [&[u8]; 8] = [b"A", b"LONGER_NAME", b"a.b", b"BASH_FUNC_g%%", b"x-y", b"\xe9", b"TWICE", b"TWICE"];
    let name = NAMES[dice.below(NAMES.len())];
    let (length, from, to) = [(0, 1, 255), (1, 1, 255), (40, 1, 255), (300, b' ', b'~')][dice.below(4)];
    let value = if name.ends_with(b"%%") { b"() { echo x; }".to_vec() } else { dice.bytes(length, from, to) };
    [name, b"=", &value].concat()
}

#[test]
fn random_environments_arrive_alike() {
    let script = b"env -0 | grep -zvE '^(PAGER|GIT_PAGER|GH_PAGER|MANPAGER|SYSTEMD_PAGER|AWS_PAGER)=' | sort -z";
    let home = TempDir::new(None);
    let bench = Bench::new(None);
    for seed in 0..waiting::size(40, 300) {
        let mut dice = Dice::new(u64::try_from(seed).expect("a small number"));
        let entries: Vec<Vec<u8>> = (0..dice.below(30)).map(|_| random_entry(&mut dice)).collect();
        let call = || {
            let env = usual_env(home.path()).into_iter().chain(entries.iter().cloned()).collect();
            Call { env, ..Call::bash(script, home.path()) }.env("REXEC_TTY=never")
        };
        let without = |bytes: &[u8]| {
            let kept = bytes.split(|&b| b == 0).filter(|entry| !entry.starts_with(b"REXEC_TTY="));
            kept.map(|entry| entry.escape_ascii().to_string()).collect::<Vec<_>>()
        };
        let theirs = call().run(Target::Real);
        let Some(host) = &bench.host else { continue };
        let ours = call().run(Target::Shim(&host.socket()));
        assert_eq!(without(&theirs.stdout), without(&ours.stdout), "seed {seed}");
        assert_eq!(theirs.err(), ours.err(), "seed {seed}");
    }
}

#[test]
fn what_is_the_hosts_and_the_shims_own_does_not_arrive() {
    let bench = Bench::new(None);
    let Some(host) = &bench.host else { return };
    let mut call =
        host.call("env -0 | grep -z ^REXEC_ | tr '\\0' '\\n'; echo $SHELL; echo ${SECRET_ONE-gone} ${KEPT-gone}");
    for entry in ["REXEC_WHOAMI=me", "REXEC_ENV_DROP=SECRET_*", "SECRET_ONE=1", "KEPT=2", "REXEC_SANITIZE=strip"] {
        call = call.env(entry);
    }
    let seen = call.run(Target::Shim(&host.socket()));
    let shell = crate::support::call::real_shell("bash");
    assert_eq!(seen.out(), format!("REXEC_INSIDE=1\n{shell}\ngone 2\n"));
    let end = host.wait_for("the run's end", |journal| journal.of_type("end").next().cloned());
    assert_eq!(end["whoami"], "me");
}

#[test]
fn a_shim_inside_a_run_is_the_real_shell() {
    let bench = Bench::new(None);
    let Some(host) = &bench.host else { return };
    let shim = crate::support::programs::shims().join("bash");
    let script = format!("exec '{}' -c 'echo nested; test -t 1; exit 6'", shim.display());
    let seen = host.run(&script);
    assert_eq!((seen.out().as_str(), seen.code()), ("nested\n", 6));
    host.wait_for("the end of the run", |journal| journal.of_type("end").next().cloned());
    assert_eq!(host.journal().of_type("start").count(), 1, "the nested shell is not a run of its own");
}

#[test]
fn what_keeps_output_from_being_held_back_is_set_where_it_is_wanted_and_a_pipe() {
    const UNSET: &str = "- -\n";
    const SET: &str = "1 y\n";
    let script = "echo ${PYTHONUNBUFFERED--} ${GFORTRAN_UNBUFFERED_PRECONNECTED--}";
    for (flags, usual) in [(&[][..], UNSET), (&["--live"], SET)] {
        let host = Host::with(Setup { flags, ..MIRROR });
        for (entries, expected) in [
            (&[][..], usual),
            (&["REXEC_LIVE="], usual),
            (&["REXEC_LIVE=1"], SET),
            (&["REXEC_LIVE=0"], UNSET),
            (&["REXEC_LIVE=1", "PYTHONUNBUFFERED="], "y\n"),
            (&["REXEC_LIVE=1", "PYTHONUNBUFFERED=x"], "x y\n"),
            (&["REXEC_LIVE=1", "REXEC_TTY=always"], UNSET),
        ] {
            let call = entries.iter().fold(host.call(script), |call, entry| call.env(entry));
            let seen = call.run(Target::Shim(&host.socket()));
            assert_eq!((seen.out().as_str(), seen.code()), (expected, 0), "{flags:?} {entries:?}");
        }
    }
}
