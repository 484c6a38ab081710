"""LazyArray."""
