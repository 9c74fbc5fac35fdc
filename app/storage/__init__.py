"""What outlives a session: settings, recent files and recovery snapshots."""
