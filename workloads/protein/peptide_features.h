// Structure features of a peptide from its sequence alone, without model weights: propensities of secondary structure,
// the backbone that they imply, and features of that backbone.
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "unidle/cache/predictor.h"

namespace unidle::workloads::protein {

using Point = std::array<double, 3>;  // in angstrom

/// Degrees.
struct Torsions {
  double phi = 0;
  double psi = 0;
  double omega = 180;
};

/// N, CA and C of each residue in order: the backbone with these torsions and the bond lengths and angles of Engh and
/// Huber (Acta Cryst. A47, 1991, 392-400), built by NeRF (Parsons et al., J. Comput. Chem. 26, 2005, 1063-1068).
std::vector<Point> backbone(std::span<const Torsions> torsions);

/// For a sequence of L residues (one-letter codes of the twenty amino acids, at most 4096):
///   secondary_structure  float32 [L, 3]  shares of helix, strand and turn: Chou and Fasman's conformational parameters
///                                        (Adv. Enzymol. 47, 1978, 45-148), averaged over 6, 5 and 4 residues, scaled
///                                        to sum 1
///   angles               float32 [L, 3]  phi, psi, omega in degrees, of the structure with the largest share
///   positions            float32 [L, 3]  of CA, in angstrom, centred
///   distances            float32 [L, L]  between CA
///   contacts             uint8 [L, L]    1 where that is below 8 angstrom
///   confidence           float32 [L]     0 to 100: how far the largest share is above the second
/// Any other input is an error of the item.
cache::Prediction peptide_features(std::string_view sequence);

}  // namespace unidle::workloads::protein
