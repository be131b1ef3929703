//! The types and constants of ODBC that this crate uses, with their original names and values.
//!
//! Source: the ODBC Programmer's Reference (Microsoft Learn, "ODBC API Reference"), and the header
//! `msodbcsql.h` for Microsoft's own types. `SQLWCHAR` has 16 bits, as in unixODBC, Microsoft's
//! drivers and Windows. In iODBC on macOS it has 32 bits, so iODBC is not one of the driver
//! managers that are tried by default.
#![allow(non_camel_case_types)]

use std::ffi::c_void;

pub(crate) type Handle = *mut c_void;
pub(crate) type Return = i16;
pub(crate) type Len = isize;
pub(crate) type ULen = usize;

pub(crate) const SUCCESS: Return = 0;
pub(crate) const SUCCESS_WITH_INFO: Return = 1;
pub(crate) const NO_DATA: Return = 100;
pub(crate) const INVALID_HANDLE: Return = -2;

/// The value of a length parameter (`SQL_NTS`) for a string that ends at its NUL.
pub(crate) const NTS: i32 = -3;
pub(crate) const NULL_DATA: Len = -1;
pub(crate) const NO_TOTAL: Len = -4;

pub(crate) const HANDLE_ENV: i16 = 1;
pub(crate) const HANDLE_DBC: i16 = 2;
pub(crate) const HANDLE_STMT: i16 = 3;

// Numbers and values of environment and connection attributes.
pub(crate) const ATTR_ODBC_VERSION: i32 = 200;
pub(crate) const OV_ODBC3_80: usize = 380;
pub(crate) const OV_ODBC3: usize = 3;
pub(crate) const ATTR_ACCESS_MODE: i32 = 101;
pub(crate) const MODE_READ_ONLY: usize = 1;
pub(crate) const ATTR_AUTOCOMMIT: i32 = 102;
pub(crate) const ATTR_LOGIN_TIMEOUT: i32 = 103;
pub(crate) const ATTR_CONNECTION_DEAD: i32 = 1209;
pub(crate) const CD_FALSE: usize = 0;
pub(crate) const CD_TRUE: usize = 1;
pub(crate) const IS_UINTEGER: i32 = -5;

// Numbers of statement attributes, and values of row statuses.
pub(crate) const ATTR_ROW_BIND_TYPE: i32 = 5;
pub(crate) const ATTR_PARAM_STATUS_PTR: i32 = 20;
pub(crate) const ATTR_PARAMS_PROCESSED_PTR: i32 = 21;
pub(crate) const ATTR_PARAMSET_SIZE: i32 = 22;
pub(crate) const ATTR_ROW_BIND_OFFSET_PTR: i32 = 23;
pub(crate) const ATTR_ROW_STATUS_PTR: i32 = 25;
pub(crate) const ATTR_ROWS_FETCHED_PTR: i32 = 26;
pub(crate) const ATTR_ROW_ARRAY_SIZE: i32 = 27;

pub(crate) const ROW_SUCCESS: u16 = 0;
pub(crate) const ROW_NOROW: u16 = 3;
pub(crate) const ROW_ERROR: u16 = 5;
pub(crate) const ROW_SUCCESS_WITH_INFO: u16 = 6;
pub(crate) const POSITION: u16 = 0;
pub(crate) const LOCK_NO_CHANGE: u16 = 0;

// Options of SQLFreeStmt.
pub(crate) const CLOSE: u16 = 0;
pub(crate) const UNBIND: u16 = 2;
pub(crate) const RESET_PARAMS: u16 = 3;

// Completion types of SQLEndTran.
pub(crate) const COMMIT: i16 = 0;
pub(crate) const ROLLBACK: i16 = 1;

// Information types and values of SQLGetInfo.
pub(crate) const DRIVER_NAME: u16 = 6;
pub(crate) const DRIVER_VER: u16 = 7;
pub(crate) const DBMS_NAME: u16 = 17;
pub(crate) const DBMS_VER: u16 = 18;
pub(crate) const CURSOR_COMMIT_BEHAVIOR: u16 = 23;
pub(crate) const CURSOR_ROLLBACK_BEHAVIOR: u16 = 24;
pub(crate) const TXN_CAPABLE: u16 = 46;
pub(crate) const GETDATA_EXTENSIONS: u16 = 81;
pub(crate) const CB_PRESERVE: u16 = 2;
pub(crate) const GD_ANY_COLUMN: u32 = 1;
pub(crate) const GD_ANY_ORDER: u32 = 2;
pub(crate) const GD_BLOCK: u32 = 4;
pub(crate) const GD_BOUND: u32 = 8;

