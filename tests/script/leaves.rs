//! The leaves of single texts.

use rexec_host::script::{self, ArgumentPiece, HoleReach, LeafState, OpaqueReason, Problem};

use crate::shown::{leaves, line, lossy};

#[track_caller]
fn check(text: &str, wanted: &[&str]) {
    let told: Vec<String> = leaves(text).iter().map(line).collect();
    assert_eq!(told, wanted, "{text}");
}

#[test]
fn every_layer_is_a_leaf() {
    check("sudo -u b git push", &["sudo -u b git push", "sudo > git push"]);
    check(
        "timeout -k 1 5 nice git gc",
        &["timeout -k 1 5 nice git gc", "timeout > nice git gc", "timeout > nice > git gc"],
    );
    check("docker exec -it c rm x", &["docker exec -it c rm x", "docker exec > rm x"]);
    check("su -c 'git push' b", &["su -c git push b", "su > git push"]);
    check("flock /l -c 'rm x'; flock /l rm y", &["flock /l -c rm x", "flock > rm x", "flock /l rm y", "flock > rm y"]);
    check(
        "find . -exec rm {} + -o -execdir mv {} x \\;",
        &["find . -exec rm {} + -o -execdir mv {} x ;", "find -exec > rm ./… !open", "find -execdir > mv ./… x !open"],
    );
    check("ls | xargs -n1 rm -f", &["ls", "xargs -n1 rm -f", "xargs > rm -f ./… !open"]);
    check("watch -n1 'git status'", &["watch -n1 git status", "watch > git status"]);
    check("ssh -p 22 h 'cd /x && make'", &["ssh -p 22 h cd /x && make", "ssh > cd /x @~", "ssh > make @/x"]);
    check("time git push", &["git push"]);
    check(
        "bwrap --ro-bind / / --dev /dev --unshare-net rm -r a",
        &["bwrap --ro-bind / / --dev /dev --unshare-net rm -r a", "bwrap > rm -r a"],
    );
    check("bwrap --setenv A b --chdir /x -- rm a", &["bwrap --setenv A b --chdir /x -- rm a", "bwrap > rm a @/x"]);
    check("git -c alias.x='!rm y' x", &["git -c alias.x=!rm y x", "git > rm y"]);
    check("env -S 'rm -f x'", &["env -S rm -f x", "env > env rm -f x", "env > env > rm -f x"]);
}

#[test]
fn what_a_program_runs_under_another_name_is_a_leaf() {
    check("git-push -f", &["git-push -f", "git-push > git push -f"]);
    check("/usr/lib/git-core/git-push a", &["/usr/lib/git-core/git-push a", "git-push > git push a"]);
    check("docker run --entrypoint rm -it a -f b", &["docker run --entrypoint rm -it a -f b", "docker run > rm -f b"]);
    check("podman run --entrypoint=rm a b", &["podman run --entrypoint=rm a b", "podman run > rm b"]);
    check("docker exec --entrypoint x a b", &["docker exec --entrypoint x a b", "docker exec > a b"]);
    check("mapfile -tC 'git push' -c 1 a", &["mapfile -tC git push -c 1 a", "mapfile > git push"]);
    check("readarray a", &["readarray a"]);
    check(
        "node --inspect node_modules/.bin/prisma db push",
        &["node --inspect node_modules/.bin/prisma db push", "node > node_modules/.bin/prisma db push"],
    );
    check("node a.js node_modules/.bin/b", &["node a.js node_modules/.bin/b"]);
}

#[test]
fn the_text_of_a_process_substitution_is_read_as_input() {
    check("bash < <(echo 'rm a')", &["<() > echo rm a", "bash <><(…) !open", "bash > rm a"]);
    check("sh < <(printf 'rm a')", &["<() > printf rm a", "sh <><(…) !open", "sh > rm a"]);
    // Of several commands each writes a part, and of others the text is not known.
    for text in ["bash < <(echo a; echo b)", "bash < <(echo a && echo b)", "bash < <(cat a)", "bash < <(echo a > b)"] {
        let last = leaves(text).last().map(|leaf| leaf.state);
        assert_eq!(last, Some(LeafState::Opaque(OpaqueReason::ShellReadsPipe)), "{text}");
    }
    let input = |text: &str| {
        let leaves = leaves(text);
        let leaf = leaves.iter().find(|leaf| leaf.program == b"psql");
        leaf.and_then(|leaf| leaf.input.as_ref().map(|input| lossy(&input.shown())))
    };
    assert_eq!(input("psql < <(echo 'drop table a')").as_deref(), Some("drop table a\n"));
    assert_eq!(input("sudo psql < <(echo b)").as_deref(), Some("b\n"));
    assert_eq!(input("diff <(echo a) <(echo b); psql < <(cat)"), None);
    assert_eq!(input("psql < <(echo \"$(echo a)\")"), Some("$(…)\n".to_owned()));
    assert_eq!(input("echo a > >(psql)"), None);
}

