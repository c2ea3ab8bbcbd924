//! `wire!`: makes the enum, the numbers, the writer and the reader of a protocol from one table.
//!
//! A row is `NUMBER Name`, `NUMBER Name(field: Type)` or `NUMBER Name { field: Type, … }`. A table `for Name { … }`
//! describes an enum defined elsewhere; its rows name the fields without their types, and an enum with a variant that
//! is in no row does not compile.
//!
//! Invariants: a written message is read as the same one, and as no other; a number belongs to one row.

use std::time::Duration;

use super::WireError;
use crate::protocol::process::{Exit, Pid, ProcessGroup, Signal};

/// A part of a message.
pub trait Field<'a>: Sized {
    fn put(&self, out: &mut Vec<u8>);

    /// Takes the field from the front of a payload.
    ///
    /// # Errors
    /// [`WireError::Malformed`] if the payload does not begin with one.
    fn take(payload: &mut &'a [u8]) -> Result<Self, WireError>;
}

/// A message of a protocol, described by its table.
pub trait Message<'a>: Sized {
    /// The numbers of the table.
    const KINDS: &'static [u8];

    /// The number of the message.
    fn kind(&self) -> u8;

    fn put_fields(&self, out: &mut Vec<u8>);

    /// Takes the fields of the message with this number from the front of a payload.
    ///
    /// # Errors
    /// [`WireError::UnknownKind`], or [`WireError::Malformed`] for a missing or wrong field.
    fn take_fields(kind: u8, payload: &mut &'a [u8]) -> Result<Self, WireError>;

    /// Reads the message with this number; it must fill the payload.
    ///
    /// # Errors
    /// Those of [`take_fields`](Self::take_fields), and [`WireError::Malformed`] for bytes after the last field.
    fn read(kind: u8, mut payload: &'a [u8]) -> Result<Self, WireError> {
        let message = Self::take_fields(kind, &mut payload)?;
        if payload.is_empty() { Ok(message) } else { Err(WRONG_SIZE) }
    }
}

/// A field is missing, cut or too much.
pub(super) const WRONG_SIZE: WireError = WireError::Malformed("a control frame of the wrong size");

