//! Messages in the protocol buffers encoding, as far as a trace needs it.
//!
//! Source: protobuf.dev, "Encoding". A field is a tag (number and wire type) and a value: a varint,
//! 8 bytes, or a length with that many bytes (text, message or packed varints).
//!
//! Invariant: the same fields in the same order give the same bytes.

/// A message under construction.
#[derive(Clone, Debug, Default)]
pub struct ProtobufMessage {
    bytes: Vec<u8>,
}

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const LENGTH: u64 = 2;

/// Appends a varint: seven bits per byte, lowest first.
fn put_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

impl ProtobufMessage {
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Clears the message for the next one.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    fn tag(&mut self, field: u32, kind: u64) {
        put_varint(&mut self.bytes, u64::from(field) << 3 | kind);
    }

    /// An unsigned number, an enum, or a bool.
    pub fn uint(&mut self, field: u32, value: u64) {
        self.tag(field, VARINT);
        put_varint(&mut self.bytes, value);
    }

    /// A `fixed64`.
    pub fn fixed64(&mut self, field: u32, value: u64) {
        self.tag(field, FIXED64);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub fn double(&mut self, field: u32, value: f64) {
        self.fixed64(field, value.to_bits());
    }

    pub fn text(&mut self, field: u32, text: &str) {
        self.field(field, text.as_bytes());
    }

    pub fn message(&mut self, field: u32, message: &ProtobufMessage) {
        self.field(field, &message.bytes);
    }

    /// A message in this one, made where it is needed.
    pub fn nested(&mut self, field: u32, make: impl FnOnce(&mut ProtobufMessage)) {
        let mut message = ProtobufMessage::default();
        make(&mut message);
        self.message(field, &message);
    }

    /// Repeated numbers, packed.
    pub fn packed(&mut self, field: u32, values: &[u64]) {
        let mut bytes = Vec::with_capacity(2 * values.len());
        values.iter().for_each(|&value| put_varint(&mut bytes, value));
        self.field(field, &bytes);
    }

    fn field(&mut self, field: u32, bytes: &[u8]) {
        self.tag(field, LENGTH);
        put_varint(&mut self.bytes, bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_specification() {
        let mut message = ProtobufMessage::default();
        message.uint(1, 150);
        assert_eq!(message.bytes(), [0x08, 0x96, 0x01]);
        message.clear();
        message.text(2, "testing");
        assert_eq!(message.bytes(), b"\x12\x07testing");
        message.clear();
        message.nested(3, |inner| inner.uint(1, 150));
        assert_eq!(message.bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        message.clear();
        message.packed(6, &[3, 270, 86942]);
        assert_eq!(message.bytes(), [0x32, 0x06, 0x03, 0x8e, 0x02, 0x9e, 0xa7, 0x05]);
        message.clear();
        message.double(1, 1.0);
        assert_eq!(message.bytes(), [9, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
        message.clear();
        message.uint(1, u64::MAX);
        assert_eq!(message.bytes().len(), 11);
    }
}
