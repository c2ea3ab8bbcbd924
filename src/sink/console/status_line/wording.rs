//! The words of the status line, in as many columns as there are.
//!
//! Invariants: a line is never wider than asked for; what waits for the human is the last thing to go.

use std::time::{Duration, Instant};

use crate::text::count::counted;
use crate::text::escape::escape_line;
use crate::text::width::width;

const MINUTE: Duration = Duration::from_secs(60);

/// A run that has not ended.
#[derive(Debug, Clone)]
pub struct StatusRun {
    pub number: u64,
    /// The command's name, as a person would say it.
    pub command: String,
    pub since: Instant,
    pub waits: Waits,
    /// Lines that are only counted for now.
    pub unshown: Option<u64>,
}

/// A run's wait for the human's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waits {
    /// It does not.
    No,
    /// It has begun so recently that no key answers it yet.
    Young {
        /// When it is not young any more.
        until: Instant,
    },
    /// It does, under this name: `#46 claude`.
    Answerable(String),
    /// It is held until the human decides, no longer than to this time. The text is what it is about.
    Decision { leaf: String, until: Instant },
}

/// The facts that the status line shows.
#[derive(Debug, Clone, Default)]
pub struct StatusFacts {
    pub now: Option<Instant>,
    /// The runs that have not ended, oldest first.
    pub runs: Vec<StatusRun>,
    /// Runs that have ended and left processes, oldest first.
    pub left: Vec<u64>,
    /// Agents that have run something.
    pub agents: usize,
    /// Agents that start shells, none of which has come here.
    pub silent: Vec<String>,
    /// Commands since the host began.
    pub commands: u64,
    /// Runs that failed today.
    pub failed: u64,
    /// The run that ^C stops.
    pub shown: Option<u64>,
    pub followed: Option<u64>,
    pub is_frozen: bool,
    pub has_keyboard: bool,
    /// Until when the key that answers may have been meant for another run than the one that waits.
    pub unclear_until: Option<Instant>,
    pub is_ending: bool,
    /// Where callers connect, for a host that nobody has called.
    pub socket: String,
    /// The keyboard's question, and the keys that lead out of it.
    pub question: Option<(String, Option<&'static str>)>,
    /// The effect of a key, shown for a moment.
    pub message: Option<String>,
}

/// How many of the facts are said.
#[derive(Debug, Clone, Copy)]
struct Detail {
    runs: usize,
    command: usize,
    has_agents: bool,
    has_failed: bool,
    has_left: bool,
    /// Keys beside `?`.
    has_keys: bool,
}

/// From everything to next to nothing.
const DETAILS: [Detail; 10] = {
    let all = Detail { runs: 4, command: 40, has_agents: true, has_failed: true, has_left: true, has_keys: true };
    [
        all,
        Detail { runs: 3, command: 28, ..all },
        Detail { runs: 2, command: 20, ..all },
        Detail { runs: 2, command: 14, ..all },
        Detail { runs: 2, command: 14, has_agents: false, ..all },
        Detail { runs: 1, command: 16, has_agents: false, ..all },
        Detail { runs: 1, command: 12, has_agents: false, has_failed: false, ..all },
        Detail { runs: 1, command: 12, has_agents: false, has_failed: false, has_left: false, ..all },
        Detail { runs: 1, command: 8, has_agents: false, has_failed: false, has_left: false, has_keys: false },
        Detail { runs: 1, command: 0, has_agents: false, has_failed: false, has_left: false, has_keys: false },
    ]
};

impl StatusFacts {
    /// The facts in the few words of a window's title.
    #[must_use]
    pub fn title(&self) -> String {
        let waiting = self.runs.iter().find(|run| run.waits != Waits::No);
        match (self.runs.len(), waiting) {
            (0, _) => "rexec".to_owned(),
            (count, None) => format!("rexec: {count} run"),
            (count, Some(StatusRun { number, waits: Waits::Decision { .. }, .. })) => {
                format!("rexec: {count} run, #{number} asks")
            }
            (count, Some(run)) => format!("rexec: {count} run, #{} waits", run.number),
        }
    }

