//! State rules of queue pairs: which transitions exist, and which attributes each of them requires and allows.
//!
//! The rules are those of the verbs chapter of the InfiniBand specification, for the reliable connection and the unreliable datagram. They are
//! data: one line per transition. Any state may also go to `Reset` and to `Err`, with the state as only attribute.

use crate::layout::constants::*;

/// Service of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Reliable connection with one peer.
    Rc,
    /// Unreliable datagrams to any queue pair.
    Ud,
}

/// State of a queue pair. Values are those of `enum ibv_qp_state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum State {
    /// Nothing is configured; no work requests.
    Reset = 0,
    /// Receives may be posted.
    Init = 1,
    /// Messages are received.
    Rtr = 2,
    /// Messages are received and sent.
    Rts = 3,
    /// No further sends start.
    Sqd = 4,
    /// Sends failed and are flushed; messages are received.
    Sqe = 5,
    /// Work requests are flushed.
    Err = 6,
}

impl State {
    /// All states, by their value.
    pub const ALL: [Self; 7] =
        [Self::Reset, Self::Init, Self::Rtr, Self::Rts, Self::Sqd, Self::Sqe, Self::Err];

    /// Returns the state with a value of `enum ibv_qp_state`, or `None`.
    #[must_use]
    pub fn from_value(value: u32) -> Option<Self> {
        Self::ALL.get(usize::try_from(value).ok()?).copied()
    }

    /// Returns true if messages of peers are executed.
    #[must_use]
    pub const fn is_receiving(self) -> bool {
        matches!(self, Self::Rtr | Self::Rts | Self::Sqd | Self::Sqe)
    }
}

/// Attributes of a transition, as masks of `enum ibv_qp_attr_mask`.
#[derive(Clone, Copy)]
struct Attributes {
    required: u32,
    optional: u32,
}

/// Transition, with its attributes for each service. `None` where the service does not have it.
struct Rule {
    from: State,
    to: State,
    rc: Option<Attributes>,
    ud: Option<Attributes>,
}

const fn with(required: u32, optional: u32) -> Option<Attributes> {
    Some(Attributes { required, optional })
}

const IDENTITY_RC: u32 = QP_PKEY_INDEX | QP_PORT | QP_ACCESS_FLAGS;
const IDENTITY_UD: u32 = QP_PKEY_INDEX | QP_PORT | QP_QKEY;
const RECEIVER_RC: u32 =
    QP_AV | QP_PATH_MTU | QP_DEST_QPN | QP_RQ_PSN | QP_MAX_DEST_RD_ATOMIC | QP_MIN_RNR_TIMER;
const SENDER_RC: u32 = QP_TIMEOUT | QP_RETRY_CNT | QP_RNR_RETRY | QP_SQ_PSN | QP_MAX_QP_RD_ATOMIC;
/// Attributes that a connection may change while it sends.
const RUNNING_RC: u32 = QP_CUR_STATE | QP_ALT_PATH | QP_ACCESS_FLAGS | QP_MIN_RNR_TIMER | QP_PATH_MIG_STATE;
/// Attributes that a connection may change while no send is started.
const DRAINED_RC: u32 = QP_PORT
    | QP_AV
    | QP_TIMEOUT
    | QP_RETRY_CNT
    | QP_RNR_RETRY
    | QP_MAX_QP_RD_ATOMIC
    | QP_MAX_DEST_RD_ATOMIC
    | QP_ALT_PATH
    | QP_ACCESS_FLAGS
    | QP_PKEY_INDEX
    | QP_MIN_RNR_TIMER
    | QP_PATH_MIG_STATE;

#[rustfmt::skip]
const RULES: &[Rule] = &[
    Rule { from: State::Reset, to: State::Init, rc: with(IDENTITY_RC, 0), ud: with(IDENTITY_UD, 0) },
    Rule { from: State::Init, to: State::Init, rc: with(0, IDENTITY_RC), ud: with(0, IDENTITY_UD) },
    Rule { from: State::Init, to: State::Rtr,
        rc: with(RECEIVER_RC, QP_ALT_PATH | QP_ACCESS_FLAGS | QP_PKEY_INDEX), ud: with(0, QP_PKEY_INDEX | QP_QKEY) },
    Rule { from: State::Rtr, to: State::Rts, rc: with(SENDER_RC, RUNNING_RC), ud: with(QP_SQ_PSN, QP_CUR_STATE | QP_QKEY) },
    Rule { from: State::Rts, to: State::Rts, rc: with(0, RUNNING_RC), ud: with(0, QP_CUR_STATE | QP_QKEY) },
    Rule { from: State::Rts, to: State::Sqd, rc: with(0, QP_EN_SQD_ASYNC_NOTIFY), ud: with(0, QP_EN_SQD_ASYNC_NOTIFY) },
    Rule { from: State::Sqd, to: State::Sqd, rc: with(0, DRAINED_RC), ud: with(0, QP_PKEY_INDEX | QP_QKEY) },
    Rule { from: State::Sqd, to: State::Rts, rc: with(0, RUNNING_RC), ud: with(0, QP_CUR_STATE | QP_QKEY) },
    Rule { from: State::Sqe, to: State::Rts, rc: None, ud: with(0, QP_CUR_STATE | QP_QKEY) },
];

