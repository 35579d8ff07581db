"""What every room needs that is not mathematics: interpreter, threads, printing, versions."""
