//! The arithmetic of a collective, and its translation into that of devices.

use rackloom_collectives::execute::Arithmetic;
use rackloom_collectives::{ElementType, ReduceOperation};
use rackloom_protocol::{Arithmetic as DeviceArithmetic, Number as DeviceNumber};

/// Returns the device's operation. `None` if only the host supports it.
pub(super) const fn arithmetic(operation: ReduceOperation) -> Option<DeviceArithmetic> {
    match operation {
        ReduceOperation::Sum => Some(DeviceArithmetic::Sum),
        ReduceOperation::Min => Some(DeviceArithmetic::Min),
        ReduceOperation::Max => Some(DeviceArithmetic::Max),
        ReduceOperation::Product => Some(DeviceArithmetic::Product),
        _ => None,
    }
}

/// Returns the device's number type. `None` if only the host supports it.
pub(super) const fn number(element: ElementType) -> Option<DeviceNumber> {
    match element {
        ElementType::F32 => Some(DeviceNumber::F32),
        ElementType::F64 => Some(DeviceNumber::F64),
        ElementType::F16 => Some(DeviceNumber::F16),
        ElementType::Bf16 => Some(DeviceNumber::Bf16),
        ElementType::I32 => Some(DeviceNumber::I32),
        ElementType::I64 => Some(DeviceNumber::I64),
        _ => None,
    }
}

/// Arithmetic of a collective that only moves bytes.
pub(super) const MOVED: Arithmetic = Arithmetic::Number(ReduceOperation::Sum, ElementType::U8);

/// Returns names that are equal on all members of a call. Functions of callers have no names.
pub(super) const fn names(arithmetic: &Arithmetic) -> [&'static str; 2] {
    match arithmetic {
        Arithmetic::Number(operation, element) => [operation.name(), element.name()],
        Arithmetic::Custom(reduction) => {
            ["custom", if reduction.is_ordered() { "ordered" } else { "commutative" }]
        }
    }
}