#[test]
fn the_program_of_a_package_is_a_leaf() {
    check("npx --yes @a/b@1 c", &["npx --yes @a/b@1 c", "npx > b c"]);
    check("pnpm --filter a dlx b@2", &["pnpm --filter a dlx b@2", "pnpm dlx > b"]);
    check("yarn workspace a b c", &["yarn workspace a b c", "yarn workspace > b c"]);
    check("pnpm install a; pnpm b c", &["pnpm install a", "pnpm b c", "pnpm > b c"]);
    check("npm run a; bun run ./b@c", &["npm run a", "bun run ./b@c", "bun run > ./b@c"]);
}

#[test]
fn the_code_in_gits_settings_is_read() {
    check("git -c alias.x='push -f' x a", &["git -c alias.x=push -f x a", "git > git push -f a"]);
    check("git -c alias.x='!rm b' y; git y x", &["git -c alias.x=!rm b y", "git y x"]);
    check("git config alias.x push; git x -f", &["git config alias.x push", "git x -f", "git > git push -f"]);
    check(
        "A='push -f' git --config-env alias.x=A x; git --config-env=alias.x=A x",
        &["git --config-env alias.x=A x", "git > git push -f", "git --config-env=alias.x=A x"],
    );
    check("GIT_CONFIG_KEY_0=alias.x GIT_CONFIG_VALUE_0='!rm a' git -C d x", &["git -C d x", "git > rm a"]);
    check("git -c core.pager='rm a' log b", &["git -c core.pager=rm a log b", "git > rm a"]);
    check("GIT_EDITOR='rm a' git commit", &["GIT_EDITOR= > git commit", "GIT_EDITOR= > git > rm a"]);
    check(
        "git submodule foreach --recursive git gc",
        &["git submodule foreach --recursive git gc", "git submodule foreach > git gc"],
    );
    check("git submodule foreach 'rm a; rm b'", &["git submodule foreach rm a; rm b", "git > rm a", "git > rm b"]);
    assert!(leaves("git config alias.x '!git x; git x'; git x; rm a").len() < 10);
}

#[test]
fn code_in_arguments_is_read_with_its_own_arguments() {
    check("bash -c 'rm \"$1\" $0' _ a", &["bash -c rm \"$1\" $0 _ a", "bash -c > rm a $0 !open"]);
    check("bash -lc '\"$@\"' _ git push", &["bash -lc \"$@\" _ git push", "bash -c > git push"]);
    check("eval 'cd x' && make", &["eval cd x", "eval > cd x", "make @x"]);
    check("x=1 y=2; x=3 sh -c 'echo $x $y'", &["sh -c echo $x $y", "sh -c > echo 3 $y !open"]);
    check("bash -s -- -f <<< 'git push \"$@\"'", &["bash -s -- -f <>git push \"$@\"", "bash > git push -f"]);
}

/// A trap runs at the end of its shell, or at any moment before.
#[test]
fn a_trap_knows_what_has_not_changed_since_it_was_set() {
    check("x=a; trap 'rm $x' EXIT; ls", &["trap rm $x EXIT", "ls", "trap > rm a"]);
    check("x=a; trap 'rm $x' EXIT; x=b; cd c", &["trap rm $x EXIT", "cd c", "trap > rm $x @$PWD !open"]);
    check("x=a; (trap 'rm $x' 0; x=a); ls", &["trap rm $x 0", "trap > rm $x !open", "ls"]);
    check(
        "bash -c 'trap ls EXIT'; make",
        &["bash -c trap ls EXIT", "bash -c > trap ls EXIT", "bash -c > trap > ls", "make"],
    );
    check(
        "f() { trap 'rm $x' EXIT; }; x=a; f",
        &[
            "f() > trap rm $x EXIT @$PWD",
            "f() > trap > rm $x @$PWD !open",
            "f() > trap rm $x EXIT",
            "f() > trap > rm a",
            "f",
        ],
    );
    check("while a; do trap ls INT; done", &["a", "trap ls INT", "trap > ls"]);
    check("trap 'trap ls EXIT' INT", &["trap trap ls EXIT INT", "trap > trap ls EXIT", "trap > trap > ls"]);
    check("trap - EXIT; trap '' INT; trap", &["trap - EXIT", "trap  INT", "trap"]);
}

