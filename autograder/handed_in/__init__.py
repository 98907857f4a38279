"""Reading what strangers hand in, so that the file that was checked is the file that is read."""
