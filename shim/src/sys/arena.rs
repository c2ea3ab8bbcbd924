//! The allocator: memory for the few small things that a call of the shim needs, without a system call.
//!
//! The C library asks the kernel for memory several times before the request is sent, and spreads what it gets over more
//! pages. Each page that is touched is a fault, and faults are a third of what the shim costs.
//!
//! Invariants: the process has one thread; what the arena has no room for, and whatever is large, comes from the C library;
//! the bytes from `touched` on are still the kernel's zeros.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, UnsafeCell};

/// The arena's size, bytes. Pages that are never touched take no memory.
const ARENA_BYTES: usize = 96 << 10;
/// Blocks above this size come from the C library, bytes.
const BLOCK_BYTES_MAX: usize = 32 << 10;

/// What blocks in the arena are aligned to at most, bytes.
const ALIGN_MAX: usize = align_of::<u128>();
const BLOCKS: usize = ARENA_BYTES / size_of::<u128>();

#[global_allocator]
static ARENA: Arena = Arena { used: Cell::new(0), touched: Cell::new(0), bytes: UnsafeCell::new([0; BLOCKS]) };

/// The numbers share a page with the first blocks.
#[repr(C)]
struct Arena {
    /// Where the free part begins.
    used: Cell<usize>,
    /// Where the part begins that was never used.
    touched: Cell<usize>,
    bytes: UnsafeCell<[u128; BLOCKS]>,
}

// SAFETY: the process has one thread.
unsafe impl Sync for Arena {}

impl Arena {
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

    /// Counts the bytes up to `end` as touched. Returns where those began that were not.
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
