/* An ODBC driver manager whose answers are those that its connection string orders: for the tests
   of a driver that lies. `Driver=liar;name=…;rows=3;ind=1073741824` and so on; tests/support/lying.py
   has the table. It writes only where it was found that it may: the lies are in what it reports. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define SUCCESS 0
#define INFO 1
#define FAILED -1
#define NO_DATA 100
#define NO_TOTAL -4
#define UNSET INT64_MIN

enum { C_CHAR = 1, C_WCHAR = -8, C_BINARY = -2, C_SBIGINT = -25 };

/* The orders of the connection string; UNSET where it says nothing. `from` to `until` are the rows of
   the lie (from 0), in the second of two columns. */
static const char *const NAMES[] = {
    "rows", "from", "until", "type", "size", "digits", "ind", "fetch", "fetched", "status", "more",
    "cols", "fill", "diag", "diaglen", "gdrc", "gdind", "gdn", "gdtimes", "ext", "exec", "count",
    "describe", "later", "nullable", "params", "len", "bind", "attr", "setpos",
};
enum {
    ROWS, FROM, UNTIL, TYPE, SIZE, DIGITS, IND, FETCH, FETCHED, STATUS, MORE,
    COLS, FILL, DIAG, DIAGLEN, GDRC, GDIND, GDN, GDTIMES, EXT, EXEC, COUNT,
    DESCRIBE, LATER, NULLABLE, PARAMS, LEN, BIND, ATTR, SETPOS, N_NAMES
};

struct bytes {
    size_t len;
    unsigned char at[256];
};

struct connection {
    int64_t orders[N_NAMES];
    char name[64];
    char state[6];
    struct bytes good, bad;
};

struct column {
    int16_t c_type;
    char *to;
    intptr_t size;
    intptr_t *indicator;
};

struct statement {
    struct connection *of;
    struct column columns[2];
    int64_t next, row, results, reads, sent, executions;
    uintptr_t array_size, bind_type;
    uintptr_t *fetched, *offset;
    uint16_t *statuses;
    int has_rows;
};

static int64_t order(const struct connection *c, int what, int64_t otherwise)
{
    return c->orders[what] == UNSET ? otherwise : c->orders[what];
}

static int hex(char digit)
{
    return digit <= '9' ? digit - '0' : digit - 'a' + 10;
}

static void read_bytes(struct bytes *bytes, const char *text)
{
    while (text[0] && text[0] != ';' && bytes->len < sizeof bytes->at) {
        bytes->at[bytes->len++] = (unsigned char)(hex(text[0]) << 4 | hex(text[1]));
        text += 2;
    }
}

static const char *value_of(const char *text, const char *name)
{
    size_t n = strlen(name);
    for (; text; text = strchr(text, ';')) {
        text += *text == ';';
        if (!strncmp(text, name, n) && text[n] == '=')
            return text + n + 1;
        if (!*text)
            break;
    }
    return NULL;
}

static void copy_text(char *to, const char *text, size_t most)
{
    size_t n = 0;
    for (; text && *text && *text != ';' && n + 1 < most; n++)
        to[n] = *text++;
    to[n] = 0;
}

static void obey(struct connection *c, const char *text)
{
    for (int i = 0; i < N_NAMES; i++) {
        const char *value = value_of(text, NAMES[i]);
        c->orders[i] = value ? strtoll(value, NULL, 10) : UNSET;
    }
    copy_text(c->name, value_of(text, "name"), sizeof c->name);
    copy_text(c->state, value_of(text, "state"), sizeof c->state);
    if (value_of(text, "good"))
        read_bytes(&c->good, value_of(text, "good"));
    c->bad = c->good;
    c->bad.len = value_of(text, "bad") ? 0 : c->bad.len;
    if (value_of(text, "bad"))
        read_bytes(&c->bad, value_of(text, "bad"));
}

/* Text of our own in a buffer of `room` units of `width` bytes; without its terminator if `fill`. */
static void put_text(int fill, void *to, int64_t room, int width, const char *text)
{
    int64_t n = (int64_t)strlen(text), i;
    if (!to || room <= 0)
        return;
    if (fill)
        n = room;
    for (i = 0; i < n && (i < room - 1 || fill); i++) {
        uint16_t unit = (unsigned char)(fill ? 'n' : text[i]);
        memcpy((char *)to + i * width, &unit, (size_t)width);
    }
    if (i < room)
        memset((char *)to + i * width, 0, (size_t)width);
}

