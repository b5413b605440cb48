//! Handles: numbers that stand for objects, so that misuse is an error and never an access to freed memory.
//!
//! A handle has the kind of its object, the slot and the generation of the slot. A slot gets the next generation when its handle is freed, so
//! a freed handle is recognised although the slot is used again. A slot whose generations are used up is never used again.
//!
//! A table holds objects of one kind. A call takes a clone of the object and works without the table: an object that is freed meanwhile ends
//! with the last call that uses it. Slots are in blocks that never move, and each has its own lock.

use std::ffi::CString;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

use rackloom::fabric::{
    CommandQueue, Ended, Fabric, Group, MemoryPool, Node, NodePool, PeerRegion, Pending,
    PersistentCollective, Queue, Region,
};

use crate::callback::CallerReduction;
use crate::codes::{ErrorCode, Failure};
use crate::driving::Driving;
use crate::in_progress::InProgress;

const FIRST_BLOCK: usize = 64;
/// Number of blocks. Each is twice as long as the one before, so the slots of all of them have numbers below 2^24.
const BLOCKS: usize = 18;
const SLOT_BITS: u32 = 24;
const _: () = assert!(FIRST_BLOCK * ((1 << BLOCKS) - 1) <= 1 << SLOT_BITS);

/// Slots that are allocated together.
type Block<T> = Box<[Mutex<Slot<T>>]>;

/// Objects of one kind.
pub(crate) struct Table<T> {
    blocks: [OnceLock<Block<T>>; BLOCKS],
    free: Mutex<Free>,
}

struct Slot<T> {
    /// Generation of the current handle, or of the next one.
    generation: u32,
    object: Option<T>,
}

struct Free {
    slots: Vec<u32>,
    /// Number of slots that were used at least once.
    used: u32,
}

/// Kind of object that has handles.
pub(crate) trait Object: Clone + Send + Sync + 'static {
    /// Number of the kind, in the upper byte of handles.
    const KIND: u8;
    /// Name for errors.
    const NAME: &'static str;
    /// Table of the objects of this kind.
    fn table() -> &'static Table<Self>;
}

/// Name of a standing rack.
pub(crate) struct RackName(pub(crate) String);

/// Object that one thread at a time may use.
pub(crate) struct Exclusive<T>(Mutex<Option<T>>);

impl<T> Exclusive<T> {
    pub(crate) fn new(object: T) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Some(object))))
    }

    /// Takes the object for the calling thread. Fails if another thread has it, or if a call on it has panicked.
    pub(crate) fn enter(&self) -> Result<MutexGuard<'_, Option<T>>, Failure> {
        self.0.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => Failure::new(
                ErrorCode::InUse,
                "another thread is using the object; hint: one thread at a time",
            ),
            TryLockError::Poisoned(_) => gone(),
        })
    }

    /// Calls `act` with the object, for the calling thread alone.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut T) -> Result<R, Failure>) -> Result<R, Failure> {
        let mut object = self.enter()?;
        object.as_mut().map_or_else(|| Err(gone()), act)
    }
}

/// Object that threads use one after another.
pub(crate) struct Shared<T>(Mutex<T>);

impl<T> Shared<T> {
    pub(crate) fn new(object: T) -> Arc<Self> {
        Arc::new(Self(Mutex::new(object)))
    }

    /// Waits until no other thread uses the object, and calls `act` with it. Fails if a call on it has panicked.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut T) -> Result<R, Failure>) -> Result<R, Failure> {
        act(&mut *self.0.lock().map_err(|_| gone())?)
    }
}

fn gone() -> Failure {
    Failure::new(ErrorCode::Internal, "an earlier call on the object has failed inside the library")
}

macro_rules! objects {
    ($($object:ty: $kind:literal $name:literal,)+) => {
        $(impl Object for $object {
            const KIND: u8 = $kind;
            const NAME: &'static str = $name;

            fn table() -> &'static Table<Self> {
                static TABLE: Table<$object> = Table::new();
                &TABLE
            }
        })+

        /// Returns the name of the kind in a handle.
        const fn name_of(kind: u8) -> Option<&'static str> {
            match kind {
                $($kind => Some($name),)+
                _ => None,
            }
        }
    };
}

