"""Which known misconception behaves exactly as a submission does."""
