"""The main window and the windows it opens."""
