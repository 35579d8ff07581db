"""What every room needs that is not mathematics: interpreter, threads, printing, versions.

Files
    arrays           types of arrays
    drawing          colours and style of all figures
    forking          forks, which wait for threads inside agents and states
    interruptible    an interrupt that is heard during long compiled calls
    lazy             public names, imported on first use
    ownership        one thread at a time, and states that an interrupt left half written
    printing         objects that hold arrays on one line, shares in per cent
    progress         a progress bar
    provenance       sources, versions and processor behind a number
    shell_words      messages of the library as the shell says them
    supported        which Python and numba are refused, how to install the extras
    worker_versions  Dask's workers must have the noisewise of the driver
"""
