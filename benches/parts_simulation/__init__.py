"""A simulation of an export in parts: many workers, one database server, processes that die.

| module | contents |
|---|---|
| `rows` | ranges of rows; rows that are lost or doubled |
| `folder` | a folder of files in memory: names, contents, locks, and what a power failure leaves of them |
| `protocol` | the steps of `onecopy export --part`, and faulty variants of them |
| `interleavings` | the steps of several processes in any order, with kills and power failures; without time |
| `sinks` | the targets: a folder by the protocol; a table as the engines' writers or as peers write it |
| `cluster` | the discrete-event simulation: workers, a coordinator, a database server, failures |
| `measurement` | the program that measures the costs: `python -m benches.parts_simulation.measurement` |
| `scenarios` | the simulated exports from measured costs, many seeds of each, and their table |

All modules but `measurement` need only the standard library. `make bench NAME=parts` runs the
simulation.
"""
