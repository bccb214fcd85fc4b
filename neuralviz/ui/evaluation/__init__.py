"""What the evaluation page consists of."""
