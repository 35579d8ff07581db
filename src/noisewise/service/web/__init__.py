"""Routes, the page, and who may do what.

Files
    api         the routes, and who may ask for them
    answers     answers and errors as HTTP has them
    tokens      who may do what
    limits      how much a client may ask for
    meter       counts of requests, and how long decisions took
    loop_facts  what is known of a loop, for routes and the page
    recent      what happened in a loop of late
    page        the page
    sections    what its parts show
    charts      its charts, as SVG
"""
