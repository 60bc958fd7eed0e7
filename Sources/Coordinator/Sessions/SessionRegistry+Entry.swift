import BusProtocol
import BusServer
import CaptureCore

/// What is known of a session apart from its inputs and outputs.
extension SessionRegistry {
    /// The result for a session on one of its devices.
    enum Place {
        case pending
        case served(DemandDelivery)
        /// It is a microphone, which gives sound as it is set.
        case heard(SessionMicrophone)
        case denied(SessionInterruption)
    }

    final class Entry {
        var session: CaptureSession
        /// By device.
        var places: [String: Place] = [:]
        /// What its outputs have of each device, or had when they last had something.
        var renditions: [String: Set<Rendition>] = [:]
        /// By microphone, how it was set when the session first had it since it was started: its sound stays so,
        /// whatever others want.
        var soundFormats: [String: SoundFormat] = [:]
        /// With another camera, which is being tried: the session is not touched before that one serves it.
        var trial: Trial?
        /// What went wrong last, until it runs.
        var error: BusError?
        var waiting: [(timer: Loop.Token, body: () -> Void)] = []

        init(_ session: CaptureSession) { self.session = session }
    }

    struct Trial {
        var session: CaptureSession
        var device: String
        var place = Place.pending
        var timer: Loop.Token
        var completion: (BusError?) -> Void

        /// - Returns: whether it is about any of these devices.
        mutating func rename(_ names: [String: String]) -> Bool {
            device = names[device] ?? device
            return session.rename(names)
        }
    }
}
