//! What a person's "always" becomes, and what it allows.

use rexec_host::gate::{Action, Facts, Gate, Judged, Learned, LearnedList, Unlearnable};

use crate::support::{FACTS, gate, judged, judged_with};

/// Every program here asks, by a rule that has its name, and some by those of packs, too.
const ASKS: &str = "
[gate]
mode = 'enforce'
opaque = 'ask'
foreign = 'ask'
packs = ['git', 'files', 'database', 'publish', 'cloud']
[[rule]]
name = 'all'
do = 'ask'
run = 'git|npm|cargo|docker|kubectl|gh|make|rm|curl|wget|sudo|timeout|ssh|bash|deploy|psql|terraform|go|pip|dropdb|tee'
[[rule]]
name = 'never'
do = 'deny'
run = 'git push'
with = ['main']
";

/// What would be saved for the leaf of a text that decides.
fn learnable(gate: &Gate, text: &str, facts: &Facts<'_>) -> Result<Learned, Unlearnable> {
    let leaves = gate.leaves(text.as_bytes(), &|name| (name == b"HOME").then(|| b"/people/ann".to_vec()));
    let judged = Judged::of(gate, leaves, facts);
    let at = judged.strictest().filter(|&at| judged.verdicts[at].action == Action::Ask);
    let at = at.unwrap_or_else(|| panic!("nothing asks: {text}"));
    let is_secret = |words: &[&[u8]]| words.iter().any(|word| word.starts_with(b"secret"));
    gate.learnable(&judged.leaves[at], &judged.verdicts[at], facts, "s:7", is_secret)
}

fn with(mut gate: Gate, learned: &Learned) -> Gate {
    gate.learned.add(learned.clone());
    gate
}

