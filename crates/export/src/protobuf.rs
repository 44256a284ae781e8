//! Messages of Protocol Buffers, as much as one format needs: numbers, texts, messages within
//! messages. <https://protobuf.dev/programming-guides/encoding/>

/// A message that is being written. Fields that have their default value are left out, as the
/// encoding allows.
#[derive(Default)]
pub(crate) struct Message {
    bytes: Vec<u8>,
}

const VARINT: u64 = 0;
const EIGHT_BYTES: u64 = 1;
const LENGTH: u64 = 2;

impl Message {
    pub(crate) fn number(&mut self, field: u64, value: u64) {
        if value != 0 {
            self.varint(field << 3 | VARINT);
            self.varint(value);
        }
    }

    /// A number that always takes eight bytes.
    pub(crate) fn fixed64(&mut self, field: u64, value: u64) {
        if value != 0 {
            self.varint(field << 3 | EIGHT_BYTES);
            self.bytes.extend_from_slice(&value.to_le_bytes());
        }
    }

    /// A list of numbers, packed.
    pub(crate) fn numbers(&mut self, field: u64, values: impl IntoIterator<Item = u64>) {
        let mut packed = Self::default();
        values.into_iter().for_each(|value| packed.varint(value));
        if !packed.bytes.is_empty() {
            self.bytes(field, &packed.bytes);
        }
    }

    /// Also an empty one: in a list, each has its place.
    pub(crate) fn text(&mut self, field: u64, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    pub(crate) fn message(&mut self, field: u64, message: &Self) {
        self.bytes(field, &message.bytes);
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.bytes
    }

    pub(crate) fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | LENGTH);
        self.varint(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    /// Seven bits a byte, the lowest first; the eighth says that more follow.
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_those_of_the_specification() {
        let mut message = Message::default();
        message.number(1, 150);
        message.number(4, 0);
        message.text(2, "testing");
        let mut outer = Message::default();
        outer.message(3, &message);
        outer.numbers(6, [3, 270, 86942]);
        outer.numbers(7, []);
        outer.fixed64(8, 0x0102);
        let expected = b"\x1a\x0c\x08\x96\x01\x12\x07testing\x32\x06\x03\x8e\x02\x9e\xa7\x05\
            \x41\x02\x01\0\0\0\0\0\0";
        assert_eq!(outer.finish(), expected);
    }
}
