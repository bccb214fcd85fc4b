"""Files, pasted texts and tables into texts."""
