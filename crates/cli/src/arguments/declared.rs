//! Options that replace the value of one key of the rack file. Help, values and ranges come from the declaration of the key.
//!
//! Clap's attributes call these functions while the command line is built, so a path without a key is a bug of this crate. A test
//! builds all options.

use std::ffi::OsStr;
use std::marker::PhantomData;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, Command};
use rackloom_plan::{DeclaredKey, DeclaredValue, NamedValue, declared_key};

/// Returns the declaration of the key at this path, such as `job.collective.op`.
fn key(path: &str) -> DeclaredKey {
    declared_key(path).unwrap_or_else(|| unreachable!("{path} is not a key of rack files"))
}

/// Returns the short help text of the key: the first sentence of its meaning.
pub(super) fn summary(path: &str) -> &'static str {
    key(path).summary()
}

/// Returns the long help text of the key: its whole meaning, without a full stop if it is one sentence.
pub(super) fn meaning(path: &str) -> &'static str {
    let (summary, meaning) = (key(path).summary(), key(path).meaning());
    if meaning.len() <= summary.len() + 1 { summary } else { meaning }
}

/// Returns the help text of an option that replaces a share on all links.
pub(super) fn on_every_link(path: &str) -> String {
    format!("{}; on every link, such as 0.01 or 1%", summary(path))
}

/// Returns a parser for a number, size or share in the range of the key.
pub(super) fn value<T>(
    path: &'static str,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: DeclaredValue + Clone + Send + Sync + 'static,
{
    move |text| key(path).read(text)
}

/// Returns a parser for the two values of a feature that is switched on or off.
pub(super) fn on_or_off() -> impl TypedValueParser<Value = bool> {
    PossibleValuesParser::new(["on", "off"]).map(|value| value == "on")
}

/// Returns a parser for one of the names of a type. The long help shows the meanings of names that have one.
pub(super) fn named<T: NamedValue>() -> impl TypedValueParser<Value = T> {
    let mut meanings = T::MEANINGS.iter();
    let names = T::NAMES.iter().map(|name| {
        let value = PossibleValue::new(*name);
        match meanings.next() {
            Some(meaning) => value.help(meaning.trim_end_matches('.')),
            None => value,
        }
    });
    PossibleValuesParser::new(names).try_map(|name| T::from_name(&name).ok_or("not one of the names"))
}

/// Returns a parser for names of a type with commas between them. The help shows the names.
pub(super) fn names<T: NamedValue>() -> Names<T> {
    Names(PhantomData)
}

/// Parser for names of a type with commas between them.
pub(super) struct Names<T>(PhantomData<fn() -> T>);

impl<T> Clone for Names<T> {
    fn clone(&self) -> Self {
        Self(PhantomData)
    }
}

impl<T: NamedValue> TypedValueParser for Names<T> {
    type Value = Vec<T>;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Vec<T>, clap::Error> {
        let (one, text) = (named::<T>(), value.to_string_lossy());
        text.split(',').map(|name| one.parse_ref(command, argument, OsStr::new(name))).collect()
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let values: Vec<_> = named::<T>().possible_values()?.collect();
        Some(Box::new(values.into_iter()))
    }
}

#[cfg(test)]
mod tests {
    use rackloom_plan::{JobName, WireKind};

    use super::*;

    #[test]
    fn numbers_and_shares_have_the_units_and_ranges_of_their_keys() {
        assert_eq!(value::<u32>("job.traffic.messages")("7"), Ok(7));
        let beyond = value::<u32>("job.traffic.messages")("0").unwrap_err();
        assert_eq!(beyond, "`messages` is 0, outside 1 to 1000000; hint: write 1 to 1000000");
        assert_eq!(value::<f64>("link.loss")("5%"), Ok(0.05));
        for bad in ["", "%", "1.5", "-1%", "nan", "inf", "one"] {
            assert!(value::<f64>("link.loss")(bad).unwrap_err().contains("hint: "), "{bad:?}");
        }
    }

    #[test]
    fn help_texts_begin_with_the_declared_meaning() {
        assert_eq!(summary("job.collective.collective"), "Collective to perform");
        assert!(meaning("link.loss").starts_with(summary("link.loss")));
    }

    #[test]
    fn names_are_values_of_their_type() {
        let command = clap::Command::new("test").arg(clap::Arg::new("job").value_parser(named::<JobName>()));
        let parsed = command.clone().try_get_matches_from(["test", "traffic"]).unwrap();
        assert_eq!(parsed.get_one::<JobName>("job"), Some(&JobName::Traffic));
        assert!(command.try_get_matches_from(["test", "dance"]).unwrap_err().to_string().contains("traffic"));
        assert_eq!(WireKind::MEANINGS.len(), WireKind::NAMES.len());
    }
}
