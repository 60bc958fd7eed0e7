import Testing

/// Tests on the real programs, one after the other: each has the machine for itself, as far as this package is
/// concerned.
@Suite(.serialized) enum ProcessTests {}
