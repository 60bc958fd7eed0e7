import Imaging
import Testing

/// Units of H.264 as cameras send them: what matters is the type in a unit's first byte.
@Suite struct H264StreamTests {
    private static let sps: [UInt8] = [0x67, 0x42, 0xC0, 0x1E, 0x01]
    private static let pps: [UInt8] = [0x68, 0xCE, 0x3C, 0x80]
    private static let sei: [UInt8] = [0x06, 0x05, 0x02, 0x00, 0x01, 0x80]
    private static let idr: [UInt8] = [0x65, 0x88, 0x84, 0x00, 0x03, 0x01]
    private static let slice: [UInt8] = [0x41, 0x9A, 0x00, 0x01]

    private func look(_ bytes: [UInt8]) -> H264Stream.Beginning {
        bytes.withUnsafeBytes { H264Stream.beginning(of: $0) }
    }

    private static func join(_ units: [[UInt8]], _ code: [UInt8] = [0, 0, 0, 1]) -> [UInt8] {
        units.flatMap { code + $0 }
    }

    @Test(arguments: [[0, 0, 0, 1], [0, 0, 1]] as [[UInt8]])
    func tellsKeyFramesAndTheirParameterSets(_ code: [UInt8]) {
        let key = look(Self.join([[0x09, 0xF0], Self.sps, Self.pps, Self.sei, Self.idr], code))
        #expect(key.hasPicture && key.isKeyframe && key.hasSequenceParameters)
        let start = code.count + 2
        #expect(
            key.parameterSets == [
                start..<start + code.count + 5, start + code.count + 5..<start + 2 * code.count + 9,
            ])
        let other = look(Self.join([[0x09, 0xF0], Self.sei, Self.slice], code))
        #expect(other.hasPicture && !other.isKeyframe && other.parameterSets.isEmpty)
    }

    @Test func looksNoFurtherThanThePicture() {
        let frame = look(Self.join([Self.slice, Self.sps, Self.idr]))
        #expect(frame.hasPicture && !frame.isKeyframe && frame.parameterSets.isEmpty)
    }

    @Test func tellsParameterSetsAlone() {
        let frame = look(Self.join([Self.sps, Self.pps]))
        #expect(!frame.hasPicture && frame.hasSequenceParameters)
        #expect(frame.parameterSets == [0..<9, 9..<17])
    }

    @Test(
        arguments: [
            [], [0], [0, 0, 1], [0, 0, 0, 1], [1, 1, 1, 1, 1], [0, 1, 0, 1, 0], Array(repeating: 0, count: 100),
            [0, 0, 2, 0x65], [0xFF, 0xD8, 0xFF, 0xDB],
        ] as [[UInt8]])
    func findsNothingInWhatIsNone(_ bytes: [UInt8]) {
        #expect(look(bytes) == H264Stream.Beginning())
    }
}
