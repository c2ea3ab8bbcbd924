//! The allocator: memory for the few small objects of a call of the shim, without a system call.
//!
//! The C library asks the kernel for memory several times before the request is sent, and spreads that over more pages.
//! Each page that is touched is a fault, and faults are a third of what the shim costs.
//!
//! Invariants: the process has one thread; large blocks, and those without room in the arena, come from the C library;
//! the bytes from `touched` on are still the kernel's zeros.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, UnsafeCell};

/// The arena's size, bytes. Pages that are never touched take no memory.
const ARENA_BYTES: usize = 96 << 10;
/// Blocks above this size come from the C library, bytes.
const BLOCK_BYTES_MAX: usize = 32 << 10;

/// The largest alignment of blocks in the arena, bytes.
const ALIGN_MAX: usize = align_of::<u128>();
const BLOCKS: usize = ARENA_BYTES / size_of::<u128>();

// The test harness has threads.
#[cfg(not(test))]
#[global_allocator]
static ARENA: Arena = Arena::new();

/// The numbers share a page with the first blocks.
#[repr(C)]
struct Arena {
    /// The start of the free part.
    used: Cell<usize>,
    /// The start of the never used part.
    touched: Cell<usize>,
    bytes: UnsafeCell<[u128; BLOCKS]>,
}

// SAFETY: the process has one thread.
unsafe impl Sync for Arena {}

impl Arena {
    const fn new() -> Self {
        Self { used: Cell::new(0), touched: Cell::new(0), bytes: UnsafeCell::new([0; BLOCKS]) }
    }

    fn start(&self) -> *mut u8 {
        self.bytes.get().cast()
    }

    /// The place of a block in the arena; `None` for a block of the C library's.
    fn place_of(&self, block: *mut u8) -> Option<usize> {
        block.addr().checked_sub(self.start().addr()).filter(|&place| place < ARENA_BYTES)
    }

    /// Takes a block off the free part, if there is room.
    fn take(&self, layout: Layout) -> Option<usize> {
        let place = self.used.get().next_multiple_of(layout.align());
        let end = place.checked_add(layout.size())?;
        if layout.size() > BLOCK_BYTES_MAX || layout.align() > ALIGN_MAX || end > ARENA_BYTES {
            return None;
        }
        self.used.set(end);
        Some(place)
    }

    /// Counts the bytes up to `end` as touched. Returns the start of the untouched ones before.
    fn touch(&self, end: usize) -> usize {
        self.touched.replace(self.touched.get().max(end))
    }
}

