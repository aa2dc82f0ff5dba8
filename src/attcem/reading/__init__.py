"""Doors for files that somebody else may have written: bounded, inert, and a ValueError that names the file."""
