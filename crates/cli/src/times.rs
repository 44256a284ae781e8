//! Times as people write them on the command line.

use std::time::Duration;

/// `10s`, `500ms`, `2min`; a number alone is seconds.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: f64 =
        number.parse().map_err(|_| "a time is a number and a unit, as 10s or 500ms".to_owned())?;
    let seconds = match unit {
        "" | "s" => number,
        "ms" => number / 1e3,
        "min" => number * 60.0,
        _ => return Err(format!("{unit} is no unit of time; ms, s and min are")),
    };
    Duration::try_from_secs_f64(seconds).map_err(|_| "too long".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(time("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(time("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(time("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(time("2min"), Ok(Duration::from_secs(120)));
        for wrong in ["", "s", "-1s", "10h", "1e3s", "99999999999999999999999s"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
