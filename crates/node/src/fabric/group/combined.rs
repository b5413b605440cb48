//! Translation of the arithmetic of collectives into that of devices.

use rackloom_collectives::{ElementType, ReduceOperation};
use rackloom_protocol::{Arithmetic, Number};

/// Returns the device's operation. `None` if only the host supports it.
pub(super) const fn arithmetic(operation: ReduceOperation) -> Option<Arithmetic> {
    match operation {
        ReduceOperation::Sum => Some(Arithmetic::Sum),
        ReduceOperation::Min => Some(Arithmetic::Min),
        ReduceOperation::Max => Some(Arithmetic::Max),
        ReduceOperation::Product => Some(Arithmetic::Product),
        _ => None,
    }
}

/// Returns the device's number type. `None` if only the host supports it.
pub(super) const fn number(element: ElementType) -> Option<Number> {
    match element {
        ElementType::F32 => Some(Number::F32),
        ElementType::F64 => Some(Number::F64),
        ElementType::F16 => Some(Number::F16),
        ElementType::Bf16 => Some(Number::Bf16),
        ElementType::I32 => Some(Number::I32),
        ElementType::I64 => Some(Number::I64),
        _ => None,
    }
}
