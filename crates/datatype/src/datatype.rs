// SPDX-License-Identifier: Apache-2.0
//! A datatype: what it is made of, how large it is, and where its data lie.

use std::sync::{Arc, OnceLock};

use crate::basic::{ALL, Basic};
use crate::bounds::Bounds;
use crate::contents::{Combiner, ContentsOf};
use crate::error::{TypeError, narrow};
use crate::layout::{self, Nest, Placed};
use crate::signature::Signature;

/// The arguments of the call that made a datatype.
pub type Contents = ContentsOf<Datatype>;

/// An MPI datatype: immutable, cheap to clone.
#[derive(Clone, Debug)]
pub struct Datatype(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    basic: Option<Basic>,
    bounds: Bounds,
    layout: Option<Placed>,
    /// The layout as a nest, for messages of several elements; made when the first one needs it.
    nest: OnceLock<Arc<Nest>>,
    signature: Signature,
    contents: Contents,
}

impl Datatype {
    /// Whether it is this very object, or a clone of it. Others may be equal all the same.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The predefined datatype.
    pub fn of(basic: Basic) -> Self {
        static NAMED: OnceLock<Vec<Datatype>> = OnceLock::new();
        let named = NAMED.get_or_init(|| ALL.iter().map(|&b| Self::named(b)).collect());
        ALL.binary_search(&basic)
            .map_or_else(|_| Self::named(basic), |i| named[i].clone())
    }

    fn named(basic: Basic) -> Self {
        let (size, extent) = (basic.size() as u64, basic.extent() as i64);
        let index = (basic.index_offset(), basic.index_size());
        let mut parts = layout::Sequencer::default();
        parts.push(Placed::run(0, size - index.1 as u64));
        if index.1 > 0 {
            parts.push(Placed::run(index.0 as i64, index.1 as u64));
        }
        let bounds = Bounds {
            size,
            lower: 0,
            upper: extent,
            true_lower: 0,
            true_upper: if index.1 > 0 {
                (index.0 + index.1) as i64
            } else {
                extent
            },
            marked_lower: false,
            marked_upper: false,
            alignment: basic.alignment() as u64,
        };
        Self(Arc::new(Inner {
            basic: Some(basic),
            bounds,
            layout: parts.finish().ok().flatten(),
            nest: OnceLock::new(),
            signature: Signature::of(basic),
            contents: Contents::new(Combiner::Named, vec![], vec![], vec![]),
        }))
    }

    /// A datatype from its parts; they must agree with each other.
    pub(crate) fn assemble(bounds: Bounds, layout: Option<Placed>, signature: Signature, contents: Contents) -> Self {
        debug_assert_eq!(bounds.size, layout.as_ref().map_or(0, |p| p.layout.size()));
        debug_assert_eq!(bounds.size, signature.bytes());
        Self(Arc::new(Inner {
            basic: None,
            bounds,
            layout,
            nest: OnceLock::new(),
            signature,
            contents,
        }))
    }

    /// The same type, remembered as made by the large-count (`_c`) version of its constructor.
    pub fn large(self) -> Self {
        let contents = self.0.contents.clone().large();
        self.made_by(contents)
    }

    /// The same type, remembered as made in another way.
    pub(crate) fn made_by(&self, contents: Contents) -> Self {
        let inner = &self.0;
        Self(Arc::new(Inner {
            basic: inner.basic,
            bounds: inner.bounds,
            layout: inner.layout.clone(),
            nest: OnceLock::new(),
            signature: inner.signature.clone(),
            contents,
        }))
    }

    /// Which predefined datatype this is; `None` for derived ones, also for a duplicate of a predefined one.
    pub fn basic(&self) -> Option<Basic> {
        self.0.basic
    }

    /// Bytes of data in one element.
    pub fn size(&self) -> u64 {
        self.0.bounds.size
    }

    /// Bytes of data in `count` elements.
    pub fn bytes(&self, count: u64) -> Result<u64, TypeError> {
        match count.checked_mul(self.size()) {
            Some(bytes) if i64::try_from(bytes).is_ok() => Ok(bytes),
            _ => Err(TypeError::Overflow { quantity: "size" }),
        }
    }

