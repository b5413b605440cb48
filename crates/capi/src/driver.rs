//! One busy thread: operations without a lock, completions in batches.

use std::ffi::c_void;
use std::sync::Arc;
use std::time::Duration;

use rackloom::fabric::{Driver, Error, Node, Region, Store};

use crate::codes::{CompletionRecord, ErrorCode, Failure};
use crate::driving::Driving;
use crate::guard::{self, with_pointers};
use crate::handles::{self, Exclusive};
use crate::node::NodeHandle;
use crate::operation::{Operation, request};
use crate::pointers::{Out, array, array_mut, put_end, versioned};
use crate::region::{Address, LocalSlice};

/// Handle of a driver.
pub type DriverHandle = u64;

type Driven = Arc<Exclusive<Driving>>;

/// One of several stores of a driver. The layout does not change.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct StoreRecord {
    /// Target of the store.
    pub target: Address,
    /// Bytes of the store. They are copied at once.
    pub data: *const c_void,
    /// Number of bytes, 1 to 16384.
    pub length: u64,
    /// Number for the completion.
    pub context: u64,
}

/// Gives a node to one thread that issues operations in a loop and polls in between. Operations then cost less, and completions come in batches. A node has
/// one driver at most. Other handles of the node still work.
///
/// Errors: INVALID if the node has a driver.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_driver_begin(node: NodeHandle, driver: *mut DriverHandle) -> ErrorCode {
    with_pointers!({
        let place = Out::new(driver)?;
        let driver = handles::get::<Node>(node)?.drive()?;
        place.set(handles::add(Exclusive::new(Driving::new(driver)))?);
        Ok(())
    })
}

/// Frees a driver. Operations in flight continue without a completion.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_driver_free(driver: DriverHandle) -> ErrorCode {
    guard::call(|| handles::free::<Driven>(driver))
}

fn with<T>(driver: DriverHandle, act: impl FnOnce(&mut Driver) -> Result<T, Failure>) -> Result<T, Failure> {
    handles::get::<Driven>(driver)?.with(|driving| act(&mut driving.driver))
}

/// Begins a store of 1 to 16384 bytes. The completion has `context`.
///
/// Errors: BUSY: poll, and try again; other errors that are known at once.
/// Threads: one at a time for each handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_driver_store(
    driver: DriverHandle,
    target: Address,
    data: *const c_void,
    length: u64,
    context: u64,
) -> ErrorCode {
    with_pointers!({
        let data = array::<u8>(data.cast(), length)?;
        with(driver, |driver| Ok(driver.store(target.read()?, data, context)?)).map(drop)
    })
}

/// Begins a store without a completion. The next flush reports a failure.
///
/// Errors: those of `rackloom_driver_store`.
/// Threads: one at a time for each handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_driver_store_posted(
    driver: DriverHandle,
    target: Address,
    data: *const c_void,
    length: u64,
) -> ErrorCode {
    with_pointers!({
        let data = array::<u8>(data.cast(), length)?;
        with(driver, |driver| Ok(driver.store_posted(target.read()?, data)?))
    })
}

/// Begins several stores, and sets `taken` to their number.
///
/// # Safety
/// `taken` is null or valid for writes.
unsafe fn begin_stores(
    driver: DriverHandle,
    stores: Vec<Store<'_>>,
    taken: *mut u64,
    begin: impl FnOnce(&mut Driver, &[Store<'_>]) -> Result<usize, Error>,
) -> Result<(), Failure> {
    let taken = Out::new(taken)?;
    let begun = with(driver, |driver| Ok(begin(driver, &stores)?))?;
    // SAFETY: needed because the number goes to memory of C. The caller promises that it is valid.
    unsafe { taken.set(begun as u64) };
    Ok(())
}

/// Reads an array of stores.
///
/// # Safety
/// `stores` is null or points to `count` stores, whose bytes are valid for reads.
unsafe fn read_stores<'a>(stores: *const StoreRecord, count: u64) -> Result<Vec<Store<'a>>, Failure> {
    let read = |one: &StoreRecord| -> Result<Store<'a>, Failure> {
        // SAFETY: needed because array and bytes are memory of C. The caller promises that they are valid.
        let data = unsafe { array::<u8>(one.data.cast(), one.length)? };
        Ok(Store::new(one.target.read()?, data, one.context))
    };
    // SAFETY: needed because the array is memory of C. The caller promises that it has `count` stores.
    unsafe { array(stores, count) }?.iter().map(read).collect()
}

/// Begins several stores in order. `taken` gets the number of stores that were accepted: fewer than `count` if the queue towards a peer is full; poll, and
/// continue from there.
///
/// Errors: those of `rackloom_driver_store`, if the first store is not accepted.
/// Threads: one at a time for each handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_driver_stores(
    driver: DriverHandle,
    stores: *const StoreRecord,
    count: u64,
    taken: *mut u64,
) -> ErrorCode {
    with_pointers!({ begin_stores(driver, read_stores(stores, count)?, taken, Driver::stores) })
}

