//! Reads `expect`: expectations that the report compares the run with.

use std::collections::BTreeSet;

use crate::model::jobs::expect::Expectations;
use crate::model::members::shape::Shape;
use crate::read::fields::{Fields, Reader};
use crate::read::mistake::{Complaint, quoted};
use crate::read::sections::topology::member_at;
use crate::schema;

/// Reads the expectations. Without a shape, names are not looked up.
pub(crate) fn read(reader: &mut Reader<'_>, rack: &Fields<'_>, shape: Option<&Shape>) -> Expectations {
    let fields = reader.open_under(rack, "expect", &schema::EXPECT);
    let lost_path = fields.path_of("nodes_lost");
    let mut nodes_lost = BTreeSet::new();
    for item in reader.items(fields.find("nodes_lost"), &lost_path) {
        let Some(member) = shape.and_then(|shape| member_at(reader, shape, item, &lost_path)) else {
            continue;
        };
        if !nodes_lost.insert(member)
            && let Ok(name) = reader.scalar(item, &lost_path)
        {
            let complaint = Complaint::about(format!("{} is listed here twice", quoted(name)));
            reader.complain(item.position, complaint.hint("name each member once"));
        }
    }
    let nodes_lost = nodes_lost.into_iter().collect();
    Expectations { nodes_lost, ..reader.section(&fields, Expectations::default()) }
}
