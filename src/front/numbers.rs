//! Numbers in JSON, which has one type of them: a client's `1.0` may be an integer, and digits beyond 64 bits are lost
//! here.

use serde_json::{Number, Value};

/// Up to here, a number with a point holds every integer.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// Returns true if a number is so large that its digits are lost. A client would not recognize such an id.
#[must_use]
pub fn is_inexact(number: &Number) -> bool {
    number.is_f64() && number.as_f64().is_none_or(|number| number.abs() > EXACT_MAX)
}

/// Makes integers of the numbers in a value that are written as `1.0` or `1e3`, as languages with one type of numbers do.
pub fn make_whole(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() && !is_inexact(number) => {
            let digits = number.as_f64().map(|number| format!("{number:.0}")).unwrap_or_default();
            let whole = digits.parse::<i64>().ok().map(Number::from);
            if let Some(whole) = whole.filter(|whole| whole.as_f64() == number.as_f64()) {
                *number = whole;
            }
        }
        Value::Array(all) => all.iter_mut().for_each(make_whole),
        Value::Object(fields) => fields.values_mut().for_each(make_whole),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_worth() {
        for (written, whole) in [
            ("[1.0, 1e3, -0, -2.0, {\"a\": 3.0}]", "[1,1000,0,-2,{\"a\":3}]"),
            ("[1.5, 1e300, 18446744073709551615, \"1.0\"]", "[1.5,1e+300,18446744073709551615,\"1.0\"]"),
        ] {
            let mut value: Value = serde_json::from_str(written).unwrap();
            make_whole(&mut value);
            assert_eq!(value.to_string(), whole);
        }
        let is_lost = |digits: &str| is_inexact(&serde_json::from_str(digits).unwrap());
        assert!(is_lost("18446744073709551616") && is_lost("-9223372036854775809") && is_lost("1e16"));
        assert!(!is_lost("18446744073709551615") && !is_lost("-9223372036854775808") && !is_lost("1.5"));
    }
}
