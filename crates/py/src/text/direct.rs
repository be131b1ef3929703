//! The functions of `onecopy.text` for one encoding, for example `utf_8_decode`.

/// Declares a Python function for each encoding in the list. It does the same as `$does`. A line
/// has the form `Type "name" codec, "description";`.
macro_rules! direct_functions {
    ($does:ident, $quickly:ident, $argument:literal, $doc:literal;
     $($type:ident $name:literal $codec:expr, $what:literal;)*) => {
        $(
            struct $type;

            impl Function for $type {
                const NAME: &'static str = $name;
                const SIGNATURE: &'static str = concat!("(", $argument, ", errors='strict')");
                const DOC: &'static str = concat!(
                    $doc, $what, ".\n\nAs :func:`", stringify!($does), "`, without the lookup of a name.\n"
                );
                const PARAMETERS: &'static [&'static str] = &[$argument, "errors"];
                const REQUIRED: usize = 1;

                #[inline(always)]
                fn quick<'py>(py: Python<'py>, args: &Args<'_, 'py>) -> Option<Bound<'py, PyAny>> {
                    $quickly(py, args.get(0)?, $codec)
                }

                fn call<'py>(py: Python<'py>, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
                    $does(py, args.required(0), $codec, args.get(1))
                }
            }
        )*

        fn add_direct(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(function::add::<$type>(module)?;)*
            Ok(())
        }
    };
}
pub(super) use direct_functions;
