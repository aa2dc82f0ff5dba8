"""Other ways to serve the cloud's half, as their own tutorials have it."""
