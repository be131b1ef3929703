"""Arrow streams with `onecopy.aio`: rows are read into pyarrow, and inserted from it."""

from __future__ import annotations

import asyncio

import pyarrow as pa

from onecopy import aio


def test_a_result_becomes_a_table_and_is_inserted_again() -> None:
    async def main() -> None:
        con = await aio.connect("sqlite::memory:")
        await con.execute("create table t (i integer, s text)")
        rows = [(i, f"row {i}") for i in range(1000)]
        await con.executemany("insert into t values (?, ?)", rows)
        cur = await con.execute("select * from t order by i")
        table = await asyncio.to_thread(pa.table, await cur.arrow())
        assert table.column("i").to_pylist() == [i for i, _ in rows]
        assert table.column("s").to_pylist() == [s for _, s in rows]
        await con.execute("create table copy (i integer, s text)")
        assert (await con.cursor().insert_arrow("copy", table)).rowcount == 1000
        cur = await con.execute("select * from copy order by i")
        assert await cur.fetchall() == rows
        await con.close()

    asyncio.run(main())
