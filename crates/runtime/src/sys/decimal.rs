//! Numbers of processes and threads as text, and back.

pub(crate) fn decimal(digits: &mut [u8; 10], number: i32) -> &[u8] {
    let mut rest = number.unsigned_abs();
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            return &digits[at..];
        }
    }
}

/// None where there is anything but digits, nothing, or too much.
pub(crate) fn number(digits: &[u8]) -> Option<i32> {
    let add = |number: i32, digit: &u8| {
        let digit = digit.is_ascii_digit().then(|| i32::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    };
    if digits.is_empty() { None } else { digits.iter().try_fold(0, add) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        for pid in [0, 7, 1_234_567, i32::MAX] {
            assert_eq!(number(decimal(&mut [0; 10], pid)), Some(pid));
        }
        for other in [&b""[..], b"self", b"1 ", b"-1", b"99999999999"] {
            assert_eq!(number(other), None);
        }
    }
}