int16_t SQLAllocHandle(int16_t type, void *parent, void **handle)
{
    if (type == 3) {
        struct statement *s = calloc(1, sizeof *s);
        s->of = parent;
        s->array_size = 1;
        *handle = s;
    } else {
        *handle = calloc(1, sizeof(struct connection));
    }
    return SUCCESS;
}

int16_t SQLFreeHandle(int16_t type, void *handle)
{
    (void)type;
    free(handle);
    return SUCCESS;
}

int16_t SQLDriverConnect(struct connection *c, void *window, const char *text)
{
    (void)window;
    obey(c, text);
    return SUCCESS;
}

int16_t SQLDriverConnectW(struct connection *c, void *window, const uint16_t *text)
{
    char narrow[2048];
    size_t i = 0;
    (void)window;
    for (; text[i] && i < sizeof narrow - 1; i++)
        narrow[i] = (char)text[i];
    narrow[i] = 0;
    obey(c, narrow);
    return SUCCESS;
}

static int16_t info(struct connection *c, uint16_t what, void *to, int16_t room, int width)
{
    uint32_t number = what == 81 ? (uint32_t)order(c, EXT, 0) : 0;
    switch (what) {
    case 6:
        put_text(0, to, room / width, width, c->name);
        break;
    case 7:
        put_text(0, to, room / width, width, "1.0");
        break;
    case 17: case 18:
        put_text(0, to, room / width, width, "liar");
        break;
    default:
        memcpy(to, &number, 4);
    }
    return SUCCESS;
}

int16_t SQLGetInfo(struct connection *c, uint16_t what, void *to, int16_t room)
{
    return info(c, what, to, room, 1);
}

int16_t SQLGetInfoW(struct connection *c, uint16_t what, void *to, int16_t room)
{
    return info(c, what, to, room, 2);
}

static int16_t run(struct statement *s, int lies)
{
    struct connection *c = s->of;
    s->next = s->results = 0;
    s->executions++;
    s->has_rows = lies;
    return (int16_t)(lies ? order(c, EXEC, SUCCESS) : SUCCESS);
}

int16_t SQLExecDirect(struct statement *s, const char *sql)
{
    return run(s, !strncmp(sql, "lie", 3));
}

int16_t SQLExecDirectW(struct statement *s, const uint16_t *sql)
{
    return run(s, sql[0] == 'l' && sql[1] == 'i' && sql[2] == 'e');
}

int16_t SQLExecute(struct statement *s) { return run(s, 1); }

int16_t SQLNumResultCols(struct statement *s, int16_t *n)
{
    *n = (int16_t)(s->has_rows ? order(s->of, COLS, 2) : 0);
    return SUCCESS;
}

static int16_t describe(struct statement *s, uint16_t number, void *name, int width, int16_t room,
                        int16_t *len, int16_t *type, uintptr_t *size, int16_t *digits, int16_t *nullable)
{
    struct connection *c = s->of;
    char text[] = "c00000";
    for (int i = 5, n = number; i > 0; i--, n /= 10)
        text[i] = (char)('0' + n % 10);
    put_text((int)order(c, FILL, 0), name, room, width, number == 2 ? "value" : text);
    *len = (int16_t)(order(c, FILL, 0) ? 32767 : 5);
    *type = -5;
    *size = 19;
    *digits = 0;
    *nullable = (int16_t)order(c, NULLABLE, 1);
    if (number == 2) {
        int64_t kind = order(c, TYPE, -9);
        *type = (int16_t)(s->executions > 1 ? order(c, LATER, kind) : kind);
        *size = (uintptr_t)order(c, SIZE, 40);
        *digits = (int16_t)order(c, DIGITS, 2);
    }
    return (int16_t)order(c, DESCRIBE, SUCCESS);
}

int16_t SQLDescribeCol(struct statement *s, uint16_t number, void *name, int16_t room, int16_t *len,
                       int16_t *type, uintptr_t *size, int16_t *digits, int16_t *nullable)
{
    return describe(s, number, name, 1, room, len, type, size, digits, nullable);
}

int16_t SQLDescribeColW(struct statement *s, uint16_t number, void *name, int16_t room,
                        int16_t *len,
                        int16_t *type, uintptr_t *size, int16_t *digits, int16_t *nullable)
{
    return describe(s, number, name, 2, room, len, type, size, digits, nullable);
}

static int16_t attribute(struct statement *s, uint16_t what, void *to, int16_t room, int width,
                         intptr_t *n)
{
    if (to)
        put_text((int)order(s->of, FILL, 0), to, room / width, width, "type");
    else if (n)
        *n = what == 1013 ? (intptr_t)order(s->of, SIZE, 0) : 0;
    return SUCCESS;
}

