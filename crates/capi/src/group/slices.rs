//! Arguments of collectives on slices of regions.

use rackloom::fabric::{Collective, ElementType, Group, ReduceOperation, Slice};

use super::record::{
    CollectiveRecord, RACKLOOM_ALL_GATHER, RACKLOOM_ALL_REDUCE, RACKLOOM_ALL_TO_ALL, RACKLOOM_BROADCAST,
    RACKLOOM_EXCLUSIVE_SCAN, RACKLOOM_GATHER, RACKLOOM_REDUCE, RACKLOOM_REDUCE_SCATTER, RACKLOOM_SCAN,
    RACKLOOM_SCATTER, element, reduction,
};
use crate::codes::{ErrorCode, Failure};
use crate::operation::unknown;
use crate::pointers;
use crate::region::LocalSlice;

/// Arguments of a collective on slices.
pub(super) struct SliceArguments {
    pub(super) collective: Collective,
    pub(super) operation: ReduceOperation,
    pub(super) element: ElementType,
    pub(super) input: Slice,
    pub(super) output: Slice,
}

impl SliceArguments {
    /// Reads the description of a collective that has slices.
    pub(super) fn read(group: &Group, record: &CollectiveRecord) -> Result<Self, Failure> {
        if record.is_in_place()? || !record.part_counts.is_null() || record.custom_reduction != 0 {
            let text = "in_place, part_counts and custom_reduction are for arrays, not for slices of regions";
            return Err(Failure::argument(text));
        }
        let collective = collective(group, record)?;
        let operation = if reduces(collective) { reduction(record.reduction)? } else { ReduceOperation::Sum };
        // A slice that is not given is empty, or that of a collective in place.
        let (input, output) = match (record.input_slice, record.output_slice) {
            (LocalSlice { region: 0, .. }, output) => (output, output),
            (input, LocalSlice { region: 0, .. }) => (input, LocalSlice { length: 0, ..input }),
            both => both,
        };
        let element = element(record.element)?;
        Ok(Self { collective, operation, element, input: input.read()?, output: output.read()? })
    }
}

const fn reduces(collective: Collective) -> bool {
    matches!(
        collective,
        Collective::AllReduce
            | Collective::Reduce { .. }
            | Collective::ReduceScatter
            | Collective::Scan
            | Collective::ExclusiveScan
    )
}

fn collective(group: &Group, record: &CollectiveRecord) -> Result<Collective, Failure> {
    let root = || {
        let root = pointers::node(record.root)?;
        let rank = group.members().iter().position(|member| *member == root);
        rank.ok_or_else(|| Failure::new(ErrorCode::Invalid, "the root is not a member of the group"))
    };
    Ok(match record.kind {
        RACKLOOM_ALL_REDUCE => Collective::AllReduce,
        RACKLOOM_REDUCE => Collective::Reduce { root: root()? },
        RACKLOOM_BROADCAST => Collective::Broadcast { root: root()? },
        RACKLOOM_ALL_GATHER => Collective::AllGather,
        RACKLOOM_REDUCE_SCATTER => Collective::ReduceScatter,
        RACKLOOM_ALL_TO_ALL => Collective::AllToAll,
        RACKLOOM_GATHER => Collective::Gather { root: root()? },
        RACKLOOM_SCATTER => Collective::Scatter { root: root()? },
        RACKLOOM_SCAN => Collective::Scan,
        RACKLOOM_EXCLUSIVE_SCAN => Collective::ExclusiveScan,
        kind => return Err(unknown("kind of collective", kind)),
    })
}
