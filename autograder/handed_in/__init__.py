"""What strangers hand in, read so that what was looked at is what is read."""