// Field identifiers of SQLColAttribute.
pub(crate) const DESC_UNSIGNED: u16 = 8;
pub(crate) const DESC_TYPE_NAME: u16 = 14;
pub(crate) const DESC_OCTET_LENGTH: u16 = 1013;

// Directions of SQLDrivers, and an option of SQLDriverConnect.
pub(crate) const FETCH_NEXT: u16 = 1;
pub(crate) const FETCH_FIRST: u16 = 2;
pub(crate) const DRIVER_NOPROMPT: u16 = 0;

pub(crate) const PARAM_INPUT: i16 = 1;
/// The status (`SQL_PARAM_ERROR`) of a row of parameters whose execution failed.
pub(crate) const PARAM_ERROR: u16 = 5;
pub(crate) const PARAM_SUCCESS_WITH_INFO: u16 = 6;
pub(crate) const NO_NULLS: i16 = 0;
pub(crate) const NULLABLE: i16 = 1;

/// SQL data types (`SQL_…`), with which a driver describes a column or parameter.
pub(crate) mod sql {
    pub(crate) const CHAR: i16 = 1;
    pub(crate) const NUMERIC: i16 = 2;
    pub(crate) const DECIMAL: i16 = 3;
    pub(crate) const INTEGER: i16 = 4;
    pub(crate) const SMALLINT: i16 = 5;
    pub(crate) const FLOAT: i16 = 6;
    pub(crate) const REAL: i16 = 7;
    pub(crate) const DOUBLE: i16 = 8;
    pub(crate) const DATE_2: i16 = 9;
    pub(crate) const TIME_2: i16 = 10;
    pub(crate) const TIMESTAMP_2: i16 = 11;
    pub(crate) const VARCHAR: i16 = 12;
    pub(crate) const TYPE_DATE: i16 = 91;
    pub(crate) const TYPE_TIME: i16 = 92;
    pub(crate) const TYPE_TIMESTAMP: i16 = 93;
    /// The first of the SQL types `SQL_INTERVAL_YEAR` to `SQL_INTERVAL_MINUTE_TO_SECOND`.
    pub(crate) const INTERVAL_FIRST: i16 = 101;
    pub(crate) const INTERVAL_LAST: i16 = 113;
    pub(crate) const LONGVARCHAR: i16 = -1;
    pub(crate) const BINARY: i16 = -2;
    pub(crate) const VARBINARY: i16 = -3;
    pub(crate) const LONGVARBINARY: i16 = -4;
    pub(crate) const BIGINT: i16 = -5;
    pub(crate) const TINYINT: i16 = -6;
    pub(crate) const BIT: i16 = -7;
    pub(crate) const WVARCHAR: i16 = -9;
    pub(crate) const WLONGVARCHAR: i16 = -10;
    pub(crate) const GUID: i16 = -11;
    /// The SQL type of Microsoft's `time(n)`, a time of day with a fraction.
    pub(crate) const SS_TIME2: i16 = -154;
    /// The SQL type of Microsoft's `datetimeoffset`.
    pub(crate) const SS_TIMESTAMPOFFSET: i16 = -155;
    /// The SQL type of Microsoft's CLR types (geometry, hierarchyid).
    pub(crate) const SS_UDT: i16 = -151;
}

/// ODBC's C data types (`SQL_C_…`), which specify the type of the values in a bound buffer.
pub(crate) mod c {
    pub(crate) const CHAR: i16 = 1;
    pub(crate) const FLOAT: i16 = 7;
    pub(crate) const DOUBLE: i16 = 8;
    pub(crate) const TYPE_DATE: i16 = 91;
    pub(crate) const TYPE_TIME: i16 = 92;
    pub(crate) const TYPE_TIMESTAMP: i16 = 93;
    pub(crate) const BIT: i16 = -7;
    pub(crate) const WCHAR: i16 = -8;
    pub(crate) const BINARY: i16 = -2;
    pub(crate) const GUID: i16 = -11;
    pub(crate) const SLONG: i16 = -16;
    pub(crate) const SBIGINT: i16 = -25;
    pub(crate) const UBIGINT: i16 = -27;
    /// The C type of Microsoft's struct for `time(n)`.
    pub(crate) const SS_TIME2: i16 = 0x4000;
    /// The C type of Microsoft's struct for `datetimeoffset`.
    pub(crate) const SS_TIMESTAMPOFFSET: i16 = 0x4001;
}

/// The C struct `SQLGUID`, which contains a UUID. The first three fields are in native byte order.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct GuidStruct {
    pub(crate) data1: u32,
    pub(crate) data2: u16,
    pub(crate) data3: u16,
    pub(crate) data4: [u8; 8],
}

