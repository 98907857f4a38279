"""What students wrote as HTML, made by a confined process of its own: no text can hold or harm who asks for it."""
