import ArgumentParser

/// Names for a series of files: `f-%05d.jpg` is f-00001.jpg, f-00002.jpg, …; `%s` is a device's id, `%%` a percent
/// sign.
struct FileNamePattern: ExpressibleByArgument, Hashable {
    private enum Part: Hashable {
        case text(String)
        /// Digits at least, and with what they are filled up.
        case number(width: Int, filler: Character)
        case device
    }

    private var parts: [Part] = []

    /// Whether the name contains the number. Without it each file replaces the one before.
    var isSeries: Bool { parts.contains { if case .number = $0 { true } else { false } } }

    /// The device's id appears in it.
    var namesDevice: Bool { parts.contains(.device) }

    /// - Returns: nil for an empty name, and for `%` with anything else than a number's format behind it.
    init?(argument: String) {
        guard let pattern = try? Self(reading: argument) else { return nil }
        self = pattern
    }

    /// - Throws: what is wrong with it.
    init(reading argument: String) throws {
        guard !argument.isEmpty else { throw ValidationError("the file name is empty") }
        guard !argument.hasSuffix("/") else { throw ValidationError("this is a folder; the file name is missing") }
        var rest = argument[...]
        var text = ""
        while let character = rest.popFirst() {
            guard character == "%" else {
                text.append(character)
                continue
            }
            if rest.first == "%" {
                text.append(character)
                rest.removeFirst()
                continue
            }
            if rest.first == "s" {
                rest.removeFirst()
                parts += [.text(text), .device]
                text = ""
                continue
            }
            let digits = rest.prefix { ("0"..."9").contains($0) }
            rest = rest.dropFirst(digits.count)
            guard rest.popFirst() == "d", let width = digits.isEmpty ? 0 : Int(digits), width <= 20 else {
                throw ValidationError(
                    "after '%' only 'd', 's', or a width up to 20 and 'd' ('%05d') is possible; write '%%' for a "
                        + "percent sign"
                )
            }
            parts.append(.text(text))
            parts.append(.number(width: width, filler: digits.hasPrefix("0") ? "0" : " "))
            text = ""
        }
        parts.append(.text(text))
    }

    /// The name of the file with that number, of that device.
    func name(_ number: Int, device: String = "") -> String {
        parts.map { part in
            switch part {
            case .text(let text): return text
            case .device: return device
            case .number(let width, let filler):
                let digits = String(number)
                return String(repeating: filler, count: max(0, width - digits.count)) + digits
            }
        }
        .joined()
    }
}