objects! {
    Arc<Fabric>: 1 "fabric",
    Arc<RackName>: 2 "rack",
    Node: 3 "node",
    Region: 4 "region",
    Arc<PeerRegion>: 5 "peer region",
    Arc<Exclusive<Pending<Ended>>>: 6 "pending operation",
    Arc<Queue>: 7 "queue",
    Arc<Exclusive<Driving>>: 8 "driver",
    Arc<Group>: 9 "group",
    Arc<Exclusive<InProgress>>: 10 "collective in progress",
    Arc<CString>: 11 "text",
    Arc<CallerReduction>: 12 "reduction",
    Arc<PersistentCollective>: 13 "persistent collective",
    MemoryPool: 14 "pool",
    Arc<Shared<NodePool>>: 15 "pool of blocks",
    Arc<CommandQueue>: 16 "ring of commands",
}

impl<T> Table<T> {
    const fn new() -> Self {
        Self {
            blocks: [const { OnceLock::new() }; BLOCKS],
            free: Mutex::new(Free { slots: Vec::new(), used: 0 }),
        }
    }

    /// Returns the slot of this number, if it was used at least once.
    fn slot(&self, number: u32) -> Option<&Mutex<Slot<T>>> {
        let (block, index) = place(number);
        self.blocks.get(block)?.get()?.get(index)
    }

    fn slot_or_new(&self, number: u32) -> Option<&Mutex<Slot<T>>> {
        let (block, index) = place(number);
        let new = || {
            let slot = || Mutex::new(Slot { generation: 1, object: None });
            (0..FIRST_BLOCK << block).map(|_| slot()).collect()
        };
        self.blocks.get(block)?.get_or_init(new).get(index)
    }

