// All operations on arrays.
#pragma once

#include "mlx/ops/creation.h"
#include "mlx/ops/diagonal.h"
#include "mlx/ops/elementwise.h"
#include "mlx/ops/fp8.h"
#include "mlx/ops/hadamard.h"
#include "mlx/ops/indexing.h"
#include "mlx/ops/matmul.h"
#include "mlx/ops/quantized.h"
#include "mlx/ops/reduce.h"
#include "mlx/ops/scan.h"
#include "mlx/ops/shape.h"
#include "mlx/ops/softmax.h"
#include "mlx/ops/sort.h"
#include "mlx/ops/windows.h"
