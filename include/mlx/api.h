// The export macro of the public interface.
#pragma once

#ifdef MLX_STATIC
#define MLX_API
#else
#define MLX_API __attribute__((visibility("default")))
#endif
