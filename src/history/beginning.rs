//! Everything that is needed to run a command again: its whole start and its environment.

use std::fs::File;
use std::io;

use super::chunks::record_with;
use super::find::FoundRun;
use crate::journal::record::{EnvironmentRecord, KeptEnvironment, StartRecord};

/// How a run began.
#[derive(Debug, Clone)]
pub struct RunBeginning {
    /// Its start. Only a long argument whose text is missing is not whole.
    pub start: StartRecord,
    /// Its environment, if the journal kept it.
    pub environment: Option<KeptEnvironment>,
}

impl FoundRun {
    /// Reads its start and its environment.
    ///
    /// # Errors
    /// The journal's file cannot be read.
    pub fn beginning(&self) -> io::Result<RunBeginning> {
        let file = File::open(&self.file)?;
        let needle = format!("\"type\":\"start\",\"seq\":{},", self.start.card.seq);
        // The record of the end has all but the environment.
        let env = record_with::<StartRecord>(&file, &needle)?.and_then(|start| start.env);
        let mut environment = None;
        if let Some(env) = env {
            let needle = format!("\"type\":\"environment\",\"id\":{},", env.id);
            let base: Option<EnvironmentRecord> = record_with(&file, &needle)?;
            environment = base.map(|base| env.applied(&base.environment));
        }
        Ok(RunBeginning { start: self.start.clone(), environment })
    }
}
