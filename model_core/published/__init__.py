"""Published measurements as data, and the designs under which they were taken."""
