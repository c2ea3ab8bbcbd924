//! The published form of a run's card: the facts of its beginning that records, `--json` and answers show.
//!
//! The table has one row for a fact: whether a form omits it while it is empty, its name, its type, and its place in the
//! card. A form (a record, a line of `--json`, an answer) only gives the facts an order; those that it does not name follow
//! in the table's order, so that a new row shows in every form without a change there.

use serde::Deserialize;
use serde::ser::{Serialize, SerializeMap};

use super::fields::RecordFields;
use crate::core::card::Card;
use crate::journal::line_fields::PlainValue;
use crate::text::agent_name::{agent_name, is_meant};

/// A type that a fact can have.
trait Fact: PlainValue + Serialize + Default + PartialEq {
    /// Its text, if it is one.
    fn text(&self) -> Option<&String> {
        None
    }

    /// See [`Fact::text`].
    fn text_mut(&mut self) -> Option<&mut String> {
        None
    }
}

impl Fact for u64 {}
impl Fact for u32 {}
impl Fact for bool {}

impl Fact for String {
    fn text(&self) -> Option<&String> {
        Some(self)
    }

    fn text_mut(&mut self) -> Option<&mut String> {
        Some(self)
    }
}

impl Fact for Option<String> {
    fn text(&self) -> Option<&String> {
        self.as_ref()
    }

    fn text_mut(&mut self) -> Option<&mut String> {
        self.as_mut()
    }
}

macro_rules! published_card {
    ($card:ident: $($(#[doc = $doc:literal])* $omission:ident $name:ident: $kind:ty = $value:expr;)+) => {
        /// The published facts of a run.
        #[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
        #[serde(default)]
        pub struct PublishedCard {
            $($(#[doc = $doc])* pub $name: $kind,)+
        }

        impl From<&Card> for PublishedCard {
            fn from($card: &Card) -> Self {
                Self { $($name: $value,)+ }
            }
        }

        const NAMES: [&str; [$(stringify!($name)),+].len()] = [$(stringify!($name)),+];

        impl PublishedCard {
            /// Sets the fact of this name from its value in a record's line. Returns true if there is such a fact;
            /// `None` if it cannot have this value.
            pub fn set(&mut self, name: &[u8], value: &[u8]) -> Option<bool> {
                match name {
                    $(name if name == stringify!($name).as_bytes() => self.$name = PlainValue::of(value)?,)+
                    _ => return Some(false),
                }
                Some(true)
            }

            /// Its texts, with the facts' names.
            pub fn texts(&self) -> impl Iterator<Item = (&'static str, &String)> {
                [$((stringify!($name), Fact::text(&self.$name)),)+].into_iter().filter_map(|(name, text)| Some((name, text?)))
            }

            /// See [`Self::texts`].
            pub fn texts_mut(&mut self) -> impl Iterator<Item = (&'static str, &mut String)> {
                let texts = [$((stringify!($name), Fact::text_mut(&mut self.$name)),)+];
                texts.into_iter().filter_map(|(name, text)| Some((name, text?)))
            }

            /// Writes the fact with this index as a field of this name.
            fn put<M: SerializeMap>(
                &self,
                index: usize,
                published: &str,
                has_empty: bool,
                out: &mut RecordFields<M>,
            ) -> Result<(), M::Error> {
                match NAMES[index] {
                    $(stringify!($name) if has_empty || stringify!($omission) == "always" => out.put(published, &self.$name),
                    stringify!($name) => out.put_set(published, &self.$name),)+
                    _ => Ok(()),
                }
            }
        }
    };
}

published_card! { card:
    /// The run's number, unique within one host.
    always seq: u64 = card.run;
    /// When the run began: see [`super::timestamp`].
    always time: String = card.time.clone();
    /// The caller's name.
    always whoami: String = card.caller.whoami.clone();
    always dir: String = card.place.dir.clone();
    /// The command without the agent's wrapper, as a person would name it.
    always command: String = card.command.text.clone();
    /// Its purpose, in its caller's words.
    if_set why: String = card.command.why.clone();
    /// The service's name, if it is one.
    if_set name: String = card.command.service.clone();
    always shell: String = card.command.shell.clone();
    /// The short name of the agent's program, if its variables or its process show it.
    if_set agent: String = card.caller.agent.to_owned();
    /// The version of that program.
    if_set agent_version: String = card.caller.version.clone();
    /// The agent's session, as the agent names it.
    if_set session: String = card.caller.session.clone();
    /// The number among the sessions of callers with this name, from 2; 0 for the first one.
    if_set session_number: u32 = card.caller.session_number();
    /// The call of the agent's shell tool that this run is.
    if_set call: String = card.caller.call.clone();
    /// `subagent` or `hook`, if the caller is not the agent itself.
    if_set role: String = card.caller.role.word().to_owned();
    /// `command` lacks an agent's wrapper.
    if_set unwrapped: bool = card.command.is_unwrapped;
    /// This is one of the runs with which an agent learns about the shell at its own start.
    if_set probe: bool = card.command.is_probe;
    /// The sandbox in which its shim runs it, as the shim reported it, if the host does not run it.
    if_set sandbox: Option<String> = card.sandbox.clone();
}

impl PublishedCard {
    /// Writes it into a form that omits empty facts.
    #[must_use]
    pub fn fields(&self) -> CardFields<'_> {
        CardFields { card: self, has_empty: false, is_written: [false; NAMES.len()] }
    }

    /// Writes it into a form that has every fact, also empty ones.
    #[must_use]
    pub fn all_fields(&self) -> CardFields<'_> {
        CardFields { has_empty: true, ..self.fields() }
    }

    /// The caller's name as the console shows it.
    #[must_use]
    pub fn agent_name(&self) -> String {
        agent_name(&self.whoami, self.session_number, &self.role)
    }

    /// Returns true if a person who names an agent means the caller of this command.
    #[must_use]
    pub fn is_of(&self, agent: &str) -> bool {
        is_meant(agent, &self.whoami, self.session_number, &self.role)
    }
}

/// A card on its way into a form. It is written piece by piece, each fact once.
#[derive(Debug)]
pub struct CardFields<'c> {
    card: &'c PublishedCard,
    has_empty: bool,
    is_written: [bool; NAMES.len()],
}

impl CardFields<'_> {
    /// Writes these facts, in this order.
    pub fn put<M: SerializeMap>(&mut self, names: &[&str], out: &mut RecordFields<M>) -> Result<(), M::Error> {
        names.iter().try_for_each(|name| self.put_as(name, name, out))
    }

    /// Writes a fact under another name.
    pub fn put_as<M: SerializeMap>(
        &mut self,
        name: &str,
        published: &str,
        out: &mut RecordFields<M>,
    ) -> Result<(), M::Error> {
        let index = index_of(name);
        self.is_written[index] = true;
        self.card.put(index, published, self.has_empty, out)
    }

    /// Writes all other facts but these.
    pub fn put_rest<M: SerializeMap>(mut self, without: &[&str], out: &mut RecordFields<M>) -> Result<(), M::Error> {
        without.iter().for_each(|name| self.is_written[index_of(name)] = true);
        let rest = (0..NAMES.len()).filter(|&index| !self.is_written[index]);
        rest.into_iter().try_for_each(|index| self.card.put(index, NAMES[index], self.has_empty, out))
    }
}

