import BusProtocol
import CaptureCore
import CaptureSources
import Imaging

/// Keeps a stream of H.264 pictures, which build on one another, such that whoever begins at a key frame can follow:
/// after one that is missing come none until the next key frame, and key frames have their parameter sets with them.
struct H264Chain {
    enum Verdict: Hashable {
        case picture(isKeyframe: Bool)
        /// No picture, but what pictures need.
        case parameterSets
        /// It builds on one that is missing, or is none.
        case unusable
    }

    /// Those that came last, for key frames that come without, as some devices send them once only.
    private var parameterSets: [UInt8] = []
    private var sets = H264ParameterSets()
    private var isBroken = true
    private var lastKeyframe: Int64?
    /// Since the last key frame.
    private var lastRequest: Int64?

    private static let maximumParameterSetBytes = 4096
    /// Nanoseconds from one key frame to the next that is made by request: each costs all readers bits.
    private static let shortestInterval: Int64 = 250_000_000
    /// Nanoseconds after which a device that makes no key frame is asked again.
    private static let patience: Int64 = 1_000_000_000

    /// A picture is missing.
    mutating func lose() { isBroken = true }

    /// Whether the device is to be asked for a key frame now.
    ///
    /// - Parameter now: CLOCK_MONOTONIC, nanoseconds.
    mutating func mayRequest(at now: Int64) -> Bool {
        if let lastRequest, now - lastRequest < Self.patience { return false }
        if !isBroken, let lastKeyframe, now - lastKeyframe < Self.shortestInterval { return false }
        lastRequest = now
        return true
    }

    /// Takes the next filled slot. Where a key frame comes without its parameter sets, they are put in front of it.
    mutating func take(_ slot: FrameSlot) -> Verdict {
        guard let region = slot.regions.first, let used = slot.bytesUsed.first, used > 0, used <= region.count else {
            isBroken = true
            return .unusable
        }
        let frame = UnsafeRawBufferPointer(rebasing: region[..<used])
        let beginning = H264Stream.beginning(of: frame)
        if !beginning.parameterSets.isEmpty { keep(beginning, frame) }
        if !beginning.parameterSets.isEmpty || beginning.isKeyframe { sets.take(frame) }
        guard beginning.hasPicture else {
            if !beginning.parameterSets.isEmpty { return .parameterSets }
            isBroken = true
            return .unusable
        }
        guard beginning.isKeyframe else { return isBroken ? .unusable : .picture(isKeyframe: false) }
        isBroken = false
        lastRequest = nil
        lastKeyframe = slot.monotonicTime
        if !beginning.hasSequenceParameters, let base = region.baseAddress,
            parameterSets.count <= region.count - used
        {
            (base + parameterSets.count).copyMemory(from: base, byteCount: used)
            parameterSets.withUnsafeBytes { region.copyMemory(from: $0) }
            slot.bytesUsed[0] = used + parameterSets.count
        }
        return .picture(isKeyframe: true)
    }

    /// What the pictures have from the key frame on that came last; nil: what the layout says.
    ///
    /// - Parameter stated: by the device, which holds where the pictures say nothing.
    func otherPictures(than layout: FrameLayout, _ stated: FrameLayout) -> ActualPictures? {
        guard let sequence = sets.current else { return nil }
        let color = sequence.completed(stated.description.color)
        // Drivers say nothing of it; a film's track counts more than its pictures.
        let own = stated.description.extensions.pixelAspectRatio
        let ratio = own == .one ? sequence.pixelAspectRatio ?? own : own
        let actual = ActualPictures(dimensions: sequence.dimensions, color: color, pixelAspectRatio: ratio)
        return actual.completed(layout.description) == layout.description ? nil : actual
    }

    private mutating func keep(_ beginning: H264Stream.Beginning, _ frame: UnsafeRawBufferPointer) {
        // Most devices repeat them with every key frame: then nothing changes.
        let isKnown = beginning.parameterSets.allSatisfy { parameterSets.firstRange(of: frame[$0]) != nil }
        if isKnown { return }
        let bytes = beginning.parameterSets.reduce(0) { $0 + $1.count }
        let former = beginning.hasSequenceParameters ? [] : parameterSets
        guard former.count + bytes <= Self.maximumParameterSetBytes else { return }
        parameterSets = beginning.parameterSets.reduce(former) { $0 + frame[$1] }
    }
}
