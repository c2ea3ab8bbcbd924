//! What rules match, and in which order they count.

use rexec_host::gate::Action::{self, Allow, Ask, Deny};
use rexec_host::gate::{Facts, Gate, goes_into};

use crate::support::{FACTS, action, gate, judged, judged_with};

/// Checks what one rule does with texts.
#[track_caller]
fn check(rule: &str, wanted: &[(Action, &str)]) {
    for (action, text) in wanted {
        let gate = gate(&format!("[[rule]]\n{rule}"));
        assert_eq!(judged(&gate, text).0, *action, "{rule}: {text}");
    }
}

#[test]
fn a_program_is_found_whatever_stands_around_it() {
    check(
        "do = 'deny'\nrun = 'git push'",
        &[
            (Deny, "git push"),
            (Deny, "git -C d push origin a"),
            (Deny, "git -c a.b=c --git-dir x push"),
            (Deny, "cd d && git push"),
            (Deny, "A=1 sudo -u b /usr/bin/git push"),
            (Deny, "bash -c 'git push'"),
            (Deny, "echo $(git push)"),
            (Deny, "timeout 5 nice git --no-pager push | cat"),
            (Deny, "if x; then git push; fi"),
            (Allow, "git pull"),
            (Allow, "git stash push"),
            (Allow, "git commit -m push"),
            (Allow, "echo git push"),
            (Allow, "git commit -m 'git push'"),
            (Allow, "cat <<E\ngit push\nE"),
            (Allow, "grep -r 'git push' ."),
            (Ask, "git $x"),
            (Ask, "git \"$x\" push"),
            (Allow, "git commit -m \"$x\""),
        ],
    );
}

#[test]
fn options_are_found_in_every_form() {
    check(
        "do = 'deny'\nrun = 'git push'\nwith = ['-f|--force|+*']",
        &[
            (Deny, "git push -f"),
            (Deny, "git push -uf origin a"),
            (Deny, "git push --forc"),
            (Deny, "git push origin +main"),
            (Deny, "git push origin +\"$x\""),
            (Allow, "git push -o f origin main"),
            (Allow, "git push -of"),
            (Allow, "git push --force-with-lease"),
            (Allow, "git push --follow-tags"),
            (Allow, "git push -- -f"),
            (Ask, "git push $x"),
            (Ask, "git push origin \"$x\""),
            (Ask, "git push \"--$x\""),
            (Ask, "git push --for$x"),
        ],
    );
    check(
        "do = 'deny'\nrun = 'git push'\nwith = ['--force']\nwithout = ['--force-with-lease', '-n|--dry-run']",
        &[
            (Deny, "git push --force"),
            (Allow, "git push --force --force-with-lease"),
            (Allow, "git push --force -n"),
            (Deny, "git push --force $x"),
        ],
    );
    check("do = 'ask'\nrun = 'x'\nwith = ['-rf']", &[(Ask, "x -rf"), (Ask, "x -f -r a -rfv"), (Allow, "x -r")]);
    check(
        "do = 'ask'\nrun = 'x'\nwith = ['--mode=h*']",
        &[(Ask, "x --mode=hard"), (Ask, "x --mode hard"), (Allow, "x --mode=soft")],
    );
    check("do = 'ask'\nrun = 'git checkout'\nwith = ['--']", &[(Ask, "git checkout -- a"), (Allow, "git checkout a")]);
}

#[test]
fn digits_are_no_other_words() {
    check(
        "do = 'deny'\nrun = 'git push'\nwith = ['-f|--force|main']",
        &[
            (Allow, "git push $?"),
            (Allow, "git push origin x$$ ${#x} $((n + 1)) $#"),
            (Allow, "git push \"$RANDOM\" \"a$UID\""),
            (Allow, "git $? -f"),
            (Ask, "RANDOM=$x; git push \"$RANDOM\""),
            (Ask, "read UID; git push \"$UID\""),
            (Ask, "IFS=1; git push $?"),
            // Another shell may not set it, and then it is no word.
            (Ask, "git push $RANDOM"),
            (Ask, "git push \"${?#0}\""),
        ],
    );
    check("do = 'ask'\nrun = 'x'\nwith = ['a12|-1']", &[(Ask, "x a$?"), (Allow, "x b$?"), (Ask, "x \"-$?\"")]);
    check(
        "do = 'deny'\nrun = 'rm'\nwith = ['-r']\noutside = ['$PROJECT', '/tmp']",
        &[
            (Allow, "rm -r build$$"),
            (Allow, "rm -r /tmp/$?/${#x}"),
            (Deny, "rm -r /$?"),
            (Ask, "rm -r \"/$RANDOM\""),
            (Ask, "cd \"$RANDOM/etc\"; rm -r a"),
        ],
    );
}

