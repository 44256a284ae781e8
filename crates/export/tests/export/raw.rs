//! A reader of Protocol Buffers, written for itself: what one side gets wrong the other does not.

use std::fmt::Write as _;

/// The fields, one a line, messages indented below their field.
pub(crate) fn decode(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (field, value) in fields(bytes).expect("a message") {
        write(&mut text, field, &value, 0);
    }
    text
}

enum Value {
    Number(u64),
    Bytes(Vec<u8>),
}

/// The fields of a message; nothing if these bytes are none.
fn fields(mut bytes: &[u8]) -> Option<Vec<(u64, Value)>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes)?;
        let value = match key & 7 {
            0 => Value::Number(varint(&mut bytes)?),
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).ok()?;
                let (value, rest) = bytes.split_at_checked(length)?;
                bytes = rest;
                Value::Bytes(value.to_vec())
            }
            _ => return None,
        };
        if key >> 3 == 0 {
            return None;
        }
        fields.push((key >> 3, value));
    }
    Some(fields)
}

/// The numbers of a packed list.
fn numbers(mut bytes: &[u8]) -> Option<Vec<u64>> {
    let mut numbers = Vec::new();
    while !bytes.is_empty() {
        numbers.push(varint(&mut bytes)?);
    }
    Some(numbers)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Of a profile: its texts are field 6, its comments, a list of numbers, field 13; samples hold
/// lists of numbers, too, and locations messages in their field 4.
fn write(text: &mut String, field: u64, value: &Value, depth: usize) {
    let indent = "  ".repeat(depth);
    let bytes = match value {
        Value::Number(number) => {
            let _ = writeln!(text, "{indent}{field}: {number}");
            return;
        }
        Value::Bytes(bytes) => bytes,
    };
    if depth == 0 && field == 6 {
        let _ = writeln!(text, "{indent}{field}: {:?}", String::from_utf8_lossy(bytes));
    } else if depth == 0 && field != 13 || depth == 1 && field == 4 {
        let _ = writeln!(text, "{indent}{field}:");
        for (field, value) in fields(bytes).expect("a message") {
            write(text, field, &value, depth + 1);
        }
    } else {
        let _ = writeln!(text, "{indent}{field}: {:?}", numbers(bytes).expect("numbers"));
    }
}
