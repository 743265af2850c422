// Generated kernels of programs with reductions, and what they share with
// those without.
#pragma once

#include "backend/cuda/fused_text.h"

namespace mlx::core::cuda {

/// The part of the text after the prelude, for rows.
std::string fused_rows_text(const FusedProgram& program, const FusedForm& form);

/// The kernel's argument.
std::string fused_arguments(const FusedProgram& program, const FusedForm& form);
/// Fills `offsets`, of layouts 1, 2, ..., for the element (of rows: the row)
/// whose number is `number`.
std::string fused_locate(
    const FusedForm& form,
    const char* number,
    const std::vector<std::string>& offsets);

}  // namespace mlx::core::cuda
