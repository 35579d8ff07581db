"""How kernels are compiled, and where machine code is kept.

Files
    compile_options  entries that Python calls, and the parts compiled into them
    linked_parts     parts are compiled once, where they are linked
    borrowed         arguments of a step, read where they lie in Python's memory
    cache            machine code on disk, by a digest of the sources
    compile_note     the note on a terminal meanwhile
    warm_up          all kernels ahead
"""
