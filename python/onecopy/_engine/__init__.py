"""Code that is shared by the adapters for data engines, `onecopy.spark` and `onecopy.ray`.

| module | contents |
|---|---|
| ``_database`` | connections of workers, by the name of a secret |
| ``_columns`` | the Arrow types that an engine accepts |
| ``_reading`` | one part as Arrow batches |
| ``_writing`` | rows that are written exactly once, although tasks are repeated |
| ``_filters`` | Spark's filters as conditions with bound values |
"""
