//! Times as a person writes and reads them: `1h`, `today`, `09:40`, `2026-05-21`.
//!
//! Invariant: nothing here reads the clock; the callers pass the time.

use std::time::Duration;

use time::format_description::BorrowedFormatItem;
use time::macros::format_description;
use time::{Date, OffsetDateTime, PrimitiveDateTime, Time};

use crate::history::milliseconds;
use crate::text::span::span;

/// The forms of a time that [`moment`] takes, for a hint.
pub(super) const FORMS: &str =
    "1h, 2d, 30s, today, yesterday, 09:40, 2026-05-21, 2026-05-21T09:40 and RFC 3339 are understood";
/// The forms that [`seconds`] takes, for a hint.
pub(super) const SPANS: &str = "500ms, 0.5s, 30, 5m, 1h30m, 2d and 1w are understood";

/// The human's clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    /// Milliseconds since 1970.
    pub(super) now: i64,
    /// The offset from UTC, in seconds, at a moment in seconds since 1970.
    pub(super) offset: fn(i64) -> i32,
}

impl Clock {
    /// The time on this clock at a moment.
    pub(super) fn local(&self, at: i64) -> Option<PrimitiveDateTime> {
        let offset = i64::from((self.offset)(at.div_euclid(1000)));
        let moment = OffsetDateTime::from_unix_timestamp_nanos(i128::from(at + offset * 1000) * 1_000_000).ok()?;
        Some(PrimitiveDateTime::new(moment.date(), moment.time()))
    }

    /// The moment at which this clock shows this time, milliseconds since 1970.
    fn moment(&self, local: PrimitiveDateTime) -> i64 {
        let shown = local.assume_utc().unix_timestamp();
        let offset = |at: i64| i64::from((self.offset)(at));
        let at = shown - offset(shown - offset(shown));
        // At the beginning of summer time the clock skips some times: the first later one counts.
        (shown - offset(at).min(shown - at)) * 1000
    }

    fn today(&self) -> Option<Date> {
        self.local(self.now).map(PrimitiveDateTime::date)
    }
}

/// A moment in milliseconds since 1970; `None` if the text is not a time. A time without a date is the last such moment.
pub(super) fn moment(text: &str, clock: Clock) -> Option<i64> {
    let midnight = |date: Date| clock.moment(PrimitiveDateTime::new(date, Time::MIDNIGHT));
    match text {
        "now" => return Some(clock.now),
        "today" => return clock.today().map(midnight),
        "yesterday" => return clock.today().and_then(Date::previous_day).map(midnight),
        _ => {}
    }
    if let Some(span) = span(text) {
        return clock.now.checked_sub(i64::try_from(span.as_millis()).ok()?);
    }
    if let Some(time) = time_of_day(text) {
        let on = |date: Date| clock.moment(PrimitiveDateTime::new(date, time));
        let date = clock.today()?;
        // A day may have 23 or 25 hours.
        return if on(date) > clock.now { date.previous_day().map(on) } else { Some(on(date)) };
    }
    if let Ok(date) = Date::parse(text, format_description!("[year]-[month]-[day]")) {
        return Some(midnight(date));
    }
    if let Some(at) = milliseconds(text) {
        return Some(at);
    }
    let (date, time) = text.split_once(['T', ' '])?;
    let date = Date::parse(date, format_description!("[year]-[month]-[day]")).ok()?;
    Some(clock.moment(PrimitiveDateTime::new(date, time_of_day(time)?)))
}

