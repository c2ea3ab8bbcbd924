//! `rexec ps --asks`: what rules ask the person, one question per line, oldest first.

use std::io::Write;
use std::path::Path;

use rexec_sh::protocol::notice::Notice;

use super::table::{AGENT_COLUMNS, clock, directory_cell};
use crate::cli::columns::{self, Column};
use crate::cli::host_calls::HostCalls;
use crate::cli::look::Look;
use crate::cli::{put_json, with_output, written};
use crate::front::rpc::answers::{AskState, ListedAsk};
use crate::front::rpc::methods::method;
use crate::front::rpc::params::AskParams;
use crate::journal::entry_words::ASKS;
use crate::text::agent_name::agent_name;

const NOTHING: &str = "nothing asks\n";

pub(super) fn print(socket: &Path, is_json: bool) -> Result<u8, Notice> {
    let asks = HostCalls::connect(socket)?.call::<method::ListAsks>(&AskParams::default())?.asks;
    with_output(|out| match is_json {
        true => put_json(asks.iter(), out),
        false => {
            let text = if asks.is_empty() { NOTHING.to_owned() } else { draw(&asks, &Look::of_output()) };
            written(out.write_all(text.as_bytes()))
        }
    })
}

fn draw(asks: &[ListedAsk], look: &Look) -> String {
    let home = std::env::var("HOME").unwrap_or_default();
    let column = |name, is_number, rank, cell: &dyn Fn(&ListedAsk) -> String| Column {
        name,
        is_number,
        rank,
        cells: asks.iter().map(cell).collect(),
    };
    let mut columns = vec![
        column("#", true, 0, &|ask| ask.run.to_string()),
        column("AGENT", false, 1, &|ask| look.cut(&agent_name(&ask.whoami, 1, ""), AGENT_COLUMNS)),
        column("DIR", false, 3, &|ask| directory_cell(&ask.dir, &home, look)),
        column("STATE", false, 0, &|ask| state(ask.state)),
        column("AGE", true, 2, &|ask| clock(ask.asked_ms_ago)),
        column("LEFT", true, 2, &|ask| clock(ask.left_ms)),
        column("RULE", false, 4, &|ask| {
            ask.rule.as_ref().map_or_else(|| look.dash().to_owned(), |rule| look.cut(rule, RULE_COLUMNS))
        }),
    ];
    let room = columns::fit(&mut columns, look);
    let mut text = columns::head(&columns, "MAY IT RUN?", look);
    for (at, ask) in asks.iter().enumerate() {
        for column in &columns {
            text += &column.cells[at];
            text += "  ";
        }
        text += look.cut(&ask.leaf, room).trim_end();
        text.push('\n');
    }
    let answered = asks.iter().find(|ask| ask.state != AskState::Allowed);
    text + &answered.map_or_else(String::new, |ask| {
        look.dim(&look.fitted(&[format!("rexec answer {} yes|no|always", ask.run)])) + "\n"
    })
}

/// Columns of a rule's name and place.
const RULE_COLUMNS: usize = 32;

fn state(state: AskState) -> String {
    match state {
        AskState::Held => format!("asks {ASKS}"),
        AskState::Expired => "expired".to_owned(),
        AskState::Allowed => "allowed".to_owned(),
    }
}
