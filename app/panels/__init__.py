"""The docks: fields of the design, problems, explanation and headline numbers."""
