//! Variable-length integers: LEB128 (seven bits a byte, least significant first; the top bit is set
//! if more bytes follow).

/// Longest encoding of a `u64`.
pub(crate) const MAX_LEN: usize = 10;

pub(crate) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value as u8) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes a value off the front of `bytes`; `None` if it is incomplete or above `u64::MAX`.
#[inline]
pub(crate) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let (&first, rest) = bytes.split_first()?;
    if first < 0x80 {
        *bytes = rest;
        return Some(u64::from(first));
    }
    if let [_, second @ 0..0x80, rest @ ..] = *bytes {
        *bytes = rest;
        return Some(u64::from(first & 0x7f) | u64::from(*second) << 7);
    }
    take_long(bytes)
}

fn take_long(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for (index, &byte) in bytes.iter().take(MAX_LEN).enumerate() {
        let bits = u64::from(byte & 0x7f);
        // The tenth byte can hold one bit only.
        if index == MAX_LEN - 1 && bits > 1 {
            return None;
        }
        value |= bits << (7 * index);
        if byte < 0x80 {
            *bytes = &bytes[index + 1..];
            return Some(value);
        }
    }
    None
}

/// Appends the length, then the bytes.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Takes a length (at most `limit`), then that many bytes.
pub(crate) fn take_bytes<'a>(bytes: &mut &'a [u8], limit: usize) -> Option<&'a [u8]> {
    let len = usize::try_from(take(bytes)?).ok()?;
    if len > limit {
        return None;
    }
    let (head, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_at_the_edges() {
        for value in [0, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut out = Vec::new();
            put(&mut out, value);
            assert!(out.len() <= MAX_LEN);
            let mut rest = out.as_slice();
            assert_eq!(take(&mut rest), Some(value));
            assert!(rest.is_empty());
            for cut in 0..out.len() {
                assert_eq!(take(&mut &out[..cut]), None, "{value} cut at {cut}");
            }
        }
    }

    #[test]
    fn refuses_what_does_not_fit() {
        assert_eq!(take(&mut [0xff; 11].as_slice()), None);
        assert_eq!(
            take(&mut [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2].as_slice()),
            None
        );
        assert_eq!(take_bytes(&mut [5, 1, 2].as_slice(), 10), None);
        assert_eq!(take_bytes(&mut [5, 1, 2, 3, 4, 5].as_slice(), 4), None);
    }
}
