//! The record of a run whose end was never written, type `lost`.

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use super::fields::RecordFields;
use super::start::StartRecord;

/// A run that began and whose end is unknown, because its host died.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct LostRecord {
    /// The start. The line has only the fields that tell the run from others; the start's own record stands before it.
    pub start: StartRecord,
}

impl Serialize for LostRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let start = &self.start;
        let mut fields = RecordFields(serializer.serialize_map(None)?);
        fields.put("seq", &start.seq)?;
        fields.put("whoami", &start.whoami)?;
        fields.put_set("agent", &start.agent)?;
        fields.put_set("session", &start.session)?;
        fields.put_set("session_number", &start.session_number)?;
        fields.put_set("role", &start.role)?;
        fields.put("dir", &start.dir)?;
        fields.put("exec", &start.exec)?;
        fields.put("command", &start.command)?;
        fields.put("time", &start.time)?;
        fields.put_set("unwrapped", &start.unwrapped)?;
        fields.0.end()
    }
}
