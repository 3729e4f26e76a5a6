"""ACT: one probe per module; config, clock and runner in, a result out."""
