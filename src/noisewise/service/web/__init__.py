"""Routes, the page, and who may do what."""
