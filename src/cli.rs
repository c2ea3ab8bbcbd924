//! The command line: one file per subcommand.

pub mod list;
pub mod print;
