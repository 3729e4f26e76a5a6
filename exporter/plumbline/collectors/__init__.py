"""MAP: a reading or a result in, samples out; each module owns its metric specs; no I/O here."""
