//! Which invocations are commands, and which names stand for which shells.

use super::*;

fn goes_to_the_host(shell: Shell, argv: &[&str]) -> bool {
    is_command(shell, argv.iter().map(|argument| argument.as_bytes()))
}

#[test]
fn the_real_shell_gets_the_name_that_it_would_have_without_us() {
    let found = |path: &'static str| Real { path: path.as_bytes(), is_chosen: false };
    let chosen = |path: &'static str| Real { path: path.as_bytes(), is_chosen: true };
    let (bash, zsh, sh) = (found("/bin/bash"), found("/usr/bin/zsh"), found("/bin/sh"));
    for (shell, name, real, expected) in [
        (Shell::Bash, "/x/rexec-bash", bash, Some("/bin/bash")),
        (Shell::Bash, "rexec-bash", bash, Some("bash")),
        (Shell::Bash, "-rexec-bash", bash, Some("-bash")),
        (Shell::Bash, "-/x/rexec-bash", bash, Some("-/bin/bash")),
        (Shell::Bash, "/shim/bash", bash, Some("/bin/bash")),
        (Shell::Bash, "/usr/bin/bash", bash, None),
        (Shell::Bash, "bash", bash, None),
        (Shell::Bash, "-bash", bash, None),
        (Shell::Bash, "rexec-bash", chosen("/opt/bash-5.3"), Some("bash-5.3")),
        (Shell::Bash, "/x/rexec-bash", chosen("/opt/bash-5.3"), Some("/opt/bash-5.3")),
        (Shell::Zsh, "./rexec-zsh", zsh, Some("/usr/bin/zsh")),
        (Shell::Zsh, "-rexec-zsh", zsh, Some("-zsh")),
        (Shell::Zsh, "/rexec-x/zsh", zsh, None),
        (Shell::Sh, "rexec-sh", sh, Some("sh")),
        (Shell::Sh, "rexec-sh", found("/bin/dash"), Some("sh")),
        (Shell::Sh, "rexec-sh", chosen("/bin/busybox"), Some("sh")),
        (Shell::Sh, "/shim/recorder", sh, Some("/bin/sh")),
        (Shell::Sh, "shim-recorder", sh, Some("sh")),
        (Shell::Sh, "recorder", sh, None),
        (Shell::Sh, "", sh, None),
    ] {
        let leads_to_shim = |name: &[u8]| name.starts_with(b"/shim/") || name.starts_with(b"shim-");
        let name_given = shell.real_name(name.as_bytes(), &real, leads_to_shim);
        assert_eq!(name_given.as_deref(), expected.map(str::as_bytes), "{name}");
    }
}

#[test]
fn names_stand_for_shells() {
    for (name, shell) in [
        ("bash", Shell::Bash),
        ("/x/rexec-bash", Shell::Bash),
        ("-bash", Shell::Bash),
        ("-rexec-zsh", Shell::Zsh),
        ("/bashdir/zsh", Shell::Zsh),
        ("rexec-sh", Shell::Sh),
        ("/bin/sh", Shell::Sh),
    ] {
        assert_eq!(Shell::named(name.as_bytes()), Some(shell), "{name}");
    }
    for shell in Shell::ALL {
        assert_eq!(Shell::named(format!("/x/rexec-{}", shell.word()).as_bytes()), Some(shell));
        assert_eq!(other_shell(shell.word().as_bytes()), None);
    }
    for name in ["", "-", "recorder", "bash/", "rexec", "bashful", "rexec-rexec-sh"] {
        assert_eq!((Shell::named(name.as_bytes()), other_shell(name.as_bytes())), (None, None), "{name}");
    }
    for name in ["tcsh", "/usr/bin/nu", "-yash", "rexec-pwsh"] {
        assert!(Shell::named(name.as_bytes()).is_none() && other_shell(name.as_bytes()).is_some(), "{name}");
    }
}

#[test]
fn fish_takes_a_command_in_each_of_its_ways() {
    for (line, is_command) in [
        ("fish -c X", true),
        ("fish -cX", true),
        ("fish -lc X", true),
        ("fish --command=X", true),
        ("fish --command X", true),
        ("fish -C Y -c X", true),
        ("fish --init-command Y -c X", true),
        ("fish -N -c X a b", true),
        ("fish -c X -c Y", true),
        ("fish -c X -- a", true),
        ("fish", false),
        ("fish -l", false),
        ("fish -C Y", false),
        ("fish -c", false),
        ("fish --command", false),
        ("fish -v -c X", false),
        ("fish --version", false),
        ("fish script -c X", false),
        ("fish -- -c X", false),
    ] {
        let argv: Vec<&str> = line.split(' ').collect();
        assert_eq!(goes_to_the_host(Shell::Fish, &argv), is_command, "{line}");
    }
}

#[test]
fn busybox_is_a_shell_by_its_first_argument() {
    for (line, is_command) in [
        ("busybox sh -c X", true),
        ("busybox ash -ec X", true),
        ("busybox sh script", false),
        ("busybox ls -c X", false),
        ("busybox -c X", false),
        ("busybox", false),
    ] {
        let argv: Vec<&str> = line.split(' ').collect();
        assert_eq!(goes_to_the_host(Shell::Busybox, &argv), is_command, "{line}");
    }
}

