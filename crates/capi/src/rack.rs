//! Standing racks: processes that other processes start, inspect, strike with faults and end.

use std::ffi::c_char;
use std::path::PathBuf;
use std::sync::Arc;

use rackloom_plan::WireKind;
use rackloom_runtime::machine::program::Program;
use rackloom_runtime::request::options::UpOptions;
use rackloom_runtime::standing::{self, StandingRack};

use crate::codes::{ErrorCode, Failure};
use crate::guard::{self, with_pointers};
use crate::handles::{self, RackName};
use crate::library::{TextHandle, add_text};
use crate::pointers::{Out, Sized32, array, optional_text, put_text, text, versioned};

/// Handle of a standing rack. It stands for the name of the rack: each call connects, because a rack closes connections that are idle.
pub type RackHandle = u64;

/// Connects to the rack of a handle.
fn connect(rack: RackHandle) -> Result<StandingRack, Failure> {
    Ok(StandingRack::named(&handles::get::<Arc<RackName>>(rack)?.0)?)
}

/// Options of a standing rack. Fields that are zero or null have their defaults.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RackOptions {
    /// sizeof(rackloom_rack_options).
    pub size: u32,
    /// 1 if all data goes in frames, also between nodes of one server.
    pub force_wire: u32,
    /// Path of the program `rackloom`, whose processes the rack consists of. Searched in PATH if null.
    pub program: *const c_char,
    /// Path of the rack file. Not null.
    pub file: *const c_char,
    /// Name of the rack; that of the rack file if null.
    pub name: *const c_char,
    /// Wire: "shared-memory", "udp" or "packet"; that of the rack file if null.
    pub wire: *const c_char,
    /// Path of a fault script, or null.
    pub faults: *const c_char,
    /// Path of a directory for logs; the rack's own directory if null.
    pub log_directory: *const c_char,
    /// Names of the seats that stay vacant for other processes.
    pub vacant: *const *const c_char,
    /// Number of names in `vacant`.
    pub vacant_count: u64,
    /// Assignments KEY=VALUE to keys of the rack file.
    pub settings: *const *const c_char,
    /// Number of assignments in `settings`.
    pub settings_count: u64,
}

// SAFETY: needed to copy it by its bytes. It has the layout of C and begins with its size. It consists of numbers and raw pointers, so every bit
// pattern is a value: a pointer is not read here.
unsafe impl Sized32 for RackOptions {
    const SIZE_MIN: usize = size_of::<Self>();
}

/// Starts a standing rack. Returns once all links between seats that are not vacant carry data. The rack stays when the program ends: end it with
/// `rackloom_rack_down`. The call leaves no thread behind, so that the program may fork afterwards. The supervisor of the rack is a child process: wait for own
/// children by their numbers.
///
/// Errors: BAD_INPUT, COULD_NOT_START, RACK_FAILED. No process of the rack remains then.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_rack_up(options: *const RackOptions, rack: *mut RackHandle) -> ErrorCode {
    with_pointers!({
        let rack = Out::new(rack)?;
        let (options, program) = read_options(&versioned(options)?)?;
        let status = standing::up(&options, &program)?;
        rack.set(handles::add(Arc::new(RackName(status.name)))?);
        Ok(())
    })
}

/// Reads the options of a rack.
///
/// # Safety
/// Each pointer is null or valid, as the description of its field says.
unsafe fn read_options(options: &RackOptions) -> Result<(UpOptions, Program), Failure> {
    // SAFETY: needed because the texts are memory of C. The caller promises that they are valid.
    let (file, name, wire, faults, logs, program, vacant, set) = unsafe {
        (
            text(options.file)?,
            optional_text(options.name)?,
            optional_text(options.wire)?,
            optional_text(options.faults)?,
            optional_text(options.log_directory)?,
            optional_text(options.program)?,
            texts(options.vacant, options.vacant_count)?,
            texts(options.settings, options.settings_count)?,
        )
    };
    let known = |wire: &str| {
        WireKind::from_name(wire).ok_or_else(|| Failure::argument(format!("there is no wire {wire:?}")))
    };
    let mut up = UpOptions {
        file: file.into(),
        vacant,
        command: "rackloom_rack_up".to_owned(),
        ..UpOptions::default()
    };
    up.name = name.map(str::to_owned);
    up.overrides.set = set;
    up.processes.wire = wire.map(known).transpose()?;
    up.processes.force_wire = options.force_wire != 0;
    up.processes.faults = faults.map(PathBuf::from);
    up.logs.directory = logs.map(PathBuf::from);
    Ok((up, Program::at(program.unwrap_or("rackloom"))))
}

