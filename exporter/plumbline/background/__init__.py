"""Jobs that read in the background and keep the last answer for the scrape."""
