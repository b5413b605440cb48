//! Words of plans in messages: an absent value is `null`, any other is its word.
//!
//! The crates that define these types have no serialization.

use rackloom_plan::Word;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(crate) fn serialize<T: Word, S: Serializer>(value: &Option<T>, serializer: S) -> Result<S::Ok, S::Error> {
    value.map(Word::word).serialize(serializer)
}

pub(crate) fn deserialize<'de, T: Word, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let word: Option<String> = Option::deserialize(deserializer)?;
    word.map(|word| value_of(&word)).transpose()
}

fn value_of<T: Word, E: Error>(word: &str) -> Result<T, E> {
    T::of(word).ok_or_else(|| E::custom(format!("{word} is none of {}", T::WORDS.join(", "))))
}

/// Lists of words.
pub(crate) mod list {
    use super::{Deserialize, Deserializer, Serialize, Serializer, Word, value_of};

    pub(crate) fn serialize<T: Word, S: Serializer>(
        values: &Option<Vec<T>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let words = values.as_ref().map(|values| values.iter().map(|value| value.word()).collect::<Vec<_>>());
        words.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, T: Word, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Vec<T>>, D::Error> {
        let words: Option<Vec<String>> = Option::deserialize(deserializer)?;
        words.map(|words| words.iter().map(|word| value_of(word)).collect()).transpose()
    }
}

#[cfg(test)]
mod tests {
    use rackloom_plan::{AlgorithmChoice, AlgorithmKind, JobName, Sizes};

    use crate::source::JobOptions;

    #[test]
    fn options_of_a_job_are_words_and_return_as_they_were() {
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