#[test]
fn an_assignment_in_front_of_a_builtin_is_taken_back_alone() {
    check("x=a; IFS= read -r x <<< b; rm $x", &["IFS= > read -r x <>b", "rm $x !open"]);
    check("x=a; A=1 cd /; rm $x $A", &["cd /", "rm a $A @/ !open"]);
    check("A=a; A=b cd /; rm $A", &["cd /", "rm a @/"]);
    check("x=a; x=b read x; rm $x", &["read x", "rm $x !open"]);
    check("x=a; x=b eval 'y=c'; rm $x $y", &["eval y=c", "rm $x c !open"]);
    check("x=a; x=b x=c ls; rm $x", &["ls", "rm a"]);
    check("(A=1 cd /; ls); x=a; (x=b cd /); rm $x", &["cd /", "ls @/", "cd /", "rm a"]);
}

#[test]
fn the_variable_of_the_directory_follows_it() {
    check("cd /a && rm $PWD", &["cd /a", "rm /a @/a"]);
    check("cd a; rm $PWD/b $OLDPWD", &["cd a", "rm $PWD/b $OLDPWD @a !open"]);
    check("cd \"$x\"; rm \"$PWD\"", &["cd $x !open", "rm $x @$x !open"]);
    check("cd /a; PWD=/b; rm $PWD", &["cd /a", "rm /b @/a"]);
}

#[test]
fn a_name_that_no_variable_can_have_leaves_the_directory_as_it_is() {
    check("cd /a; export =/b; rm c", &["cd /a", "export =/b @/a", "rm c @/a"]);
    check("export =/b; rm c", &["export =/b", "rm c"]);
    check("cd /a; for \"\" in /b; do :; done; rm c", &["cd /a", ": @/a", "rm c @/a"]);
}

#[test]
fn what_a_builtin_may_set_is_unknown() {
    check("x=a; declare -n y=x; y=b; rm $x", &["declare -n y=x", "rm $x @$PWD !open"]);
    check("x=a; ls | read x; rm $x", &["ls", "read x", "rm $x !open"]);
    check("x=a; printf -vx b; rm $x", &["printf -vx b", "rm $x !open"]);
    check("f() { x=a; local x; rm $x; }; f", &["f() > local x", "f() > rm $x !open", "f"]);
    check("set -- a; if b; then set -- /; fi; rm $1", &["set -- a", "b", "set -- /", "rm $1 !open"]);
    check("set -- a; while b; do shift; done; rm $1", &["set -- a", "b", "shift", "rm $1 !open"]);
}

#[test]
fn the_options_of_a_layer_say_what_its_program_gets() {
    check(
        "xargs -I{} sh -c 'rm {}'",
        &["xargs -I{} sh -c rm {}", "xargs > sh -c rm … !open", "xargs > sh -c > !Code", "xargs > sh -c > rm … !open"],
    );
    check("xargs -I F rm dF", &["xargs -I F rm dF", "xargs > rm d… !open"]);
    check("parallel rm {}/a ::: b", &["parallel rm {}/a ::: b", "parallel > !Code", "parallel > rm …/a !open"]);
    check("parallel rm a ::: b 'c d'", &["parallel rm a ::: b c d", "parallel > rm a b c d"]);
    check("parallel ::: 'rm a' 'rm b'", &["parallel ::: rm a rm b", "parallel > rm a", "parallel > rm b"]);
    check("echo 'rm a' | parallel", &["echo rm a", "parallel", "parallel > rm a"]);
    check("x | parallel", &["x", "parallel", "!ShellReadsPipe"]);
    check("find . -exec rm ./{} \\;", &["find . -exec rm ./{} ;", "find -exec > rm ./… !open"]);
    check("kubectl -n a exec -it p -- rm b", &["kubectl -n a exec -it p -- rm b", "kubectl exec > rm b"]);
    check("kubectl exec p -c d -- rm b", &["kubectl exec p -c d -- rm b", "kubectl exec > rm b"]);
    check("docker compose -f a exec -T b rm c", &["docker compose -f a exec -T b rm c", "docker compose exec > rm c"]);
    check("docker -c a exec b rm c", &["docker -c a exec b rm c", "docker exec > rm c"]);
    check(
        "setpriv --reuid 1 rm a; env - rm b",
        &["setpriv --reuid 1 rm a", "setpriv > rm a", "env - rm b", "env > rm b"],
    );
    check("env -iS 'A=1 rm' b", &["env -iS A=1 rm b", "env > env A=1 rm b", "env > env > rm b"]);
    check("env -uS rm b; su -lc 'rm c'", &["env -uS rm b", "env > rm b", "su -lc rm c", "su > rm c"]);
    check(
        "env -C /a rm b; sudo --chdir=/c rm d; ls",
        &["env -C /a rm b", "env > rm b @/a", "sudo --chdir=/c rm d", "sudo > rm d @/c", "ls"],
    );
}

