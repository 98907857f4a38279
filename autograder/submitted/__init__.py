"""Files as students submit them: notebooks in folders and zip files, damaged or wrapped in other files.

Students may change a file while it is read, and choose every name and byte in it. A folder is opened once and all files
are opened relative to it, so that the file that was checked is the file that is read. No zip file is unpacked to disk.
"""
