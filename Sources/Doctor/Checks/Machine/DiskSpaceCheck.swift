/// Whether the bus can write what must outlive it.
struct DiskSpaceCheck: Check {
    let id = "disk-space"

    private static let needed: UInt64 = 16 << 20
    private static let neededFiles: UInt64 = 256

    func examine(_ facts: Facts) -> Outcome {
        guard !facts.space.isEmpty else { return .skipped("no directory of a bus is there") }
        let findings = facts.space.flatMap { space -> [Finding] in
            let files = space.freeFiles ?? .max
            guard space.free < Self.needed || files < Self.neededFiles else { return [] }
            let what = space.free < Self.needed ? "\(space.free >> 10) KiB are" : "room for \(files) files is"
            return [
                Finding(
                    "disk-full", space.path,
                    meaning: "\(what) left where \(space.path) is: locks that can't be written down are refused.",
                    remedy: space.free < Self.needed
                        ? "df -h \(space.path.shellWord)" : "df -i \(space.path.shellWord)",
                    advice: "Remove what is not needed there; a tmpfs grows by 'sudo mount -o remount,size=…'.")
            ]
        }
        let least = facts.space.map(\.free).min() ?? 0
        return .of(findings, healthy: "\(least >> 20) MiB at least")
    }
}