/// Declares the struct of ODBC functions and the method that loads them. Each line of the macro
/// call contains both the field and the symbol of one function, so that the two always match.
macro_rules! functions {
    ($($field:ident = $symbol:literal ( $($arg:ty),* );)*) => {
        /// Pointers to the functions of the driver manager that this crate calls.
        pub(crate) struct Functions {
            $(pub(crate) $field: unsafe extern "system" fn($($arg),*) -> Return,)*
        }

        impl Functions {
            /// Looks up every function of the table in `library`, a loaded driver manager.
            ///
            /// # Safety
            /// The caller must ensure that `library` is an ODBC driver manager, whose
            /// symbols have the types of the ODBC reference. `library` must stay loaded while the
            /// table is used.
            ///
            /// # Errors
            /// The name of the first missing symbol.
            pub(crate) unsafe fn load(library: &libloading::Library) -> Result<Functions, libloading::Error> {
                Ok(Functions {
                    $(
                        // SAFETY: the caller vouches that the symbol has the type of the ODBC
                        // reference.
                        $field: unsafe { *library.get(concat!($symbol, "\0").as_bytes())? },
                    )*
                })
            }
        }
    };
}

functions! {
    alloc_handle = "SQLAllocHandle"(i16, Handle, *mut Handle);
    free_handle = "SQLFreeHandle"(i16, Handle);
    set_env_attr = "SQLSetEnvAttr"(Handle, i32, *mut c_void, i32);
    set_connect_attr = "SQLSetConnectAttr"(Handle, i32, *mut c_void, i32);
    get_connect_attr = "SQLGetConnectAttr"(Handle, i32, *mut c_void, i32, *mut i32);
    driver_connect = "SQLDriverConnect"(Handle, Handle, *const u8, i16, *mut u8, i16, *mut i16, u16);
    driver_connect_w = "SQLDriverConnectW"(Handle, Handle, *const u16, i16, *mut u16, i16, *mut i16, u16);
    disconnect = "SQLDisconnect"(Handle);
    get_info = "SQLGetInfo"(Handle, u16, *mut c_void, i16, *mut i16);
    get_info_w = "SQLGetInfoW"(Handle, u16, *mut c_void, i16, *mut i16);
    get_diag_rec = "SQLGetDiagRec"(i16, Handle, i16, *mut u8, *mut i32, *mut u8, i16, *mut i16);
    get_diag_rec_w = "SQLGetDiagRecW"(i16, Handle, i16, *mut u16, *mut i32, *mut u16, i16, *mut i16);
    exec_direct = "SQLExecDirect"(Handle, *const u8, i32);
    exec_direct_w = "SQLExecDirectW"(Handle, *const u16, i32);
    prepare = "SQLPrepare"(Handle, *const u8, i32);
    prepare_w = "SQLPrepareW"(Handle, *const u16, i32);
    execute = "SQLExecute"(Handle);
    num_params = "SQLNumParams"(Handle, *mut i16);
    describe_param = "SQLDescribeParam"(Handle, u16, *mut i16, *mut ULen, *mut i16, *mut i16);
    bind_parameter = "SQLBindParameter"(Handle, u16, i16, i16, i16, ULen, i16, *mut c_void, Len, *mut Len);
    num_result_cols = "SQLNumResultCols"(Handle, *mut i16);
    describe_col = "SQLDescribeCol"(Handle, u16, *mut u8, i16, *mut i16, *mut i16, *mut ULen, *mut i16, *mut i16);
    describe_col_w = "SQLDescribeColW"(Handle, u16, *mut u16, i16, *mut i16, *mut i16, *mut ULen, *mut i16, *mut i16);
    col_attribute = "SQLColAttribute"(Handle, u16, u16, *mut c_void, i16, *mut i16, *mut Len);
    col_attribute_w = "SQLColAttributeW"(Handle, u16, u16, *mut c_void, i16, *mut i16, *mut Len);
    more_results = "SQLMoreResults"(Handle);
    row_count = "SQLRowCount"(Handle, *mut Len);
    bind_col = "SQLBindCol"(Handle, u16, i16, *mut c_void, Len, *mut Len);
    fetch = "SQLFetch"(Handle);
    set_pos = "SQLSetPos"(Handle, ULen, u16, u16);
    get_data = "SQLGetData"(Handle, u16, i16, *mut c_void, Len, *mut Len);
    set_stmt_attr = "SQLSetStmtAttr"(Handle, i32, *mut c_void, i32);
    free_stmt = "SQLFreeStmt"(Handle, u16);
    cancel = "SQLCancel"(Handle);
    end_tran = "SQLEndTran"(i16, Handle, i16);
    drivers = "SQLDrivers"(Handle, u16, *mut u8, i16, *mut i16, *mut u8, i16, *mut i16);
}
