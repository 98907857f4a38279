"""exercises/ and solutions/ -> source/ -> release/, byte for byte the same each time."""
