"""Common parts of all pages: style, templates, charts, the document model and its Markdown. Knows no single page."""
