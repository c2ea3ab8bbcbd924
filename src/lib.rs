pub mod sink;
pub mod text;
