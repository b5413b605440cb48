//! Requests of collectives on arrays of the program, by the form of the arrays: whole, in parts of equal length, in place, in parts of own lengths.

use rackloom::fabric::{Element, Group, GroupRequest, NodeId, Reducer};

use super::record::{
    CollectiveRecord, RACKLOOM_ALL_GATHER, RACKLOOM_ALL_REDUCE, RACKLOOM_ALL_TO_ALL, RACKLOOM_BROADCAST,
    RACKLOOM_EXCLUSIVE_SCAN, RACKLOOM_GATHER, RACKLOOM_REDUCE, RACKLOOM_REDUCE_SCATTER, RACKLOOM_SCAN,
    RACKLOOM_SCATTER,
};
use crate::codes::Failure;
use crate::operation::unknown;
use crate::pointers::{self, array, array_mut, check_apart};

/// Request of a collective, which keeps the arrays until it has ended or is dropped.
type Made = Result<GroupRequest<'static>, Failure>;

/// Makes the request of a collective on arrays. `reducer` is called for a collective that reduces.
///
/// # Safety
/// The arrays are valid, and nothing else accesses the output, until the request has ended or is dropped.
pub(super) unsafe fn on_arrays<T: Element, R: Reducer<T>>(
    group: &Group,
    record: &CollectiveRecord,
    reducer: impl FnOnce() -> Result<R, Failure>,
) -> Made {
    let arrays = Arrays { group, record };
    // SAFETY: needed because the arrays are memory of C. The caller makes the promise.
    unsafe {
        match (record.is_whole(), record.is_in_place()?, record.part_counts.is_null()) {
            (true, _, true) => arrays.whole(reducer),
            (false, true, true) => arrays.in_place(reducer),
            (false, false, true) => arrays.equal_parts(reducer),
            (false, false, false) => arrays.own_parts(reducer),
            (true, _, false) => {
                Err(Failure::argument("the collective has no parts, and no lengths of parts"))
            }
            (false, true, false) => Err(Failure::argument("a collective in place has parts of equal length")),
        }
    }
}

/// Collective on arrays of the program.
struct Arrays<'a> {
    group: &'a Group,
    record: &'a CollectiveRecord,
}

