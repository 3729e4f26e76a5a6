"""What a user may write: typed, read strictly, with one clear line for every mistake."""
