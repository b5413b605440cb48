//! Who uses how much, who may use how much, and how much it was at most.

use std::collections::BTreeMap;

use rackloom_protocol::Tenant;

/// An amount in bytes, now and at most since the last reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Now.
    pub current: u64,
    /// At most.
    pub high: u64,
}

impl Usage {
    pub(super) fn add(&mut self, bytes: u64) {
        self.current += bytes;
        self.high = self.high.max(self.current);
    }

    pub(super) fn remove(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.current);
        self.current -= bytes;
    }

    pub(super) fn reset_high(&mut self) {
        self.high = self.current;
    }
}

/// A tenant's limit would be exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("quota of {tenant} exceeded: {asked} bytes asked, {used} of {limit} used")]
pub struct QuotaExceeded {
    /// Whose.
    pub tenant: Tenant,
    /// Bytes asked for, rounded as they would have been taken.
    pub asked: u64,
    /// Bytes that it has.
    pub used: u64,
    /// Bytes that it may have.
    pub limit: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Account {
    usage: Usage,
    limit: Option<u64>,
}

/// One account per tenant.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    accounts: BTreeMap<Tenant, Account>,
}

impl Accounts {
    pub(super) fn set_limit(&mut self, tenant: Tenant, limit: Option<u64>) {
        self.accounts.entry(tenant).or_default().limit = limit;
    }

    pub(super) fn check(&self, tenant: Tenant, asked: u64) -> Result<(), QuotaExceeded> {
        let account = self.accounts.get(&tenant).copied().unwrap_or_default();
        let used = account.usage.current;
        match account.limit {
            Some(limit) if used.checked_add(asked).is_none_or(|sum| sum > limit) => {
                Err(QuotaExceeded { tenant, asked, used, limit })
            }
            _ => Ok(()),
        }
    }

    pub(super) fn add(&mut self, tenant: Tenant, bytes: u64) {
        self.accounts.entry(tenant).or_default().usage.add(bytes);
    }

    pub(super) fn remove(&mut self, tenant: Tenant, bytes: u64) {
        self.accounts.entry(tenant).or_default().usage.remove(bytes);
    }

    pub(super) fn usage(&self, tenant: Tenant) -> Usage {
        self.accounts.get(&tenant).map_or_else(Usage::default, |account| account.usage)
    }

    pub(super) fn reset_high(&mut self) {
        for account in self.accounts.values_mut() {
            account.usage.reset_high();
        }
    }
}
