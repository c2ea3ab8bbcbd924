//! Stands in the place of execl(3), execlp(3) and execle(3), whose arguments are a list on the stack.
//!
//! Invariant: each puts its arguments that came in registers in front of those on the stack, so that they are a list, and
//! hands that on. When that returns, the stack is as before.
#![expect(unsafe_code, reason = "functions of the C library")]

use std::arch::naked_asm;
use std::ffi::{c_char, c_int};

use crate::calls::{List, execv, execve, execvp};

macro_rules! variadic {
    ($name:ident, $takes_list:path) => {
        #[doc = concat!("As ", stringify!($name), "(3).")]
        ///
        /// # Safety
        #[doc = concat!("As ", stringify!($name), "(3).")]
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name() -> c_int {
            #[cfg(target_arch = "x86_64")]
            naked_asm!(
                "pop rax",
                "push r9",
                "push r8",
                "push rcx",
                "push rdx",
                "push rsi",
                "mov rsi, rsp",
                "push rax",
                "call {}",
                "pop rcx",
                "add rsp, 40",
                "push rcx",
                "ret",
                sym $takes_list,
            );
            #[cfg(target_arch = "aarch64")]
            naked_asm!(
                "sub sp, sp, #64",
                "stp x30, x1, [sp]",
                "stp x2, x3, [sp, #16]",
                "stp x4, x5, [sp, #32]",
                "stp x6, x7, [sp, #48]",
                "add x1, sp, #8",
                "bl {}",
                "ldr x30, [sp]",
                "add sp, sp, #64",
                "ret",
                sym $takes_list,
            );
        }
    };
}

variadic!(execl, execute);
variadic!(execlp, execute_found);
variadic!(execle, execute_in);

unsafe extern "C" fn execute(path: *const c_char, list: List) -> c_int {
    // SAFETY: the caller of execl(3) ends the list with NULL.
    unsafe { execv(path, list) }
}

unsafe extern "C" fn execute_found(file: *const c_char, list: List) -> c_int {
    // SAFETY: the caller of execlp(3) ends the list with NULL.
    unsafe { execvp(file, list) }
}

unsafe extern "C" fn execute_in(path: *const c_char, list: List) -> c_int {
    // SAFETY: the caller of execle(3) ends the list with NULL, and the environment stands behind that.
    unsafe {
        let mut end = list;
        while !(*end).is_null() {
            end = end.add(1);
        }
        execve(path, list, end.add(1).cast::<List>().read())
    }
}
