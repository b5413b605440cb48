//! Lines of a connection matrix of htsim: header, connections and triggers.
//!
//! Source of the format: `connection_matrix.cpp` of htsim. Times are picoseconds, as there.

use crate::error::WorkloadError;
use crate::tokens::{Token, Tokens};

/// Line with content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Number that the header states.
    Count(Header, u64),
    /// Connection.
    Connection(Connection),
    /// Trigger.
    Trigger(Trigger),
    /// Failure of a link, which traffic does not have.
    Failure,
}

/// Key of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Header {
    /// Hosts.
    Nodes,
    /// Lines with a connection.
    Connections,
    /// Lines with a trigger.
    Triggers,
    /// Lines with a failure.
    Failures,
}

/// Flow from one host to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Connection {
    /// Line, from 1.
    pub(super) line: usize,
    /// Sender.
    pub(super) from: u16,
    /// Receiver.
    pub(super) to: u16,
    /// Length in bytes.
    pub(super) bytes: u64,
    /// Time of its begin in picoseconds; `None` if a trigger starts it.
    pub(super) start_ps: Option<u64>,
    /// Trigger that starts it.
    pub(super) trigger: Option<u32>,
    /// Trigger that the end at the sender activates.
    pub(super) send_done: Option<u32>,
    /// Trigger that the end at the receiver activates.
    pub(super) receive_done: Option<u32>,
    /// Identity.
    pub(super) id: Option<u32>,
    /// True if the connection has a priority or is an addition to a running flow, which messages do not have.
    pub(super) has_more: bool,
}

/// Event that starts connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trigger {
    /// Line, from 1.
    pub(super) line: usize,
    /// Identity.
    pub(super) id: u32,
    /// Kind.
    pub(super) kind: Kind,
}

/// Kind of a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Its only activation starts all connections.
    OneShot,
    /// Each activation starts the next connection.
    MultiShot,
    /// The last of some activations starts all connections.
    Barrier {
        /// Number of activations.
        count: u64,
    },
}

const FORM: &str = "write `0->1 id 1 start 0 size 2000000`, or `trigger id 1 oneshot`";

/// Reads a line. Returns `None` for an empty one.
pub(super) fn read(number: usize, text: &str) -> Result<Option<Line>, WorkloadError> {
    let mut tokens = Tokens::new(number, text);
    let Some(first) = tokens.next() else { return Ok(None) };
    let line = match first.text {
        "Nodes" => Line::Count(Header::Nodes, value(&mut tokens, first)?),
        "Connections" => Line::Count(Header::Connections, value(&mut tokens, first)?),
        "Triggers" => Line::Count(Header::Triggers, value(&mut tokens, first)?),
        "Failures" => Line::Count(Header::Failures, value(&mut tokens, first)?),
        "trigger" => Line::Trigger(trigger(number, first, &mut tokens)?),
        "failure" => Line::Failure,
        other => match other.split_once("->") {
            Some((from, to)) => Line::Connection(connection(number, first, (from, to), &mut tokens)?),
            None => {
                return Err(tokens.mistake(first, format!("`{other}` begins no line of this format"), FORM));
            }
        },
    };
    Ok(Some(line))
}

/// Reads the number behind a key.
fn value<N: core::str::FromStr>(tokens: &mut Tokens<'_>, key: Token<'_>) -> Result<N, WorkloadError> {
    let token = tokens.expect(key.text, FORM)?;
    token.text.parse().map_err(|_| {
        let reason = format!("`{}` is no number in range for `{}`", token.text, key.text);
        tokens.mistake(token, reason, FORM)
    })
}

/// Reads an identity, which is not 0.
fn identity(tokens: &mut Tokens<'_>, key: Token<'_>) -> Result<Option<u32>, WorkloadError> {
    match value(tokens, key)? {
        0 => Err(tokens.mistake(key, format!("`{}` is 0", key.text), "identities begin with 1")),
        id => Ok(Some(id)),
    }
}

fn connection(
    line: usize,
    first: Token<'_>,
    (from, to): (&str, &str),
    tokens: &mut Tokens<'_>,
) -> Result<Connection, WorkloadError> {
    let host = |text: &str| {
        let refused = || tokens.mistake(first, format!("`{text}` is no host from 0 to 65535"), FORM);
        text.parse::<u16>().map_err(|_| refused())
    };
    let mut connection = Connection { line, from: host(from)?, to: host(to)?, ..Connection::default() };
    let mut has_size = false;
    while let Some(key) = tokens.next() {
        match key.text {
            "start" => connection.start_ps = Some(start(tokens, key)?),
            "size" => {
                connection.bytes = value(tokens, key)?;
                has_size = true;
            }
            "id" => connection.id = identity(tokens, key)?,
            "trigger" => connection.trigger = identity(tokens, key)?,
            "send_done_trigger" => connection.send_done = identity(tokens, key)?,
            "recv_done_trigger" => connection.receive_done = identity(tokens, key)?,
            "prio" => {
                value::<i64>(tokens, key)?;
                connection.has_more = true;
            }
            "addon" => connection.has_more = true,
            other => return Err(tokens.mistake(key, format!("`{other}` is no part of a connection"), FORM)),
        }
    }
    let reason = match (has_size, connection.bytes, connection.start_ps, connection.trigger) {
        (false, ..) => "the connection has no size",
        (true, 0, ..) => "a size of 0 is a flow without an end, which a workload does not have",
        (.., None, None) => "nothing starts the connection",
        (.., Some(_), Some(_)) => "both a time and a trigger start the connection",
        _ => return Ok(connection),
    };
    Err(tokens.mistake(first, reason, FORM))
}

/// Reads a time in picoseconds, with or without a fraction.
fn start(tokens: &mut Tokens<'_>, key: Token<'_>) -> Result<u64, WorkloadError> {
    let token = tokens.expect(key.text, FORM)?;
    let (whole, fraction) = token.text.split_once('.').unwrap_or((token.text, "0"));
    let is_fraction = !fraction.is_empty() && fraction.bytes().all(|one| one.is_ascii_digit());
    whole.parse().ok().filter(|_| is_fraction).ok_or_else(|| {
        let reason = format!("`{}` is no time in picoseconds", token.text);
        tokens.mistake(token, reason, FORM)
    })
}

fn trigger(line: usize, first: Token<'_>, tokens: &mut Tokens<'_>) -> Result<Trigger, WorkloadError> {
    let (mut id, mut count, mut kind) = (None, None, None);
    while let Some(key) = tokens.next() {
        match key.text {
            "id" => id = identity(tokens, key)?,
            "count" => count = Some(value(tokens, key)?),
            "oneshot" => kind = Some(Kind::OneShot),
            "multishot" => kind = Some(Kind::MultiShot),
            "barrier" => kind = Some(Kind::Barrier { count: 0 }),
            other => return Err(tokens.mistake(key, format!("`{other}` is no part of a trigger"), FORM)),
        }
    }
    let refused = |reason: &str| Err(tokens.mistake(first, reason, "write `trigger id 1 oneshot`"));
    let Some(id) = id else { return refused("the trigger has no id") };
    match (kind, count) {
        (None, _) => refused("the trigger has no kind"),
        (Some(Kind::Barrier { .. }), None) => refused("the barrier has no count"),
        (Some(Kind::Barrier { .. }), Some(count)) => Ok(Trigger { line, id, kind: Kind::Barrier { count } }),
        (Some(kind), _) => Ok(Trigger { line, id, kind }),
    }
}
