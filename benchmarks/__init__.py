"""What things cost, measured side by side in one run. These are not tests: the figures depend on the machine."""
