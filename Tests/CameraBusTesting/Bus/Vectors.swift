import Glibc
public import JSON
public import Testing

/// One case of a file in `Protocol/vectors`.
public struct VectorCase: Sendable, CustomTestStringConvertible {
    public let name: String
    public let isValid: Bool
    /// The whole case.
    public let json: JSONValue

    public var testDescription: String { name }
    public var expect: JSONValue { json["expect"] ?? .null }

    /// The frames of the case as bytes.
    public var frames: [[UInt8]] { json["frames"]?.array?.map(Vectors.bytes) ?? [] }

    /// The only frame.
    public func frame() throws -> [UInt8] {
        try #require(frames.count == 1)
        return frames[0]
    }
}

/// Reads the files of `Protocol`, which lies beside `Tests`.
public enum Vectors {
    struct Failure: Error { var text: String }

    /// The cases of `Protocol/vectors/<name>.json`. A file that can't be read is one case that fails, never none that
    /// pass.
    public static func cases(_ name: String) -> [VectorCase] {
        do {
            let cases = try document("vectors/\(name).json")["cases"]?.array ?? []
            if cases.isEmpty { throw Failure(text: "no cases in \(name).json") }
            return try cases.map { json in
                guard let name = json["name"]?.string, let isValid = json["valid"]?.bool else {
                    throw Failure(text: "a case without name or valid: \(json)")
                }
                return VectorCase(name: name, isValid: isValid, json: json)
            }
        } catch {
            return [VectorCase(name: "unreadable: \(error)", isValid: true, json: .null)]
        }
    }

    /// A JSON file of `Protocol`.
    public static func document(_ path: String) throws -> JSONValue {
        try read(path).withUnsafeBytes { bytes in try JSONValue(parsing: bytes, maximumDepth: 200) }
    }

    /// A text file of `Protocol`.
    public static func text(_ path: String) throws -> String {
        guard let text = String(validating: try read(path), as: UTF8.self) else {
            throw Failure(text: "\(path) is no UTF-8")
        }
        return text
    }

    /// A frame as the vectors write it: text, or {hex}, {text, times} and {concat} for what is no text or too long.
    public static func bytes(_ frame: JSONValue) -> [UInt8] {
        if let text = frame.string { return Array(text.utf8) }
        if let hex = frame["hex"]?.string {
            return stride(from: 0, to: hex.utf8.count, by: 2).compactMap { index in
                UInt8(hex.dropFirst(index).prefix(2), radix: 16)
            }
        }
        if let text = frame["text"]?.string, let times = frame["times"]?.integer {
            let bytes = Array(text.utf8)
            if bytes.count == 1 { return Array(repeating: bytes[0], count: Int(times)) }
            return Array(repeatElement(bytes, count: Int(times)).joined())
        }
        return (frame["concat"]?.array ?? []).flatMap(bytes)
    }

    private static func read(_ path: String) throws -> [UInt8] {
        let root = #filePath.split(separator: "/").dropLast(4).map { "/\($0)" }.joined()
        guard let file = fopen("\(root)/Protocol/\(path)", "r") else { throw Failure(text: "no file Protocol/\(path)") }
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var block = [UInt8](repeating: 0, count: 65536)
        while true {
            let count = fread(&block, 1, block.count, file)
            if count == 0 { return bytes }
            bytes.append(contentsOf: block.prefix(count))
        }
    }
}