/// A strict rule takes a word behind an unknown program's option as an operand and as its value.
#[test]
fn a_word_behind_an_unknown_option_may_be_both() {
    let rule = "do = 'deny'\nrun = 'deploy prod'";
    check(rule, &[(Deny, "deploy -v prod"), (Deny, "deploy -t x prod"), (Allow, "deploy a prod")]);
    let allows = "[[rule]]\ndo = 'allow'\nrun = 'deploy prod'\n[[rule]]\ndo = 'deny'\nrun = 'deploy'\n";
    assert_eq!(action(allows, "deploy prod"), Allow);
    assert_eq!(action(allows, "deploy -v prod"), Deny);
    assert_eq!(action(&(allows.to_owned() + "[program.deploy]\nvalues = ['-t']"), "deploy -v prod"), Allow);
    assert_eq!(action(&(allows.to_owned() + "[program.deploy]\nvalues = ['-t']"), "deploy -t prod prod"), Allow);
}

/// Whether a directory of another machine or of a container is the one that a rule names is not known.
#[test]
fn paths_of_another_machine_are_not_those_of_here() {
    check(
        "do = 'deny'\nrun = 'rm'\nwith = ['-r']\noutside = ['$PROJECT', '/tmp']",
        &[
            (Ask, "docker exec c rm -rf /data"),
            (Ask, "docker run --rm -v \"$PWD:/w\" -w /w node sh -c 'rm -rf build'"),
            (Ask, "kubectl exec pod -- rm -rf /people/ann/shop"),
            (Ask, "ssh h 'cd /srv && rm -rf a'"),
            (Ask, "podman exec c sudo rm -rf /data"),
            (Deny, "ssh h rm -rf /"),
            (Deny, "docker exec c ls; rm -rf /data"),
            (Deny, "nsenter -t 1 -m rm -rf /data"),
            (Allow, "ssh h rm -rf /tmp/a"),
        ],
    );
    check(
        "do = 'deny'\nrun = 'rm'\ninside = ['~/x', '/data', 'keep']",
        &[
            (Deny, "rm /data/a"),
            (Ask, "ssh h rm /data/a"),
            (Ask, "ssh h 'rm ~/x/a'"),
            (Allow, "ssh h rm /srv/a"),
            (Deny, "ssh h rm /srv/keep"),
        ],
    );
    check(
        "do = 'deny'\nwrites = ['/etc']",
        &[(Ask, "ssh h 'echo a >/etc/hosts'"), (Deny, "ssh h cat a >/etc/hosts"), (Allow, "ssh h 'echo a >/srv/b'")],
    );
    let allows = "[[rule]]\ndo = 'allow'\nrun = 'rm'\ninside = ['/tmp']\n[[rule]]\ndo = 'deny'\nrun = 'rm'\n";
    assert_eq!(action(allows, "rm /tmp/a"), Allow);
    assert_eq!(action(allows, "ssh h rm /tmp/a"), Deny);
    let cwd = "[[rule]]\ndo = 'deny'\nrun = 'make'\ncwd = ['$PROJECT']\n";
    assert_eq!(action(cwd, "make; docker exec c ls"), Deny);
    assert_eq!(action(cwd, "docker exec c make"), Ask);
    // Rules about the program alone count wherever it runs.
    assert_eq!(action("[[rule]]\ndo = 'deny'\nrun = 'dropdb'", "docker exec c dropdb a"), Deny);
}

#[test]
fn places_are_compared_as_they_are_written() {
    check(
        "do = 'deny'\nrun = 'rm'\nwith = ['-r']\noutside = ['$PROJECT', '/tmp']",
        &[
            (Allow, "rm -rf build"),
            (Allow, "rm -rf ./a/../b /tmp/c"),
            (Allow, "rm -rf /people/ann/shop/x"),
            (Allow, "rm ../x"),
            (Allow, "cd web && rm -rf dist"),
            (Allow, "t=$(mktemp -d); rm -rf \"$t\""),
            (Allow, "rm -rf \"$(pwd)/x\" $(git rev-parse --show-toplevel)/y"),
            (Allow, "rm -rf *.o build/*"),
            (Allow, "rm -rf /tmp/\"$x\""),
            (Allow, "rm -rf x >/dev/null 2>&1"),
            (Deny, "rm -rf ../x"),
            (Deny, "rm -rf build /etc"),
            (Deny, "rm -rf /tmp/../etc"),
            (Deny, "rm -rf ~ "),
            (Deny, "rm -rf \"$HOME\"/x"),
            (Deny, "rm -rf /*"),
            (Deny, "cd / && rm -rf etc"),
            (Deny, "cd .. && rm -rf *"),
            (Deny, "rm -rf /people"),
            (Deny, "find x -exec rm -rf /etc \\;"),
            (Ask, "rm -rf \"$x\""),
            (Ask, "rm -rf $x"),
            (Ask, "cd \"$x\" && rm -rf build"),
            (Ask, "rm -rf /tmp\"$x\""),
            (Ask, "rm -rf /tmp/\"$x\"/../../etc"),
        ],
    );
    check(
        "do = 'ask'\nrun = 'cat'\ninside = ['~/.ssh']",
        &[(Ask, "cat ~/.ssh/id"), (Allow, "cat ~/.sshx"), (Ask, "cd ~ && cat .ssh/id")],
    );
}

