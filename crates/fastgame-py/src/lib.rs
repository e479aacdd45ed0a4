//! The Python binding: convert, lock, one core call, convert. Documentation for users is in
//! `python/fastgame/_core.pyi`.
#![allow(missing_docs)]

mod arrays;
mod budgets;
mod counter;
mod error;
mod join;
mod keys;
mod lines;
mod parameters;
mod plan;
mod profile;
mod range;
mod sketch;
mod store;
mod structure;
mod vector;

use pyo3::prelude::*;

/// The compiled half of fastgame.
#[pymodule(gil_used = true)]
mod _core {
    use pyo3::prelude::*;
    use pyo3::types::IntoPyDict;

    use crate::structure::_after_fork_in_child;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        let py = module.py();
        let os = py.import("os")?;
        // Where there is no fork there is no such function.
        if os.hasattr("register_at_fork")? {
            let hook = [("after_in_child", wrap_pyfunction!(_after_fork_in_child, module)?)].into_py_dict(py)?;
            os.call_method("register_at_fork", (), Some(&hook))?;
        }
        Ok(())
    }

    #[pymodule_export]
    use crate::budgets::{ApproxDp, Budget, Gdp, PureDp, Zcdp, total};
    #[pymodule_export]
    use crate::counter::ContinualCounter;
    #[pymodule_export]
    use crate::join::{JoinSide, JoinSize};
    #[pymodule_export]
    use crate::lines::_csv_rows;
    #[pymodule_export]
    use crate::plan::Plan;
    #[pymodule_export]
    use crate::profile::{FrequencyProfile, JoinProfile};
    #[pymodule_export]
    use crate::range::RangeCounter;
    #[pymodule_export]
    use crate::sketch::{CountSketch, RawSketch};
    #[pymodule_export]
    use crate::store::{_inspect, _keywords, _open};
    #[pymodule_export]
    use crate::structure::Structure;
    #[pymodule_export]
    use crate::vector::ContinualVector;
}
