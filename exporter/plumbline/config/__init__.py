"""The user's configuration: typed, strictly parsed, with one clear line for every error."""