/// Reason why a transition is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The service has no such transition.
    NoTransition,
    /// These required attributes are missing.
    Missing(u32),
    /// These attributes are not allowed.
    NotAllowed(u32),
}

/// Checks a transition and the mask of its attributes. The bit of the state itself is ignored.
///
/// # Errors
/// A [`Refusal`] if the transition does not exist, or if the mask lacks a required or has a forbidden attribute.
pub fn check_transition(service: Service, from: State, to: State, mask: u32) -> Result<(), Refusal> {
    let attributes = if matches!(to, State::Reset | State::Err) {
        Attributes { required: 0, optional: 0 }
    } else {
        let rule = RULES.iter().find(|rule| rule.from == from && rule.to == to);
        let attributes = rule.and_then(|rule| match service {
            Service::Rc => rule.rc,
            Service::Ud => rule.ud,
        });
        attributes.ok_or(Refusal::NoTransition)?
    };
    let given = mask & !QP_STATE;
    let missing = attributes.required & !given;
    let forbidden = given & !(attributes.required | attributes.optional);
    match (missing, forbidden) {
        (0, 0) => Ok(()),
        (0, forbidden) => Err(Refusal::NotAllowed(forbidden)),
        (missing, _) => Err(Refusal::Missing(missing)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the matrix of transitions without attributes: `+` is allowed, `a` needs attributes, `.` does not exist.
    fn matrix(service: Service) -> Vec<String> {
        let cell = |from, to| match check_transition(service, from, to, QP_STATE) {
            Ok(()) => '+',
            Err(Refusal::Missing(_)) => 'a',
            Err(_) => '.',
        };
        State::ALL.map(|from| State::ALL.map(|to| cell(from, to)).iter().collect()).to_vec()
    }

    #[test]
    fn transitions_are_those_of_the_specification() {
        // Columns and rows: reset, init, ready to receive, ready to send, drained, send error, error.
        let rc = ["+a....+", "++a...+", "+..a..+", "+..++.+", "+..++.+", "+.....+", "+.....+"];
        assert_eq!(matrix(Service::Rc), rc);
        let ud = ["+a....+", "+++...+", "+..a..+", "+..++.+", "+..++.+", "+..+..+", "+.....+"];
        assert_eq!(matrix(Service::Ud), ud);
    }

    #[test]
    fn each_required_attribute_of_a_connection_is_required() {
        let steps = [
            (State::Reset, State::Init, IDENTITY_RC),
            (State::Init, State::Rtr, RECEIVER_RC),
            (State::Rtr, State::Rts, SENDER_RC),
        ];
        for (from, to, required) in steps {
            assert_eq!(check_transition(Service::Rc, from, to, required | QP_STATE), Ok(()));
            for bit in (0..32).map(|bit| 1 << bit).filter(|bit| required & bit != 0) {
                let found = check_transition(Service::Rc, from, to, required & !bit);
                assert_eq!(found, Err(Refusal::Missing(bit)), "{from:?} to {to:?}");
            }
        }
    }

    #[test]
    fn an_attribute_of_another_step_is_refused() {
        let found = check_transition(Service::Rc, State::Reset, State::Init, IDENTITY_RC | QP_TIMEOUT);
        assert_eq!(found, Err(Refusal::NotAllowed(QP_TIMEOUT)));
        let found = check_transition(Service::Rc, State::Rts, State::Err, QP_STATE | QP_QKEY);
        assert_eq!(found, Err(Refusal::NotAllowed(QP_QKEY)));
        let found = check_transition(Service::Ud, State::Reset, State::Init, IDENTITY_RC);
        assert_eq!(found, Err(Refusal::Missing(QP_QKEY)));
    }
}
