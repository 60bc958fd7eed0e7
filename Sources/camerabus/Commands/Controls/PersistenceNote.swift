import JSON

/// Notes a change that could not be stored.
enum PersistenceNote {
    static func note(_ answer: JSONValue) { note(isKept: answer["kept"]?.bool ?? true) }

    static func note(isKept: Bool) {
        guard !isKept else { return }
        Output.note(
            "The change could not be written to the disk. It is lost when the bus ends; the log of the bus shows the "
                + "cause."
        )
    }
}
