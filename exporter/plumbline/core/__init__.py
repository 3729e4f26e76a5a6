"""Building blocks without a domain: files, processes, threads, the scheduler, units, the terminal."""
