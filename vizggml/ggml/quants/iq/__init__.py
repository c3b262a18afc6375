"""The IQ types: small groups of elements take their magnitudes from a codebook, and their signs apart."""
