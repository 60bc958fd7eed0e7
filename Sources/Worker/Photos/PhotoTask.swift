import BusProtocol
import BusServer
import CaptureCore
import Glibc
import JSON

/// A request for photos on its way through this worker. Used on the loop.
///
/// ```
/// waiting → preparing → ready → taking → processing
/// ```
/// From `preparing` to `taking` the device is its own; what is processed needs it no more.
final class PhotoTask {
    typealias Answer = (Result<JSONValue, BusError>) -> Void

    enum Stage: Hashable {
        /// Others have the device.
        case waiting
        /// The device is set, and finds its exposure.
        case preparing
        /// It is told to be ready, and waits to be taken.
        case ready
        case taking
        /// All frames are there.
        case processing
        /// Finished, failed or given up.
        case over
    }

    /// A frame that becomes a photo.
    struct Shot {
        /// When it was taken, as its header has it: monotonic nanoseconds.
        let moment: Instant
        /// nil: on its way, or done with.
        var frame: KeptFrame?
        /// The frame has been copied.
        var isKept = false
        /// How the device was then; nil: not looked yet, or as for all.
        var reader: PhotoFactsReader?
        /// What it was asked to be brighter, where no control says so.
        var bias: Double?
        var flashFired: Bool?
        var isSettled: Bool
        /// How much later than asked it was, nanoseconds; nil: it was not.
        var late: Int64?
        /// Files that are being made of it, or are made.
        var begun = 0
        /// Those that are made.
        var made = 0
    }

    /// Frames around a flash: the lit one is among them.
    struct Flash {
        struct Candidate {
            var frame: KeptFrame
            var luma: Double?
        }

        /// When it was fired; nil: not yet.
        var fired: Instant?
        var candidates: [Candidate] = []
        /// Frames that are being copied.
        var pending = 0
        /// Frames whose exposure began after it was fired, also those that there was no room for.
        var after = 0
        /// The exposure of the last one that there was room for.
        var lastKept: Instant?
        /// How bright the dimmest frame was, also when it has been given up since.
        var least: Double?

        /// A frame has been copied.
        mutating func add(_ frame: KeptFrame, luma: Double?) {
            pending -= 1
            candidates.append(Candidate(frame: frame, luma: luma))
            if let luma { least = min(luma, least ?? luma) }
        }

        /// Gives a candidate up that is not the lit one as far as can be told: the dimmest of several, or one from
        /// before the flash.
        ///
        /// - Returns: false: there is none.
        mutating func dropDimmest() -> Bool {
            let dimmest = candidates.indices.min { candidates[$0].luma ?? 0 < candidates[$1].luma ?? 0 }
            guard let dimmest else { return false }
            guard candidates.count > 1 || candidates[dimmest].frame.start < fired ?? .max else { return false }
            candidates.remove(at: dimmest)
            return true
        }
    }

    let order: PhotoOrder
    let maker: PhotoMaker
    var stage = Stage.waiting
    /// Answers to the orders, until they are given.
    var onPrepared: Answer?
    var onTaken: Answer?
    /// Gives it up when nothing comes of it.
    var timer: Loop.Token?

    // MARK: The device

    /// Frames are looked at until the exposure is there, from that time on; nil: it is there.
    var settlesSince: Instant?
    var settling: PhotoSettling?
    /// The limit of settling was not reached since the last setting.
    var isSettled = true
    /// Something is being set for it.
    var isSetting = false
    /// Something was set for it.
    var isSet = false
    var setsFormat = false
    /// Frames are not for it for now.
    var isHeld = false
    /// How bright the scene is; nil: not measured.
    var luma: Double?

    // MARK: The photos

    /// The frame of a moment that is over, from when it is found to when it becomes a photo; nil: it is of now.
    var past: KeptFrame?
    /// What its frames are; nil: not known yet.
    var layout: FrameLayout?
    /// The step of the bracket that is set.
    var step: Int?
    var neutral = PhotoChange.Neutral()
    /// The flash is to be fired.
    var fires = false
    var flash: Flash?
    var shots: PhotoShots?
    var taken: [Shot] = []
    /// How the device was for all that have nothing of their own; nil: not looked yet.
    var reader: PhotoFactsReader?
    /// It was, or is being, looked how the device is.
    var isLookedAt = false
    var results: [PhotoResult] = []

    var settings: PhotoSettings { order.settings }
    /// Frames that become photos.
    var count: Int { order.settings.shotsPerDevice }

    init(_ order: PhotoOrder, _ maker: PhotoMaker, _ answer: @escaping Answer) {
        self.order = order
        self.maker = maker
        onPrepared = answer
    }

    /// Answers whatever waits for an answer.
    func fail(_ error: BusError) {
        stage = .over
        maker.giveUp()
        taken = []
        past = nil
        flash = nil
        let (prepared, taking) = (onPrepared, onTaken)
        (onPrepared, onTaken) = (nil, nil)
        prepared?(.failure(error))
        taking?(.failure(error))
    }

    /// What a step asks for in doublings of light, where its control doesn't say so.
    var bias: Double? {
        guard let step, neutral.duration != nil, case .exposureBias(let steps)? = settings.bracket else { return nil }
        return steps[step]
    }

    /// What has become of such a step, by how long the camera has exposed.
    func bias(_ asked: Double, _ reader: PhotoFactsReader) -> Double {
        guard let neutral = neutral.duration, let duration = reader.exposure?.duration else { return asked }
        let bias = log2(Double(duration) / 1e9 / neutral)
        // Rounding to the camera's units is not another exposure.
        guard abs(bias - asked) >= PhotoResolution.tolerance else { return asked }
        return min(max((bias * 1000).rounded() / 1000, -20), 20)
    }

    /// All frames have been copied.
    var isWhole: Bool { taken.count == count && taken.allSatisfy(\.isKept) }
}