int16_t SQLColAttribute(struct statement *s, uint16_t c, uint16_t what, void *to, int16_t room,
                        int16_t *len, intptr_t *n)
{
    (void)c, (void)len;
    return attribute(s, what, to, room, 1, n);
}

int16_t SQLColAttributeW(struct statement *s, uint16_t c, uint16_t what, void *to, int16_t room,
                         int16_t *len, intptr_t *n)
{
    (void)c, (void)len;
    return attribute(s, what, to, room, 2, n);
}

int16_t SQLBindCol(struct statement *s, uint16_t number, int16_t c_type, char *to, intptr_t size,
                   intptr_t *indicator)
{
    struct column column = {c_type, to, size, indicator};
    if (number >= 1 && number <= 2)
        s->columns[number - 1] = column;
    return (int16_t)(number == 2 ? order(s->of, BIND, SUCCESS) : SUCCESS);
}

int16_t SQLFreeStmt(struct statement *s, uint16_t what)
{
    if (what == 2)
        memset(s->columns, 0, sizeof s->columns);
    return SUCCESS;
}

int16_t SQLSetStmtAttr(struct statement *s, int32_t what, void *value)
{
    switch (what) {
    case 5: s->bind_type = (uintptr_t)value; break;
    case 23: s->offset = value; break;
    case 25: s->statuses = value; break;
    case 26: s->fetched = value; break;
    case 27: s->array_size = (uintptr_t)value; break;
    }
    return (int16_t)order(s->of, ATTR, SUCCESS);
}

/* Puts the value's bytes from `from` on into a buffer, text in the width of its type; returns
   their number. */
static int64_t put(const struct bytes *bytes, int64_t from, int16_t c_type, char *to, int64_t room)
{
    int width = c_type == C_WCHAR ? 2 : 1, end = c_type == C_WCHAR ? 2 : c_type == C_CHAR;
    int64_t len = (int64_t)bytes->len * width - from, n = len;
    if (n > room - end)
        n = (room - end) / width * width;
    for (int64_t i = 0; i < n; i += width) {
        uint16_t unit = bytes->at[(from + i) / width];
        memcpy(to + i, &unit, (size_t)width);
    }
    if (end && room >= end)
        memset(to + n, 0, (size_t)end);
    return len;
}

static int lies_in(const struct statement *s, int64_t row)
{
    return row >= order(s->of, FROM, 1) && row < order(s->of, UNTIL, 2);
}

static void put_row(struct statement *s, int64_t row, uintptr_t slot)
{
    for (int i = 0; i < 2; i++) {
        struct column *k = &s->columns[i];
        uintptr_t to = s->bind_type ? *s->offset : slot * (uintptr_t)k->size;
        uintptr_t beside = s->bind_type ? *s->offset : slot * sizeof(intptr_t);
        intptr_t *indicator = (intptr_t *)((char *)k->indicator + beside);
        if (!k->to)
            continue;
        if (i == 0) {
            memcpy(k->to + to, &row, 8);
            *indicator = 8;
            continue;
        }
        *indicator = put(lies_in(s, row) ? &s->of->bad : &s->of->good, 0, k->c_type, k->to + to, k->size);
        if (lies_in(s, row))
            *indicator = (intptr_t)order(s->of, IND, order(s->of, LEN, *indicator));
    }
}

int16_t SQLFetch(struct statement *s)
{
    struct connection *c = s->of;
    uintptr_t n = 0;
    int is_lie;
    s->row = s->next;
    s->reads = s->sent = 0;
    while (n < s->array_size && s->next < order(c, ROWS, 3))
        put_row(s, s->next++, n++);
    is_lie = s->row <= order(c, FROM, 1) && order(c, FROM, 1) <= s->next;
    for (uintptr_t i = 0; s->statuses && i < s->array_size; i++)
        s->statuses[i] = (uint16_t)(i < n ? is_lie ? order(c, STATUS, 0) : 0 : 3);
    if (s->fetched)
        *s->fetched = (uintptr_t)(is_lie ? order(c, FETCHED, (int64_t)n) : (int64_t)n);
    if (n == 0)
        return NO_DATA;
    return (int16_t)(is_lie ? order(c, FETCH, SUCCESS) : SUCCESS);
}

int16_t SQLSetPos(struct statement *s, uintptr_t row)
{
    if (s->next > (int64_t)s->array_size && s->bind_type == 0)
        s->row = (s->next - 1) / (int64_t)s->array_size * (int64_t)s->array_size;
    s->row += (int64_t)row - 1;
    s->reads = s->sent = 0;
    return (int16_t)order(s->of, SETPOS, SUCCESS);
}

