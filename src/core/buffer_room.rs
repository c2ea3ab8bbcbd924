//! Room in the buffers between a log and its readers.

/// Below this length a buffer grows as usual, bytes.
const SMALL_BYTES: usize = 16 << 10;
/// The bytes that frames may take beside their output.
const FRAMES_BYTES: usize = 1 << 10;

/// Makes room for `more` bytes in frames. A long buffer grows by a quarter, or by what it needs: of a buffer that doubles, as much as
/// half is never used, and there are several for each command.
pub fn make_room(buffer: &mut Vec<u8>, more: usize) {
    let (length, more) = (buffer.len(), more + FRAMES_BYTES);
    if length + more > SMALL_BYTES && length + more > buffer.capacity() {
        buffer.reserve_exact(more.max(length / 4));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_buffer_has_little_room_that_it_does_not_use() {
        let (mut buffer, mut moves, mut capacity) = (Vec::new(), 0, 0);
        while buffer.len() < 10_000_000 {
            make_room(&mut buffer, 1_000);
            buffer.extend_from_slice(&[0; 1_000]);
            moves += usize::from(std::mem::replace(&mut capacity, buffer.capacity()) < buffer.capacity());
            assert!(capacity <= 2 * SMALL_BYTES || capacity <= buffer.len() / 4 * 5 + FRAMES_BYTES);
        }
        assert!(moves < 50, "{moves}");
    }
}
