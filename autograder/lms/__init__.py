"""To and from Canvas and Moodle: their zip files of submissions, and the marks and feedback that they take back."""