fn time_of_day(text: &str) -> Option<Time> {
    const SHORT: &[BorrowedFormatItem<'_>] = format_description!("[hour]:[minute]");
    const LONG: &[BorrowedFormatItem<'_>] = format_description!("[hour]:[minute]:[second]");
    [SHORT, LONG].iter().find_map(|form| Time::parse(text, form).ok())
}

/// A length of time: numbers with their units, or a number of seconds; `None` if the text is something else.
pub(super) fn seconds(text: &str) -> Option<Duration> {
    let is_number = text.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let bare = || Duration::try_from_secs_f64(text.parse().ok().filter(|_| is_number)?).ok();
    span(text).or_else(bare)
}

/// The milliseconds of a length of time, up to the maximum.
pub(super) fn whole_ms(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// `09:42:18`.
pub(super) fn time_shown(local: PrimitiveDateTime) -> String {
    local.format(format_description!("[hour]:[minute]:[second]")).unwrap_or_default()
}

/// `2026-05-21`.
pub(super) fn day_shown(local: PrimitiveDateTime) -> String {
    local.format(format_description!("[year]-[month]-[day]")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As in Berlin in 2026: summer time from 29 March to 25 October, 01:00 UTC.
    fn berlin(at: i64) -> i32 {
        let of = |text| milliseconds(text).unwrap() / 1000;
        let is_summer = (of("2026-03-29T01:00:00Z")..of("2026-10-25T01:00:00Z")).contains(&at);
        if is_summer { 7_200 } else { 3_600 }
    }

    /// As in Havana in 2026, where summer time begins at midnight: 8 March, 05:00 UTC.
    fn havana(at: i64) -> i32 {
        if at < milliseconds("2026-03-08T05:00:00Z").unwrap() / 1000 { -18_000 } else { -14_400 }
    }

    #[test]
    fn days_of_23_and_25_hours_are_whole() {
        for (offset, now, text, expected) in [
            (berlin as fn(i64) -> i32, "2026-03-29T08:00:00Z", "11:00", "2026-03-28T10:00:00Z"),
            (berlin, "2026-10-25T08:00:00Z", "11:00", "2026-10-24T09:00:00Z"),
            (berlin, "2026-03-29T08:00:00Z", "today", "2026-03-28T23:00:00Z"),
            (berlin, "2026-03-30T08:00:00Z", "yesterday", "2026-03-28T23:00:00Z"),
            (berlin, "2026-10-26T08:00:00Z", "yesterday", "2026-10-24T22:00:00Z"),
            (berlin, "2026-03-29T08:00:00Z", "2026-03-29 02:30", "2026-03-29T01:30:00Z"),
            (berlin, "2026-03-29T08:00:00Z", "2026-03-29 03:30", "2026-03-29T01:30:00Z"),
            (berlin, "2026-10-26T08:00:00Z", "2026-10-25 03:00", "2026-10-25T02:00:00Z"),
            (havana, "2026-03-08T15:00:00Z", "today", "2026-03-08T05:00:00Z"),
            (havana, "2026-03-09T15:00:00Z", "yesterday", "2026-03-08T05:00:00Z"),
        ] {
            let clock = Clock { now: milliseconds(now).unwrap(), offset };
            assert_eq!(moment(text, clock), milliseconds(expected), "{text} at {now}");
        }
    }

    #[test]
    fn times_as_a_person_writes_them() {
        let now = milliseconds("2026-05-21T10:00:00Z").unwrap();
        let clock = Clock { now, offset: |_| 7_200 };
        for (text, expected) in [
            ("1h", "2026-05-21T09:00:00Z"),
            ("1h30m", "2026-05-21T08:30:00Z"),
            ("2d", "2026-05-19T10:00:00Z"),
            ("today", "2026-05-20T22:00:00Z"),
            ("yesterday", "2026-05-19T22:00:00Z"),
            ("09:40", "2026-05-21T07:40:00Z"),
            ("11:59:59", "2026-05-21T09:59:59Z"),
            ("12:01", "2026-05-20T10:01:00Z"),
            ("2026-05-01", "2026-04-30T22:00:00Z"),
            ("2026-05-01 08:00", "2026-05-01T06:00:00Z"),
            ("2026-05-01T08:00:30", "2026-05-01T06:00:30Z"),
            ("2026-05-01T08:00:00Z", "2026-05-01T08:00:00Z"),
            ("2026-05-01T08:00:00+01:00", "2026-05-01T07:00:00Z"),
        ] {
            assert_eq!(moment(text, clock), milliseconds(expected), "{text}");
        }
        for text in
            ["", "1", "h", "1x", "-1h", "25:00", "9:40pm", "tomorrow", "2026-13-01", "99999999999999999999s", "today "]
        {
            assert_eq!(moment(text, clock), None, "{text}");
        }
        for (text, expected) in
            [("500ms", 500), ("0.5s", 500), ("2m", 120_000), ("1w", 604_800_000), ("1.5h", 5_400_000), ("90", 90_000)]
        {
            assert_eq!(seconds(text).map(whole_ms), Some(expected), "{text}");
        }
        for text in ["", "-1", "-1s", "inf", "nan", "1.2.3s", "1h30", "s", "1e400", "1 s"] {
            assert_eq!(seconds(text), None, "{text}");
        }
        assert_eq!(time_shown(clock.local(now).unwrap()), "12:00:00");
    }
}
