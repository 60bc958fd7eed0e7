import BusProtocol
import BusServer
import CaptureCore
import JSON

/// A device of sessions: the decision, and how far it has been carried out.
final class SessionStage {
    /// What was last set by order, and how the device said that it was then: a driver may give something near it, and
    /// is not asked for ever.
    struct Applied {
        var wish: StreamSetting
        var result: StreamSetting?
    }

    /// All that a decision depends on beside the sessions; while it is the same, nothing is to be decided.
    struct Facts: Equatable {
        var descriptions: Int
        var isRunning: Bool
        var isConnected: Bool
        var isStreaming: Bool
        var error: JSONValue
        var activeFormat: JSONValue
        var frameDuration: JSONValue
        var formatDescription: JSONValue
        var subscribers: JSONValue
        var refused: JSONValue
        var lock: String?
        var stabilization: String?
    }

    /// Less than what was decided.
    struct Less {
        var asked: StreamSetting
        var given: StreamSetting
        /// When there was no room for what was asked, monotonic nanoseconds.
        var since: Int64
        /// There may be room by now.
        var mayBeOver = false
    }

    /// What was last set at a microphone for its sessions: it is not set so again when a client has set it otherwise.
    struct SoundApplied: Equatable {
        /// nil: nobody wants another than there is.
        var format: FormatRequest?
        var dataSource: String?
    }

    let device: String
    var decision: ArbiterDecision?
    var facts: Facts?
    /// A change is under way; what is wished meanwhile counts when it has ended.
    var isApplying = false
    var isDirty = false
    /// With which the change waits for its turn, behind somebody who is to have a lock.
    var ticket: UInt64?
    /// The change is not to wait any longer, as it has to be decided anew.
    var isWithdrawn = false
    var applied: Applied?
    /// By session, what it wanted when the device was last set for all of them, or needed no change.
    var settledWishes: [String: CaptureDemand.Wish] = [:]
    /// Of a microphone: what was decided, and what was last set of it.
    var sound: SoundDecision?
    var soundApplied: SoundApplied?
    /// What it is set to because its bus had no room for what was decided; until no session wants it any more.
    var given: Less?
    /// Sessions that it serves prefer stabilization, which was seen to: it is not turned on again.
    var prefersStabilization: Bool
    /// Why the device could not be set, until the next try.
    var obstacle: BusError?
    var retry: Loop.Token?
    private var failures = 0

    private static let longestBackOff: Int64 = 10_000

    init(device: String, prefersStabilization: Bool) {
        self.device = device
        self.prefersStabilization = prefersStabilization
    }

    /// That is what was last set by order, and what the device has made of it is unchanged.
    func hasApplied(_ wish: StreamSetting?, _ worker: WorkerHandle) -> Bool {
        applied.map { $0.wish == wish && $0.result == worker.setting } ?? false
    }

    /// What becomes of it will be known in a moment.
    var isBusy: Bool { (isApplying || isDirty) && ticket == nil }

    /// Milliseconds until the next try, longer each time.
    func backOff() -> Int64 {
        failures += 1
        return min(1000 << Int64(min(failures - 1, 10)), Self.longestBackOff)
    }

    func succeeded() {
        failures = 0
        obstacle = nil
    }

    /// Why the device is set so, in sentences for people.
    var explanation: [String] {
        let less = given.map { BandwidthBudget.explanation(of: device, asked: $0.asked, given: $0.given) }
        let isAway = facts.map { !$0.isConnected || !$0.error.isNull } ?? false
        if let sound { return isAway ? [] : sound.explanation }
        return ((isAway ? decision?.forecast : decision?.explanation) ?? []) + (less.map { [$0] } ?? [])
    }
}

extension WorkerHandle {
    /// The format table of a description.
    static func formats(of description: JSONValue?) -> [CaptureFormat]? {
        description?["formats"]?.array.map { rows in rows.compactMap { try? CaptureFormat(json: $0) } }
    }

    /// How many want each of the renditions that are made of its pictures.
    var subscribers: [Rendition: Int] {
        var counts: [Rendition: Int] = [:]
        for (text, count) in status["subscribers"]?.object ?? [:] {
            guard let rendition = try? Rendition(parsing: text), let count = count.integer, count > 0 else { continue }
            counts[rendition] = Int(clamping: count)
        }
        return counts
    }

    /// Why a rendition is refused that subscribers want; nil: it is not.
    func refusal(of rendition: String) -> String? { status["refused"]?[rendition]?.string }

    /// How the device is set; nil: not known.
    var setting: StreamSetting? {
        guard let active = activeFormat, let format = try? FormatSelection(json: active) else { return nil }
        return StreamSetting(
            formatID: active["id"]?.string, format: format,
            frameDuration: status["frameDuration"].flatMap { try? FrameDuration(json: $0) })
    }

    /// Of the present setting, or the committed one; nil: neither is known.
    var frameDuration: FrameDuration? {
        setting?.frameDuration ?? committed?["frameDuration"].flatMap { try? FrameDuration(json: $0) }
    }

    /// What its control `videoStabilizationMode` is; nil: it has none, or it isn't known.
    var stabilization: String? { status["controls"]?["videoStabilizationMode"]?.string }

    /// What is wrong with the device, as its worker says; nil: nothing.
    var error: BusError? {
        guard let error = status["error"], let reason = error["reason"]?.string.flatMap(BusError.Reason.init) else {
            return nil
        }
        return BusError(reason, error["message"]?.string ?? "", error["data"]?.object ?? [:])
    }
}
