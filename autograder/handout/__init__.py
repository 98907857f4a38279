"""What students get beside their notebooks."""