#[test]
fn here_documents_are_data_unless_a_shell_reads_them() {
    check("cat <<E\nrm -rf /\nE", &["cat <>rm -rf /"]);
    check("cat <<E\n$(rm x)\nE", &["$() > rm x", "cat <>$(…) !open"]);
    check("cat <<'E'\n$(rm x)\nE", &["cat <>$(rm x)"]);
    check("cat <<E\na\n\nrm x\nE\nls", &["cat <>a\n\nrm x", "ls"]);
    check("cat <<-E <<'F'; ls\n\ta\n\tE\nE\nF\nrm x", &["cat <>a <>E", "ls", "rm x"]);
    check("bash <<E\nrm x\nE", &["bash <>rm x", "bash > rm x"]);
    check("bash -o pipefail -s a <<E\nrm x\nE", &["bash -o pipefail -s a <>rm x", "bash > rm x"]);
    check("su - b <<E\nrm x\nE", &["su - b <>rm x", "su > rm x"]);
    check("sudo sh <<E\nrm x\nE", &["sudo sh <>rm x", "sudo > sh <>rm x", "sudo > sh > rm x"]);
    check("bash <<< 'rm x'", &["bash <>rm x", "bash > rm x"]);
    check("ssh h <<E\nreboot\nE", &["ssh h <>reboot", "ssh > reboot @~"]);
    check("git commit -m 'git push --force'", &["git commit -m git push --force"]);
}

/// A shell reads what the commands around it are fed with.
#[test]
fn input_reaches_the_commands_within() {
    check("curl x | { sh; }", &["curl x", "sh", "!ShellReadsPipe"]);
    check("curl x | (a; sh)", &["curl x", "a", "sh", "!ShellReadsPipe"]);
    check("curl x | if a; then sh; fi; sh", &["curl x", "a", "sh", "!ShellReadsPipe", "sh"]);
    check("{ bash; } <<E\nrm a\nE", &["<>rm a", "bash", "bash > rm a"]);
    check("eval sh <<E\nrm a\nE", &["eval sh <>rm a", "eval > sh", "eval > sh > rm a"]);
    check("ssh h bash <<E\nrm a\nE", &["ssh h bash <>rm a", "ssh > bash @~", "ssh > bash > rm a @~"]);
    check("bash -c sh <<E\nrm a\nE", &["bash -c sh <>rm a", "bash -c > sh", "bash -c > sh > rm a"]);
    check(
        "curl x | sudo bash -c 'sh -s'",
        &[
            "curl x",
            "sudo bash -c sh -s",
            "sudo > bash -c sh -s",
            "sudo > bash -c > sh -s",
            "sudo > bash -c > !ShellReadsPipe",
        ],
    );
    check(
        "curl x | { sh </dev/null; sh <&3; sh <f; }",
        &["curl x", "sh <>/dev/null", "sh <>3", "!ShellReadsPipe", "sh <>f"],
    );
    check("f() { sh; }; f <<< 'rm a'; f", &["f() > sh", "f <>rm a", "f > rm a", "f() > sh", "f"]);
    check(
        "f() { sh; }; curl x | f",
        &["f() > sh @$PWD", "curl x", "f() > sh", "f() > !ShellReadsPipe", "f", "!ShellReadsPipe"],
    );
    check("bash /dev/fd/3 3<<E\nrm a\nE", &["bash /dev/fd/3 <>rm a", "bash > rm a"]);
    check("ls | while read x; do python3; done", &["ls", "read x", "python3 !foreign"]);
}