/// Makes a protocol from a table.
#[macro_export]
macro_rules! wire {
    ($(#[$meta:meta])* $vis:vis enum $name:ident<$life:lifetime> { $(
        $(#[$row:meta])*
        $kind:literal $variant:ident $(($one:ident: $type:ty))? $({ $($field:ident: $field_type:ty),+ })?
    ),+ $(,)? }) => {
        $(#[$meta])*
        $vis enum $name<$life> { $($(#[$row])* $variant $(($type))? $({ $($field: $field_type),+ })?),+ }
        $crate::wire!(@ [$life] [$name<$life>] $($kind $variant $(($one))? $({ $($field),+ })?),+);
    };
    ($(#[$meta:meta])* $vis:vis enum $name:ident { $(
        $(#[$row:meta])*
        $kind:literal $variant:ident $(($one:ident: $type:ty))? $({ $($field:ident: $field_type:ty),+ })?
    ),+ $(,)? }) => {
        $(#[$meta])*
        $vis enum $name { $($(#[$row])* $variant $(($type))? $({ $($field: $field_type),+ })?),+ }
        $crate::wire!(@ ['a] [$name] $($kind $variant $(($one))? $({ $($field),+ })?),+);
    };
    (for $name:ident { $($kind:literal $variant:ident $(($one:ident))? $({ $($field:ident),+ })?),+ $(,)? }) => {
        $crate::wire!(@ ['a] [$name] $($kind $variant $(($one))? $({ $($field),+ })?),+);
    };
    (@ [$life:lifetime] [$name:ty] $($kind:literal $variant:ident $(($one:ident))? $({ $($field:ident),+ })?),+) => {
        #[expect(clippy::allow_attributes, reason = "a table may have no fields at all")]
        #[allow(unused_variables)]
        impl<$life> $crate::protocol::wire::Message<$life> for $name {
            const KINDS: &'static [u8] = &[$($kind),+];

            fn kind(&self) -> u8 {
                match self { $(Self::$variant { .. } => $kind),+ }
            }

            fn put_fields(&self, out: &mut Vec<u8>) {
                match self { $(Self::$variant { $(0: $one)? $($($field),+)? } => {
                    $($crate::protocol::wire::Field::put($one, out);)?
                    $($($crate::protocol::wire::Field::put($field, out);)+)?
                }),+ }
            }

            fn take_fields(kind: u8, payload: &mut &$life [u8]) -> Result<Self, $crate::protocol::wire::WireError> {
                Ok(match kind {
                    $($kind => Self::$variant {
                        $(0: { let $one = $crate::protocol::wire::Field::take(payload)?; $one })?
                        $($($field: $crate::protocol::wire::Field::take(payload)?),+)?
                    },)+
                    _ => return Err($crate::protocol::wire::WireError::UnknownKind(kind)),
                })
            }
        }
    };
}

/// A message within a message: its number, then its fields.
impl<'a, M: Message<'a>> Field<'a> for M {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(self.kind());
        self.put_fields(out);
    }

    fn take(payload: &mut &'a [u8]) -> Result<Self, WireError> {
        let (kind, rest) = payload.split_first().ok_or(WRONG_SIZE)?;
        *payload = rest;
        Self::take_fields(*kind, payload).map_err(|_| WRONG_SIZE)
    }
}

/// The rest of a payload.
impl<'a> Field<'a> for &'a [u8] {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }

    fn take(payload: &mut &'a [u8]) -> Result<Self, WireError> {
        Ok(std::mem::take(payload))
    }
}

impl<'a, const N: usize> Field<'a> for [u8; N] {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }

    fn take(payload: &mut &'a [u8]) -> Result<Self, WireError> {
        let (bytes, rest) = payload.split_first_chunk().ok_or(WRONG_SIZE)?;
        *payload = rest;
        Ok(*bytes)
    }
}

macro_rules! numbers {
    ($($number:ty),+) => { $(impl<'a> Field<'a> for $number {
        fn put(&self, out: &mut Vec<u8>) {
            self.to_le_bytes().put(out);
        }

        fn take(payload: &mut &'a [u8]) -> Result<Self, WireError> {
            Field::take(payload).map(Self::from_le_bytes)
        }
    })+ };
}

numbers!(u8, u16, u32, u64, i32);

impl<'a> Field<'a> for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn take(payload: &mut &'a [u8]) -> Result<Self, WireError> {
        match u8::take(payload)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(WRONG_SIZE),
        }
    }
}

/// Microseconds. A longer time is cut.
impl<'a> Field<'a> for Duration {
    fn put(&self, out: &mut Vec<u8>) {
        u64::try_from(self.as_micros()).unwrap_or(u64::MAX).put(out);
    }

    fn take(payload: &mut &'a [u8]) -> Result<Self, WireError> {
        Field::take(payload).map(Self::from_micros)
    }
}

impl<'a, A: Field<'a>, B: Field<'a>> Field<'a> for (A, B) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }

    fn take(payload: &mut &'a [u8]) -> Result<Self, WireError> {
        Ok((A::take(payload)?, B::take(payload)?))
    }
}

impl<'a> Field<'a> for Signal {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(self.number());
    }

    fn take(payload: &mut &'a [u8]) -> Result<Self, WireError> {
        u8::take(payload)
            .and_then(|number| if (1..=64).contains(&number) { Ok(Self::new(number)) } else { Err(WRONG_SIZE) })
    }
}

macro_rules! process_numbers {
    ($($name:ident),+) => { $(impl<'a> Field<'a> for $name {
        fn put(&self, out: &mut Vec<u8>) {
            self.number().put(out);
        }

        fn take(payload: &mut &'a [u8]) -> Result<Self, WireError> {
            Field::take(payload).map(Self::new)
        }
    })+ };
}

process_numbers!(Pid, ProcessGroup);

wire!(for Exit { 0 Code(code), 1 Signal(signal) });

/// At most 255 bytes, after their number. A longer text is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Short<'a>(pub &'a [u8]);

impl<'a> Field<'a> for Short<'a> {
    fn put(&self, out: &mut Vec<u8>) {
        let length = u8::try_from(self.0.len()).unwrap_or(u8::MAX);
        out.push(length);
        out.extend_from_slice(&self.0[..usize::from(length)]);
    }

    fn take(payload: &mut &'a [u8]) -> Result<Self, WireError> {
        let length = usize::from(u8::take(payload)?);
        let (text, rest) = payload.split_at_checked(length).ok_or(WRONG_SIZE)?;
        *payload = rest;
        Ok(Self(text))
    }
}

/// The rest of a payload, at most `MAX` bytes. The writer cuts a longer text, and the reader refuses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rest<'a, const MAX: usize>(pub &'a [u8]);

impl<'a, const MAX: usize> Field<'a> for Rest<'a, MAX> {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0[..self.0.len().min(MAX)]);
    }

    fn take(payload: &mut &'a [u8]) -> Result<Self, WireError> {
        if payload.len() > MAX { Err(WRONG_SIZE) } else { Ok(Self(std::mem::take(payload))) }
    }
}
