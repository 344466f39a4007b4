"""Text to located trees: one module a syntax.  Nothing here knows what an engine is."""
