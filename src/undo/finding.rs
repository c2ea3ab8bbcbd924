//! What find finds, as far as its tests are read here: by names, sorts, emptiness and depth.
//!
//! Invariant: a superset. A test that is not read counts as met.

use super::name_pattern;
use crate::limits;
use crate::script::Argument;
use crate::sys::folder::Sort;

/// Tests that say no without a value, or do something that destroys nothing.
const PLAIN: &[&[u8]] = &[
    b"-true",
    b"-print",
    b"-print0",
    b"-ls",
    b"-prune",
    b"-quit",
    b"-depth",
    b"-d",
    b"-mount",
    b"-xdev",
    b"-daystart",
    b"-nouser",
    b"-nogroup",
    b"-readable",
    b"-writable",
    b"-executable",
    b"-noleaf",
    b"-warn",
    b"-nowarn",
    b"-ignore_readdir_race",
    b"-noignore_readdir_race",
    b"-false",
];
/// Tests with one word behind them.
const WITH_WORD: &[&[u8]] = &[
    b"-path",
    b"-ipath",
    b"-wholename",
    b"-iwholename",
    b"-regex",
    b"-iregex",
    b"-lname",
    b"-ilname",
    b"-xtype",
    b"-mtime",
    b"-mmin",
    b"-atime",
    b"-amin",
    b"-ctime",
    b"-cmin",
    b"-size",
    b"-user",
    b"-group",
    b"-uid",
    b"-gid",
    b"-perm",
    b"-newer",
    b"-anewer",
    b"-cnewer",
    b"-mindepth",
    b"-links",
    b"-inum",
    b"-samefile",
    b"-fstype",
    b"-used",
    b"-printf",
    b"-fprint",
    b"-fprint0",
    b"-fls",
    b"-context",
    b"-regextype",
];

/// What find finds below a directory, and what happens to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// It has what one of these tests have.
    tests: Vec<Tests>,
    /// The steps below the directory, at most. The directory itself is 0.
    pub depth_max: Option<usize>,
    /// All that is below what is found goes with it.
    pub with_below: bool,
}

/// Tests that all have to be met.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Tests {
    names: Vec<NameTest>,
    sort: Option<Sort>,
    is_empty: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct NameTest {
    pattern: Vec<u8>,
    has_any_case: bool,
}

/// What find does with what it finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FindAction {
    Deletes,
    Executes,
}

impl Finding {
    /// What the action is done with of a call of find whose expression these words are.
    pub(super) fn of(expression: &[Argument], action: FindAction, with_below: bool) -> Self {
        let mut reading =
            ExpressionReading { left: expression, action, reached: Vec::new(), depth_max: None, depth: 0 };
        let is_read = reading.either(vec![Tests::default()]).is_some() && reading.left.is_empty();
        if is_read {
            Self { tests: reading.reached, depth_max: reading.depth_max, with_below }
        } else {
            Self { tests: vec![Tests::default()], depth_max: None, with_below }
        }
    }

    /// Returns true if it is all that is below the directory.
    pub(super) fn is_all(&self) -> bool {
        self.depth_max.is_none() && self.tests.contains(&Tests::default())
    }

    /// Returns true if the action is done with nothing.
    pub(super) fn is_nothing(&self) -> bool {
        self.tests.is_empty()
    }

    /// Returns true if nothing is found whose name is not told.
    pub(super) fn is_named(&self) -> bool {
        self.tests.iter().all(|tests| !tests.names.is_empty())
    }

    /// Returns true if something of this name may be found. `facts` tells its sort, and true if it is empty.
    pub(super) fn has(&self, name: &[u8], facts: impl Fn() -> Option<(Sort, bool)>) -> bool {
        let mut with_name =
            self.tests.iter().filter(|tests| tests.names.iter().all(|test| test.matches(name))).peekable();
        if with_name.peek().is_none() {
            return false;
        }
        let mut known = None;
        with_name.any(|tests| {
            if tests.sort.is_none() && !tests.is_empty {
                return true;
            }
            let facts = known.get_or_insert_with(&facts);
            facts.is_none_or(|(sort, is_empty)| {
                tests.sort.is_none_or(|wanted| wanted == sort) && (is_empty || !tests.is_empty)
            })
        })
    }

    /// The tests, as they are shown.
    #[must_use]
    pub fn shown(&self) -> String {
        let shown = self.tests.iter().map(|Tests { names, sort, is_empty }| {
            let names = names.iter().map(|test| String::from_utf8_lossy(&test.pattern).into_owned());
            let sort = sort.map(|sort| format!("{sort:?}").to_lowercase());
            let is_empty = is_empty.then(|| "empty".to_owned());
            names.chain(sort).chain(is_empty).collect::<Vec<_>>().join(" and ")
        });
        shown.collect::<Vec<_>>().join(" or ")
    }
}