fn index_of(name: &str) -> usize {
    NAMES.iter().position(|known| *known == name).expect("a form names facts of the table")
}

#[cfg(test)]
mod tests {
    use serde::Serializer;

    use super::*;

    struct Form<'c>(fn(&'c PublishedCard) -> CardFields<'c>, &'c PublishedCard);

    impl Serialize for Form<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let (mut card, mut fields) = (self.0(self.1), RecordFields(serializer.serialize_map(None)?));
            card.put(&["name", "dir"], &mut fields)?;
            card.put_as("seq", "run", &mut fields)?;
            card.put_rest(&["time", "why", "shell"], &mut fields)?;
            fields.0.end()
        }
    }

    #[test]
    fn the_facts_that_a_form_does_not_name_follow_the_others() {
        let card =
            PublishedCard { seq: 7, time: "t".into(), name: "web".into(), session_number: 2, ..Default::default() };
        let written = |form: Form<'_>| serde_json::to_string(&form).unwrap();
        let short = r#"{"name":"web","dir":"","run":7,"whoami":"","command":"","session_number":2}"#;
        assert_eq!(written(Form(PublishedCard::fields, &card)), short);
        let whole = r#"{"name":"web","dir":"","run":7,"whoami":"","command":"","agent":"","agent_version":"","session":"","session_number":2,"call":"","role":"","unwrapped":false,"probe":false,"sandbox":null}"#;
        assert_eq!(written(Form(PublishedCard::all_fields, &card)), whole);
    }

    #[test]
    fn every_fact_is_read_from_a_line() {
        let mut card = PublishedCard::default();
        for name in NAMES {
            let value = match name {
                "seq" | "session_number" => "3",
                "unwrapped" | "probe" => "true",
                _ => "\"x\"",
            };
            assert_eq!(card.set(name.as_bytes(), value.as_bytes()), Some(true), "{name}");
            assert_eq!(card.set(name.as_bytes(), b"[]"), None, "{name}");
        }
        assert_eq!(card.set(b"exit", b"3"), Some(false));
        assert_eq!((card.seq, card.sandbox.as_deref(), card.probe), (3, Some("x"), true));
        assert_eq!(card.texts().map(|(_, text)| text.len()).sum::<usize>(), 13);
    }
}
