"""The decision service: an `Agent` behind HTTP, on a log that loses nothing.

`noisewise serve` starts it. The log is the truth: rows are inserted without a number, the owner of
their loop alone numbers them, and the state is a function of the numbered rows (`learner`), in
every process and on every replay. So a decision is read from the log and never taken again
(`Agent.adopt`), and a replay is equal bit for bit.

Files
    log/      The log: the tables, the one writer, and who numbers rows
    web/      Routes, the page, and who may do what
    commands  serve, loops, tokens, replay and demo on the command line
    demo      a simulated shop of known truth
    engine    the loops of a process, kept up with the log
    loops     settings of a loop, and the agent they ask for
    learner   the state as a function of the numbered log
    choices   decisions from a state
"""
