"""The parts of hidden tests, such as contracts and cases, and the collection of a course's hidden tests."""
