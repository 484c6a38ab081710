"""scipy.sparse in and out; sparse factors and products."""
