//! `rexec mcp`: what agents say to it, and what becomes of it in the host.

mod agent;
mod calls;
mod hosts;
mod revisions;
