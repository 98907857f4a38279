"""Exchange with Canvas and Moodle: zip files of submissions in, tables of grades and zip files of feedback out.

Neither platform names files by a student's id, so `roster_match` reads their file names and finds the student on the
roster. Names and files are the students' own choice and are not trusted. Others import `grade_tables` and
`zip_files`.
"""
