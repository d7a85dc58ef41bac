// SPDX-License-Identifier: Apache-2.0
//! What an attribute is.

/// What an attribute's values look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One text.
    Text,
    /// One number of at least this.
    Number(u64),
    /// One number of at least this, also with a kind behind it: `4:fast`.
    Counted(u64),
    /// `yes` or `no`.
    YesNo,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Texts.
    Texts,
    /// Pairs of texts.
    Pairs,
    /// Texts, or pairs of texts.
    Places,
}

/// What becomes of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It becomes this part of the subjob.
    Understood(&'static str),
    /// It becomes this part of what is asked of the scheduler that the contact names; it is kept when none is named.
    Scheduled(&'static str),
    /// It is checked, kept and passed on; what the user should know when the job runs, if anything.
    Kept(&'static str),
    /// It is kept, and the launcher does it: what.
    Obeyed(&'static str),
    /// It cannot be asked for; what to do instead.
    Refused(&'static str),
}

/// One attribute.
#[derive(Debug, PartialEq, Eq)]
pub struct Attribute {
    /// Name in RSL. Case and underscores do not matter there.
    pub name: &'static str,
    /// Form of its values.
    pub shape: Shape,
    /// What becomes of it.
    pub fate: Fate,
}
