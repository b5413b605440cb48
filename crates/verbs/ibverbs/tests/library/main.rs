//! The shared library as programs meet it: exported names, structures of the distribution's headers, a program in C, and the
//! distribution's utilities. What a machine lacks is reported as skipped.

mod layout;
mod names;
mod programs;
mod support;
