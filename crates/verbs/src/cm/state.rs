//! States of an identifier, and the calls that each of them allows.

/// State of an identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It has no port.
    Idle,
    /// It has a port of its own.
    Bound,
    /// It takes requests.
    Listening,
    /// It waits for a path to the node of the peer.
    Resolving,
    /// The node of the peer is known.
    AddressResolved,
    /// A connection may be requested.
    RouteResolved,
    /// It looks for the process that listens.
    Finding,
    /// The request is sent.
    Requesting,
    /// The peer has accepted, and the program has to make its own queue pair ready.
    Answered,
    /// The peer has sent a request.
    Requested,
    /// The reply is sent.
    Accepting,
    /// Both sides are ready.
    Established,
    /// The end of the connection is sent.
    Disconnecting,
    /// There is no connection, and there will be none.
    Closed,
}

/// Call of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Sets the own port.
    Bind,
    /// Takes requests.
    Listen,
    /// Looks for the node of the peer.
    ResolveAddress,
    /// Looks for the route.
    ResolveRoute,
    /// Requests a connection.
    Connect,
    /// Accepts a request.
    Accept,
    /// Rejects a request.
    Reject,
    /// Ends the handshake for a queue pair of the program.
    Establish,
    /// Ends the connection.
    Disconnect,
}

impl State {
    /// All states.
    pub const ALL: [Self; 14] = [
        Self::Idle,
        Self::Bound,
        Self::Listening,
        Self::Resolving,
        Self::AddressResolved,
        Self::RouteResolved,
        Self::Finding,
        Self::Requesting,
        Self::Answered,
        Self::Requested,
        Self::Accepting,
        Self::Established,
        Self::Disconnecting,
        Self::Closed,
    ];

    /// Returns true if a call is allowed.
    #[must_use]
    pub const fn allows(self, call: Call) -> bool {
        match call {
            Call::Bind => matches!(self, Self::Idle),
            // An identifier without a port gets one.
            Call::Listen | Call::ResolveAddress => matches!(self, Self::Idle | Self::Bound),
            Call::ResolveRoute => matches!(self, Self::AddressResolved),
            Call::Connect => matches!(self, Self::RouteResolved),
            Call::Accept | Call::Reject => matches!(self, Self::Requested),
            Call::Establish => matches!(self, Self::Answered),
            Call::Disconnect => matches!(
                self,
                Self::Answered | Self::Accepting | Self::Established | Self::Disconnecting | Self::Closed
            ),
        }
    }

    /// Returns true if there is a connection, or an attempt, that the loss of the peer ends.
    pub(super) const fn has_peer(self) -> bool {
        matches!(
            self,
            Self::Requesting
                | Self::Answered
                | Self::Requested
                | Self::Accepting
                | Self::Established
                | Self::Disconnecting
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_allows_its_calls() {
        const CALLS: [Call; 9] = [
            Call::Bind,
            Call::Listen,
            Call::ResolveAddress,
            Call::ResolveRoute,
            Call::Connect,
            Call::Accept,
            Call::Reject,
            Call::Establish,
            Call::Disconnect,
        ];
        let row =
            |state: State| CALLS.map(|call| if state.allows(call) { '+' } else { '.' }).iter().collect();
        let found: Vec<String> = State::ALL.map(row).to_vec();
        // Rows are states, columns are calls.
        let expected = [
            "+++......",
            ".++......",
            ".........",
            ".........",
            "...+.....",
            "....+....",
            ".........",
            ".........",
            ".......++",
            ".....++..",
            "........+",
            "........+",
            "........+",
            "........+",
        ];
        assert_eq!(found, expected);
    }
}