#[test]
fn a_text_goes_through_a_pipe() {
    check("echo rm a | sh", &["echo rm a", "sh", "sh > rm a"]);
    check("echo -n 'rm a' b | cat | bash -s", &["echo -n rm a b", "cat", "bash -s", "bash > rm a b"]);
    check("printf '%s\\n' 'rm a' ls | sh", &["printf %s\\n rm a ls", "sh", "sh > rm a", "sh > ls"]);
    check("printf 'rm a' | sudo sh", &["printf rm a", "sudo sh", "sudo > sh", "sudo > sh > rm a"]);
    check("cat <<E | sh\nrm a\nE", &["cat <>rm a", "sh", "sh > rm a"]);
    check("echo 'rm\\n' | sh", &["echo rm\\n", "sh", "!ShellReadsPipe"]);
    check("printf %d 1 | sh", &["printf %d 1", "sh", "!ShellReadsPipe"]);
    check("echo rm a 2>&1 | sh", &["echo rm a <>1", "sh", "sh > rm a"]);
    check("echo rm a >f | sh", &["echo rm a <>f", "sh", "!ShellReadsPipe"]);
    check("echo rm a &>f | sh", &["echo rm a <>f", "sh", "!ShellReadsPipe"]);
    check("{ echo rm a; } | sh", &["echo rm a", "sh", "!ShellReadsPipe"]);
    check("echo \"rm $x\" | sh", &["echo rm $x !open", "sh", "sh > !Code", "sh > rm … !open"]);
    // Some lines of a text are not the text.
    check("echo rm a | head -1 | sh", &["echo rm a", "head -1", "sh", "!ShellReadsPipe"]);
    check("echo rm a | od | sh; sh", &["echo rm a", "od", "sh", "!ShellReadsPipe", "sh"]);
}

#[test]
fn what_runs_may_be_unknown_for_many_reasons() {
    check("$x y", &["$x y !Program"]);
    check("/bin/r? b", &["/bin/r? b !Program"]);
    check("eval \"$x\"", &["eval $x !open", "eval > !Code"]);
    check("curl x | sh", &["curl x", "sh", "!ShellReadsPipe"]);
    check(". /dev/stdin; source <(x)", &[". /dev/stdin !SourcesStream", "<() > x", "source <(…) !SourcesStream"]);
    check(
        "hash -p /bin/rm ls; enable -f x y",
        &["hash -p /bin/rm ls !RenamesPrograms", "enable -f x y !RenamesPrograms"],
    );
    check("fish -c 'rm x'", &["fish -c rm x !OtherShell"]);
    check("bash -c \"git push $x\"", &["bash -c git push $x !open", "bash -c > !Code", "bash -c > git push … !open"]);
    check("echo a\n)\necho b", &["echo a", ")\necho b !NotRead(Syntax)"]);
    check("echo `(`", &["$() > !NotRead(Syntax)", "echo $(…) !open"]);
}

#[test]
fn code_of_another_language_is_named_and_not_read() {
    check("python3 -c 'x'; python3 s.py -c", &["python3 -c x !foreign", "python3 s.py -c"]);
    check("node -e 1; perl -pe 1 f; php -r 1", &["node -e 1 !foreign", "perl -pe 1 f !foreign", "php -r 1 !foreign"]);
    check("awk '{system(\"x\")}' f; awk '{print}' f", &["awk {system(\"x\")} f !foreign", "awk {print} f"]);
    check("python3 <(x)", &["<() > x", "python3 <(…) !foreign"]);
    check("echo 1 | python3; python3 - <<E\n1\nE", &["echo 1", "python3 !foreign", "python3 - <>1 !foreign"]);
}

#[test]
fn values_are_put_in_where_every_way_leads_to_them() {
    check("x=/; rm $x \"$x/a\"", &["rm / //a"]);
    check("c='git push'; $c -f", &["git push -f"]);
    check("x=1; if a; then x=2; fi; rm $x", &["a", "rm $x !open"]);
    check("x=1; true && x=2; rm $x", &["true", "rm $x !open"]);
    check("x=1; (x=2; rm $x); rm $x", &["rm 2", "rm 1"]);
    check("x=1; for i in a b; do rm $x; x=2; done", &["rm 1", "rm $x !open"]);
    check("x=1; for i in $y; do rm $x; x=2; done", &["rm $x !open"]);
    check("x=1; read x; rm $x", &["read x", "rm $x !open"]);
    check("x=1; f() { x=2; }; f; rm $x", &["f", "rm $x !open"]);
    check("x=1; . ./e; rm $x; x=3; rm $x", &[". ./e", "rm $x !open", "rm 3"]);
    check("x='a b'; rm $x; IFS=b; rm $x", &["rm a b", "IFS= > rm $x !open"]);
    check("rm ~/x \"$HOME\" ~ann", &["rm /people/ann/x /people/ann ~ann !open"]);
    check("HOME=/x; rm ~ $HOME", &["rm /x /x"]);
    check("t=$(mktemp -d); rm -rf \"$t/x\"", &["$() > mktemp -d", "rm -rf $(mktemp)/x !open"]);
    check("set -- 'a b' c; rm \"$*\" $1", &["set -- a b c", "rm a b c a b"]);
    check("set -- a b; rm \"$@\" $2", &["set -- a b", "rm a b b"]);
    check("x=a; x+=b; rm $x ${x#a} ${x:-$(ls)}", &["$() > ls", "rm ab $x $x !open"]);
}

