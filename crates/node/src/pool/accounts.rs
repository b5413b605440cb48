//! Current usage, limit and maximum usage of each tenant of a pool.

use std::collections::BTreeMap;

use rackloom_protocol::Tenant;

use crate::memory::{QuotaExceeded, Usage};

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

    pub(super) fn check(&self, tenant: Tenant, requested: u64) -> Result<(), QuotaExceeded> {
        let account = self.accounts.get(&tenant).copied().unwrap_or_default();
        let used = account.usage.current;
        match account.limit {
            Some(limit) if used.checked_add(requested).is_none_or(|sum| sum > limit) => {
                Err(QuotaExceeded { tenant, requested, used, limit })
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