    /// The line, at most this wide.
    pub(super) fn line(&self, columns: usize) -> String {
        if let Some((question, way_out)) = &self.question {
            return spread(question, way_out.unwrap_or_default(), columns)
                .unwrap_or_else(|| cut(&format!(" {question}"), columns));
        }
        if let Some(message) = &self.message {
            return self.with_answer_key(message, columns).unwrap_or_else(|| cut(&format!(" {message}"), columns));
        }
        self.fitting(columns).unwrap_or_else(|| cut(&format!(" {}", self.said(DETAILS[DETAILS.len() - 1])), columns))
    }

    /// As many of the facts as fit, with the keys.
    fn fitting(&self, columns: usize) -> Option<String> {
        DETAILS.iter().find_map(|&detail| spread(&self.said(detail), &self.keys(detail), columns))
    }

    /// The message with the keys that answer, which are worth more than the message's end.
    fn with_answer_key(&self, message: &str, columns: usize) -> Option<String> {
        let key = self.answer_keys(DETAILS[0]).unwrap_or_default();
        let room = columns.checked_sub(columns_of(&key) + MARGINS + GAP)?;
        spread(message, &key, columns).or_else(|| spread(&escape_line(message, room), &key, columns))
    }

    /// The runs that a key answers, if a line of this width says so.
    pub(super) fn named_in(&self, columns: usize) -> Vec<u64> {
        if self.says_keys(columns) { self.answerable() } else { Vec::new() }
    }

    /// The held runs on which a key decides, if a line of this width says so.
    pub(super) fn held_in(&self, columns: usize) -> Vec<u64> {
        if self.says_keys(columns) { self.held() } else { Vec::new() }
    }

    fn says_keys(&self, columns: usize) -> bool {
        let says_so = match (&self.question, &self.message) {
            (Some(_), _) => false,
            (None, Some(message)) => self.with_answer_key(message, columns).is_some(),
            (None, None) => self.fitting(columns).is_some(),
        };
        says_so && self.has_keyboard
    }

    fn said(&self, detail: Detail) -> String {
        if self.is_idle() {
            let place = if detail.has_agents { format!(" · {}", self.socket) } else { String::new() };
            let advice = if detail.has_keys { " · start one: rexec run -- claude" } else { "" };
            return format!("no agent yet{advice}{place}");
        }
        let mut parts = Vec::new();
        if self.is_ending {
            parts.push("ENDING".to_owned());
        }
        if self.is_frozen {
            parts.push("SCREEN STANDS STILL".to_owned());
        }
        parts.push(self.running(detail));
        match &self.silent[..] {
            _ if !detail.has_left => {}
            [] => {}
            [one] => parts.push(format!("{one} runs UNSEEN")),
            more => parts.push(format!("{} agents run UNSEEN", more.len())),
        }
        if detail.has_left && !self.left.is_empty() {
            let named: Vec<String> = self.left.iter().rev().take(3).map(|number| format!("#{number}")).collect();
            let more = if self.left.len() > named.len() { " …" } else { "" };
            parts.push(format!("{} left {}{more}", self.left.len(), named.join(" ")));
        }
        if detail.has_agents && self.agents > 0 {
            parts.push(counted(self.agents as u64, "agent", "agents"));
        }
        if detail.has_failed && self.failed > 0 {
            parts.push(format!("{} failed today", self.failed));
        }
        parts.join(" · ")
    }

    fn is_idle(&self) -> bool {
        let nobody = self.agents == 0 && self.silent.is_empty() && self.runs.is_empty() && self.left.is_empty();
        nobody && self.commands == 0 && !self.is_ending && !self.is_frozen
    }

    /// How many run, and which: those that wait first, then the longest.
    fn running(&self, detail: Detail) -> String {
        let (waiting, busy): (Vec<&StatusRun>, Vec<&StatusRun>) =
            self.runs.iter().partition(|run| run.waits != Waits::No);
        let named: Vec<String> =
            waiting.into_iter().chain(busy).take(detail.runs).map(|run| self.item(run, detail)).collect();
        match (self.runs.len(), named.len()) {
            (0, _) => "nothing runs".to_owned(),
            (all, some) if all > some => format!("{all} run: {} · {} more", named.join(" · "), all - some),
            (all, _) => format!("{all} run: {}", named.join(" · ")),
        }
    }