/// In quotes, too.
#[test]
fn a_list_that_is_not_known_may_be_any_number_of_words() {
    for list in ["\"$@\"", "\"${a[@]}\"", "\"${a[@]:1}\"", "\"${!x}\"", "\"${!a[@]}\"", "\"${x:-$@}\"", "\"${@:2}\""] {
        let leaves = leaves(&format!("f() {{ rm {list}; }}; . lib"));
        let ArgumentPiece::Hole(hole) = &leaves[0].arguments[0].pieces[0] else { panic!("{list}: {leaves:?}") };
        assert_eq!(hole.reach, HoleReach::Words, "{list}");
    }
}

#[test]
fn cd_is_followed_as_far_as_it_is_literal() {
    check("cd a && make", &["cd a", "make @a"]);
    check("cd /a; cd b; make", &["cd /a", "cd b @/a", "make @/a/b"]);
    check("(cd a; make); make", &["cd a", "make @a", "make"]);
    check("cd a || exit; make", &["cd a", "exit @a", "make @a"]);
    check("if a; then cd b; fi; make", &["a", "cd b", "make @$PWD"]);
    check("cd - ; make; cd; make", &["cd -", "make @$PWD", "cd @$PWD", "make @/people/ann"]);
    check("cd \"$x\"; make", &["cd $x !open", "make @$x"]);
    check("make | (cd a; x)", &["make", "cd a", "x @a"]);
}

#[test]
fn braces_make_words() {
    let made = |word: &str, wanted: &str| check(&format!("x {word}"), &[&format!("x {wanted}")]);
    made("/{etc,usr}/a", "/etc/a /usr/a");
    made("{a,b{c,d}}{,e}", "a ae bc bce bd bde");
    made("{1..3} {c..a} {5..1..2} {1..2..9} {4..4}", "1 2 3 c b a 5 3 1 1 4");
    made("{a} {} {a,b x{a,b} a{,}b", "{a} {} {a,b xa xb ab ab");
    made("'{a,b}' {\\,,b}\"c d\" \\{a,b}", "{a,b} ,c d bc d {a,b}");
    check("{rm,-rf} a", &["rm -rf a"]);
    check("x ~/{a,$y} {a,b}*", &["x /people/ann/a /people/ann/$y a* b* !open"]);
    check(&format!("x {}", "{a,b}".repeat(9)), &[&format!("x {} !open", "{a,b}".repeat(9))]);
}

#[test]
fn a_program_gets_the_words_that_another_prints() {
    check("echo a b | xargs rm", &["echo a b", "xargs rm", "xargs > rm a b"]);
    check("echo a b | xargs -I{} rm x{} {}", &["echo a b", "xargs -I{} rm x{} {}", "xargs > rm x… a b !open"]);
    check("printf 'a b\\nc' | xargs -d '\\n' rm", &["printf a b\\nc", "xargs -d \\n rm", "xargs > rm a b c"]);
    check("echo a | xargs -a f rm", &["echo a", "xargs -a f rm", "xargs > rm … !open"]);
    check("ls /a | xargs rm", &["ls /a", "xargs rm", "xargs > rm ./… !open"]);
    check("ls -d /a/* | xargs rm", &["ls -d /a/* !open", "xargs rm", "xargs > rm /a/* !open"]);
    check("find /a b -type f | xargs rm", &["find /a b -type f", "xargs rm", "xargs > rm /a/… b/… !open"]);
    check("find \"$x\" | xargs rm", &["find $x !open", "xargs rm", "xargs > rm $x/… !open"]);
    check("find -name a -exec rm {} \\;", &["find -name a -exec rm {} ;", "find -exec > rm ./…/a !open"]);
    check("find -name a -o -exec rm {} \\;", &["find -name a -o -exec rm {} ;", "find -exec > rm ./… !open"]);
    check("fd -H x /a -x rm", &["fd -H x /a -x rm", "fd -x > rm /a/… !open"]);
    check(
        "find /a | while read -r d; do rm \"$d\"; done; rm $d",
        &["find /a", "read -r d", "rm /a/… !open", "rm $d !open"],
    );
    check("curl x | while read d; do rm \"$d\"; done", &["curl x", "read d", "rm $d !open"]);
}

