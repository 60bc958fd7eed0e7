/// What dcraw and LibRaw write: a portable pixmap or greymap (netpbm's P6 and P5) of 8 or 16 bits.
public struct DevelopedPicture {
    public var width: Int
    public var height: Int
    /// 3 for colours, 1 for grey.
    public var channels: Int
    /// What white is.
    public var largest: Int
    private var samples: [UInt8]

    public init(_ bytes: [UInt8]) throws {
        var rest = bytes[...]
        func word() -> String {
            rest = rest.drop { $0 == 0x20 || $0 == 0x0A }
            let word = rest.prefix { $0 != 0x20 && $0 != 0x0A }
            rest = rest.dropFirst(word.count)
            return String(decoding: word, as: UTF8.self)
        }
        let kind = word()
        guard kind == "P5" || kind == "P6", let width = Int(word()), let height = Int(word()), let largest = Int(word())
        else { throw TestingError("no pixmap: \(String(decoding: bytes.prefix(80), as: UTF8.self))") }
        (self.width, self.height, self.largest, channels) = (width, height, largest, kind == "P6" ? 3 : 1)
        // One blank stands before the pixels.
        samples = Array(rest.dropFirst())
        guard samples.count == width * height * channels * (largest > 255 ? 2 : 1) else {
            throw TestingError("\(kind) of \(width)x\(height) with \(samples.count) bytes")
        }
    }

    /// A sample as it stands there.
    public func sample(_ x: Int, _ y: Int, _ channel: Int = 0) -> Int {
        let index = (y * width + x) * channels + channel
        return largest > 255 ? Int(samples[2 * index]) << 8 | Int(samples[2 * index + 1]) : Int(samples[index])
    }

    /// The mean of each channel within a square around a point, 0 to 1.
    public func mean(around x: Int, _ y: Int, radius: Int) -> [Double] {
        (0..<channels).map { channel in
            var sum = 0
            for line in (y - radius)...(y + radius) {
                for column in (x - radius)...(x + radius) { sum += sample(column, line, channel) }
            }
            return Double(sum) / Double((2 * radius + 1) * (2 * radius + 1) * largest)
        }
    }
}
