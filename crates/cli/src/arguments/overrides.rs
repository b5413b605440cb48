//! Options that replace values of the rack file. Those that replace one value are declared in
//! [`rackloom_control::override_options`]; this file gives them their parsers and help texts.

use clap::Args;
use rackloom_control::source;
use rackloom_protocol::RetransmissionMode;

use super::declared;
use super::headings::{DATA, FAULTS, LINKS, WHAT};
use super::job::JobOptions;

/// Declares the type of all options, and their way into the message of the runtime.
macro_rules! declare_arguments {
    ($($target:ident {
        $($(#[$attribute:meta])* $name:ident: $type:ty, $form:ident($($text:literal),*), $heading:ident,
            |$object:ident, $value:ident| $effect:expr;)*
    })*) => {
        /// Options that replace values of the rack file. Members receive them with the text of the file, so that all build the
        /// same plan.
        #[derive(Args, Clone, Debug, Default)]
        pub(crate) struct Overrides {
            #[command(flatten)]
            pub(crate) job: JobOptions,
            /// Replace the value of any key of the rack file, such as link.loss=1% or timers.heartbeat_interval=5ms; may be
            /// repeated
            #[arg(long, value_name = "KEY=VALUE", help_heading = WHAT)]
            pub(crate) set: Vec<String>,
            $($(
                #[arg(
                    long, help_heading = $heading, value_name = $form!(value_name $($text),*),
                    value_parser = $form!(parser $type, $($text),*),
                    hide_possible_values = stringify!($form) == "switch",
                    help = $form!(help $($text),*), long_help = $form!(long_help $($text),*)
                )]
                pub(crate) $name: Option<$type>,
            )*)*
        }

        impl From<&Overrides> for source::Overrides {
            fn from(overrides: &Overrides) -> Self {
                let Overrides { job, set, $($($name,)*)* } = overrides.clone();
                Self { job: job.into(), set, payload: None, $($($name,)*)* }
            }
        }
    };
}

/// Form of an option with any number as its value.
macro_rules! number {
    (value_name $name:literal, $help:literal) => {
        $name
    };
    (parser $type:ty, $name:literal, $help:literal) => {
        clap::value_parser!($type)
    };
    ($help_kind:ident $name:literal, $help:literal) => {
        $help
    };
}

/// Form of an option that is `on` or `off`.
macro_rules! switch {
    (value_name $help:literal) => {
        "on|off"
    };
    (parser $type:ty, $help:literal) => {
        declared::on_or_off()
    };
    ($help_kind:ident $help:literal) => {
        $help
    };
}

/// Form of an option whose value is one of the names of the key's type.
macro_rules! choice {
    (value_name $name:literal, $key:literal) => {
        $name
    };
    (parser $type:ty, $name:literal, $key:literal) => {
        declared::named::<$type>()
    };
    (help $name:literal, $key:literal) => {
        declared::summary($key)
    };
    (long_help $name:literal, $key:literal) => {
        declared::meaning($key)
    };
}

/// Form of an option whose value is a share of all frames.
macro_rules! share {
    (value_name $key:literal) => {
        "P"
    };
    (parser $type:ty, $key:literal) => {
        declared::value::<$type>($key)
    };
    ($help_kind:ident $key:literal) => {
        declared::on_every_link($key)
    };
}

rackloom_control::override_options!(declare_arguments);