/// A variable that was not set is either empty or that file, so a branch that may not run leaves it known.
#[test]
fn a_temporary_file_stays_known_after_a_branch() {
    check("cd a && t=$(mktemp) && x; rm $t", &["cd a", "$() > mktemp @a", "x @a", "rm $(mktemp) @a !open"]);
    check("t=a; x && t=$(mktemp); rm $t", &["x", "$() > mktemp", "rm $t !open"]);
    check("x && HOME=$(mktemp); rm $HOME", &["x", "$() > mktemp", "rm $HOME !open"]);
    check(
        "t=$(mktemp -d || mktemp -d -t x); rm $t",
        &["$() > mktemp -d", "$() > mktemp -d -t x", "rm $(mktemp) !open"],
    );
}

/// Each turn of a loop over known words is read with its word.
#[test]
fn the_words_of_a_loop_are_known() {
    check("for d in a b/c; do rm -rf \"$d\"; done; rm $d", &["rm -rf a", "rm -rf b/c", "rm $d !open"]);
    check("for i in 1 2 3; do ls; sleep 1; done", &["ls", "sleep 1"]);
    check("for i in 1 2; do ls; read x; rm $x; done", &["ls", "read x", "rm $x !open"]);
    check("for i in a \"$x\"; do rm $i; done", &["rm $i !open"]);
    check("for i in a/* b; do rm $i; done", &["rm a/* !open", "rm b"]);
    check("for i; do rm $i; done", &["rm $i !open"]);
    check("while x; do for i in a b; do rm $i; done; done", &["x", "rm a", "rm b"]);
    let words = |count: usize| "a ".repeat(count);
    check(&format!("for i in {}; do rm $i; done", words(65)), &["rm $i !open"]);
    check(&format!("for i in {0}; do for j in {0}; do rm $j; done; done", words(8)), &["rm a", "rm $j !open"]);
}

#[test]
fn functions_and_aliases_are_judged_with_what_they_hide() {
    check("git() { rm x; }; git push", &["git() > rm x", "git push"]);
    check(
        "alias g='git push'\ng -f",
        &["alias g=git push", "alias g > git push @$PWD", "alias g > git push -f", "g -f"],
    );
}

#[test]
fn the_body_of_a_function_gets_the_words_of_its_call() {
    let called = |text: &str| {
        let lines: Vec<String> = leaves(text).iter().map(line).collect();
        lines.into_iter().filter(|line| !line.contains('$')).collect::<Vec<_>>()
    };
    assert_eq!(called("f() { rm \"a/$1\" $2; }; f ../b c"), ["f() > rm a/../b c", "f ../b c"]);
    assert_eq!(called("f() { local x=$1; rm \"$x\"; }; f a"), ["f() > local x=a", "f() > rm a", "f a"]);
    assert_eq!(called("cd /b; f() { rm $1; }; f a"), ["cd /b", "f() > rm a @/b", "f a @/b"]);
    // It may call itself or another one, and what it sets is set at a time that is not known.
    assert_eq!(called("f() { f $1; x=$1; }; f a; rm \"$x\""), ["f() > f a", "f a"]);
    let two = "g() { f \"$1\"; }; f() { git \"$@\"; }; g push";
    assert_eq!(called(two), ["g() > f() > git push", "g() > f push", "g push"]);
    assert_eq!(called("f() { rm \"$1\"; }; f"), ["f() > rm ", "f"]);
    // A call of unknown words tells nothing.
    assert_eq!(called("f() { rm \"$1\"; }; f \"$y\""), [] as [&str; 0]);
}

/// The body of a definition stands for the calls that are not seen, with words that nobody knows.
#[test]
fn a_definition_runs_nothing_where_all_calls_are_seen() {
    let f = "f() { rm \"$1\"; }";
    check(&format!("{f}; ls"), &["ls"]);
    check(&format!("{f}; f a; f b"), &["f() > rm a", "f a", "f() > rm b", "f b"]);
    check("f() { g; }; g() { rm x; }; f", &["f() > g() > rm x", "f() > g", "f"]);
    check("f() { PATH=/x; ls; }; make", &["make"]);
    for others in [
        ". lib",
        "source lib",
        "eval \"$y\"",
        "$y a",
        "curl y | sh",
        "export -f f; sh y",
        "set -a; sh y",
        "trap f EXIT",
        "alias y=f",
        "command f a",
        "declare -f f | ssh h",
        "f a; f() { true; }",
        "if a; then f() { true; }; fi; f a",
        "g() { f a; }; . lib",
    ] {
        let text = format!("{f}; {others}");
        assert_eq!(leaves(&text).iter().map(line).next().as_deref(), Some("f() > rm $1 @$PWD !open"), "{text}");
    }
    for hook in ["command_not_found_handle", "TRAPEXIT", "chpwd"] {
        check(&format!("{hook}() {{ rm x; }}; ls"), &[&format!("{hook}() > rm x @$PWD"), "ls"]);
    }
    let before = format!("f a; {f}");
    assert!(leaves(&before).iter().map(line).any(|line| line.ends_with("rm $1 @$PWD !open")), "{before}");
}