    fn free_list(&self) -> MutexGuard<'_, Free> {
        // Every change of the list is one step.
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns block and index of a slot. Block `b` begins at slot `FIRST_BLOCK * (2^b - 1)`.
const fn place(number: u32) -> (usize, usize) {
    let scaled = number as usize / FIRST_BLOCK + 1;
    let block = scaled.ilog2() as usize;
    (block, number as usize - FIRST_BLOCK * ((1 << block) - 1))
}

fn lock<T>(slot: &Mutex<Slot<T>>) -> MutexGuard<'_, Slot<T>> {
    // Nothing that can panic runs under the lock except clones of shared pointers.
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps an object, and returns its handle.
pub(crate) fn add<T: Object>(object: T) -> Result<u64, Failure> {
    let table = T::table();
    let number = {
        let mut free = table.free_list();
        free.slots.pop().unwrap_or_else(|| {
            let next = free.used;
            free.used = next.saturating_add(1);
            next
        })
    };
    let slot = table.slot_or_new(number).ok_or_else(|| {
        let text = format!("there are too many handles of the kind {}; hint: free handles", T::NAME);
        Failure::new(ErrorCode::TooManyHandles, text)
    })?;
    let mut slot = lock(slot);
    slot.object = Some(object);
    Ok((u64::from(T::KIND) << 56) | (u64::from(number) << 32) | u64::from(slot.generation))
}

/// Returns the object of a handle.
pub(crate) fn get<T: Object>(handle: u64) -> Result<T, Failure> {
    let (slot, generation) = find::<T>(handle)?;
    let slot = lock(slot);
    match &slot.object {
        Some(object) if slot.generation == generation => Ok(object.clone()),
        _ => Err(missing::<T>(handle, generation < slot.generation)),
    }
}

/// Ends a handle, and returns its object. The caller drops it, which may take time.
pub(crate) fn remove<T: Object>(handle: u64) -> Result<T, Failure> {
    let (slot, generation) = find::<T>(handle)?;
    let (object, is_usable) = {
        let mut slot = lock(slot);
        let object = if slot.generation == generation { slot.object.take() } else { None };
        let object = object.ok_or_else(|| missing::<T>(handle, generation < slot.generation))?;
        slot.generation = slot.generation.saturating_add(1);
        (object, slot.generation < u32::MAX)
    };
    if is_usable {
        T::table().free_list().slots.push(number_of(handle));
    }
    Ok(object)
}

/// Ends a handle, and drops its object.
pub(crate) fn free<T: Object>(handle: u64) -> Result<(), Failure> {
    remove::<T>(handle).map(drop)
}

const fn number_of(handle: u64) -> u32 {
    ((handle >> 32) as u32) & ((1 << SLOT_BITS) - 1)
}

/// Returns the slot and the generation of a handle of this kind.
fn find<T: Object>(handle: u64) -> Result<(&'static Mutex<Slot<T>>, u32), Failure> {
    let kind = (handle >> 56) as u8;
    if kind != T::KIND {
        let Some(other) = name_of(kind) else { return Err(missing::<T>(handle, false)) };
        let text = format!("{handle:#x} is a {other}, and a {} is required", T::NAME);
        return Err(Failure::new(ErrorCode::WrongHandleKind, text));
    }
    let slot = T::table().slot(number_of(handle)).ok_or_else(|| missing::<T>(handle, false))?;
    Ok((slot, handle as u32))
}

fn missing<T: Object>(handle: u64, was_freed: bool) -> Failure {
    if was_freed && handle as u32 != 0 {
        let text = format!("the {} {handle:#x} was freed before", T::NAME);
        return Failure::new(ErrorCode::FreedHandle, text);
    }
    Failure::new(ErrorCode::BadHandle, format!("{handle:#x} is no {}", T::NAME))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> Arc<CString> {
        Arc::new(CString::new(value).expect("no zero"))
    }

    fn code<T>(result: Result<T, Failure>) -> ErrorCode {
        result.map_or_else(|failure| failure.code, |_| ErrorCode::Ok)
    }

    #[test]
    fn slots_fill_blocks_without_gaps() {
        let mut expected =
            (0..BLOCKS).flat_map(|block| (0..FIRST_BLOCK << block).map(move |index| (block, index)));
        for number in 0..100_000 {
            assert_eq!(Some(place(number)), expected.next());
        }
        let total = (FIRST_BLOCK * ((1 << BLOCKS) - 1)) as u32;
        assert_eq!(place(total - 1), (BLOCKS - 1, (FIRST_BLOCK << (BLOCKS - 1)) - 1));
    }

    #[test]
    fn a_freed_handle_is_recognised_when_its_slot_is_used_again() {
        let first = add(text("first")).expect("a handle");
        free::<Arc<CString>>(first).expect("it is there");
        // Other tests take slots too, so the slot is not always the next one.
        let mut kept = Vec::new();
        let again = loop {
            let handle = add(text("second")).expect("a handle");
            kept.push(handle);
            if number_of(handle) == number_of(first) {
                break handle;
            }
        };
        assert_ne!(first, again);
        assert_eq!(code(get::<Arc<CString>>(first)), ErrorCode::FreedHandle);
        assert_eq!(code(free::<Arc<CString>>(first)), ErrorCode::FreedHandle);
        assert_eq!(get::<Arc<CString>>(again).expect("it is there").as_bytes(), b"second");
        kept.into_iter().for_each(|handle| free::<Arc<CString>>(handle).expect("it is there"));
    }

    #[test]
    fn numbers_that_are_no_handles_are_refused() {
        let handle = add(text("a")).expect("a handle");
        for bad in [0, 1, u64::MAX, handle + 1, handle & !0xffff_ffff, (11 << 56) | (0xff_ffff << 32) | 1] {
            assert_eq!(code(get::<Arc<CString>>(bad)), ErrorCode::BadHandle, "{bad:#x}");
        }
        assert_eq!(code(get::<Node>(handle)), ErrorCode::WrongHandleKind);
        free::<Arc<CString>>(handle).expect("it is there");
    }

    #[test]
    fn a_slot_without_generations_is_not_used_again() {
        let handle = add(text("last")).expect("a handle");
        let number = number_of(handle);
        let table = <Arc<CString> as Object>::table();
        lock(table.slot(number).expect("it is used")).generation = u32::MAX - 1;
        let last = (handle & !0xffff_ffff) | u64::from(u32::MAX - 1);
        free::<Arc<CString>>(last).expect("it is there");
        assert!(!table.free_list().slots.contains(&number));
        assert_eq!(code(get::<Arc<CString>>(last)), ErrorCode::FreedHandle);
    }

    #[test]
    fn an_object_whose_call_has_panicked_is_an_error() {
        let shared = Shared::new(1);
        assert_eq!(code(shared.with(|_| Ok(()))), ErrorCode::Ok);
        let panicking = || crate::guard::call(|| shared.with(|_| panic!("in a call")));
        assert_eq!(panicking(), ErrorCode::Internal);
        assert_eq!(code(shared.with(|_| Ok(()))), ErrorCode::Internal);
    }

    #[test]
    fn handles_that_are_freed_by_other_threads_are_errors_and_nothing_else() {
        for _ in 0..200 {
            let handle = add(text("shared")).expect("a handle");
            let codes: Vec<_> = std::thread::scope(|scope| {
                let readers = [(); 3].map(|()| {
                    scope.spawn(move || {
                        loop {
                            match get::<Arc<CString>>(handle) {
                                Ok(text) => assert_eq!(text.as_bytes(), b"shared"),
                                Err(failure) => break failure.code,
                            }
                        }
                    })
                });
                free::<Arc<CString>>(handle).expect("it is there");
                readers.into_iter().map(|reader| reader.join().expect("no panic")).collect()
            });
            assert_eq!(codes, [ErrorCode::FreedHandle; 3]);
        }
    }
}
