//! Settings for opencode, as its variable `OPENCODE_CONFIG_CONTENT` carries them: one object of JSON.

use serde_json::{Map, Value};

/// These settings with this shell. An empty text means no settings. `None` if the text is not an object.
#[must_use]
pub fn with_shell(settings: &str, shell: &str) -> Option<String> {
    let mut object: Map<String, Value> = match settings.trim() {
        "" => Map::new(),
        text => serde_json::from_str(text).ok()?,
    };
    object.insert("shell".to_owned(), shell.into());
    Some(Value::Object(object).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_settings_stay() {
        assert_eq!(with_shell(" ", "/x").as_deref(), Some(r#"{"shell":"/x"}"#));
        assert_eq!(with_shell(r#"{"a":{"b":[1]}}"#, "/x").as_deref(), Some(r#"{"a":{"b":[1]},"shell":"/x"}"#));
        assert_eq!((with_shell("[]", "/x"), with_shell("{", "/x")), (None, None));
    }
}
