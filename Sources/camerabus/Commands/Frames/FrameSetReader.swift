import BusClient
import BusProtocol
import JSON

/// Receives a rig's matched sets for `camerabus frames RIG --set`.
struct FrameSetReader {
    let rig: String
    let rendition: String
    let number: Int?
    let output: FileNamePattern?
    let asJSON: Bool
    let timeout: Duration

    func run(_ client: Client) async throws {
        let sets = try await client.frameSets(
            rig, rendition, silence: FramesCommand.patience(timeout, rendition), timeout: timeout)
        var start: Int64?
        var count = 0
        while count < number ?? .max {
            let set = try await sets.next()
            let first = start ?? set.header.monotonic
            if start == nil, !asJSON, output == nil { try Output.line(Self.titles) }
            start = first
            if !set.header.isLate { count += 1 }
            var files: [JSONValue] = []
            if let output {
                for frame in set.frames {
                    let name = output.name(Int(clamping: set.header.number) + 1, device: frame.header.device)
                    do {
                        try frame.payload.withUnsafeBytes { try AtomicFile.write($0, to: name) }
                    } catch {
                        throw Failure(status: ExitStatus.refused, description: "\(error)")
                    }
                    files.append(.string(name))
                }
            }
            if asJSON {
                var members = set.json.object ?? [:]
                members["lost"] = JSONValue(set.lost)
                if output != nil { members["files"] = .array(files) }
                try Output.json(.object(members))
            } else if output == nil {
                try Output.line(Self.line(set, start: first))
            }
        }
    }

    static let titles = "     SET      TIME    SPREAD  LOST  FRAMES"

    /// `12 0.400 3.100 ms 0 cam0 +0.0 cam1 +3.1 cam2 late`; of a late frame the set that it belongs to, and `late`.
    static func line(_ set: FrameSet, start: Int64) -> String {
        func right(_ text: String, _ width: Int) -> String {
            String(repeating: " ", count: max(0, width - text.count)) + text
        }
        let header = set.header
        let (elapsed, overflow) = header.monotonic.subtractingReportingOverflow(start)
        let frames = header.parts.map { part in
            "\(part.device) " + (part.missing ?? (part.offset < 0 ? "" : "+") + tenths(part.offset, of: 1_000_000))
        }
        return right(String(header.number), 8) + " " + right(thousandths(overflow ? 0 : elapsed), 9) + " "
            + right(tenths(header.spread, of: 1_000_000) + " ms", 9) + " " + right(String(set.lost), 5) + "  "
            + (header.isLate ? "late: " : "") + frames.joined(separator: "  ")
    }

    private static func tenths(_ value: Int64, of unit: Int64) -> String {
        let tenths = value / (unit / 10)
        return "\(tenths < 0 ? "-" : "")\(abs(tenths / 10)).\(abs(tenths % 10))"
    }

    private static func thousandths(_ nanoseconds: Int64) -> String {
        let milliseconds = nanoseconds / 1_000_000
        return "\(milliseconds / 1000).\(String(1000 + abs(milliseconds % 1000)).dropFirst())"
    }
}
