// Structure features of a peptide from many sampled conformations, where peptide_features.h uses one ideal structure.
#pragma once

#include <string_view>

#include "unidle/cache/predictor.h"

namespace unidle::workloads::protein {

/// The features of peptide_features(), with these replaced by an ensemble's: Metropolis sampling (Metropolis et al., J.
/// Chem. Phys. 21, 1953, 1087-1092) of the torsions at temperature 1, starting at the ideal structure, 200 moves per
/// residue. The energy is harmonic in the torsions about their ideals (width 40 degrees), -1 for each pair of
/// hydrophobic residues (Kyte and Doolittle, J. Mol. Biol. 157, 1982, 105-132: above 0) four or more apart whose CA are
/// within 8 angstrom, and 5 for each pair three or more apart within 3.6. `distances` are means over the second half of
/// the samples, `contacts` 1 where that is below 8; `angles` and `positions` are of the sample with the lowest energy.
/// Depends on the sequence only; takes some milliseconds per residue.
/// the sequence alone; some milliseconds a residue.
cache::Prediction ensemble_features(std::string_view sequence);

}  // namespace unidle::workloads::protein
