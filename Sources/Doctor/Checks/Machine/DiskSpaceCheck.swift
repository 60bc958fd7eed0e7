/// Whether the bus can store its state.
struct DiskSpaceCheck: Check {
    let id = "disk-space"

    private static let needed: UInt64 = 16 << 20
    private static let neededFiles: UInt64 = 256

    func examine(_ facts: Facts) -> Outcome {
        guard !facts.space.isEmpty else { return .skipped("there is no directory of a bus") }
        let findings = facts.space.flatMap { space -> [Finding] in
            let files = space.freeFiles ?? .max
            guard space.free < Self.needed || files < Self.neededFiles else { return [] }
            let what = space.free < Self.needed ? "\(space.free >> 10) KiB are" : "room for \(files) files is"
            return [
                Finding(
                    "disk-full", space.path,
                    meaning:
                        "\(what) left on the file system of \(space.path). The bus refuses locks that it can't store.",
                    remedy: space.free < Self.needed
                        ? "df -h \(space.path.shellWord)" : "df -i \(space.path.shellWord)",
                    advice: "Remove files that are not needed. Enlarge a tmpfs with 'sudo mount -o remount,size=…'.")
            ]
        }
        let least = facts.space.map(\.free).min() ?? 0
        return .of(findings, healthy: "at least \(least >> 20) MiB free")
    }
}
