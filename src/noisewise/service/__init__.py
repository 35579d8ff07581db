"""The decision service: an `Agent` behind HTTP, on a log that loses nothing.

`noisewise serve` starts it. The log is the truth: rows are numbered by the owner of their loop, and
the state is a function of the numbered rows (`learner.py`), in every process and on every replay.

    loops        settings of a loop, and the agent they ask for
    events       what clients ask for, settled against the rows there are
    store        connections to SQLite or PostgreSQL, and the schema
    writer       the one thread that writes, many rows per commit
    owners       who numbers the rows of a loop, and for how long
    learner      the state as a function of the numbered log, and decisions from it
    engine       the loops of a process, kept up with the log
    tokens       who may do what
    limits       how much a client may ask for
    api          the routes
    reading      what is known of a loop, for routes and the page
    recent       what happened in a loop of late
    page         the page
    sections     what its parts show
    charts       its charts, as SVG
    transfer     past decisions in, the log out
    commands     serve, loops, tokens and replay on the command line
"""
