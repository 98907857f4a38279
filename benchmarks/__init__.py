"""What things cost, measured side by side in one run. Nothing here is a test: a figure depends on its machine."""
