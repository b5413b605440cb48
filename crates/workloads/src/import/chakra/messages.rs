//! Messages of an execution trace, as far as they are used.
//!
//! Source of the numbers: `et_def.proto` of Chakra. Fields that are missing here are skipped.

use prost::{Message, Oneof};

/// Node of the graph.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Node {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(int32, tag = "3")]
    pub(super) kind: i32,
    #[prost(uint64, repeated, tag = "4")]
    pub(super) control_dependencies: Vec<u64>,
    #[prost(uint64, repeated, tag = "5")]
    pub(super) data_dependencies: Vec<u64>,
    #[prost(uint64, tag = "7")]
    pub(super) duration_micros: u64,
    #[prost(message, repeated, tag = "10")]
    pub(super) attributes: Vec<Attribute>,
}

/// Attribute of a node.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Attribute {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(oneof = "Value", tags = "3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 28, 29")]
    pub(super) value: Option<Value>,
}

/// Value of an attribute.
#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Value {
    #[prost(double, tag = "3")]
    Double(f64),
    #[prost(float, tag = "5")]
    Float(f32),
    #[prost(int32, tag = "7")]
    Int32(i32),
    #[prost(int64, tag = "9")]
    Int64(i64),
    #[prost(uint32, tag = "11")]
    Uint32(u32),
    #[prost(uint64, tag = "13")]
    Uint64(u64),
    #[prost(sint32, tag = "15")]
    Sint32(i32),
    #[prost(sint64, tag = "17")]
    Sint64(i64),
    #[prost(fixed32, tag = "19")]
    Fixed32(u32),
    #[prost(fixed64, tag = "21")]
    Fixed64(u64),
    #[prost(sfixed32, tag = "23")]
    Sfixed32(i32),
    #[prost(sfixed64, tag = "25")]
    Sfixed64(i64),
    #[prost(bool, tag = "27")]
    Bool(bool),
    #[prost(message, tag = "28")]
    Bools(Bools),
    #[prost(string, tag = "29")]
    Text(String),
}

/// List of booleans.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Bools {
    #[prost(bool, repeated, tag = "1")]
    pub(super) values: Vec<bool>,
}

impl Node {
    /// Returns an attribute, if the node has it.
    fn value(&self, name: &str) -> Option<&Value> {
        self.attributes.iter().find(|attribute| attribute.name == name)?.value.as_ref()
    }

    /// Returns an attribute that is a number of at least 0, or `None` if the node lacks it.
    ///
    /// # Errors
    ///
    /// Returns the reason if it is negative or no number.
    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, String> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let number = match *value {
            Value::Int32(value) | Value::Sint32(value) | Value::Sfixed32(value) => u64::try_from(value).ok(),
            Value::Int64(value) | Value::Sint64(value) | Value::Sfixed64(value) => u64::try_from(value).ok(),
            Value::Uint32(value) | Value::Fixed32(value) => Some(u64::from(value)),
            Value::Uint64(value) | Value::Fixed64(value) => Some(value),
            Value::Float(value) if value >= 0.0 => Some(value as u64),
            Value::Double(value) if value >= 0.0 => Some(value as u64),
            _ => None,
        };
        number.map(Some).ok_or_else(|| format!("its {name} is no number of at least 0"))
    }

    /// Returns an attribute that is a text. Traces have numbers as well, which become texts.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        match self.value(name)? {
            Value::Text(text) => Some(text.clone()),
            _ => self.number(name).ok().flatten().map(|number| number.to_string()),
        }
    }

    /// Returns an attribute that is a list of booleans.
    pub(super) fn booleans(&self, name: &str) -> Option<&[bool]> {
        match self.value(name)? {
            Value::Bools(list) => Some(&list.values),
            _ => None,
        }
    }

    /// Returns true if an attribute is a true boolean.
    pub(super) fn is_true(&self, name: &str) -> bool {
        matches!(self.value(name), Some(Value::Bool(true)))
    }
}
