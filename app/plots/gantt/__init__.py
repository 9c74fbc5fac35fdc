"""The drawing of pipeline schedules: cells of all ranks over time, on screen and in figures."""
