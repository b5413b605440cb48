//! Devices: elements of the list of `ibv_get_device_list`.

use core::ffi::c_char;

use super::layout;

/// `struct ibv_device`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Device {
    /// Functions of drivers; unused here.
    pub operations: [usize; 2],
    /// Kind of node, [`super::constants::NODE_CA`].
    pub node_type: u32,
    /// Kind of transport, [`super::constants::TRANSPORT_IB`].
    pub transport_type: u32,
    /// Name of the device, with a zero at its end.
    pub name: [c_char; 64],
    /// Name of the character device.
    pub dev_name: [c_char; 64],
    /// Folder of the character device in sysfs.
    pub dev_path: [c_char; 256],
    /// Folder of the device in sysfs.
    pub ibdev_path: [c_char; 256],
}
layout!(Device, 664, node_type at 16, transport_type at 20, name at 24, dev_name at 88, dev_path at 152, ibdev_path at 408);
