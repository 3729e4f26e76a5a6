"""What every report on paper shares: the page around it, Markdown, numbers, scales and shapes. Knows no report."""