#[test]
fn an_always_is_a_subcommand_or_exact_words_or_nothing() {
    use Unlearnable::{Long, Opaque, Open, ReadsInput, Redirected, Secret};
    let gate = gate(ASKS);
    let long = format!("make {}", "x".repeat(2_000));
    let table: [(&str, Result<&str, Unlearnable>); 44] = [
        ("git push origin fix", Ok("git push")),
        ("git commit -m 'a b'", Ok("git commit")),
        ("git -c a=b status", Ok("git -c a=b status")),
        ("git -C ../other push", Ok("git -C ../other push")),
        ("git push -f origin fix", Ok("git push -f origin fix")),
        ("git push --delete origin fix", Ok("git push --delete origin fix")),
        ("git clean -fd", Ok("git clean -fd")),
        ("git bisect run ./x", Ok("git bisect run ./x")),
        ("git config user.name x", Ok("git config user.name x")),
        ("npm install left-pad", Ok("npm install")),
        ("npm run build", Ok("npm run build")),
        ("npm publish", Ok("npm publish")),
        ("cargo build --release", Ok("cargo build")),
        ("docker compose up -d", Ok("docker compose up")),
        ("docker run --rm image", Ok("docker run --rm image")),
        ("docker -H tcp://other ps", Ok("docker -H tcp://other ps")),
        ("kubectl apply -f a.yaml", Ok("kubectl apply")),
        ("kubectl --context prod apply -f a.yaml", Ok("kubectl --context prod apply -f a.yaml")),
        ("gh pr create --fill", Ok("gh pr create")),
        ("gh api /user", Ok("gh api /user")),
        ("go run .", Ok("go run .")),
        ("pip install x", Ok("pip install")),
        ("terraform destroy", Ok("terraform destroy")),
        ("make deploy", Ok("make deploy")),
        ("rm -rf ../build", Ok("rm -rf ../build")),
        ("curl -s https://x", Ok("curl -s https://x")),
        ("wget https://x", Ok("wget https://x")),
        ("sudo ls", Ok("sudo ls")),
        ("timeout 9 ls", Ok("timeout 9 ls")),
        ("bash x.sh", Ok("bash x.sh")),
        ("ssh host ls", Ok("ssh host ls")),
        ("deploy --now", Ok("deploy --now")),
        ("dropdb shop", Ok("dropdb shop")),
        ("python3 -c 'print(1)'", Ok("python3 -c 'print(1)'")),
        ("nice git push", Ok("git push (via nice)")),
        ("psql <x.sql", Err(Redirected)),
        ("echo 'drop table a' | psql", Err(ReadsInput)),
        ("make deploy >log", Err(Redirected)),
        ("rm -rf $x", Err(Open)),
        ("rm -rf *", Err(Open)),
        ("$x push", Err(Opaque)),
        ("eval \"$x\"", Err(Opaque)),
        ("deploy secret1", Err(Secret)),
        (&long, Err(Long)),
    ];
    let mut wrong = Vec::new();
    for (text, expected) in table {
        let found = learnable(&gate, text, &FACTS);
        if found.as_ref().map(ToString::to_string).map_err(|why| *why) != expected.map(str::to_owned) {
            wrong.push(format!("{text:.60}: {:?}", found.as_ref().map(ToString::to_string)));
        }
        // What was saved allows the leaf that asked, by the rule that asked.
        let Ok(learned) = found else { continue };
        assert_eq!(
            learned.rule().map(|rule| rule == "all"),
            Some(true).filter(|_| !text.starts_with("python3")),
            "{text}"
        );
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn an_always_lifts_what_is_the_same_and_nothing_else() {
    let rules = "[[rule]]\nname = 'push'\ndo = 'ask'\nrun = 'git push'\n[[rule]]\ndo = 'deny'\nrun = 'git push'\nwith = ['main']\n\
                 [[rule]]\nname = 'tags'\ndo = 'ask'\nrun = 'git push'\nwith = ['--tags']\n\
                 [[rule]]\nname = 'rm'\ndo = 'ask'\nrun = 'rm'\nwith = ['-r']\n";
    let gate = gate(rules);
    let push = with(gate.clone(), &learnable(&gate, "git push origin fix", &FACTS).expect("a subcommand"));
    for text in ["git push origin fix", "git push", "git push -u origin other", "cd src && git push", "true; git push"]
    {
        let (action, why) = judged(&push, text);
        assert_eq!(action, Action::Allow, "{text}: {why}");
    }
    assert_eq!(
        judged(&push, "git push").1,
        "you always allow `git` here, although rule push asks (rexec gate learned)"
    );
    for text in [
        "git push -f origin fix",
        "git push --tags",
        "git push $x",
        "git -C /srv/x push",
        "git --git-dir=/srv/x/.git push",
        "cd /srv/x && git push",
        "cd .. && git push",
        "PATH=x git push",
        "sudo git push",
        "$(git push)",
        "ssh host git push",
        "git push && rm -r x",
        "/tmp/git push",
    ] {
        assert_eq!(judged(&push, text).0, Action::Ask, "{text}");
    }
    assert_eq!(judged(&push, "git push origin main").0, Action::Deny);
    let others = [
        Facts { agent: Some("claude"), ..FACTS },
        Facts { agent: None, ..FACTS },
        Facts { project: Some(b"/people/ann/other"), directory: Some(b"/people/ann/other"), ..FACTS },
        Facts { project: None, directory: Some(b"/people/ann/shop/src"), ..FACTS },
        Facts { today: Some("2026-06-21"), ..FACTS },
        Facts { today: Some("2026-05-20"), ..FACTS },
        Facts { today: None, ..FACTS },
    ];
    for facts in &others {
        assert_eq!(judged_with(&push, "git push", facts).0, Action::Ask, "{facts:?}");
    }
    let within = Facts { today: Some("2026-06-20"), directory: Some(b"/people/ann/shop/src"), ..FACTS };
    assert_eq!(judged_with(&push, "git push", &within).0, Action::Allow);
    let rm = with(gate.clone(), &learnable(&gate, "rm -r ../build", &FACTS).expect("its words"));
    assert_eq!(judged(&rm, "rm -r ../build").0, Action::Allow);
    for text in
        ["rm -r ../other", "rm -rf ../build", "cd src && rm -r ../build", "sudo rm -r ../build", "rm -r ../build >x"]
    {
        assert_eq!(judged(&rm, text).0, Action::Ask, "{text}");
    }
}

#[test]
fn the_file_means_what_was_saved_and_a_broken_one_is_refused_with_its_place() {
    let gate = gate(ASKS);
    let mut list = LearnedList::default();
    for text in ["git push", "rm -r 'a \"b\\c'", "nice make x", "git push", "python3 -c 'é'"] {
        list.add(learnable(&gate, text, &FACTS).expect("something to save"));
    }
    let text = list.text();
    let read = LearnedList::read(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let shown = |list: &LearnedList| list.iter().map(|one| format!("{one:?}")).collect::<Vec<_>>();
    assert_eq!(shown(&read), shown(&list));
    let names: Vec<String> = read.iter().map(ToString::to_string).collect();
    assert_eq!(
        names,
        ["rm -r 'a \"b\\c'", "make x (via nice)", "git push", "python3 -c é"],
        "each once, the newest last"
    );
    assert!(toml::from_str::<toml::Table>(&text).is_ok(), "{text}");
    let one = "[[learned]]\nrun = 'git push'\nwithout = ['-f']\nagent = 'a'\nproject = '/p'\nsaved = '2026-05-21'\n";
    assert!(LearnedList::read(one.as_bytes()).is_ok());
    for (from, to, problem) in [
        ("without = ['-f']\n", "", "1:1: this entry has no `run` with `without`"),
        ("agent = 'a'\n", "", "1:1: this entry has no `agent`"),
        ("project = '/p'\n", "", "1:1: this entry has no `project`"),
        ("'2026-05-21'", "'yesterday'", "6:9: `saved` is not a day"),
        ("agent", "agnet", "4:1: [learned] has no key `agnet`"),
        ("'git push'", "'git -f'", "2:7: `run` has the option -f"),
        ("run = 'git push'\nwithout = ['-f']", "words = []\nin = '/'", "1:1: this entry has no `run`"),
        ("[[learned]]", "[[rule]]", "1:1: this is no entry"),
        ("[[learned]]", "[learned]", "1:1: this is no entry"),
        ("'a'", "3", "4:9: `agent` is a text"),
    ] {
        let broken = one.replace(from, to);
        let error = LearnedList::read(broken.as_bytes()).expect_err("it is broken").to_string();
        assert!(error.starts_with(problem), "{error}");
    }
}