    fn item(&self, run: &StatusRun, detail: Detail) -> String {
        let number = run.number;
        match &run.waits {
            Waits::No => {}
            Waits::Young { .. } | Waits::Answerable(_) => return format!("#{number} WAITS ⏎"),
            Waits::Decision { leaf, until } => {
                let left = self.now.map_or(Duration::ZERO, |now| until.saturating_duration_since(now));
                let left = age(Duration::from_secs(left.as_millis().div_ceil(1_000).try_into().unwrap_or(u64::MAX)));
                return match detail.command {
                    0 => format!("#{number} ASKS {left}"),
                    most => format!("#{number} ASKS {left}: {}", escape_line(leaf, most)),
                };
            }
        }
        let mut item = match detail.command {
            0 => format!("#{number}"),
            most => format!("#{number} {}", escape_line(&run.command, most)),
        };
        item.push_str(&format!(" {}", age(self.age(run))));
        if let Some(lines) = run.unshown {
            item.push_str(&format!(" (+{})", counted(lines, "line", "lines")));
        }
        if self.followed == Some(number) {
            item.push_str(" followed");
        }
        item
    }

    fn age(&self, run: &StatusRun) -> Duration {
        self.now.map_or(Duration::ZERO, |now| now.saturating_duration_since(run.since))
    }

    fn keys(&self, detail: Detail) -> String {
        if !self.has_keyboard {
            return String::new();
        }
        let answer = self.answer_keys(detail);
        if let Some(answer) = answer.as_ref().filter(|_| !detail.has_keys) {
            return answer.clone();
        }
        let mut keys = Vec::new();
        if detail.has_keys {
            if self.is_frozen {
                keys.push("p go on".to_owned());
            }
            keys.extend(answer);
            if self.followed.is_some() {
                keys.push("f unfollow".to_owned());
            }
            if self.runs.is_empty() {
                keys.push("q quit".to_owned());
            }
            keys.extend(self.shown.map(|number| format!("^C stop #{number}")));
        }
        keys.push("? keys".to_owned());
        keys.join(" · ")
    }

    /// The words for the keys that answer and decide.
    fn answer_keys(&self, detail: Detail) -> Option<String> {
        let decision = match self.held()[..] {
            [] => None,
            [number] => Some(format!("y run #{number} · n refuse · a always")),
            _ => Some("y run one · n refuse one".to_owned()),
        };
        let keys: Vec<String> = [decision, self.answer_key(detail)].into_iter().flatten().collect();
        (!keys.is_empty()).then(|| keys.join(" · "))
    }

    /// The words for the key that answers.
    fn answer_key(&self, detail: Detail) -> Option<String> {
        match &self.named().collect::<Vec<_>>()[..] {
            [] => None,
            [(number, _)] if !detail.has_keys && self.unclear_until.is_none() => Some(format!("i answer #{number}")),
            [(_, name)] if self.unclear_until.is_none() => Some(format!("i answer {name}")),
            _ => Some("i answer one".to_owned()),
        }
    }

    #[must_use]
    pub fn answerable(&self) -> Vec<u64> {
        self.named().map(|(number, _)| number).collect()
    }

    /// The runs on which a key decides.
    #[must_use]
    pub fn held(&self) -> Vec<u64> {
        let is_held = |run: &&StatusRun| matches!(run.waits, Waits::Decision { .. });
        self.runs.iter().filter(is_held).map(|run| run.number).collect()
    }

    /// The runs that a key answers, with their names.
    fn named(&self) -> impl Iterator<Item = (u64, &str)> {
        self.runs.iter().filter_map(|run| match &run.waits {
            Waits::Answerable(name) => Some((run.number, name.as_str())),
            Waits::No | Waits::Young { .. } | Waits::Decision { .. } => None,
        })
    }

