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
        let (mut card, mut fields) = (self.start.card.fields(), RecordFields(serializer.serialize_map(None)?));
        card.put(&["seq", "whoami", "agent", "session", "session_number", "role", "dir"], &mut fields)?;
        fields.put("exec", &self.start.exec)?;
        card.put(&["command", "time", "unwrapped"], &mut fields)?;
        fields.0.end()
    }
}
