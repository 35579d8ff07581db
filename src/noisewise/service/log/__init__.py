"""The log: the tables, the one writer, and who numbers rows.

Files
    store     connections to SQLite or PostgreSQL, and the schema
    writer    the one thread that writes, many rows per commit
    owners    who numbers the rows of a loop, and for how long
    events    what clients ask for, settled against the rows there are
    upkeep    waits that end, snapshots, and rows that go
    transfer  past decisions in, the log out
"""
