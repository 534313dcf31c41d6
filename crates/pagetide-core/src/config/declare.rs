//! The macros behind [`crate::config`]: they generate code from the declarations of tunables.
//!
//! Linux: the initialisers of `struct ctl_table`, one table for names, modes and bounds.
//!
//! Invariant: every list, table and check of policies and control files is generated here.

/// `true` if the first word is among the others.
macro_rules! flag {
    (boot;) => { false };
    (boot; boot $($rest:ident)*) => { true };
    (boot; $other:ident $($rest:ident)*) => { flag!(boot; $($rest)*) };
    (implied;) => { false };
    (implied; implied $($rest:ident)*) => { true };
    (implied; $other:ident $($rest:ident)*) => { flag!(implied; $($rest)*) };
    (linux;) => { false };
    (linux; linux) => { true };
}
pub(super) use flag;

/// Optional part of a declaration.
macro_rules! optional {
    () => {
        None
    };
    ($value:expr) => {
        Some($value)
    };
}
pub(super) use optional;

/// A default as documents print it.
macro_rules! default_words {
    ($default:expr) => {
        stringify!($default)
    };
    ($default:expr, $words:literal) => {
        $words
    };
}
pub(super) use default_words;

/// A policy's type: its variants with names and documentation.
macro_rules! policy_type {
    (
        $(#[doc = $policy_doc:literal])+
        $policy:ident: $type:ident = $default:ident {
            $( $(#[doc = $doc:literal])+ $variant:ident = $number:literal, $name:literal $(, $linux:ident)?; )+
        }
    ) => {
        $(#[doc = $policy_doc])+
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $type {
            $( $(#[doc = $doc])+ $variant = $number, )+
        }

        impl Default for $type {
            fn default() -> Self {
                $type::$default
            }
        }

        impl State for $type {
            fn digest(&self, digest: &mut Digest) {
                digest.write_u64(*self as u64);
            }
        }

        impl $type {
            /// All variants, in the order of the documentation.
            pub const ALL: &'static [$type] = &[$($type::$variant),+];
            const CHOICES: &'static [PolicyChoice] = &[$(PolicyChoice::$policy($type::$variant)),+];

            /// Its name in a scenario.
            pub const fn name(self) -> &'static str {
                match self { $( $type::$variant => $name, )+ }
            }

            /// Its documentation.
            pub const fn doc(self) -> &'static str {
                match self { $( $type::$variant => concat!($($doc),+).trim_ascii(), )+ }
            }

            /// Whether Linux 6.1 behaves like this, by default or when configured to.
            pub const fn is_linux(self) -> bool {
                match self { $( $type::$variant => flag!(linux; $($linux)?), )+ }
            }
        }

        impl PolicyVariant for $type {
            const POLICY: Policy = Policy::$policy;

            fn of(choice: PolicyChoice) -> Option<Self> {
                match choice {
                    PolicyChoice::$policy(variant) => Some(variant),
                    _ => None,
                }
            }
        }

        impl From<$type> for PolicyChoice {
            fn from(variant: $type) -> PolicyChoice {
                PolicyChoice::$policy(variant)
            }
        }
    };
}
pub(super) use policy_type;

/// All tunables; [`crate::config`] describes the syntax and the result.
macro_rules! tunables {
    (
        with $page_size:ident;
        files { $(
            $(#[doc = $file_doc:literal])+
            $file:ident = $file_name:literal, $file_form:expr, $file_unit:literal, $file_since:expr,
                default $file_default:literal;
        )* }
        of watermarks { $(
            $(#[doc = $mark_doc:literal])+
            $mark:ident = $mark_key:literal => $mark_field:ident: $mark_type:ident = $mark_default:ident
                { $($mark_variants:tt)+ }
        )* }
        $( theme {
            sysctls { $(
                $(#[doc = $doc:literal])+
                $sysctl:ident = $name:literal, $form:expr, $unit:literal, $since:expr
                    => $field:ident: $type:ty = $default:expr
                    $(, special $special:ident)? $(, words $words:literal)?;
            )* }
            policies { $(
                $(#[doc = $policy_doc:literal])+
                $policy:ident = $key:literal $(, $flag:ident)*
                    => $policy_field:ident: $policy_type:ident = $policy_default:ident { $($variants:tt)+ }
            )* }
        } )*
    ) => {
        $( policy_type! {
            $(#[doc = $mark_doc])+ $mark: $mark_type = $mark_default { $($mark_variants)+ }
        } )*
        $($( policy_type! {
            $(#[doc = $policy_doc])+ $policy: $policy_type = $policy_default { $($variants)+ }
        } )*)*

        /// A behaviour with several variants.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Policy {
            $( $(#[doc = $mark_doc])+ $mark, )*
            $($( $(#[doc = $policy_doc])+ $policy, )*)*
        }

        impl Policy {
            /// All policies, in the order of the documentation.
            pub const ALL: &'static [Policy] = &[$(Policy::$mark,)* $($(Policy::$policy,)*)*];

            /// Its key in a scenario.
            pub const fn name(self) -> &'static str {
                match self { $(Policy::$mark => $mark_key,)* $($(Policy::$policy => $key,)*)* }
            }

            /// Its documentation.
            pub const fn doc(self) -> &'static str {
                match self {
                    $( Policy::$mark => concat!($($mark_doc),+).trim_ascii(), )*
                    $($( Policy::$policy => concat!($($policy_doc),+).trim_ascii(), )*)*
                }
            }

            /// Whether it must be chosen before groups and objects exist.
            pub const fn is_chosen_at_boot(self) -> bool {
                match self {
                    $( Policy::$mark => false, )*
                    $($( Policy::$policy => flag!(boot; $($flag)*), )*)*
                }
            }

            /// Whether it is not a key of a scenario's `[policy]`, but follows from other keys.
            pub const fn is_implied(self) -> bool {
                match self {
                    $( Policy::$mark => false, )*
                    $($( Policy::$policy => flag!(implied; $($flag)*), )*)*
                }
            }

            /// Its variants, in the order of the documentation.
            pub const fn variants(self) -> &'static [PolicyChoice] {
                match self {
                    $( Policy::$mark => $mark_type::CHOICES, )*
                    $($( Policy::$policy => $policy_type::CHOICES, )*)*
                }
            }

            /// The variant in force by default: Linux 6.1's.
            pub const fn default_variant(self) -> PolicyChoice {
                match self {
                    $( Policy::$mark => PolicyChoice::$mark($mark_type::$mark_default), )*
                    $($( Policy::$policy => PolicyChoice::$policy($policy_type::$policy_default), )*)*
                }
            }
        }

        /// A policy together with its variant.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum PolicyChoice {
            $( $(#[doc = $mark_doc])+ $mark($mark_type), )*
            $($( $(#[doc = $policy_doc])+ $policy($policy_type), )*)*
        }

        impl PolicyChoice {
            /// The policy.
            pub const fn policy(self) -> Policy {
                match self {
                    $( PolicyChoice::$mark(_) => Policy::$mark, )*
                    $($( PolicyChoice::$policy(_) => Policy::$policy, )*)*
                }
            }

            /// The variant's name.
            pub const fn name(self) -> &'static str {
                match self {
                    $( PolicyChoice::$mark(variant) => variant.name(), )*
                    $($( PolicyChoice::$policy(variant) => variant.name(), )*)*
                }
            }

            /// The variant's documentation.
            pub const fn doc(self) -> &'static str {
                match self {
                    $( PolicyChoice::$mark(variant) => variant.doc(), )*
                    $($( PolicyChoice::$policy(variant) => variant.doc(), )*)*
                }
            }

            /// Whether Linux 6.1 behaves like this, by default or when configured to.
            pub const fn is_linux(self) -> bool {
                match self {
                    $( PolicyChoice::$mark(variant) => variant.is_linux(), )*
                    $($( PolicyChoice::$policy(variant) => variant.is_linux(), )*)*
                }
            }
        }

        /// A control file of the machine. (The control files of caches are another type, because
        /// their names contain a cache's name.)
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Sysctl {
            $( $(#[doc = $file_doc])+ $file, )*
            $($( $(#[doc = $doc])+ $sysctl, )*)*
        }

        impl Sysctl {
            /// All control files, in the order of the documentation.
            pub const ALL: &'static [Sysctl] = &[$(Sysctl::$file,)* $($(Sysctl::$sysctl,)*)*];

            const FILES: &'static [ControlFile] = &[
                $( ControlFile {
                    name: $file_name,
                    form: $file_form,
                    unit: $file_unit,
                    since: $file_since,
                    default: $file_default,
                    doc: concat!($($file_doc),+).trim_ascii(),
                }, )*
                $($( ControlFile {
                    name: $name,
                    form: $form,
                    unit: $unit,
                    since: $since,
                    default: default_words!($default $(, $words)?),
                    doc: concat!($($doc),+).trim_ascii(),
                }, )*)*
            ];

            /// Its name, form and documentation.
            pub const fn file(self) -> &'static ControlFile {
                &Self::FILES[self as usize]
            }

            /// The kernel's name for the file.
            pub const fn name(self) -> &'static str {
                self.file().name
            }

            /// Effect of reads and writes other than accessing the field; `None`: no other effect.
            pub(crate) const fn special(self) -> Option<Special> {
                match self {
                    $( Sysctl::$file => Some(Special::$file), )*
                    $($( Sysctl::$sysctl => optional!($(Special::$special)?), )*)*
                }
            }
        }

        /// Control files with reads and writes that do more than access a field.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Special {
            $( $file, )*
            $($($( $special, )?)*)*
        }

        /// All tunables of a machine.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Config {
            /// Size of a page, chosen when a machine is made ([`Config::of_pages`]).
            pub page_size: PageSize,
            /// Watermarks, boost, reserves, and sizes of the per-CPU lists.
            pub watermarks: WatermarkInputs,
            $(
                $( $(#[doc = $doc])+ pub $field: $type, )*
                $( $(#[doc = $policy_doc])+ pub $policy_field: $policy_type, )*
            )*
        }

        impl Config {
            /// Defaults of a machine with pages of this size; bytes are converted to pages.
            pub fn of_pages($page_size: PageSize) -> Config {
                Config {
                    page_size: $page_size,
                    watermarks: WatermarkInputs::default(),
                    $(
                        $( $field: $default, )*
                        $( $policy_field: $policy_type::$policy_default, )*
                    )*
                }
            }

            /// The variant of a policy in force.
            pub const fn policy(&self, policy: Policy) -> PolicyChoice {
                match policy {
                    $( Policy::$mark => PolicyChoice::$mark(self.watermarks.$mark_field), )*
                    $($( Policy::$policy => PolicyChoice::$policy(self.$policy_field), )*)*
                }
            }

            /// Chooses a variant. For a running machine use [`Manager::choose`].
            ///
            /// [`Manager::choose`]: crate::interface::manager::Manager::choose
            pub const fn choose(&mut self, choice: PolicyChoice) {
                match choice {
                    $( PolicyChoice::$mark(variant) => self.watermarks.$mark_field = variant, )*
                    $($( PolicyChoice::$policy(variant) => self.$policy_field = variant, )*)*
                }
            }

            /// The number in a control file's field; `None`: it has no field.
            pub(crate) fn number(&self, sysctl: Sysctl) -> Option<i128> {
                match sysctl {
                    $( Sysctl::$file => None, )*
                    $($( Sysctl::$sysctl => Some(self.$field.number()), )*)*
                }
            }

            /// Sets the field of a control file, if any, to a checked number.
            pub(crate) fn set_number(&mut self, sysctl: Sysctl, number: i128) {
                match sysctl {
                    $( Sysctl::$file => {} )*
                    $($( Sysctl::$sysctl => self.$field = ControlNumber::of_number(number), )*)*
                }
            }
        }

        /// Mixes in everything except the page size, which never changes.
        impl State for Config {
            fn digest(&self, digest: &mut Digest) {
                $(
                    $( self.$field.digest(digest); )*
                    $( self.$policy_field.digest(digest); )*
                )*
                self.watermarks.digest(digest);
            }
        }
    };
}
pub(super) use tunables;
