"""The hidden tests, a folder for each unit: plain pytest, with helpers in the modules next to the folders."""