#[test]
fn variables_that_change_programs_lead_to_them() {
    check("PATH=/x git push; git pull", &["PATH= > git push", "git pull"]);
    check("env LD_PRELOAD=x git push", &["env LD_PRELOAD=x git push", "LD_PRELOAD= > env > git push"]);
    check(
        "export GIT_SSH_COMMAND=x; git pull",
        &["export GIT_SSH_COMMAND=x", "GIT_SSH_COMMAND= > git pull", "GIT_SSH_COMMAND= > git > x"],
    );
}

#[test]
fn commands_in_words_are_leaves() {
    check(
        "a \"$(b `c`)\" ${x:-$(d)} $((1+$(e))) <(f) >(g)",
        &[
            "$() > $() > c",
            "$() > b $(…) !open",
            "$() > d",
            "$() > e",
            "<() > f",
            "<() > g",
            "a $(…) $x $((…)) <(…) <(…) !open",
        ],
    );
    // Single quotes within double quotes hide nothing.
    check("echo \"${x:-'$(rm a)'}\" ${x:-'$(rm b)'}", &["$() > rm a", "echo $x $x !open"]);
    check("x=$(a) y=(1 $(b)) z[$(c)]=1 > $(d)", &["$() > d", "$() > a", "$() > b", "$() > c", "<>$(…) !open"]);
    check("[[ -n $(a) && b =~ ($(c)) ]]; case $(d) in $(e)) ;; esac", &["$() > a", "$() > c", "$() > d", "$() > e"]);
    check("$'\\x72m' x; r\\m y; \"r\"m z", &["rm x", "rm y", "rm z"]);
}

#[test]
fn the_bounds_are_leaves_with_their_reason() {
    let last = |text: &str| script::leaves(text.as_bytes(), &|_| None).leaves.pop().expect("a leaf").state;
    let deep = "( ".repeat(500) + &")".repeat(500);
    assert_eq!(last(&deep), LeafState::Opaque(OpaqueReason::NotRead(Problem::TooDeep)));
    assert_eq!(last(&"a\n".repeat(5_000)), LeafState::Opaque(OpaqueReason::TooManyLeaves));
    assert_eq!(last(&"a ".repeat(40_000)), LeafState::Opaque(OpaqueReason::NotRead(Problem::TooMany)));
    assert_eq!(last(&"#".repeat(1 << 21)), LeafState::Opaque(OpaqueReason::NotRead(Problem::TooLong)));
    let nested = "a='eval \"$a\"'; eval \"$a\"";
    assert_eq!(last(nested), LeafState::Opaque(OpaqueReason::NotRead(Problem::TooDeep)));
    let sudo = "sudo ".repeat(200) + "rm x";
    assert_eq!(last(&sudo), LeafState::Opaque(OpaqueReason::NotRead(Problem::TooDeep)));
}

#[test]
fn a_program_without_a_shell_is_one_leaf() {
    let words = ["git", "push", "$x;rm y"].map(|word| word.as_bytes().to_vec());
    let told: Vec<String> = script::leaves_of_program(&words, &|_| None).leaves.iter().map(line).collect();
    assert_eq!(told, ["git push $x;rm y"]);
    let words = ["sh", "-c", "rm y"].map(|word| word.as_bytes().to_vec());
    let told = script::leaves_of_program(&words, &|_| None).leaves;
    assert_eq!(told.iter().map(|leaf| lossy(&leaf.program)).collect::<Vec<_>>(), ["sh", "rm"]);
}

/// The text that the shell gets is read, wrappers of agents and padding included.
#[test]
fn what_stands_in_front_changes_nothing() {
    for front in ["", "# bait: ls\n", ": '", "echo 'ls' >/dev/null && ", "\n\n\n", "true;\\\n"] {
        let closes = if front == ": '" { "'\n" } else { "" };
        let text = format!("{front}{closes}git push -f");
        assert_eq!(leaves(&text).last().map(line).as_deref(), Some("git push -f"), "{text}");
    }
}