/* `len` bytes of `x`, which were reported; what is left of them. */
static int64_t put_long(struct statement *s, int16_t c_type, char *to, int64_t room, int64_t len)
{
    int width = c_type == C_WCHAR ? 2 : 1, end = c_type == C_WCHAR ? 2 : c_type == C_CHAR;
    int64_t left = len - s->sent, n = left < room - end ? left : (room - end) / width * width;
    uint16_t unit = 'x';
    for (int64_t i = 0; i < n; i += width)
        memcpy(to + i, &unit, (size_t)width);
    if (end)
        memset(to + n, 0, (size_t)end);
    s->sent += n;
    return left;
}

int16_t SQLGetData(struct statement *s, uint16_t number, int16_t c_type, char *to, intptr_t room,
                   intptr_t *indicator)
{
    struct connection *c = s->of;
    int is_lie = number == 2 && lies_in(s, s->row);
    int64_t left, n = order(c, GDN, UNSET);
    if (number == 1) {
        memcpy(to, &s->row, 8);
        *indicator = 8;
        return SUCCESS;
    }
    if (is_lie && n != UNSET && s->reads++ < order(c, GDTIMES, INT64_MAX)) {
        int end = c_type == C_WCHAR ? 2 : c_type == C_CHAR;
        if (n < 0)
            n = (room - end) & ~1;
        if (n <= room - end) {
            memset(to, 'y', (size_t)n);
            if (order(c, GDN, 0) != 0 || order(c, GDIND, 0) >= 0)
                memset(to + n, 0, (size_t)end);
        }
        *indicator = (intptr_t)order(c, GDIND, NO_TOTAL);
        return (int16_t)order(c, GDRC, INFO);
    }
    if (is_lie && order(c, LEN, UNSET) != UNSET)
        left = put_long(s, c_type, to, room, order(c, LEN, 0));
    else
        left = put(is_lie ? &c->bad : &c->good, 0, c_type, to, room);
    *indicator = left;
    return left > room - (c_type == C_WCHAR ? 2 : c_type == C_CHAR) ? INFO : SUCCESS;
}

int16_t SQLMoreResults(struct statement *s)
{
    if (!s->has_rows && s->results == 0)
        return NO_DATA;
    if (s->results++ >= order(s->of, MORE, 0))
        return NO_DATA;
    s->next = 0;
    return SUCCESS;
}

int16_t SQLRowCount(struct statement *s, intptr_t *n)
{
    *n = (intptr_t)order(s->of, COUNT, -1);
    return SUCCESS;
}

static int16_t diagnose(int16_t type, void *handle, int16_t number, void *state, int32_t *native,
                        void *to,
                        int16_t room, int16_t *len, int width)
{
    struct connection *c = type == 3 ? ((struct statement *)handle)->of : handle;
    if (type == 1 || number > order(c, DIAG, 0))
        return NO_DATA;
    for (int i = 0; i < 6; i++) {
        uint16_t unit = (unsigned char)c->state[i];
        memcpy((char *)state + i * width, &unit, (size_t)width);
    }
    put_text(order(c, DIAG, 0) > 64, to, room, width, "the driver's own words");
    *native = INT32_MIN;
    *len = (int16_t)order(c, DIAGLEN, 22);
    return SUCCESS;
}

int16_t SQLGetDiagRec(int16_t type, void *handle, int16_t number, void *state, int32_t *native,
                      void *to, int16_t room, int16_t *len)
{
    return diagnose(type, handle, number, state, native, to, room, len, 1);
}

int16_t SQLGetDiagRecW(int16_t type, void *handle, int16_t number, void *state, int32_t *native,
                       void *to, int16_t room, int16_t *len)
{
    return diagnose(type, handle, number, state, native, to, room, len, 2);
}

int16_t SQLNumParams(struct statement *s, int16_t *n)
{
    *n = (int16_t)order(s->of, PARAMS, 0);
    return SUCCESS;
}

int16_t SQLGetConnectAttr(void *c, int32_t what, void *value)
{
    (void)c, (void)what;
    memset(value, 0, 4);
    return SUCCESS;
}

int16_t SQLDrivers(void) { return NO_DATA; }
int16_t SQLDescribeParam(void) { return FAILED; }

#define SUCCEEDS(name) int16_t name(void) { return SUCCESS; }
SUCCEEDS(SQLSetEnvAttr) SUCCEEDS(SQLSetConnectAttr) SUCCEEDS(SQLDisconnect) SUCCEEDS(SQLPrepare)
SUCCEEDS(SQLPrepareW) SUCCEEDS(SQLBindParameter) SUCCEEDS(SQLCancel) SUCCEEDS(SQLEndTran)
