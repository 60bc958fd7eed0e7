import BusProtocol

// Format extensions in the head of a ring (RING.md, section 2.2).
extension FormatExtensions {
    /// H.273's number for what is not known.
    private static let unspecified: UInt8 = 2

    /// Numbers without a meaning here count as not known.
    init(head: UnsafeRawBufferPointer) {
        func byte(_ offset: Int) -> UInt8 { head[offset] }
        func number(_ offset: Int) -> Int {
            Int(UInt32(littleEndian: head.loadUnaligned(fromByteOffset: offset, as: UInt32.self)))
        }
        let color = RingLayout.colorOffset
        self.init(
            color: ColorDescription(
                primaries: ColorPrimaries(code: byte(color)), transferFunction: TransferFunction(code: byte(color + 1)),
                matrix: YCbCrMatrix(code: byte(color + 2)), range: byte(color + 3) == 1 ? .full : .video,
                chromaLocation: ChromaLocation(code: byte(RingLayout.chromaLocationOffset))))
        let bits = Int(byte(RingLayout.bitsOffset))
        bitsPerComponent = (1...64).contains(bits) ? bits : nil
        switch byte(RingLayout.alignmentOffset) {
        case 1: alignment = .low
        case 2: alignment = .high
        default: alignment = nil
        }
        func ratio(_ offset: Int) -> Ratio? { Ratio(number(offset), number(offset + 4)) }
        pixelAspectRatio = ratio(RingLayout.pixelAspectRatioOffset) ?? .one
        frameDuration = ratio(RingLayout.frameDurationOffset)
        let area = RingLayout.cleanApertureOffset
        if number(area + 8) > 0, number(area + 12) > 0 {
            cleanAperture = Aperture(
                x: number(area), y: number(area + 4), width: number(area + 8), height: number(area + 12))
        }
        let meters = Double(
            bitPattern: UInt64(
                littleEndian: head.loadUnaligned(fromByteOffset: RingLayout.metersPerStepOffset, as: UInt64.self)))
        metersPerStep = meters.isFinite && meters > 0 ? meters : nil
    }

    func write(toHead head: UnsafeMutableRawBufferPointer) {
        func number(_ offset: Int, _ value: Int) {
            head.storeBytes(of: UInt32(clamping: value).littleEndian, toByteOffset: offset, as: UInt32.self)
        }
        let offset = RingLayout.colorOffset
        head[offset] = color.primaries?.code ?? Self.unspecified
        head[offset + 1] = color.transferFunction?.code ?? Self.unspecified
        head[offset + 2] = color.matrix?.code ?? Self.unspecified
        head[offset + 3] = color.range == .full ? 1 : 0
        head[RingLayout.chromaLocationOffset] = color.chromaLocation?.code ?? 0
        head[RingLayout.bitsOffset] = UInt8(clamping: bitsPerComponent ?? 0)
        head[RingLayout.alignmentOffset] = alignment.map { $0 == .low ? 1 : 2 } ?? 0
        number(RingLayout.pixelAspectRatioOffset, pixelAspectRatio.numerator)
        number(RingLayout.pixelAspectRatioOffset + 4, pixelAspectRatio.denominator)
        if let area = cleanAperture {
            for (index, value) in [area.x, area.y, area.width, area.height].enumerated() {
                number(RingLayout.cleanApertureOffset + 4 * index, value)
            }
        }
        if let frameDuration {
            number(RingLayout.frameDurationOffset, frameDuration.numerator)
            number(RingLayout.frameDurationOffset + 4, frameDuration.denominator)
        }
        head.storeBytes(
            of: (metersPerStep ?? 0).bitPattern.littleEndian, toByteOffset: RingLayout.metersPerStepOffset,
            as: UInt64.self)
    }
}
