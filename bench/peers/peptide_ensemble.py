"""Predicts structure features of peptides in Python: the same values as `unidle cache warm --predictor
peptide-ensemble`. workloads/protein/peptide_features.h and ensemble_features.h define them and give the
sources of the constants.

A move rotates everything after a bond; the C++ rebuilds the backbone instead. The two differ by rounding.

"""

import math

import numpy as np

RESIDUES = "ARNDCQEGHILKMFPSTWYV"
# Chou and Fasman 1978, in the order of RESIDUES.
HELIX = [142, 98, 67, 101, 70, 111, 151, 57, 100, 108, 121, 116, 145, 113, 57, 77, 83, 108, 69, 106]
STRAND = [83, 93, 89, 54, 119, 110, 37, 75, 87, 160, 130, 74, 105, 138, 55, 75, 119, 137, 147, 170]
TURN = [66, 95, 156, 146, 119, 98, 74, 156, 95, 47, 59, 101, 60, 60, 152, 143, 96, 96, 114, 50]
WINDOWS = (6, 5, 4)
IDEAL = np.array([[-57.0, -47, 180], [-139, 135, 180], [-60, -30, 180]])
# Engh and Huber 1991.
BOND_N_CA, BOND_CA_C, BOND_C_N = 1.458, 1.525, 1.329
ANGLE_N_CA_C, ANGLE_CA_C_N, ANGLE_C_N_CA = 111.2, 116.2, 121.7

MOVES_PER_RESIDUE = 200
STEP_DEGREES, WIDTH_DEGREES = 15.0, 40.0
CONTACT, CLASH, CLASH_ENERGY = 8.0, 3.6, 5.0
HYDROPHOBIC = "ACFILMV"
WORD = (1 << 64) - 1


