/// Somebody on another machine, for whom a gateway asks. To the bus that is a user with a number of its own, made of
/// the name of its key: so all that belongs to users belongs to it, too.
public enum RemoteUser {
    /// Numbers that no user of this machine may have: the top sixteenth, above all that systemd and containers give
    /// away.
    public static let uids: ClosedRange<UInt32> = 0xF000_0000...0xFFFF_FFF0

    /// The number that goes with a name, always the same one. Two names may have the same, though hardly ever.
    public static func uid(named name: String) -> UInt32 {
        // FNV-1a.
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in name.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        return uids.lowerBound + UInt32(hash % UInt64(uids.upperBound - uids.lowerBound + 1))
    }
}
