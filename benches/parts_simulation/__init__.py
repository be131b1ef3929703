"""A simulation of an export in parts: many workers, one database server, processes that die.

| module | contents |
|---|---|
| `rows` | ranges of rows; rows that are lost or doubled |
| `folder` | a folder of files in memory: names, contents, locks, and what a power failure leaves of them |
| `protocol` | the steps of `onecopy export --part` and of the move into the folder, and faulty variants of them |
| `peers` | the same rows appended to a table, as other tools do it |
| `reader` | the rows that a reader of the folder finds, and the conditions that it may rely on |
| `interleavings` | the steps of several processes in any order, with kills and power failures; without time |
| `server` | a database server with a limited rate, shared by its connections |
| `faults` | the failures of an export: which, how often |
| `cluster` | the discrete-event simulation: workers, a coordinator, failures |
| `costs` | measured costs, from a file in `benches/record` |
| `measurement` | the program that measures them: `python -m benches.parts_simulation.measurement` |
| `scenarios` | the simulated exports, many seeds of each, and their table |
| `picture` | the plot |

All modules but `measurement` and `picture` need only the standard library. `make bench
NAME=parts` runs the simulation.
"""