/// Copies an array of texts.
///
/// # Safety
/// `list` is null or points to `count` texts.
unsafe fn texts(list: *const *const c_char, count: u64) -> Result<Vec<String>, Failure> {
    // SAFETY: needed because array and texts are memory of C. The caller promises that they are valid.
    unsafe { array(list, count)?.iter().map(|one| text(*one).map(str::to_owned)).collect() }
}

/// Makes a handle of a standing rack of this user, by its name.
///
/// Errors: BAD_INPUT if no rack of this name is up.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_rack_connect(name: *const c_char, rack: *mut RackHandle) -> ErrorCode {
    with_pointers!({
        let rack = Out::new(rack)?;
        rack.set(handles::add(Arc::new(RackName(StandingRack::named(text(name)?)?.name().to_owned())))?);
        Ok(())
    })
}

/// Makes a text of the names of all standing racks of this user, one in each line.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_rack_names(names: *mut TextHandle) -> ErrorCode {
    with_pointers!({
        let names = Out::new(names)?;
        let lines: String = StandingRack::all()?.iter().map(|rack| format!("{}\n", rack.name())).collect();
        names.set(add_text(lines)?);
        Ok(())
    })
}

/// Copies the name of a standing rack. `length` may be null and gets the length without the final zero.
///
/// Errors: BUFFER_TOO_SMALL.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_rack_name(
    rack: RackHandle,
    buffer: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> ErrorCode {
    with_pointers!({ put_text(&handles::get::<Arc<RackName>>(rack)?.0, buffer, capacity, length) })
}

/// Makes a text of the status of a rack, as JSON: that of `rackloom status --json` for one rack, without rates.
///
/// Errors: BAD_INPUT if no rack of this name is up; RACK_FAILED if the rack does not answer.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_rack_status(rack: RackHandle, status: *mut TextHandle) -> ErrorCode {
    with_pointers!({
        let status = Out::new(status)?;
        status.set(add_text(json(&connect(rack)?.status()?)?)?);
        Ok(())
    })
}

fn json(value: &impl serde::Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|error| Failure::new(ErrorCode::Other, error.to_string()))
}

/// Injects the faults of a script, given as text. Returns once the members have received them. `events` may be null and gets the number of events.
///
/// Errors: BAD_INPUT with the mistakes of the script; RACK_FAILED.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_rack_inject(
    rack: RackHandle,
    script: *const c_char,
    events: *mut u64,
) -> ErrorCode {
    with_pointers!({
        let (events, script) = (Out::optional(events)?, text(script)?.to_owned());
        let injected = connect(rack)?.inject(script, false)?;
        if let Some(events) = events {
            events.set(injected as u64);
        }
        Ok(())
    })
}

/// Makes one member leave in order. The rack stays, and the seat is vacant afterwards.
///
/// Errors: BAD_INPUT if there is no such seat; RACK_FAILED.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_rack_leave(rack: RackHandle, seat: *const c_char) -> ErrorCode {
    with_pointers!({
        let seat = text(seat)?;
        Ok(connect(rack)?.leave(seat)?)
    })
}

/// Ends a rack. Returns once its supervisor has ended. `report` may be null and gets a text with the report, as JSON. The handle stays and must be freed.
///
/// Errors: BAD_INPUT if no rack of this name is up; RACK_FAILED if the rack does not answer.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_rack_down(rack: RackHandle, report: *mut TextHandle) -> ErrorCode {
    with_pointers!({
        let report = Out::optional(report)?;
        let ended = connect(rack)?.down()?;
        if let Some(report) = report {
            report.set(add_text(json(&ended)?)?);
        }
        Ok(())
    })
}

/// Frees the handle of a rack. The rack stays.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_rack_free(rack: RackHandle) -> ErrorCode {
    guard::call(|| handles::free::<Arc<RackName>>(rack))
}