/// Begins several stores in order without completions. The next flush reports a failure.
///
/// Errors: those of `rackloom_driver_stores`.
/// Threads: one at a time for each handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_driver_stores_posted(
    driver: DriverHandle,
    stores: *const StoreRecord,
    count: u64,
    taken: *mut u64,
) -> ErrorCode {
    with_pointers!({ begin_stores(driver, read_stores(stores, count)?, taken, Driver::stores_posted) })
}

/// Returns the region of a slice and its range.
fn range(slice: LocalSlice) -> Result<(Region, std::ops::Range<u64>), Failure> {
    let end = slice.offset.saturating_add(slice.length);
    Ok((handles::get(slice.region)?, slice.offset..end))
}

/// Begins a copy of a slice of this node to `target`. The completion has `context`.
///
/// Errors: those of `rackloom_driver_store`.
/// Threads: one at a time for each handle.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_driver_put(
    driver: DriverHandle,
    source: LocalSlice,
    target: Address,
    context: u64,
) -> ErrorCode {
    guard::call(|| {
        let (region, bytes) = range(source)?;
        with(driver, |driver| Ok(driver.put(&region, bytes, target.read()?, context)?)).map(drop)
    })
}

/// Begins a copy of a slice of this node to `target` without a completion. The slice must not change until a flush has ended, which reports a failure.
///
/// Errors: those of `rackloom_driver_store`.
/// Threads: one at a time for each handle.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_driver_put_posted(
    driver: DriverHandle,
    source: LocalSlice,
    target: Address,
) -> ErrorCode {
    guard::call(|| {
        let (region, bytes) = range(source)?;
        with(driver, |driver| Ok(driver.put_posted(&region, bytes, target.read()?)?))
    })
}

/// Begins a copy of bytes at `source` to a slice of this node. The completion has `context`.
///
/// Errors: those of `rackloom_driver_store`.
/// Threads: one at a time for each handle.
#[unsafe(no_mangle)]
pub extern "C" fn rackloom_driver_get(
    driver: DriverHandle,
    source: Address,
    into: LocalSlice,
    context: u64,
) -> ErrorCode {
    guard::call(|| {
        let (region, bytes) = range(into)?;
        with(driver, |driver| Ok(driver.get(source.read()?, &region, bytes, context)?)).map(drop)
    })
}

/// Begins any operation. The completion has `context`. `number` may be null and gets the number of the operation, for `rackloom_node_cancel`.
///
/// Errors: those of `rackloom_operation_submit`.
/// Threads: one at a time for each handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_driver_submit(
    driver: DriverHandle,
    operation: *const Operation,
    context: u64,
    number: *mut u64,
) -> ErrorCode {
    with_pointers!({
        let (number, operation) = (Out::optional(number)?, versioned(operation)?);
        let submitted = with(driver, |driver| {
            // The operation begins before the pointers of the caller end.
            let request = request(driver.node(), &operation)?;
            Ok(driver.submit(request, context)?)
        })?;
        if let Some(number) = number {
            number.set(submitted.0);
        }
        Ok(())
    })
}

/// Begins any operation and waits until it has ended. The next poll returns completions that arrive meanwhile. `end` may be null.
///
/// Errors: those of `rackloom_operation_wait`.
/// Threads: one at a time for each handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_driver_wait(
    driver: DriverHandle,
    operation: *const Operation,
    end: *mut CompletionRecord,
) -> ErrorCode {
    with_pointers!({
        let (end, operation) = (Out::optional(end)?, versioned(operation)?);
        let result = with(driver, |driver| {
            let request = request(driver.node(), &operation)?;
            Ok(driver.wait(request).map_err(Failure::from))
        })?;
        put_end(end, 0, result)
    })
}

/// Polls the node, and writes up to `capacity` completions. `count` gets their number. Waits for a completion at most for `timeout_ns`, and with 0 never.
///
/// Threads: one at a time for each handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackloom_driver_poll(
    driver: DriverHandle,
    timeout_ns: u64,
    completions: *mut CompletionRecord,
    capacity: u64,
    count: *mut u64,
) -> ErrorCode {
    with_pointers!({
        let (count, completions) = (Out::new(count)?, array_mut(completions, capacity)?);
        let timeout = Duration::from_nanos(timeout_ns);
        let filled =
            handles::get::<Driven>(driver)?.with(|driving| Ok(driving.poll(timeout, completions)))?;
        count.set(filled as u64);
        Ok(())
    })
}
