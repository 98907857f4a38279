"""Students' texts as HTML, made by a confined process, so that no text can hold up or harm whoever asks for it."""
