"""Everything that the user can do by menu, shortcut or palette, each under a stable id."""
