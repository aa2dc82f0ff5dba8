"""Many experiments: a grid in YAML becomes ordinary run folders, on this machine or on a Ray cluster."""
