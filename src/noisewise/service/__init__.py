"""The decision service: an `Agent` behind HTTP, on a log that loses nothing.

`noisewise serve` starts it. The log is the truth: rows are numbered by the owner of their loop, and
the state is a function of the numbered rows (`learner.py`), in every process and on every replay.

    loops        settings of a loop, and the agent they ask for
    events       what clients ask for and rows of the log hold, settled against each other
    store        connections to SQLite or PostgreSQL, and the schema
    writer       the one thread that writes, many rows per commit
    owners       who numbers the rows of a loop, and for how long
    learner      the state as a function of the numbered log
    choices      decisions from a state
    engine       the loops of a process, kept up with the log
    upkeep       waits that end, snapshots, and rows that go
    tokens       who may do what
    limits       how much a client may ask for
    api          the routes, and who may ask for them
    answers      answers and errors as HTTP has them, in our own words
    meter        counts of requests, and how long decisions took
    reading      what is known of a loop, for routes and the page
    recent       what happened in a loop of late
    page         the page
    sections     what its parts show
    charts       its charts, as SVG
    transfer     past decisions in, the log out
    demo         a simulated shop of known truth
    commands     serve, loops, tokens, replay and demo on the command line
"""
