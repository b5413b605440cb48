//! Parts of which declarations of keys are made: quantities with units, named values, kinds of values and tables.
//!
//! The lowest layer of the crate. It declares no key.

pub(crate) mod complaint;
pub(crate) mod name;
pub(crate) mod named_value;
pub(crate) mod nearest;
pub(crate) mod printable;
pub(crate) mod quantity;
pub(crate) mod section;
pub(crate) mod table;
pub(crate) mod value;
