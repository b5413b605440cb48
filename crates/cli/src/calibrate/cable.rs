//! The raw side of the packet wire: two threads, a namespace each, one cable, and nothing of ours between the sockets.
//!
//! Only a process without threads may enter a user namespace, so each take is a process of its own: this command again,
//! with a hidden name. It prints one number.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use rackloom::namespaces::{
    Cable, CableEnd, NamespaceError, bring_up, enter_new_network_namespace, enter_supervisor_namespaces,
    lay_cables,
};
use rackloom_calibrate::Pair;
use rackloom_calibrate::packet::Port;

use super::row::Obstacle;
use crate::arguments::{CableArguments, Output};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::reporting;

const NEAR: &str = "near";
const FAR: &str = "far";
/// Payload of the largest frame.
const MTU: u32 = 9000;
/// Longest wait for the other side to be ready.
const PATIENCE: Duration = Duration::from_secs(20);

/// What the far side tells the near one.
enum Word {
    /// Its thread, in whose namespace its end belongs.
    Thread(u32),
    /// It hears.
    Ready,
}

/// One take: frames per second, or nanoseconds of a round trip.
pub(crate) fn take(arguments: &CableArguments) -> Result<Exit, Failure> {
    let value = measure(arguments).map_err(|obstacle| match obstacle {
        Obstacle::NotHere(reason) => Failure::new(Exit::CouldNotStart, reason),
        Obstacle::Failed(reason) => Failure::new(Exit::Fail, reason),
    })?;
    reporting::say(&Output { json: None }, &value.to_string())?;
    Ok(Exit::Pass)
}

fn measure(arguments: &CableArguments) -> Result<f64, Obstacle> {
    enter_supervisor_namespaces().map_err(forbidden)?;
    let alone = || Obstacle::NotHere("it takes two processors".to_owned());
    let pair = Pair::choose()?.ok_or_else(alone)?;
    let (tell, hear) = channel();
    let CableArguments { frame_bytes, count } = *arguments;
    let near = move || {
        let mut port = plug_in_near(&hear)?;
        match frame_bytes {
            Some(bytes) => Ok((Some(port.give(bytes, count)?), 0.0)),
            None => Ok((None, port.round_trip_ns(count)?)),
        }
    };
    let far = move || {
        let mut port = plug_in_far(&tell)?;
        match frame_bytes {
            Some(bytes) => Ok(Some(port.take(bytes, count)?)),
            None => port.answer(count).map(|()| None).map_err(Obstacle::from),
        }
    };
    let ((begun, round_trip_ns), ended) = pair.run(near, far)?;
    Ok(match (begun, ended) {
        (Some(begun), Some(ended)) => count as f64 / (ended - begun).as_secs_f64().max(1e-9),
        _ => round_trip_ns,
    })
}

fn plug_in_near(hear: &Receiver<Word>) -> Result<Port, Obstacle> {
    let silent = |_| Obstacle::Failed("the far side of the cable did not come".to_owned());
    let Word::Thread(far) = hear.recv_timeout(PATIENCE).map_err(silent)? else {
        return Err(Obstacle::Failed("the far side of the cable did not say where it is".to_owned()));
    };
    let end = |process, interface: &str, last| CableEnd {
        process,
        interface: interface.to_owned(),
        address: [2, 0, 0, 0, 0, last],
    };
    let ends = [end(std::process::id(), NEAR, 1), end(far, FAR, 2)];
    lay_cables(&[Cable { ends, mtu: MTU }]).map_err(forbidden)?;
    bring_up(&[NEAR.to_owned()], PATIENCE)?;
    let port = Port::open(NEAR)?;
    hear.recv_timeout(PATIENCE).map_err(silent)?;
    Ok(port)
}

fn plug_in_far(tell: &Sender<Word>) -> Result<Port, Obstacle> {
    enter_new_network_namespace()?;
    let gone = |_| Obstacle::Failed("the near side of the cable has ended".to_owned());
    let thread = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
    tell.send(Word::Thread(thread)).map_err(gone)?;
    bring_up(&[FAR.to_owned()], PATIENCE)?;
    let port = Port::open(FAR)?;
    tell.send(Word::Ready).map_err(gone)?;
    Ok(port)
}

fn forbidden(error: NamespaceError) -> Obstacle {
    match error {
        NamespaceError::Forbidden { step, cause } => {
            Obstacle::NotHere(format!("the packet wire needs {step}, which this system forbids: {cause}"))
        }
        other => Obstacle::Failed(other.to_string()),
    }
}
