"""Jobs that read in the background and keep the latest answer for the scrape."""
