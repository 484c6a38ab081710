"""What a LinearOperator is in Python."""