def mix64(x):
    """The finaliser of SplitMix64."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & WORD
    return x ^ (x >> 31)


class Draws:
    """SplitMix64, seeded by the sequence."""

    def __init__(self, sequence):
        self.state = 0xCBF29CE484222325
        for residue in sequence.encode():
            self.state = ((self.state ^ residue) * 0x100000001B3) & WORD

    def uniform(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & WORD
        return (mix64(self.state) >> 11) * 2.0**-53

    def below(self, count):
        return int(self.uniform() * count)

    def normal(self):
        radius = math.sqrt(-2 * math.log(1 - self.uniform()))
        return radius * math.cos(2 * math.pi * self.uniform())


def structure_shares(sequence):
    """[residues, 3]: helix, strand and turn, averaged over the window around each residue, scaled to sum
    1."""
    shares = np.empty((len(sequence), 3))
    for structure, propensities in enumerate((HELIX, STRAND, TURN)):
        of = dict(zip(RESIDUES, propensities, strict=True))
        for i in range(len(sequence)):
            begin = max(0, i - (WINDOWS[structure] - 1) // 2)
            window = sequence[begin : begin + WINDOWS[structure]]
            shares[i, structure] = sum(of[residue] for residue in window) / len(window)
    return shares / shares.sum(1, keepdims=True)


def next_atom(a, b, c, bond, angle, torsion):
    along = (c - b) / np.linalg.norm(c - b)
    normal = np.cross(b - a, along)
    normal /= np.linalg.norm(normal)
    theta, chi = math.radians(180 - angle), math.radians(torsion)
    return (
        c
        + bond * math.cos(theta) * along
        + bond * math.cos(chi) * math.sin(theta) * np.cross(normal, along)
        + bond * math.sin(chi) * math.sin(theta) * normal
    )


def backbone(torsions):
    """[3 * residues, 3]: N, CA and C of each residue."""
    angle = math.radians(ANGLE_N_CA_C)
    atoms = [
        np.zeros(3),
        np.array([BOND_N_CA, 0, 0]),
        np.array([BOND_N_CA - BOND_CA_C * math.cos(angle), BOND_CA_C * math.sin(angle), 0]),
    ]
    for before, after in zip(torsions[:-1], torsions[1:], strict=True):
        atoms.append(next_atom(*atoms[-3:], BOND_C_N, ANGLE_CA_C_N, before[1]))
        atoms.append(next_atom(*atoms[-3:], BOND_N_CA, ANGLE_C_N_CA, before[2]))
        atoms.append(next_atom(*atoms[-3:], BOND_CA_C, ANGLE_N_CA_C, after[0]))
    return np.array(atoms)


def turned(atoms, start, end, behind, degrees):
    """Rotates the atoms from `behind` on around the bond from `start` to `end`."""
    x, y, z = ((atoms[end] - atoms[start]) / np.linalg.norm(atoms[end] - atoms[start])).tolist()
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    t = 1 - c
    matrix = np.array(
        [
            [t * x * x + c, t * x * y - s * z, t * x * z + s * y],
            [t * x * y + s * z, t * y * y + c, t * y * z - s * x],
            [t * x * z - s * y, t * y * z + s * x, t * z * z + c],
        ]
    )
    made = atoms.copy()
    made[behind:] = (atoms[behind:] - atoms[end]) @ matrix.T + atoms[end]
    return made


class Sampler:
    """Samples the torsions with the Metropolis algorithm, starting from the ideal structure."""

    def __init__(self, sequence, ideal):
        count = len(sequence)
        self.draws, self.ideal = Draws(sequence), ideal
        apart = np.arange(count)[None] - np.arange(count)[:, None]
        fat = np.array([residue in HYDROPHOBIC for residue in sequence])
        self.may_clash = np.triu(apart >= 3)
        self.may_touch = (apart > 3) & fat[:, None] & fat[None]
        self.torsions, self.atoms = ideal.copy(), backbone(ideal)
        self.distances = self.distances_of(self.atoms)
        self.energy = self.energy_of(self.torsions, self.distances)
        self.best = (self.energy, self.torsions, self.atoms)
        self.sums, self.counted = np.zeros((count, count)), 0

    @staticmethod
    def distances_of(atoms):
        alphas = atoms[1::3]
        apart = alphas[:, None] - alphas[None]
        return np.sqrt(np.einsum("ijk,ijk->ij", apart, apart))

    def energy_of(self, torsions, distances):
        off = (torsions[:, :2] - self.ideal[:, :2]) / WIDTH_DEGREES
        clashes = np.count_nonzero(self.may_clash & (distances < CLASH))
        contacts = np.count_nonzero(self.may_touch & (distances < CONTACT))
        return 0.5 * float(np.sum(off * off)) + CLASH_ENERGY * clashes - contacts

    def step(self):
        residue = self.draws.below(len(self.ideal))
        phi, psi = STEP_DEGREES * self.draws.normal(), STEP_DEGREES * self.draws.normal()
        torsions, atoms = self.torsions.copy(), self.atoms
        torsions[residue, :2] += phi, psi
        n, alpha, carbon = 3 * residue, 3 * residue + 1, 3 * residue + 2
        if residue > 0:  # the first three atoms stay in place
            atoms = turned(atoms, n, alpha, carbon, phi)
        if carbon + 1 < len(atoms):
            atoms = turned(atoms, alpha, carbon, carbon + 1, psi)
        distances = self.distances_of(atoms)
        energy = self.energy_of(torsions, distances)
        if self.draws.uniform() < math.exp(min(0.0, self.energy - energy)):
            self.torsions, self.atoms, self.distances, self.energy = torsions, atoms, distances, energy
            if energy < self.best[0]:
                self.best = (energy, torsions, atoms)

    def run(self):
        moves = MOVES_PER_RESIDUE * len(self.ideal)
        for move in range(moves):
            self.step()
            if move >= moves // 2:
                self.sums += self.distances
                self.counted += 1


def features(sequence):
    """Returns residues [n, 7], angles [n, 3] and pairs [n, n, 2], as in the workload protein."""
    shares = structure_shares(sequence)
    sampler = Sampler(sequence, IDEAL[shares.argmax(1)])
    sampler.run()
    _, torsions, atoms = sampler.best
    alphas = atoms[1::3]
    ordered = np.sort(shares, 1)
    confidence = 100 * (ordered[:, 2] - ordered[:, 1])
    angles = torsions.copy()
    angles[:, :2] = np.vectorize(math.remainder)(angles[:, :2], 360.0)
    distances = sampler.sums / sampler.counted
    return {
        "residues": np.concatenate([shares, alphas - alphas.mean(0), confidence[:, None]], 1).astype(
            np.float32
        ),
        "angles": angles.astype(np.float32),
        "pairs": np.stack([distances, distances < CONTACT], 2).astype(np.float32),
    }
