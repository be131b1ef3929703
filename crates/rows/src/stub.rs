// The shape that `connect` wants of each kind of database, until both stand.
use crate::schema::Schema;
use crate::source::{Block, Budget, Emitted, Fetched, LongValues, RowSink, Source};
use onecopy_wire::CancelHandle;

fn not_yet() -> Error {
    Error::new(ErrorKind::NotSupported, "this source is not built yet")
}

/// A connection.
#[derive(Debug)]
pub struct Connection(());

/// A statement.
#[derive(Debug)]
pub struct Statement(Schema);

/// The current block.
#[derive(Debug)]
pub struct CurrentBlock(());

#[allow(missing_docs, clippy::missing_errors_doc, clippy::unused_self)]
impl Connection {
    pub fn open(_: &str, _: &ConnectOptions) -> Result<Connection, Error> {
        Err(not_yet())
    }
    pub fn execute(&self, _: &str, _: &[Value]) -> Result<Statement, Error> {
        Err(not_yet())
    }
    pub fn execute_many(
        &self,
        _: &str,
        _: &mut dyn Iterator<Item = Vec<Value>>,
    ) -> Result<Option<u64>, Error> {
        Err(not_yet())
    }
    pub fn prepare_check(&self, _: &str) -> Result<crate::connect::Prepared, Error> {
        Err(not_yet())
    }
    pub fn cancel_handle(&self) -> CancelHandle {
        CancelHandle::new(|| ())
    }
    pub fn commit(&self) -> Result<(), Error> {
        Err(not_yet())
    }
    pub fn rollback(&self) -> Result<(), Error> {
        Err(not_yet())
    }
    pub fn set_autocommit(&self, _: bool) -> Result<(), Error> {
        Err(not_yet())
    }
    pub fn autocommit(&self) -> bool {
        false
    }
    pub fn close(&self) -> Result<(), Error> {
        Ok(())
    }
    pub fn notices(&self) -> Vec<String> {
        Vec::new()
    }
    pub fn describe(&self) -> String {
        String::new()
    }
}

#[allow(missing_docs)]
impl Statement {
    pub fn row_count(&self) -> Option<u64> {
        None
    }
    pub fn last_row_id(&self) -> Option<i64> {
        None
    }
    pub fn set_long_values(&mut self, _: LongValues) {}
}

impl Source for Statement {
    type Block = CurrentBlock;
    fn schema(&self) -> &Schema {
        &self.0
    }
    fn fetch(&mut self, _: Budget) -> Result<Fetched, Error> {
        Err(not_yet())
    }
    fn block(&self) -> &CurrentBlock {
        unreachable!("fetch never succeeds")
    }
    fn cancel_handle(&self) -> CancelHandle {
        CancelHandle::new(|| ())
    }
}

impl Block for CurrentBlock {
    fn n_rows(&self) -> usize {
        0
    }
    fn emit<S: RowSink>(&self, _: usize, _: &mut S) -> Result<Emitted, S::Error> {
        Ok(Emitted::All)
    }
    fn emit_columns<S: RowSink>(&self, _: usize, _: usize, _: &mut S) -> Result<(), S::Error> {
        Ok(())
    }
}
