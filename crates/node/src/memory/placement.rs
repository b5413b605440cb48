//! System calls that implement [`MemoryOptions`], and those that read their effect back.
//!
//! A region has one [`Backing`]: a sealed file, its mapping, and the granted options. A backing can be exchanged for a new file *under the same
//! address*. This is how a peer that does not release a revoked mapping loses access: the peer keeps the old pages, and the owner continues in new
//! ones.
//!
//! This file changes no limit and no setting of the system.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use rustix::mm::{Advice, MlockFlags, madvise, mlock_with};
use rustix::process::{Resource, getrlimit};

use super::options::{Granted, MemoryOptions, PagePreference, Pages, Placement};
use super::system::{
    default_huge_page_bytes, huge_pages_refused, no_such_numa_node, read_smaps,
    transparent_huge_pages_refused,
};
use crate::mapping::{Mapping, sealed_memfd_with, whole_pages};
use crate::window::Window;

/// Number of words in a NUMA node mask. The kernel supports at most 1024 nodes.
const NODE_MASK_WORDS: usize = 16;

/// Flag that requests the policy of an address instead of the thread's (`linux/mempolicy.h`).
const MPOL_F_ADDR: libc::c_ulong = 2;

/// The file and the pages of one region.
#[derive(Debug)]
pub(super) struct Backing {
    pub(super) file: OwnedFd,
    pub(super) pages: Mapping,
    pub(super) granted: Granted,
}

impl Backing {
    /// Allocates zeroed pages for `length` bytes. The error names the requirement that failed.
    pub(super) fn new(length: u64, options: MemoryOptions) -> io::Result<Self> {
        let mut reasons = Vec::new();
        if options.pages == PagePreference::Huge {
            match Self::huge(length, options) {
                Ok(Ok(backing)) => return Ok(backing),
                Ok(Err(demand)) => return Err(demand),
                Err(cause) => reasons.push(huge_pages_refused(&cause)),
            }
        }
        let length = whole_pages(length).ok_or(io::ErrorKind::OutOfMemory)?;
        let file = sealed_memfd_with("rackloom-region", length, MemfdFlags::empty())?;
        let mut backing = mapped(file, Pages::Ordinary)?;
        backing.granted.reasons = reasons;
        backing.placed(options)
    }

    /// Allocates pages of the system's pool. The outer error is a preference that was not granted, the inner one a requirement that failed.
    ///
    /// The pool guarantees a number of pages. It does not guarantee that they are on the bound node, or that this process may have them. A missing
    /// page would end the process at the first touch, so the pages are touched now.
    fn huge(length: u64, options: MemoryOptions) -> io::Result<io::Result<Self>> {
        let backing = huge_file(length).and_then(|file| mapped(file, Pages::Huge))?;
        let placed = match backing.placed(MemoryOptions { touch: false, ..options }) {
            Ok(placed) => placed,
            Err(demand) => return Ok(Err(demand)),
        };
        placed.touch()?;
        Ok(Ok(placed))
    }

    /// Exchanges the file for a new one with the same bytes, mapped at the same address. Processes that have mapped the old file keep it and no
    /// longer share memory with this process. After an error nothing has changed. Pages that cannot be locked or bound again remain without that
    /// option (`granted` contains the reason).
    pub(super) fn move_to_fresh_file(&mut self, options: MemoryOptions) -> io::Result<()> {
        let plain = MemoryOptions { lock: false, touch: false, ..options };
        let fresh = Self::new(self.pages.length() as u64, plain)?;
        if fresh.pages.length() != self.pages.length() {
            return Err(io::Error::other("the fresh file is of another length"));
        }
        let length = self.pages.length();
        Window::new(&fresh.pages, length)
            .copy_from(0, Window::new(&self.pages, length), 0, length)
            .map_err(|_| io::Error::other("the fresh file cannot be written"))?;
        self.pages.replace(fresh.file.as_fd())?;
        let Self { file, pages, granted } = fresh;
        drop(pages);
        (self.file, self.granted) = (file, granted);
        if self.granted.pages != Pages::Huge && options.pages == PagePreference::Huge {
            self.advise_huge();
        }
        // Properties of the address instead of the file must be set again.
        if let Some(Err(cause)) = options.numa_node.map(|node| self.bind(node)) {
            self.granted.numa_node = None;
            self.granted.reasons.push(cause.to_string());
        }
        if options.lock {
            match self.lock(options.touch) {
                Ok(()) => self.granted.locked = true,
                Err(cause) => self.granted.reasons.push(cause.to_string()),
            }
        }
        Ok(())
    }

    /// Applies the options. Binding and locking come before touching, because the first touch decides on which node a page lies.
    fn placed(mut self, options: MemoryOptions) -> io::Result<Self> {
        if options.pages == PagePreference::Huge && self.granted.pages != Pages::Huge {
            self.advise_huge();
        }
        if let Some(node) = options.numa_node {
            self.bind(node)?;
            self.granted.numa_node = Some(node);
        }
        if options.lock {
            self.lock(options.touch)?;
            self.granted.locked = true;
        }
        if options.touch {
            self.touch()?;
        }
        Ok(self)
    }