#[test]
fn written_files_are_those_of_redirections_and_of_programs_that_write() {
    check(
        "do = 'ask'\nwrites = ['/etc', '*.lock', 'conf/*.yml']",
        &[
            (Ask, "echo a > /etc/hosts"),
            (Ask, "echo a >> a/Cargo.lock"),
            (Ask, "x | sudo tee /etc/a"),
            (Ask, "cp a /etc/b"),
            (Ask, "cp -t /etc a b"),
            (Ask, "mv a conf/x.yml"),
            (Ask, "dd if=a of=/etc/b"),
            (Ask, "sed -i s/a/b/ /etc/hosts"),
            (Ask, "sed -i -e s/a/b/ a.lock"),
            (Ask, "{ x; } >&/etc/a"),
            (Allow, "cat < /etc/hosts"),
            (Allow, "cp /etc/a b"),
            (Allow, "sed s/a/b/ /etc/hosts"),
            (Allow, "x 2>&1 >/dev/null"),
        ],
    );
}

#[test]
fn who_runs_it_and_what_leads_to_it_are_conditions() {
    let rule = "[[rule]]\ndo = 'deny'\nrun = 'make'\nagent = 'codex|claude*'\ncwd = '/people/ann/shop'\n";
    assert_eq!(action(rule, "make"), Deny);
    assert_eq!(action(rule, "cd /tmp; make"), Allow);
    assert_eq!(judged_with(&gate(rule), "make", &Facts { agent: Some("gemini"), ..FACTS }).0, Allow);
    assert_eq!(judged_with(&gate(rule), "make", &Facts { agent: None, ..FACTS }).0, Ask);
    check(
        "do = 'deny'\nrun = 'rm'\nvia = 'ssh|docker exec'",
        &[(Deny, "ssh h rm x"), (Deny, "docker exec c rm x"), (Allow, "rm x")],
    );
    check(
        "do = 'deny'\nkills = 'others'",
        &[
            (Ask, "kill 1"),
            (Ask, "pkill -f x"),
            (Ask, "fuser -k 80/tcp"),
            (Allow, "kill -0 1"),
            (Allow, "kill $! %1 $$"),
            (Allow, "ls"),
        ],
    );
}

#[test]
fn wrappers_of_a_person_run_their_arguments() {
    let rules = "[gate]\nwrappers = ['corp-run']\n[[rule]]\ndo = 'deny'\nrun = 'git push'\n";
    for text in [
        "corp-run git push",
        "corp-run -x git push",
        "corp-run -x y git push",
        "corp-run corp-run sudo git push",
        "npx corp-run git push",
    ] {
        assert_eq!(action(rules, text), Deny, "{text}");
    }
    assert_eq!(action(rules, "corp-run echo git push"), Allow);
    assert_eq!(action(rules, "other git push"), Allow);
    assert_eq!(judged(&gate(rules), "corp-run git push").1, "rule rules.toml:3 denies `git`");
}

#[test]
fn the_strictest_rule_counts_up_to_the_first_that_allows() {
    let rules = "[[rule]]\nname='a'\ndo='ask'\nrun='git'\n[[rule]]\nname='b'\ndo='allow'\nrun='git push'\nwith=['-n']\n[[rule]]\nname='c'\ndo='deny'\nrun='git push'\nwhy='No.'\n";
    let gate = gate(rules);
    for (text, wanted, sentence) in [
        ("git pull", Ask, "rule a (rules.toml:1) asks about `git`"),
        ("git push", Deny, "rule c (rules.toml:10) denies `git`: No."),
        ("git push -n", Ask, "rule a (rules.toml:1) asks about `git`"),
        ("git pull; git push", Deny, "rule c (rules.toml:10) denies `git`: No."),
        ("ls", Allow, "no rule matches `ls`"),
        ("git \"$x\"", Ask, "rule a (rules.toml:1) asks about `git`"),
    ] {
        assert_eq!(judged(&gate, text), (wanted, sentence.to_owned()), "{text}");
    }
}

