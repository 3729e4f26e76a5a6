"""ACT: one probe a module; config, clock and runner in, a result out."""
