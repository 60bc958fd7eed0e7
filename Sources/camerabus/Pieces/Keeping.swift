import JSON

/// Whether what was changed outlives the bus.
enum Keeping {
    static func note(_ answer: JSONValue) {
        guard answer["kept"] == false else { return }
        Output.note("It could not be written to the disk and ends with the bus, whose log says why.")
    }
}
