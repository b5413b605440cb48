//! Memory of the program at the end of its export: it is kept as long as an importer announces a copy.

use std::os::unix::net::UnixStream;
use std::sync::Weak;

use rackloom_protocol::Key;

use super::*;

const REGION: RegionId = RegionId(1);

/// An exporter with a region of the program and one importer, whose connection ends with the stream.
struct Rig {
    exporter: Exporter,
    owner: Weak<dyn Any + Send + Sync>,
    importer: Option<UnixStream>,
    control: Control,
    _directory: tempfile::TempDir,
}

fn rig() -> Rig {
    let directory = tempfile::tempdir().unwrap();
    let mut exporter = Exporter::listen(NodeId(0), directory.path(), Seats::default(), None).unwrap();
    let config =
        RegionConfig { region: REGION, length: 8, key: Key(7), access: Access::ALL, tenant: Tenant(0) };
    let owner: MemoryOwner = Arc::new(vec![0_u64]);
    let terms = ExportTerms { owner: Some(Arc::clone(&owner)), rights: Vec::new() };
    let weak = Arc::downgrade(&owner);
    exporter.export_bytes(config, SharedBytes::InProgram(4096), terms).unwrap();
    assert!(exporter.exports.is_empty(), "without a request there are no control pages");
    exporter.export_requested(REGION).unwrap();
    let export = exporter.exported(REGION).unwrap();
    let control = Control::open(export.control_file.as_fd()).unwrap();
    let (importer, socket) = UnixStream::pair().unwrap();
    let peer = socket::Credentials { process: 1, user: 0 };
    let state = State::Importing { region: REGION, by: NodeId(1), slot: 3 };
    exporter.connections.push(Connection { number: 9, socket: socket.into(), peer, state });
    Rig { exporter, owner: weak, importer: Some(importer), control, _directory: directory }
}

impl Rig {
    fn is_kept(&self) -> bool {
        self.owner.strong_count() > 0
    }
}

#[test]
fn memory_of_the_program_is_given_back_at_once_if_no_copy_is_in_progress() {
    let mut rig = rig();
    rig.control.enter(Slot::new(3));
    rig.control.leave(Slot::new(3));
    assert_eq!(rig.exporter.retire(REGION), None);
    assert!(!rig.is_kept());
    assert!(rig.exporter.connections.is_empty() && !rig.exporter.keeps_memory());
}

#[test]
fn memory_of_the_program_is_kept_until_the_copy_has_ended() {
    for leaves in [false, true] {
        let mut rig = rig();
        let generation = rig.control.generation();
        rig.control.enter(Slot::new(3));
        if leaves {
            assert!(rig.exporter.end());
        } else {
            rig.exporter.retire(REGION);
        }
        assert_ne!(rig.control.generation(), generation, "no further copy begins");
        assert_eq!(rig.exporter.regions_in_copies(), [REGION]);
        assert!(rig.is_kept());
        rig.control.leave(Slot::new(3));
        assert_eq!(rig.exporter.regions_in_copies(), []);
        assert!(!rig.is_kept());
    }
}

#[test]
fn an_importer_that_ends_in_a_copy_is_not_waited_for() {
    let mut rig = rig();
    rig.control.enter(Slot::new(3));
    rig.exporter.retire(REGION);
    assert_eq!(rig.exporter.regions_in_copies(), [REGION]);
    rig.importer = None;
    assert_eq!(rig.exporter.regions_in_copies(), []);
    assert!(!rig.is_kept());
}

#[test]
fn memory_of_the_program_that_was_never_requested_has_rights_and_ends() {
    let directory = tempfile::tempdir().unwrap();
    let mut exporter = Exporter::listen(NodeId(0), directory.path(), Seats::default(), None).unwrap();
    let config =
        RegionConfig { region: REGION, length: 8, key: Key(7), access: Access::ALL, tenant: Tenant(0) };
    let export = |exporter: &mut Exporter| {
        let terms = ExportTerms { owner: Some(Arc::new(())), rights: Vec::new() };
        exporter.export_bytes(config, SharedBytes::InProgram(4096), terms)
    };
    export(&mut exporter).unwrap();
    assert!(matches!(export(&mut exporter), Err(ExportError::AlreadyExported(REGION))));
    exporter.set_access(REGION, NodeId(4), Some(Access::NONE));
    exporter.set_awaited(REGION, false);
    exporter.export_requested(REGION).unwrap();
    let exported = exporter.exported(REGION).unwrap();
    assert_eq!(exported.terms.rights, [(NodeId(4), Access::NONE)]);
    assert!(!exported.control.is_awaited());
    exporter.retire(REGION);
    export(&mut exporter).unwrap();
    assert_eq!(exporter.regions(), [REGION]);
    exporter.retire(REGION);
    assert!(exporter.regions().is_empty());
}