    /// When the text changes because time passes: a run's first minute is counted in seconds.
    pub(super) fn next_tick(&self, now: Instant) -> Option<Instant> {
        let next = |run: &StatusRun| {
            let age = now.saturating_duration_since(run.since);
            let unit = if age < MINUTE { Duration::from_secs(1) } else { MINUTE };
            let units = age.as_secs() / unit.as_secs() + 1;
            run.since + unit * u32::try_from(units).unwrap_or(u32::MAX)
        };
        let next = self.runs.iter().filter_map(|run| match run.waits {
            Waits::No => Some(next(run)),
            Waits::Young { until } => Some(until),
            Waits::Answerable(_) => None,
            Waits::Decision { .. } => Some(now + Duration::from_secs(1)),
        });
        next.chain(self.unclear_until).min()
    }
}

/// A time: `0:18`, `12 min`, `2 h 14 min`.
fn age(age: Duration) -> String {
    match age.as_secs() {
        seconds @ 0..60 => format!("0:{seconds:02}"),
        seconds @ 60..3_600 => format!("{} min", seconds / 60),
        seconds => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
    }
}

fn columns_of(text: &str) -> usize {
    text.chars().map(width).sum()
}

/// The blanks at both ends of a line.
const MARGINS: usize = 2;
/// The least blanks between the texts at its ends.
const GAP: usize = 2;

/// Two texts at the ends of a line. `None` if there is no room.
fn spread(left: &str, right: &str, columns: usize) -> Option<String> {
    let taken = columns_of(left) + columns_of(right) + MARGINS;
    let gap = columns.checked_sub(taken).filter(|&gap| gap >= GAP || right.is_empty())?;
    Some(format!(" {left}{}{right} ", " ".repeat(gap)))
}

fn cut(text: &str, columns: usize) -> String {
    escape_line(text, columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> StatusFacts {
        let now = Instant::now() + Duration::from_secs(100_000);
        let run = |number, command: &str, seconds, waits: Waits| StatusRun {
            number,
            command: command.to_owned(),
            since: now - Duration::from_secs(seconds),
            waits,
            unshown: None,
        };
        let answerable = Waits::Answerable("#46 claude".to_owned());
        StatusFacts {
            now: Some(now),
            runs: vec![run(41, "npm run dev", 18, Waits::No), run(46, "sudo apt-get install jq", 9, answerable)],
            left: vec![25],
            agents: 3,
            failed: 2,
            shown: Some(46),
            has_keyboard: true,
            ..StatusFacts::default()
        }
    }

    #[test]
    fn it_says_what_runs_what_waits_and_which_keys_do_something() {
        let line = facts().line(140);
        assert!(
            line.starts_with(" 2 run: #46 WAITS ⏎ · #41 npm run dev 0:18 · 1 left #25 · 3 agents · 2 failed today  ")
        );
        assert!(line.ends_with("  i answer #46 claude · ^C stop #46 · ? keys "), "{line}");
        assert_eq!(facts().title(), "rexec: 2 run, #46 waits");
        let silent = StatusFacts { silent: vec!["kimi".to_owned()], ..facts() };
        assert!(
            silent.line(140).contains(" · #41 npm run dev 0:18 · kimi runs UNSEEN · 1 left"),
            "{}",
            silent.line(140)
        );
        let idle = StatusFacts {
            socket: "/run/user/1000/rexec/host.sock".to_owned(),
            has_keyboard: true,
            ..StatusFacts::default()
        };
        let line = idle.line(100);
        assert!(
            line.starts_with(" no agent yet · start one: rexec run -- claude · /run/user/1000/rexec/host.sock  "),
            "{line}"
        );
        assert!(line.ends_with("  q quit · ? keys "));
        let asked = StatusFacts { question: Some(("stop which run? #4_".to_owned(), Some("Esc leaves"))), ..facts() };
        assert!(asked.line(80).starts_with(" stop which run? #4_  ") && asked.line(80).ends_with("  Esc leaves "));
    }

    #[test]
    fn it_fits_every_width_and_names_what_waits_as_long_as_it_can() {
        let mut many = facts();
        let one = many.runs[0].clone();
        many.runs.extend((50..90).map(|number| StatusRun { number, ..one.clone() }));
        for facts in [facts(), many, StatusFacts::default()] {
            for columns in 1..300 {
                let line = facts.line(columns);
                assert!(columns_of(&line) <= columns, "{columns}: {line}");
                let waits = facts.runs.iter().any(|run| run.waits != Waits::No);
                assert!(!waits || columns < 24 || line.contains("#46 WAITS"), "{columns}: {line}");
            }
        }
    }

    /// What a key answers is what the person has read.
    #[test]
    fn a_run_counts_as_named_only_where_the_line_names_it() {
        let named = |facts: &StatusFacts, columns: usize| {
            assert_eq!(facts.line(columns).contains("i answer #46"), facts.named_in(columns) == [46], "{columns}");
            facts.named_in(columns)
        };
        let told = StatusFacts { message: Some("a message of some length that is cut".to_owned()), ..facts() };
        let asked = StatusFacts { question: Some(("stop which run? #4_".to_owned(), None)), ..facts() };
        for columns in 1..200 {
            named(&facts(), columns);
            named(&told, columns);
            assert_eq!(named(&asked, columns), [0; 0]);
        }
        assert_eq!((named(&facts(), 80), named(&told, 80), named(&told, 40)), (vec![46], vec![46], vec![46]));
        let mut two = facts();
        two.runs[0].waits = Waits::Answerable("#41 codex".to_owned());
        assert!(two.line(120).contains("  i answer one · ") && two.named_in(120) == [41, 46], "{}", two.line(120));
    }

    #[test]
    fn a_command_cannot_write_on_the_line_what_it_likes() {
        let mut facts = facts();
        facts.runs[0].command = "x\x1b[31m\n\u{202e}y".to_owned();
        let line = facts.line(200);
        assert!(!line.contains(|c: char| c.is_control() || c == '\u{202e}'), "{line:?}");
    }

    #[test]
    fn a_time_changes_every_second_and_later_every_minute() {
        let mut facts = facts();
        let now = facts.now.unwrap();
        assert_eq!(facts.next_tick(now), Some(now + Duration::from_secs(1)));
        facts.runs[0].since = now - Duration::from_secs(200);
        assert_eq!(facts.next_tick(now), Some(now + Duration::from_secs(40)));
        let until = now + Duration::from_millis(500);
        facts.runs[1].waits = Waits::Young { until };
        assert_eq!((facts.next_tick(now), facts.named_in(120)), (Some(until), vec![]), "no key answers it yet");
        facts.runs.clear();
        assert_eq!(facts.next_tick(now), None);
        let ages = [0, 59, 60, 3_599, 3_600, 8_040].map(|seconds| age(Duration::from_secs(seconds)));
        assert_eq!(ages, ["0:00", "0:59", "1 min", "59 min", "1 h 0 min", "2 h 14 min"]);
    }

    #[test]
    fn a_held_run_says_what_it_is_about_how_long_it_waits_and_which_keys_decide() {
        let mut facts = facts();
        let until = facts.now.unwrap() + Duration::from_millis(51_500);
        facts.runs = vec![facts.runs.remove(0)];
        facts.runs[0].waits = Waits::Decision { leaf: "git push -u origin fix".to_owned(), until };
        facts.has_keyboard = true;
        let line = facts.line(120);
        assert!(line.starts_with(" 1 run: #41 ASKS 0:52: git push -u"), "{line}");
        assert!(line.contains("y run #41 · n refuse · a always"), "{line}");
        assert_eq!((facts.held_in(120), facts.named_in(120)), (vec![41], vec![]));
        assert_eq!(facts.title(), "rexec: 1 run, #41 asks");
        assert_eq!(facts.held_in(20), [] as [u64; 0], "no room for the keys, so that none decides");
        let tick = facts.next_tick(facts.now.unwrap());
        assert_eq!(tick, facts.now.map(|now| now + Duration::from_secs(1)));
        facts.has_keyboard = false;
        assert_eq!(facts.held_in(120), [] as [u64; 0]);
    }
}
