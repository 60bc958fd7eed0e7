import JSON

/// Whether what was changed outlives the bus.
enum PersistenceNote {
    static func note(_ answer: JSONValue) { note(isKept: answer["kept"]?.bool ?? true) }

    static func note(isKept: Bool) {
        guard !isKept else { return }
        Output.note("It could not be written to the disk and ends with the bus, whose log says why.")
    }
}