impl NameTest {
    fn matches(&self, name: &[u8]) -> bool {
        if self.has_any_case {
            // Letters beyond ASCII may have another case, too.
            !name.is_ascii() || name_pattern::matches(&self.pattern.to_ascii_lowercase(), &name.to_ascii_lowercase())
        } else {
            name_pattern::matches(&self.pattern, name)
        }
    }
}

/// Find's expression, read from the left. Each part gets what is known where it is reached, and gives what is known where it is
/// met. `None` for what is not understood.
struct ExpressionReading<'w> {
    left: &'w [Argument],
    action: FindAction,
    /// What is known where the action is reached.
    reached: Vec<Tests>,
    depth_max: Option<usize>,
    /// Of parentheses.
    depth: usize,
}

impl<'w> ExpressionReading<'w> {
    fn next_is(&self, words: &[&[u8]]) -> bool {
        self.left.first().and_then(Argument::text).is_some_and(|word| words.contains(&word))
    }

    fn take(&mut self) -> Option<&'w Argument> {
        let (first, rest) = self.left.split_first()?;
        self.left = rest;
        Some(first)
    }

    /// `a -o b`, and `a , b`.
    fn either(&mut self, at: Vec<Tests>) -> Option<Vec<Tests>> {
        let mut met = self.both(at.clone())?;
        while self.next_is(&[b"-o", b"-or", b","]) {
            self.take()?;
            met.extend(self.both(at.clone())?);
        }
        Some(bounded(met))
    }

    /// `a b`.
    fn both(&mut self, at: Vec<Tests>) -> Option<Vec<Tests>> {
        let mut at = at;
        while !self.left.is_empty() && !self.next_is(&[b"-o", b"-or", b",", b")"]) {
            if self.next_is(&[b"-a", b"-and"]) {
                self.take()?;
            }
            at = self.one(at)?;
        }
        Some(at)
    }

    fn one(&mut self, at: Vec<Tests>) -> Option<Vec<Tests>> {
        let word = self.take()?.text()?;
        match word {
            b"(" => {
                self.depth += 1;
                if self.depth > limits::FIND_DEPTH_MAX {
                    return None;
                }
                let met = self.either(at)?;
                self.depth -= 1;
                (self.take()?.text()? == b")").then_some(met)
            }
            b"!" | b"-not" => {
                self.depth += 1;
                if self.depth > limits::FIND_DEPTH_MAX {
                    return None;
                }
                // What is not met may have anything.
                self.one(at.clone())?;
                self.depth -= 1;
                Some(at)
            }
            b"-name" | b"-iname" => {
                let pattern = self.take()?.text().map(<[u8]>::to_vec);
                let test = pattern.map(|pattern| NameTest { pattern, has_any_case: word == b"-iname" });
                Some(with(at, |tests| tests.names.extend(test.clone())))
            }
            b"-type" => {
                let sort = match self.take()?.text() {
                    Some(b"d") => Some(Sort::Directory),
                    Some(b"f") => Some(Sort::File),
                    Some(b"l") => Some(Sort::Symlink),
                    _ => None,
                };
                Some(with(at, |tests| tests.sort = tests.sort.or(sort)))
            }
            b"-empty" => Some(with(at, |tests| tests.is_empty = true)),
            b"-maxdepth" => {
                let depth = self.take()?.text().and_then(|depth| std::str::from_utf8(depth).ok()?.parse().ok());
                self.depth_max = Some(depth?);
                Some(at)
            }
            b"-delete" => {
                if self.action == FindAction::Deletes {
                    self.reached.extend(at.iter().cloned());
                }
                Some(at)
            }
            b"-exec" | b"-execdir" | b"-ok" | b"-okdir" => {
                loop {
                    match self.take()?.text() {
                        Some(b";") => break,
                        Some(b"+") => break,
                        _ => {}
                    }
                }
                if self.action == FindAction::Executes {
                    self.reached.extend(at.iter().cloned());
                }
                Some(at)
            }
            word if PLAIN.contains(&word) => Some(at),
            word if WITH_WORD.contains(&word) || word.starts_with(b"-newer") => self.take().map(|_| at),
            _ => None,
        }
    }
}

fn with(mut at: Vec<Tests>, change: impl Fn(&mut Tests)) -> Vec<Tests> {
    at.iter_mut().for_each(change);
    at
}

/// Of too many alternatives, all is known to be one.
fn bounded(tests: Vec<Tests>) -> Vec<Tests> {
    if tests.len() > limits::FIND_ALTERNATIVES_MAX { vec![Tests::default()] } else { tests }
}
