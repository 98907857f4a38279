"""exercises/ and solutions/ -> source/ -> release/, the same bytes each time."""
