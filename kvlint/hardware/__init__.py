"""Device and instance facts, and the memory that a server may use."""
