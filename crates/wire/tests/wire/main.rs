//! The protocol, from outside: one program, since each would be linked anew.

mod decode;
mod encode;
mod goodbye;
mod lease;
