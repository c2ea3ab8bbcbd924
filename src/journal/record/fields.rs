//! The fields of a record as its line has them: a field that says nothing may be left out.

use serde::Serialize;
use serde::ser::SerializeMap;

/// The fields of a record that is being written.
#[derive(Debug)]
pub struct RecordFields<M>(pub M);

impl<M: SerializeMap> RecordFields<M> {
    /// # Errors
    /// As of the serializer.
    pub fn put(&mut self, name: &str, value: &impl Serialize) -> Result<(), M::Error> {
        self.0.serialize_entry(name, value)
    }

    /// Omits a field that says nothing.
    ///
    /// # Errors
    /// As of the serializer.
    pub fn put_set<T: Serialize + Default + PartialEq>(&mut self, name: &str, value: &T) -> Result<(), M::Error> {
        if is_default(value) { Ok(()) } else { self.put(name, value) }
    }
}

/// Returns true if the field says nothing.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
