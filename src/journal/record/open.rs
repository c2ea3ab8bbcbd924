//! The record that opens a file, type `open`.

use serde::{Deserialize, Serialize};

use super::fields::is_default;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OpenRecord {
    /// When the file was begun: see [`super::timestamp`].
    pub time: String,
    pub pid: u32,
    /// When that process began, in clock ticks since boot (`starttime` in proc_pid_stat(5)): the kernel may have given
    /// its ID to another process since.
    #[serde(skip_serializing_if = "is_default")]
    pub started: Option<u64>,
    pub version: String,
    /// The name of the journal that this one continues.
    #[serde(skip_serializing_if = "is_default")]
    pub continues: Option<String>,
}
