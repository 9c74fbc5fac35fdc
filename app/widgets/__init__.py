"""Small controls that every panel shares."""
