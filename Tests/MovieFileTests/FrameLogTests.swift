import CameraBusTesting
import Glibc
import LinuxIO
import MovieFile
import Testing

@Suite struct FrameLogTests {
    private let scratch: TemporaryDirectory
    init() throws { scratch = try TemporaryDirectory() }

    @Test func hasALineForEachFrame() throws {
        let path = "\(scratch.path)/frames.jsonl"
        let log = try FrameLog(path, bufferBytes: 256)
        #expect(access(path, F_OK) != 0)
        try log.publish()
        var expected = ""
        let numbers: [(Int64, UInt64, UInt64)] = [
            (0, 0, 0), (1_234_567_890_123, 42, 3), (-17, 9, 10), (.max, .max, 99), (.min, 1, .max),
        ]
        for (time, sequence, dropped) in numbers + numbers {
            let date = time &+ 5_000_000_007
            try log.append(timestamp: time, realtime: date, sequence: sequence, dropped: dropped)
            expected +=
                "{\"timestamp\":\(time),\"realtime\":\(date),\"sequence\":\(sequence),\"dropped\":\(dropped)}\n"
        }
        try log.sync()
        #expect(String(decoding: try File.read(path, limit: 10000), as: UTF8.self) == expected)
        #expect(log.lines == 10)
        #expect(throws: SystemError.self) { try log.publish() }
        #expect(throws: SystemError.self) { try FrameLog(path) }
    }

    @Test func saysFirstWhatIsOfAllFrames() throws {
        let path = "\(scratch.path)/head.jsonl"
        let log = try FrameLog(path, bufferBytes: 256)
        try log.publish()
        try log.append(line: #"{"movie":"m"}"#)
        try log.append(timestamp: 1, realtime: 4, sequence: 2, dropped: 3)
        let long = String(repeating: "x", count: 255)
        try log.append(line: long)
        #expect(throws: SystemError.self) { try log.append(line: long + "x") }
        try log.sync()
        let expected = "{\"movie\":\"m\"}\n{\"timestamp\":1,\"realtime\":4,\"sequence\":2,\"dropped\":3}\n\(long)\n"
        #expect(String(decoding: try File.read(path, limit: 10000), as: UTF8.self) == expected)
    }
}