    fn advise_huge(&mut self) {
        // SAFETY: needed because advice is given by address. The range is this mapping; the advice moves no byte.
        let advised =
            unsafe { madvise(self.pages.base().cast(), self.pages.length(), Advice::LinuxHugepage) };
        match advised {
            Ok(()) => {
                self.granted.pages = Pages::Advised;
                self.granted.reasons.extend(transparent_huge_pages_refused());
            }
            Err(cause) => self.granted.reasons.push(format!("transparent huge pages: {cause}")),
        }
    }

    fn lock(&self, now: bool) -> io::Result<()> {
        let flags = if now { MlockFlags::empty() } else { MlockFlags::ONFAULT };
        // SAFETY: needed because locking is done by address. The range is this mapping; no byte changes.
        unsafe { mlock_with(self.pages.base().cast(), self.pages.length(), flags) }.map_err(|cause| {
            let limit = getrlimit(Resource::Memlock).current;
            let limit = limit.map_or("none".to_owned(), |bytes| format!("{bytes} bytes"));
            let text = format!(
                "cannot lock {} bytes: {cause} (RLIMIT_MEMLOCK of this process: {limit}); hint: raise the limit on \
                 locked memory (`ulimit -l`) or do without locking",
                self.pages.length()
            );
            io::Error::new(io::Error::from(cause).kind(), text)
        })
    }

    fn touch(&self) -> io::Result<()> {
        // SAFETY: needed because pages are populated by address. The range is this mapping; no byte changes.
        let result =
            unsafe { madvise(self.pages.base().cast(), self.pages.length(), Advice::LinuxPopulateWrite) };
        result.map_err(|cause| {
            let text = format!("cannot put {} bytes in place: {cause}", self.pages.length());
            io::Error::new(io::Error::from(cause).kind(), text)
        })
    }

    fn bind(&self, node: u32) -> io::Result<()> {
        let mut mask = [0 as libc::c_ulong; NODE_MASK_WORDS];
        let bits = libc::c_ulong::BITS;
        let word = mask.get_mut((node / bits) as usize);
        *word.ok_or_else(|| no_such_numa_node(node, &io::ErrorKind::InvalidInput.into()))? |=
            1 << (node % bits);
        // SAFETY: needed because no library we use has this call. The range is this mapping, and the mask has the given length. Only the placement of
        // pages changes. The kernel uses one bit less than the count passed to it.
        let result = unsafe {
            libc::syscall(
                libc::SYS_mbind,
                self.pages.base(),
                self.pages.length(),
                libc::MPOL_BIND,
                mask.as_ptr(),
                (NODE_MASK_WORDS as libc::c_ulong) * libc::c_ulong::from(bits) + 1,
                0,
            )
        };
        if result == 0 {
            return Ok(());
        }
        Err(no_such_numa_node(node, &io::Error::last_os_error()))
    }

    /// Reads the placement from the kernel.
    pub(super) fn placement(&self) -> io::Result<Placement> {
        let mut placement = read_smaps(self.pages.base().addr())?;
        placement.numa_nodes = self.bound_nodes().unwrap_or_default();
        Ok(placement)
    }

    fn bound_nodes(&self) -> io::Result<Vec<u32>> {
        let mut mask = [0 as libc::c_ulong; NODE_MASK_WORDS];
        let mut mode: libc::c_int = 0;
        let bits = libc::c_ulong::BITS;
        // SAFETY: needed because no library we use has this call. It writes the mode and at most as many bits as the
        // mask holds.
        let result = unsafe {
            libc::syscall(
                libc::SYS_get_mempolicy,
                &raw mut mode,
                mask.as_mut_ptr(),
                (NODE_MASK_WORDS as libc::c_ulong) * libc::c_ulong::from(bits),
                self.pages.base(),
                MPOL_F_ADDR,
            )
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        if mode != libc::MPOL_BIND {
            return Ok(Vec::new());
        }
        let is_set = |node: &u32| mask[(node / bits) as usize] >> (node % bits) & 1 == 1;
        Ok((0..NODE_MASK_WORDS as u32 * bits).filter(is_set).collect())
    }
}

fn mapped(file: OwnedFd, pages: Pages) -> io::Result<Backing> {
    let length = usize::try_from(rustix::fs::fstat(&file)?.st_size).map_err(|_| Errno::NOMEM)?;
    let mapping = Mapping::new(file.as_fd(), length)?;
    Ok(Backing { file, pages: mapping, granted: Granted { pages, ..Granted::default() } })
}

fn huge_file(length: u64) -> io::Result<OwnedFd> {
    let page_bytes = default_huge_page_bytes()?;
    let length = length.max(1).checked_next_multiple_of(page_bytes).ok_or(io::ErrorKind::OutOfMemory)?;
    sealed_memfd_with("rackloom-region", length, MemfdFlags::HUGETLB)
}

impl AsFd for Backing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
