//! Named values of plans in messages: an absent value is `null`, any other is its name.
//!
//! The crates that define these types have no serialization.

use rackloom_plan::NamedValue;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(crate) fn serialize<T: NamedValue, S: Serializer>(
    value: &Option<T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    value.map(NamedValue::name).serialize(serializer)
}

pub(crate) fn deserialize<'de, T: NamedValue, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let name: Option<String> = Option::deserialize(deserializer)?;
    name.map(|name| value_of(&name)).transpose()
}

fn value_of<T: NamedValue, E: Error>(name: &str) -> Result<T, E> {
    T::from_name(name).ok_or_else(|| E::custom(format!("{name} is none of {}", T::NAMES.join(", "))))
}

/// Lists of named values.
pub(crate) mod list {
    use super::{Deserialize, Deserializer, NamedValue, Serialize, Serializer, value_of};

    pub(crate) fn serialize<T: NamedValue, S: Serializer>(
        values: &Option<Vec<T>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let names = values.as_ref().map(|values| values.iter().map(|value| value.name()).collect::<Vec<_>>());
        names.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, T: NamedValue, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Vec<T>>, D::Error> {
        let names: Option<Vec<String>> = Option::deserialize(deserializer)?;
        names.map(|names| names.iter().map(|name| value_of(name)).collect()).transpose()
    }
}

#[cfg(test)]
mod tests {
    use rackloom_plan::{AlgorithmChoice, AlgorithmKind, JobName, Sizes};

    use crate::source::JobOptions;

    #[test]
    fn options_of_a_job_are_names_and_return_as_they_were() {
        let options = JobOptions {
            job: Some(JobName::Collective),
            algorithm: Some(vec![AlgorithmChoice::AUTO, AlgorithmChoice(Some(AlgorithmKind::Ring))]),
            sizes: Some(Sizes { from_bytes: 8, to_bytes: 64, factor: 2 }),
            ..JobOptions::default()
        };
        let text = serde_json::to_string(&options).unwrap();
        assert!(text.contains("\"job\":\"collective\""), "{text}");
        assert!(text.contains("\"algorithm\":[\"auto\",\"ring\"]"), "{text}");
        assert!(text.contains("\"sizes\":{\"from_bytes\":8,\"to_bytes\":64,\"factor\":2}"), "{text}");
        assert_eq!(serde_json::from_str::<JobOptions>(&text).unwrap(), options);
        let wrong = serde_json::from_str::<JobOptions>("{\"job\": \"dance\"}").unwrap_err().to_string();
        assert!(wrong.contains("dance is none of litmus, collective"), "{wrong}");
    }
}
