/// How the samples of a raw format lie: one a pixel, as the sensor gave them.
public struct RawSamples: Hashable, Sendable {
    /// Which colours the first two pixels of the first two lines have, line by line: a Bayer pattern, or no colours at
    /// all.
    public enum Pattern: Hashable, Sendable, CaseIterable {
        case grey, bggr, gbrg, grbg, rggb
    }

    public enum Packing: Hashable, Sendable {
        /// A byte a sample.
        case bytes
        /// Two bytes a sample, the lower one first; the bits above the sample's are 0.
        case words
        /// Two bytes a sample, the upper one first.
        case swappedWords
        /// As they come from the sensor (MIPI CSI-2): of each group of pixels first the upper 8 bits of each, then the
        /// other bits of all.
        case mipi
    }

    public var pattern: Pattern
    /// Of a sample: 8, 10, 12, 14 or 16.
    public var bits: Int
    public var packing: Packing

    /// The largest sample.
    public var largest: Int { 1 << bits - 1 }

    /// Pixels whose samples lie together.
    public var groupPixels: Int {
        guard packing == .mipi else { return 1 }
        return bits == 12 ? 2 : 4
    }

    /// Bytes of such a group.
    public var groupBytes: Int {
        switch packing {
        case .bytes: 1
        case .words, .swappedWords: 2
        case .mipi: groupPixels * bits / 8
        }
    }

    /// Bytes of a line without padding.
    public func lineBytes(width: Int) -> Int { (width + groupPixels - 1) / groupPixels * groupBytes }
}

extension PixelFormat {
    /// How a raw format's samples lie; nil for all other formats.
    public var rawSamples: RawSamples? { Self.raw[self] }

    /// Raw formats whose samples have a byte or two each, by name.
    public static let unpackedRawFormats = raw.filter { $0.value.packing != .mipi }.keys.sorted { $0.name < $1.name }

    // As the kernel's documentation of pixel formats has them.
    private static let raw: [PixelFormat: RawSamples] = {
        var raw: [PixelFormat: RawSamples] = [:]
        /// - Parameter names: BGGR, GBRG, GRBG, RGGB, grey; empty where there is none.
        func add(_ bits: Int, _ packing: RawSamples.Packing, _ names: String) {
            let patterns: [RawSamples.Pattern] = [.bggr, .gbrg, .grbg, .rggb, .grey]
            for (name, pattern) in zip(names.split(separator: ",", omittingEmptySubsequences: false), patterns) {
                guard let format = PixelFormat(String(name)) else { continue }
                raw[format] = RawSamples(pattern: pattern, bits: bits, packing: packing)
            }
        }
        add(8, .bytes, "BA81,GBRG,GRBG,RGGB,GREY")
        add(10, .words, "BG10,GB10,BA10,RG10,Y10")
        add(12, .words, "BG12,GB12,BA12,RG12,Y12")
        add(14, .words, "BG14,GB14,GR14,RG14,Y14")
        add(16, .words, "BYR2,GB16,GR16,RG16,Y16")
        add(16, .swappedWords, ",,,,Y16 -BE")
        add(16, .words, ",,,,Z16")
        add(10, .mipi, "pBAA,pGAA,pgAA,pRAA,Y10P")
        add(12, .mipi, "pBCC,pGCC,pgCC,pRCC,Y12P")
        add(14, .mipi, "pBEE,pGEE,pgEE,pREE,Y14P")
        return raw
    }()
}
