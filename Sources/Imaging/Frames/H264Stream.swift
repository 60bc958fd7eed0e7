import Glibc

/// What can be told of an H.264 picture without decoding it (ITU-T H.264, Annex B: units behind start codes).
public enum H264Stream {
    /// What a frame's first units say.
    public struct Beginning: Hashable, Sendable {
        /// It has a picture.
        public var hasPicture = false
        /// Its picture builds on none before it (IDR).
        public var isKeyframe = false
        /// Where units with parameter sets (SPS, PPS) lie, with their start codes.
        public var parameterSets: [Range<Int>] = []
        /// The sets without which no decoder begins (SPS) are among them.
        public var hasSequenceParameters = false

        /// Nothing.
        public init() {}
    }

    /// Looks at the units up to the first part of the picture.
    public static func beginning(of frame: UnsafeRawBufferPointer) -> Beginning {
        var beginning = Beginning()
        forEachUnit(upToPictureOf: frame) { unit in
            switch unit.type {
            case 1, 2: beginning.hasPicture = true
            case 5: (beginning.hasPicture, beginning.isKeyframe) = (true, true)
            case 7, 8, 13, 15:
                beginning.parameterSets.append(unit.code..<unit.payload.upperBound)
                if unit.type == 7 { beginning.hasSequenceParameters = true }
            default: break
            }
        }
        return beginning
    }

    struct Unit {
        /// ITU-T H.264, table 7-1.
        var type: UInt8
        /// Where its start code begins.
        var code: Int
        /// It without its start code.
        var payload: Range<Int>
    }

    /// Calls the body with each unit before the picture, and with the picture's first one, which gets all of the rest.
    static func forEachUnit(upToPictureOf frame: UnsafeRawBufferPointer, _ body: (Unit) -> Void) {
        var next = nextStart(in: frame, from: 0)
        while let start = next, start.payload < frame.count {
            let type = frame[start.payload] & 0x1F
            let isPicture = type == 1 || type == 2 || type == 5
            next = isPicture ? nil : nextStart(in: frame, from: start.payload)
            body(Unit(type: type, code: start.code, payload: start.payload..<(next?.code ?? frame.count)))
        }
    }

    private struct Start {
        /// Where the start code begins, and where it ends.
        var code: Int
        var payload: Int
    }

    private static func nextStart(in frame: UnsafeRawBufferPointer, from: Int) -> Start? {
        guard let base = frame.baseAddress else { return nil }
        var index = from
        while index + 2 < frame.count {
            // The 1 of 0 0 1.
            guard let found = memchr(base + index + 2, 1, frame.count - index - 2) else { return nil }
            let end = base.distance(to: UnsafeRawPointer(found))
            if frame[end - 1] == 0, frame[end - 2] == 0 {
                // A fourth byte in front of it belongs to it.
                let code = end - 3 >= from && frame[end - 3] == 0 ? end - 3 : end - 2
                return Start(code: code, payload: end + 1)
            }
            index = end - 1
        }
        return nil
    }
}
