"""Exchange with Canvas and Moodle: zip files of submissions in, tables of grades and zip files of feedback out.

Gradescope runs `autograder mark`, and reads the results file that `reports.exports` writes.

Neither platform names files by a student's id, so `roster_match` reads the file names and finds the student on the
roster. Students choose names and files, so these are not trusted. Others import `grade_tables` and `zip_files`.
"""
