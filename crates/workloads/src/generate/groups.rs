//! Groups of ranks along the dimensions of a training step.

use std::collections::BTreeMap;

use crate::generate::degrees::{Degrees, Position};
use crate::generate::refused::Refused;
use crate::model::Group;

/// Group of each rank in each kind of collective; `None` where a group would have one rank.
#[derive(Debug)]
pub(super) struct Groups {
    /// All groups.
    pub(super) list: Vec<Group>,
    /// Ranks that divide matrices.
    pub(super) tensor: Option<Members>,
    /// Ranks that exchange tokens between experts.
    pub(super) expert: Option<Members>,
    /// Ranks with equal parameters outside of experts.
    pub(super) shared: Option<Members>,
    /// Ranks with equal parameters of experts.
    pub(super) experts: Option<Members>,
}

/// Index of the group of each rank.
pub(super) type Members = Vec<u16>;

impl Groups {
    /// Builds the groups of all dimensions with more than one rank.
    pub(super) fn new(degrees: &Degrees) -> Result<Self, Refused> {
        let mut list = Vec::new();
        let mut along = |size: u32, first: fn(Position) -> Position| {
            if size > 1 { add(&mut list, degrees, first).map(Some) } else { Ok(None) }
        };
        let Degrees { data, tensor, expert, .. } = *degrees;
        let tensor = along(tensor, |position| Position { tensor: 0, ..position })?;
        let exchange = along(expert, |position| Position { expert: 0, ..position })?;
        let shared = along(data.max(expert), |position| Position { data: 0, expert: 0, ..position })?;
        // Without experts all parameters are shared.
        let experts = along(if expert > 1 { data } else { 1 }, |position| Position { data: 0, ..position })?;
        Ok(Self { list, tensor, expert: exchange, shared, experts })
    }
}

/// Adds the groups of ranks for which `first` returns the same position.
fn add(
    list: &mut Vec<Group>,
    degrees: &Degrees,
    first: fn(Position) -> Position,
) -> Result<Members, Refused> {
    let ranks = degrees.ranks() as u32;
    let mut groups = BTreeMap::<u32, Vec<u16>>::new();
    for rank in 0..ranks {
        groups.entry(degrees.rank(first(degrees.position(rank)))).or_default().push(rank as u16);
    }
    let mut members = vec![0; ranks as usize];
    for ranks in groups.into_values() {
        let index = u16::try_from(list.len()).map_err(|_| {
            Refused::new("the degrees make more than 65536 groups", "use fewer ranks, or larger degrees")
        })?;
        ranks.iter().for_each(|rank| members[usize::from(*rank)] = index);
        list.push(Group { ranks });
    }
    Ok(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_dimension_has_its_groups() {
        let degrees = Degrees { data: 2, tensor: 2, pipeline: 2, ..Degrees::default() };
        let groups = Groups::new(&degrees).unwrap();
        let ranks: Vec<_> = groups.list.iter().map(|group| group.ranks.clone()).collect();
        let expected: [&[u16]; 8] = [&[0, 1], &[2, 3], &[4, 5], &[6, 7], &[0, 2], &[1, 3], &[4, 6], &[5, 7]];
        assert_eq!(ranks, expected);
        assert_eq!(groups.shared.as_deref(), Some(&[4, 5, 4, 5, 6, 7, 6, 7][..]));
        assert_eq!((groups.expert, groups.experts), (None, None));
    }

    #[test]
    fn experts_exchange_tokens_within_a_replica_and_gradients_between_replicas() {
        let degrees = Degrees { data: 2, expert: 2, ..Degrees::default() };
        let groups = Groups::new(&degrees).unwrap();
        let of = |members: Option<Members>, rank: usize| {
            groups.list[usize::from(members.unwrap()[rank])].ranks.clone()
        };
        assert_eq!(of(groups.expert, 3), [2, 3]);
        assert_eq!(of(groups.shared, 3), [0, 1, 2, 3]);
        assert_eq!(of(groups.experts, 3), [1, 3]);
        assert_eq!(groups.tensor, None);
    }
}
