"""Files: written whole or not at all, read without trust.

Files
    archive  `save` and `load`: which classes a file may make
    members  the arrays of a file, read without trust
    states   what the fields of a state may hold, checked when it is made
    files    files that are there whole or not at all
"""
