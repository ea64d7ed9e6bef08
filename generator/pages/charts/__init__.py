"""Charts as inline SVG. Colours are classes of `page.css`; every text from outside is escaped here."""
