import BusClient
import JSON

extension ValueText {
    /// `serious (cpu, memory)`; nil where nothing presses.
    static func pressure(_ state: JSONValue?) -> String? {
        guard let level = state?["level"]?.string, level != "nominal" else { return nil }
        let factors = state?["factors"]?.array?.compactMap(\.string) ?? []
        return factors.isEmpty ? level : "\(level) (\(factors.joined(separator: ", ")))"
    }
}
