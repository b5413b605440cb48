//! Error codes of the driver: named errors for the few that a caller can act on, all others with their number.

use crate::error::GpuError;

/// Converts the driver's code to a result.
pub(crate) fn check(function: &'static str, code: i32) -> Result<(), GpuError> {
    if code == 0 { Ok(()) } else { Err(error_of(function, code)) }
}

pub(crate) fn error_of(function: &'static str, code: i32) -> GpuError {
    match code {
        2 => GpuError::OutOfMemory { function },
        100 => GpuError::NoDevice,
        // The driver reports "invalid context" if a handle is opened in the process that made it. No other call that we make with a
        // context of its own device fails with this code.
        201 if function == "cuIpcOpenMemHandle_v2" => GpuError::OwnHandle,
        304 => GpuError::NoPermission { what: function.to_owned() },
        600 => GpuError::NotReady,
        700 | 702 | 709 | 710 | 714..=719 => GpuError::DeviceFailed { function, code, name: name(code) },
        800 | 801 => GpuError::NotSupported { function },
        _ => GpuError::Call { function, code, name: name(code) },
    }
}

/// Returns the driver's own name for a code, for the codes that were observed.
const fn name(code: i32) -> &'static str {
    match code {
        1 => "invalid value",
        3 => "not initialized",
        4 => "deinitialized",
        101 => "invalid device",
        200 => "invalid image",
        201 => "invalid context",
        205 => "map failed",
        208 => "already mapped",
        217 => "peer access unsupported",
        218 => "invalid PTX",
        222 => "PTX of a newer compiler than the driver knows",
        400 => "invalid handle",
        500 => "not found",
        700 => "illegal address",
        702 => "launch timeout",
        704 => "peer access already enabled",
        709 => "context is destroyed",
        716 => "misaligned address",
        717 => "invalid address space",
        718 => "invalid program counter",
        719 => "launch failed",
        802 => "system not ready",
        803 => "driver and library differ",
        804 => "compatibility mode not supported",
        999 => "unknown",
        _ => "see the driver's documentation",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_that_a_caller_can_act_on_have_errors_of_their_own() {
        assert!(check("cuInit", 0).is_ok());
        assert!(matches!(error_of("cuMemAlloc_v2", 2), GpuError::OutOfMemory { .. }));
        assert!(matches!(error_of("cuIpcOpenMemHandle_v2", 201), GpuError::OwnHandle));
        assert!(matches!(error_of("cuMemcpyAsync", 201), GpuError::Call { code: 201, .. }));
        assert!(matches!(error_of("cuEventQuery", 600), GpuError::NotReady));
        assert!(matches!(error_of("cuEventQuery", 700), GpuError::DeviceFailed { code: 700, .. }));
        assert!(
            matches!(error_of("cuX", 123_456), GpuError::Call { code: 123_456, .. }),
            "an unknown code does not panic"
        );
    }
}