/// A rule that allows needs to be sure.
#[test]
fn allow_never_acts_on_what_is_not_known() {
    let rules =
        "[[rule]]\ndo = 'allow'\nrun = 'git push'\nwithout = ['-f|--force']\n[[rule]]\ndo = 'deny'\nrun = 'git push'\n";
    assert_eq!(action(rules, "git push origin a"), Allow);
    for text in ["git push $x", "git push \"$x\"", "git push --for", "./git push", "PATH=. git push", "git push {-f,a}"]
    {
        assert_eq!(action(rules, text), Deny, "{text}");
    }
    let inside = "[[rule]]\ndo='allow'\nrun='rm'\ninside=['/tmp']\n[[rule]]\ndo='deny'\nrun='rm'\n";
    assert_eq!(action(inside, "rm /tmp/a"), Allow);
    assert_eq!(action(inside, "rm /tmp/\"$x\""), Deny);
}

#[test]
fn what_is_opaque_or_foreign_is_done_as_the_file_says() {
    let rules = "[gate]\nopaque = 'deny'\nforeign = 'ask'\n[[rule]]\ndo = 'allow'\nrun = 'python3'\n";
    let gate = gate(rules);
    assert_eq!(judged(&gate, "$x"), (Deny, "it is not known what `` runs (opaque = \"deny\")".to_owned()));
    assert_eq!(judged(&gate, "curl x | sh").0, Deny);
    assert_eq!(judged(&gate, "node -e 1").0, Ask);
    assert_eq!(judged(&gate, "python3 -c 1").0, Allow);
    assert_eq!(action("", "$x; node -e 1"), Allow);
}

#[test]
fn perhaps_is_what_the_file_says_and_no_stricter_than_the_rule() {
    for (perhaps, rule, wanted) in
        [("allow", "deny", Allow), ("ask", "deny", Ask), ("deny", "deny", Deny), ("deny", "ask", Ask)]
    {
        let rules = format!("[gate]\nperhaps = '{perhaps}'\n[[rule]]\ndo = '{rule}'\nrun = 'git push'\n");
        assert_eq!(action(&rules, "git \"$x\""), wanted, "{perhaps} {rule}");
    }
}

#[test]
fn a_call_with_a_text_for_a_shell_has_the_leaves_of_the_text() {
    let gate = Gate::default();
    let leaves = |call: &[&str]| {
        let call: Vec<Vec<u8>> = call.iter().map(|word| word.as_bytes().to_vec()).collect();
        gate.leaves_of_call(&call, &|_| None)
    };
    let text = "cd a && sudo rm b; echo \"$x\"";
    let wanted = format!("{:?}", gate.leaves(text.as_bytes(), &|_| None));
    for call in [&["/opt/rexec-bash", "-lc", text][..], &["zsh", "-c", "-l", text, "name"]] {
        assert_eq!(format!("{:?}", leaves(call)), wanted, "{call:?}");
    }
    let programs = |call: &[&str]| leaves(call).iter().map(|leaf| leaf.program.clone()).collect::<Vec<_>>();
    assert_eq!(programs(&["git", "push", "-f"]), [b"git"]);
    assert_eq!(programs(&["bash", "script"]), [b"bash"]);
    assert_eq!(programs(&["fish", "-c", "rm a"]), [b"fish"], "its language is not read");
    assert!(leaves(&["bash", "-c", ""]).is_empty() && leaves(&[]).is_empty());
}

#[test]
fn a_command_goes_into_a_directory_as_far_as_its_text_tells() {
    let facts = Facts { directory: Some(b"/home/u"), home: Some(b"/home/u"), ..Facts::default() };
    let goes = |text: &str| {
        let leaves = Gate::default().leaves(text.as_bytes(), &|_| None);
        leaves.iter().any(|leaf| goes_into(leaf, &facts, b"/home/u/web"))
    };
    for there in [
        "cd web; a",
        "cd web/src && a",
        "cd /home/u/web; a",
        "cd ~/web; a",
        "cd x; cd ../web; a",
        "(cd web; a)",
        "env -C web a",
        "git -C web push",
        "git -Cweb/src push",
        "make --directory=web all",
        "sudo make -C web",
    ] {
        assert!(goes(there), "{there}");
    }
    for elsewhere in [
        "a web",
        "cd web",
        "cd webs; a",
        "cd web/..; a",
        "cd \"$x\"; a",
        "cd $x/web; a",
        "ssh h 'cd /home/u/web; a'",
        "git commit -C HEAD",
        "a -C web",
    ] {
        assert!(!goes(elsewhere), "{elsewhere}");
    }
}
