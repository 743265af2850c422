"""Lynx: the MLX array framework for Linux. See `mlx.core` and `mlx.nn`."""
