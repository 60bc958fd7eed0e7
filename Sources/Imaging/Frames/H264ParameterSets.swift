/// The parameter sets of an H.264 stream as they come, and which of them its pictures have (ITU-T H.264, 7.4.1.2.1).
public struct H264ParameterSets {
    /// The set of the last picture; nil: there was no set yet that can be read.
    public private(set) var current: H264SequenceParameters?

    private var sequences = [H264SequenceParameters?](repeating: nil, count: 32)
    /// Which of ``sequences`` the parameter sets of pictures name.
    private var pictures = [UInt8?](repeating: nil, count: 256)
    /// Stands in for a set that a picture names and that is missing.
    private var newest: H264SequenceParameters?

    public init() {}

    /// Takes the next frame, or a part of it with parameter sets.
    public mutating func take(_ frame: UnsafeRawBufferPointer) {
        H264Stream.forEachUnit(upToPictureOf: frame) { unit in
            let bytes = UnsafeRawBufferPointer(rebasing: frame[unit.payload])
            switch unit.type {
            case 1, 2, 5: take(picture: bytes)
            case 7: take(sequence: bytes)
            case 8: take(pictureSet: bytes)
            default: break
            }
        }
    }

    private mutating func take(sequence unit: UnsafeRawBufferPointer) {
        guard let sequence = H264SequenceParameters(unit), sequences.indices.contains(sequence.identifier) else {
            return
        }
        sequences[sequence.identifier] = sequence
        newest = sequence
    }

    private mutating func take(pictureSet unit: UnsafeRawBufferPointer) {
        var bits = H264BitReader(unit)
        let (identifier, sequence) = (bits.golomb(), bits.golomb())
        guard !bits.isOver, pictures.indices.contains(identifier), sequences.indices.contains(sequence) else { return }
        pictures[identifier] = UInt8(sequence)
    }

    private mutating func take(picture unit: UnsafeRawBufferPointer) {
        var bits = H264BitReader(unit)
        // Where it begins, and its kind.
        _ = (bits.golomb(), bits.golomb())
        let identifier = bits.golomb()
        let isKnown = !bits.isOver && pictures.indices.contains(identifier)
        current = (isKnown ? pictures[identifier].flatMap { sequences[Int($0)] } : nil) ?? newest
    }
}
