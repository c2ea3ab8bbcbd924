pub mod cli;
pub mod sink;
pub mod text;
