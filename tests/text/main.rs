//! The pure text modules, driven through their public interface. See each module for what it shows.

mod console;
mod corpus;
mod data;
mod properties;
