/* A driver manager for tests: connecting to `Driver=aborts` aborts the process, any other connect
   fails without a reason. */
#include <stdlib.h>

#define FAILED -1
#define NO_DATA 100

#define FAILS(name) short name(void) { return FAILED; }
#define SUCCEEDS(name) short name(void) { return 0; }

short SQLAllocHandle(short type, void *parent, void **handle)
{
    static char handles[4];
    (void)parent;
    *handle = &handles[type & 3];
    return 0;
}

/* The text in UTF-16, as drivers that are not known get it. */
short SQLDriverConnectW(void *connection, void *window, const unsigned short *text, short length)
{
    static const char aborts[] = "Driver=aborts";
    int i = 0;
    (void)connection, (void)window, (void)length;
    while (aborts[i] && text[i] == (unsigned char)aborts[i])
        i++;
    if (!aborts[i])
        abort();
    return FAILED;
}

short SQLGetDiagRec(void) { return NO_DATA; }
short SQLGetDiagRecW(void) { return NO_DATA; }
short SQLDrivers(void) { return NO_DATA; }

SUCCEEDS(SQLFreeHandle) SUCCEEDS(SQLSetEnvAttr) SUCCEEDS(SQLSetConnectAttr) SUCCEEDS(SQLDisconnect)

FAILS(SQLDriverConnect) FAILS(SQLGetConnectAttr) FAILS(SQLGetInfo) FAILS(SQLGetInfoW)
FAILS(SQLExecDirect) FAILS(SQLExecDirectW) FAILS(SQLPrepare) FAILS(SQLPrepareW) FAILS(SQLExecute)
FAILS(SQLNumParams) FAILS(SQLDescribeParam) FAILS(SQLBindParameter) FAILS(SQLNumResultCols)
FAILS(SQLDescribeCol) FAILS(SQLDescribeColW) FAILS(SQLColAttribute) FAILS(SQLColAttributeW)
FAILS(SQLMoreResults) FAILS(SQLRowCount) FAILS(SQLBindCol) FAILS(SQLFetch) FAILS(SQLSetPos)
FAILS(SQLGetData) FAILS(SQLSetStmtAttr) FAILS(SQLFreeStmt) FAILS(SQLCancel) FAILS(SQLEndTran)