#[test]
fn command_strings_go_to_the_host() {
    for line in [
        "bash -c X",
        "bash -lc X",
        "bash -cl X",
        "bash -c -l X",
        "bash -l -c X",
        "bash -ec X",
        "bash -xec X",
        "bash -i -c X",
        "bash -ic X",
        "bash +x -c X",
        "bash +c X",
        "bash -c X name a b",
        "bash -c X -x --version",
        "bash -o pipefail -c X",
        "bash +o posix -c X",
        "bash -eo pipefail -c X",
        "bash -euo pipefail -c X",
        "bash -co errexit X",
        "bash -oO pipefail extglob -c X",
        "bash -O extglob -c X",
        "bash +O extglob -c X",
        "bash -Oc extglob X",
        "bash -o -c -c X",
        "bash --norc -c X",
        "bash --norc --noprofile -c X",
        "bash -norc -c X",
        "bash --rcfile F -c X",
        "bash -rcfile F -c X",
        "bash --init-file F --posix -c X",
        "bash --rcfile -c -c X",
        "bash --login -ec X",
        "bash -restricted -c X",
        "bash -c -- X",
        "bash -c - X",
        "bash -c -e -- X",
        "bash -c -- -X",
        "bash -sc X",
        "bash -c -s X",
    ] {
        assert!(goes_to_the_host(Shell::Bash, &line.split(' ').collect::<Vec<_>>()), "{line}");
    }
    assert!(goes_to_the_host(Shell::Bash, &["bash", "-c", ""]), "an empty command is a command");
}

#[test]
fn everything_else_goes_to_the_real_shell() {
    for line in [
        "bash",
        "bash -c",
        "bash -c -l",
        "bash -c --",
        "bash -c -o X",
        "bash script -c X",
        "bash -x script -c X",
        "bash -- -c X",
        "bash - -c X",
        "bash --norc -- -c X",
        "bash -s",
        "bash -s -c",
        "bash -i",
        "bash -l",
        "bash --version",
        "bash -version",
        "bash --help",
        "bash -o -c X",
        "bash -O -c X",
        "bash --rcfile -c X",
        "bash --version -c X",
        "bash --frobnicate -c X",
        "bash -c --norc X",
        "-bash",
        "-bash -c X",
    ] {
        assert!(!goes_to_the_host(Shell::Bash, &line.split(' ').collect::<Vec<_>>()), "{line}");
    }
    assert!(!goes_to_the_host(Shell::Bash, &["bash", "", "-c", "X"]), "an empty script name is a script");
    assert!(!goes_to_the_host(Shell::Bash, &[]));
    assert!(!goes_to_the_host(Shell::Bash, &[""]));
}

#[test]
fn a_shell_without_anything_to_run_is_interactive() {
    let is_interactive = |line: &str| super::is_interactive(line.split(' ').map(str::as_bytes));
    for line in ["bash", "-bash", "bash -i", "bash -l", "bash --norc --noprofile -i", "bash --rcfile F -i", "zsh -il"] {
        assert!(is_interactive(line), "{line}");
    }
    for line in ["bash file", "bash -c X", "bash -ic X", "bash --version", "bash -x file", "bash -- file", "bash -"] {
        assert!(!is_interactive(line), "{line}");
    }
}

#[test]
fn sh_has_letters_and_the_words_of_bash_with_two_dashes() {
    for (line, host) in [
        ("sh -c X", true),
        ("sh -ec X", true),
        ("sh -o errexit -c X", true),
        ("sh -c -o errexit X", true),
        ("sh -lc X", true),
        ("sh -c -- X", true),
        ("sh --norc -c X", true),
        ("sh -restricted X", true),
        ("sh -rcfile X", true),
        ("sh -s", false),
        ("sh -- -c X", false),
        ("sh --help -c X", false),
        ("sh file", false),
        ("sh -login -c X", false),
    ] {
        assert_eq!(goes_to_the_host(Shell::Sh, &line.split(' ').collect::<Vec<_>>()), host, "{line}");
    }
}

#[test]
fn zsh_takes_names_in_the_same_word_and_any_word() {
    for (line, host) in [
        ("zsh -c X", true),
        ("zsh -fc X", true),
        ("zsh -oextendedglob -c X", true),
        ("zsh -o extendedglob -c X", true),
        ("zsh -foc -c X", true),
        ("zsh --extended-glob -c X", true),
        ("zsh --emulate sh -c X", true),
        ("zsh -O -c X", true),
        ("zsh -c -b X", true),
        ("zsh -b -c X", false),
        ("zsh -oc X", false),
        ("zsh --emulate -c X", false),
        ("zsh --version -c X", false),
        ("zsh -f", false),
    ] {
        assert_eq!(goes_to_the_host(Shell::Zsh, &line.split(' ').collect::<Vec<_>>()), host, "{line}");
    }
}
