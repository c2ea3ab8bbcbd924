//! `rexec gate learned` and `rexec gate forget`: what the person always allows.

use std::ffi::OsStr;
use std::io::Write;
use std::time::SystemTime;

use rexec_sh::protocol::exit_code;
use rexec_sh::protocol::notice::Notice;
use serde::Serialize;

use super::VERB;
use crate::cli::columns::{self, Column};
use crate::cli::host_calls::{CallError, HostCalls};
use crate::cli::look::Look;
use crate::cli::{home, put_json, socket_path, told, with_output, written};
use crate::front::rpc::methods::method;
use crate::front::rpc::params::NoParams;
use crate::gate::{Learned, LearnedList};
use crate::host::{read_learned, write_learned};
use crate::journal::record::{DAY_BYTES, timestamp};
use crate::text::place::place;

/// Columns of a project, of a rule.
const CELL_COLUMNS: usize = 32;
const NOTHING: &str = "nothing is always allowed\n";

/// A line of `rexec gate learned --json`.
#[derive(Debug, Serialize)]
struct LearnedForm<'l> {
    number: usize,
    allowed: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'l str>,
    agent: &'l str,
    project: &'l str,
    saved: &'l str,
    from: &'l str,
    counts: bool,
}

pub(super) fn list(is_json: bool) -> Result<u8, Notice> {
    let list = read()?;
    let now = timestamp(SystemTime::now());
    let today = now.get(..DAY_BYTES).unwrap_or_default();
    with_output(|out| match is_json {
        true => put_json(list.iter().enumerate().map(|(at, learned)| form(at, learned, today)), out),
        false if list.is_empty() => written(out.write_all(NOTHING.as_bytes())),
        false => written(out.write_all(draw(&list, today, &Look::of_output()).as_bytes())),
    })
}

fn read() -> Result<LearnedList, Notice> {
    read_learned(&home()?).map_err(|problem| Notice::failed(problem, "mend it, or rexec gate forget --all"))
}

fn form<'l>(at: usize, learned: &'l Learned, today: &str) -> LearnedForm<'l> {
    LearnedForm {
        number: at + 1,
        allowed: learned.to_string(),
        rule: learned.rule(),
        agent: learned.agent(),
        project: learned.project(),
        saved: learned.saved(),
        from: learned.from(),
        counts: learned.counts_on(today),
    }
}

fn draw(list: &LearnedList, today: &str, look: &Look) -> String {
    let home = std::env::var("HOME").unwrap_or_default();
    let column = |name, is_number, rank, cell: &dyn Fn(usize, &Learned) -> String| Column {
        name,
        is_number,
        rank,
        cells: list.iter().enumerate().map(|(at, learned)| cell(at, learned)).collect(),
    };
    let saved =
        |learned: &Learned| if learned.counts_on(today) { learned.saved().to_owned() } else { "over".to_owned() };
    let mut columns = vec![
        column("#", true, 0, &|at, _| (at + 1).to_string()),
        column("AGENT", false, 1, &|_, learned| look.cut(learned.agent(), CELL_COLUMNS)),
        column("PROJECT", false, 2, &|_, learned| look.cut(&place(learned.project(), None, &home), CELL_COLUMNS)),
        column("RULE", false, 3, &|_, learned| look.cut(learned.rule().unwrap_or_else(|| look.dash()), CELL_COLUMNS)),
        column("SAVED", false, 4, &|_, learned| saved(learned)),
    ];
    let room = columns::fit(&mut columns, look);
    let mut text = columns::head(&columns, "ALLOWED", look);
    for (at, learned) in list.iter().enumerate() {
        for column in &columns {
            text += &column.cells[at];
            text += "  ";
        }
        text += look.cut(&learned.to_string(), room).trim_end();
        text.push('\n');
    }
    text
}

pub(super) fn forget(is_all: bool, words: &[&OsStr]) -> Result<u8, Notice> {
    let mut list = LearnedList::default();
    if !is_all {
        let word = super::one("the number of an entry; rexec gate learned shows them", words)?.to_string_lossy();
        list = read()?;
        let number = word.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let count = list.iter().len();
        list.retain(|at, learned| Some(at) != number && learned.to_string() != word);
        if list.iter().len() == count {
            let problem = format!("no entry is {}", crate::cli::quoted(&*word));
            return Err(Notice::failed(problem, "rexec gate learned shows their numbers"));
        }
    } else if let [word, ..] = words {
        return Err(VERB.too_much(&word.to_string_lossy()));
    }
    write_learned(&home()?, &list).map_err(|problem| Notice::failed(problem, "nothing was forgotten"))?;
    match HostCalls::connect(&socket_path()?).and_then(|mut calls| calls.call::<method::RereadRules>(&NoParams {})) {
        Ok(_) | Err(CallError::Ask(_)) => {}
        Err(refused @ CallError::Refused(_)) => {
            told::put(Notice::from(refused));
            told::tell("a running host knows it until it ends");
        }
    }
    Ok(exit_code::SUCCESS)
}