    /// Distance between consecutive elements, bytes.
    #[inline]
    pub fn extent(&self) -> i64 {
        self.0.bounds.extent()
    }

    /// Lower bound, bytes from the origin.
    pub fn lower_bound(&self) -> i64 {
        self.0.bounds.lower
    }

    /// Offset of the first byte of data; 0 if there are none.
    pub fn true_lower_bound(&self) -> i64 {
        self.0.bounds.true_lower
    }

    /// Distance from the first byte of data to behind the last.
    pub fn true_extent(&self) -> i64 {
        self.0.bounds.true_upper - self.0.bounds.true_lower
    }

    /// How it was made.
    pub fn contents(&self) -> &Contents {
        &self.0.contents
    }

    /// The basics in it.
    pub fn signature(&self) -> &Signature {
        &self.0.signature
    }

    /// Number of whole basics in the first `bytes` bytes of a stream of this type; `None` if it ends inside one
    /// (MPI_Get_elements: MPI_UNDEFINED).
    pub fn elements(&self, bytes: u64) -> Option<u64> {
        let (elements, rest) = self.0.signature.elements_in(bytes);
        (rest == 0).then_some(elements)
    }

    /// The bytes `low .. high` from the origin that `count` elements touch: what the constructors of
    /// [`raw`](crate::raw) values want.
    pub fn window(&self, count: u64) -> Result<(isize, isize), TypeError> {
        if count == 1 {
            return Ok((self.true_lower_bound() as isize, self.0.bounds.true_upper as isize));
        }
        if count == 0 || self.size() == 0 {
            return Ok((0, 0));
        }
        self.bytes(count)?;
        let Bounds {
            true_lower, true_upper, ..
        } = self.0.bounds;
        let last = i128::from(count - 1) * i128::from(self.extent());
        let low = narrow(i128::from(true_lower) + last.min(0), "true lower bound")?;
        let high = narrow(i128::from(true_upper) + last.max(0), "true upper bound")?;
        narrow(i128::from(high) - i128::from(low), "extent")?;
        Ok((low as isize, high as isize))
    }

    /// If the data of `count` elements lie in one piece and in order: its offset from the origin and its length. No
    /// data: (0, 0). A piece that does not fit 63 bits is none; [`Datatype::window`] says what is wrong with it.
    #[inline]
    pub fn contiguous(&self, count: u64) -> Option<(isize, u64)> {
        let Some(one) = self.layout().filter(|_| count > 0) else {
            return Some((0, 0));
        };
        let layout::Layout::Run { length } = one.layout else {
            return None;
        };
        let length = match count {
            1 => length,
            _ if u64::try_from(self.extent()) == Ok(length) => length.checked_mul(count)?,
            _ => return None,
        };
        one.offset.checked_add_unsigned(length)?;
        i64::try_from(length).ok()?;
        Some((one.offset as isize, length))
    }

    /// The layout of `count` elements, for packers.
    pub(crate) fn repeated(&self, count: u64) -> Result<Option<Placed>, TypeError> {
        if count == 1 {
            return Ok(self.layout().cloned());
        }
        self.window(count)?;
        let nest = |one: &layout::Layout| self.0.nest.get_or_init(|| Nest::of_one(one)).clone();
        let repeated = |one| layout::repeat_with(count, self.extent(), one, nest);
        Ok(self.layout().and_then(repeated))
    }

    #[inline]
    pub(crate) fn layout(&self) -> Option<&Placed> {
        self.0.layout.as_ref()
    }

    pub(crate) fn bounds(&self) -> &Bounds {
        &self.0.bounds
    }
}

/// A number that no other type has while this one is there.
pub(crate) fn identity(ty: &Datatype) -> usize {
    Arc::as_ptr(&ty.0) as usize
}

/// Datatypes made from datatypes form chains of any length; they are taken down without recursion.
impl Drop for Inner {
    fn drop(&mut self) {
        let mut types = std::mem::take(&mut self.contents.types).into_vec();
        while let Some(datatype) = types.pop() {
            if let Some(mut inner) = Arc::into_inner(datatype.0) {
                types.extend(std::mem::take(&mut inner.contents.types));
            }
        }
    }
}