impl Arrays<'_> {
    fn root(&self) -> Result<NodeId, Failure> {
        pointers::node(self.record.root)
    }

    /// Returns the array of a collective that has only one.
    ///
    /// # Safety
    /// That of [`on_arrays`].
    unsafe fn only<T: Element>(&self) -> Result<&'static mut [T], Failure> {
        if !self.record.input.is_null() {
            return Err(Failure::argument("the collective is in place, and has no input"));
        }
        // SAFETY: needed because the array is memory of C. The caller promises that it is valid and not accessed otherwise.
        unsafe { array_mut(self.record.output.cast(), self.record.output_count) }
    }

    /// Returns input and output.
    ///
    /// # Safety
    /// That of [`on_arrays`].
    unsafe fn both<T: Element>(&self) -> Result<(&'static [T], &'static mut [T]), Failure> {
        let record = self.record;
        let bytes = |count: u64| count.saturating_mul(size_of::<T>() as u64);
        check_apart(
            (record.input, bytes(record.input_count)),
            (record.output.cast_const(), bytes(record.output_count)),
        )?;
        // SAFETY: needed because the arrays are memory of C. The caller promises that they are valid and not accessed otherwise; they are apart.
        unsafe {
            let input = array(record.input.cast(), record.input_count)?;
            Ok((input, array_mut(record.output.cast(), record.output_count)?))
        }
    }

    /// Makes the request of a collective in which every member has the whole array.
    ///
    /// # Safety
    /// That of [`on_arrays`].
    unsafe fn whole<T: Element, R: Reducer<T>>(&self, reducer: impl FnOnce() -> Result<R, Failure>) -> Made {
        // SAFETY: needed because the array is memory of C. The caller makes the promise.
        let (group, values) = (self.group, unsafe { self.only::<T>() }?);
        Ok(match self.record.kind {
            RACKLOOM_ALL_REDUCE => group.all_reduce(values, reducer()?),
            RACKLOOM_REDUCE => group.reduce(values, reducer()?, self.root()?),
            RACKLOOM_BROADCAST => group.broadcast(values, self.root()?),
            RACKLOOM_SCAN => group.scan(values, reducer()?),
            RACKLOOM_EXCLUSIVE_SCAN => group.exclusive_scan(values, reducer()?),
            kind => return Err(unknown("kind of collective", kind)),
        })
    }

    /// Makes the request of a collective with parts of one length.
    ///
    /// # Safety
    /// That of [`on_arrays`].
    unsafe fn equal_parts<T: Element, R: Reducer<T>>(
        &self,
        reducer: impl FnOnce() -> Result<R, Failure>,
    ) -> Made {
        // SAFETY: needed because the arrays are memory of C. The caller makes the promise.
        let (group, (input, output)) = (self.group, unsafe { self.both::<T>() }?);
        Ok(match self.record.kind {
            RACKLOOM_ALL_GATHER => group.all_gather(input, output),
            RACKLOOM_REDUCE_SCATTER => group.reduce_scatter(input, output, reducer()?),
            RACKLOOM_ALL_TO_ALL => group.all_to_all(input, output),
            RACKLOOM_GATHER => group.gather(input, output, self.root()?),
            RACKLOOM_SCATTER => group.scatter(input, output, self.root()?),
            kind => return Err(unknown("kind of collective", kind)),
        })
    }

    /// Makes the request of a collective with parts of one length in one array.
    ///
    /// # Safety
    /// That of [`on_arrays`].
    unsafe fn in_place<T: Element, R: Reducer<T>>(
        &self,
        reducer: impl FnOnce() -> Result<R, Failure>,
    ) -> Made {
        // SAFETY: needed because the array is memory of C. The caller makes the promise.
        let (group, values) = (self.group, unsafe { self.only::<T>() }?);
        Ok(match self.record.kind {
            RACKLOOM_ALL_GATHER => group.all_gather_in_place(values),
            RACKLOOM_REDUCE_SCATTER => group.reduce_scatter_in_place(values, reducer()?),
            RACKLOOM_ALL_TO_ALL => group.all_to_all_in_place(values),
            RACKLOOM_GATHER => group.gather_in_place(values, self.root()?),
            RACKLOOM_SCATTER => group.scatter_in_place(values, self.root()?),
            kind => return Err(unknown("kind of collective", kind)),
        })
    }

    /// Makes the request of a collective with parts of listed lengths.
    ///
    /// # Safety
    /// That of [`on_arrays`].
    unsafe fn own_parts<T: Element, R: Reducer<T>>(
        &self,
        reducer: impl FnOnce() -> Result<R, Failure>,
    ) -> Made {
        // SAFETY: needed because the arrays are memory of C. The caller makes the promise. The lengths are copied here.
        let ((input, output), counts) = unsafe {
            (self.both::<T>()?, array::<u64>(self.record.part_counts, self.record.part_counts_length)?)
        };
        let group = self.group;
        // A length that no array can have is too long as well.
        let counts: Vec<_> =
            counts.iter().map(|count| usize::try_from(*count).unwrap_or(usize::MAX)).collect();
        Ok(match self.record.kind {
            RACKLOOM_ALL_GATHER => group.all_gather_v(input, output, &counts),
            RACKLOOM_REDUCE_SCATTER => group.reduce_scatter_v(input, output, &counts, reducer()?),
            RACKLOOM_ALL_TO_ALL => group.all_to_all_v(input, output, &counts),
            RACKLOOM_GATHER => group.gather_v(input, output, &counts, self.root()?),
            RACKLOOM_SCATTER => group.scatter_v(input, output, &counts, self.root()?),
            kind => return Err(unknown("kind of collective", kind)),
        })
    }
}
