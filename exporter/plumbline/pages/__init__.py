"""What all pages share: style, templates, charts, the model of a document and its Markdown. Knows no page."""