// SAFETY: blocks of the arena do not overlap, because each is behind all that are in use, and lie within it.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match self.take(layout) {
            Some(place) => {
                self.touch(place + layout.size());
                // SAFETY: `take` returns places within the arena.
                unsafe { self.start().add(place) }
            }
            // SAFETY: the caller keeps to the same contract.
            None => unsafe { System.alloc(layout) },
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let Some(place) = self.take(layout) else {
            // SAFETY: the caller keeps to the same contract.
            return unsafe { System.alloc_zeroed(layout) };
        };
        let end = place + layout.size();
        let used_before = self.touch(end).clamp(place, end) - place;
        // SAFETY: `take` returns places within the arena, and the bytes up to `used_before` belong to this block.
        unsafe {
            let block = self.start().add(place);
            block.write_bytes(0, used_before);
            block
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match self.place_of(block) {
            // Only the last block's memory is free again.
            Some(place) if place + layout.size() == self.used.get() => self.used.set(place),
            Some(_) => {}
            // SAFETY: the block is the C library's, and the caller keeps to the same contract.
            None => unsafe { System.dealloc(block, layout) },
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let Some(place) = self.place_of(block) else {
            // SAFETY: the block is the C library's, and the caller keeps to the same contract.
            return unsafe { System.realloc(block, layout, size) };
        };
        let end = place.saturating_add(size);
        if place + layout.size() == self.used.get() && size <= BLOCK_BYTES_MAX && end <= ARENA_BYTES {
            self.used.set(end);
            self.touch(end);
            return block;
        }
        // SAFETY: the caller promises that the size is not zero and fits the alignment; both blocks have at least as many
        // bytes as are copied, and the new one is another one.
        unsafe {
            let larger = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !larger.is_null() {
                larger.copy_from_nonoverlapping(block, layout.size().min(size));
                self.dealloc(block, layout);
            }
            larger
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block and the byte that all of it has.
    struct Block {
        start: *mut u8,
        layout: Layout,
        mark: u8,
    }

    impl Block {
        fn holds(&self, len: usize) -> bool {
            // SAFETY: the block is allocated, and was filled when it was.
            unsafe { std::slice::from_raw_parts(self.start, len) }.iter().all(|&byte| byte == self.mark)
        }

        fn fill(&mut self, mark: u8) {
            self.mark = mark;
            // SAFETY: the block is allocated and has this many bytes.
            unsafe { self.start.write_bytes(mark, self.layout.size()) };
        }
    }

    struct Blocks {
        arena: Box<Arena>,
        all: Vec<Block>,
        marks: u8,
    }

    impl Blocks {
        fn new() -> Self {
            Self { arena: Box::new(Arena::new()), all: Vec::new(), marks: 0 }
        }

        fn add(&mut self, size: usize, align: usize, is_zeroed: bool) -> &Block {
            let layout = Layout::from_size_align(size, align).unwrap();
            // SAFETY: the size is not zero.
            let start = unsafe { if is_zeroed { self.arena.alloc_zeroed(layout) } else { self.arena.alloc(layout) } };
            assert!(!start.is_null() && start.addr().is_multiple_of(align), "{layout:?} at {start:?}");
            let mut block = Block { start, layout, mark: 0 };
            assert!(!is_zeroed || block.holds(size), "{layout:?} is not zero");
            self.marks = self.marks.wrapping_add(1);
            block.fill(self.marks);
            self.all.push(block);
            self.all.last().unwrap()
        }

        fn resize(&mut self, at: usize, size: usize) {
            self.marks = self.marks.wrapping_add(1);
            let block = &mut self.all[at];
            let kept = size.min(block.layout.size());
            // SAFETY: the arena made the block with this layout, and the size is not zero.
            block.start = unsafe { self.arena.realloc(block.start, block.layout, size) };
            block.layout = Layout::from_size_align(size, block.layout.align()).unwrap();
            assert!(block.start.addr().is_multiple_of(block.layout.align()) && block.holds(kept), "{:?}", block.layout);
            block.fill(self.marks);
        }

        fn remove(&mut self, at: usize) {
            let block = self.all.remove(at);
            assert!(block.holds(block.layout.size()), "another block has written into {:?}", block.layout);
            // SAFETY: the arena made the block with this layout.
            unsafe { self.arena.dealloc(block.start, block.layout) };
        }

        fn is_in_arena(&self, at: usize) -> bool {
            self.arena.place_of(self.all[at].start).is_some()
        }
    }

    impl Drop for Blocks {
        fn drop(&mut self) {
            while !std::thread::panicking() && !self.all.is_empty() {
                self.remove(self.all.len() - 1);
            }
        }
    }

    #[test]
    fn blocks_of_any_size_and_alignment_keep_their_bytes() {
        for seed in 1..100_u64 {
            let (mut blocks, mut state) = (Blocks::new(), seed * 0x9e37_79b9);
            let mut random = |below: usize| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                usize::try_from(state >> 33).unwrap() % below
            };
            for _ in 0..400 {
                let most = [8, 100, 3_000, 40_000][random(4)];
                let size = 1 + random(most);
                match (random(8), blocks.all.len()) {
                    (0..4, _) | (_, 0) => drop(blocks.add(size, 1 << random(7), random(2) == 0)),
                    // The last one is the only one that grows in its place and whose memory is free again.
                    (4, count) => blocks.resize(count - 1, size),
                    (5, count) => blocks.resize(random(count), size),
                    (6, count) => blocks.remove(count - 1),
                    (_, count) => blocks.remove(random(count)),
                }
            }
        }
    }

    #[test]
    fn the_last_block_grows_and_shrinks_in_its_place_and_its_memory_is_used_again() {
        let mut blocks = Blocks::new();
        blocks.add(100, 8, false);
        let start = blocks.add(10, 1, false).start;
        blocks.resize(1, 5_000);
        blocks.resize(1, 20);
        assert_eq!(blocks.all[1].start, start);
        blocks.resize(0, 200);
        assert_ne!(blocks.all[0].start, start, "it has no room before the other");
        blocks.remove(0);
        blocks.remove(0);
        // The next block gets memory that was written to, and asks for zeros.
        blocks.add(4_000, 1, false);
        blocks.remove(0);
        blocks.add(6_000, 1, true);
    }

    #[test]
    fn what_has_no_room_comes_from_the_c_library() {
        let mut blocks = Blocks::new();
        for (size, align, is_ours) in
            [(BLOCK_BYTES_MAX, 16, true), (BLOCK_BYTES_MAX + 1, 1, false), (64, 2 * ALIGN_MAX, false), (64, 16, true)]
        {
            blocks.add(size, align, false);
            assert_eq!(blocks.is_in_arena(blocks.all.len() - 1), is_ours, "{size} bytes, aligned to {align}");
        }
        // A block that outgrows the arena leaves it, also the last one; one of the C library's stays there.
        blocks.resize(3, BLOCK_BYTES_MAX + 1);
        blocks.resize(1, 8);
        assert!(!blocks.is_in_arena(3) && !blocks.is_in_arena(1));
        let before = blocks.all.len();
        while blocks.is_in_arena(blocks.all.len() - 1) || blocks.all.len() == before {
            blocks.add(1_000, 1, true);
        }
        assert!(blocks.all.len() > 50, "{} blocks of 1,000 bytes fit", blocks.all.len());
        blocks.resize(before, 2_000);
        assert!(!blocks.is_in_arena(before), "there is no room for a larger one");
    }
}
