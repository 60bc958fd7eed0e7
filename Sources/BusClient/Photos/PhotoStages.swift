public import JSON
import Synchronization

/// The progress of photos that are taken together.
public struct PhotoStage: Hashable, Sendable {
    /// That of their settings.
    public let uniqueID: String
    /// `willBeginCapture`, `willCapturePhoto`, `didCapturePhoto`, `didFinishProcessingPhoto` (once for each photo), of
    /// a live photo
    /// `didFinishRecordingLivePhotoMovie` and `didFinishProcessingLivePhotoToMovieFile`, and `didFinishCapture`, in
    /// this order, without those that were not reached; or what a later bus tells.
    public let name: String
    /// With its members: {resolved, expectedPhotoCount, devices, owner} of the first, {photo} of one that is made,
    /// {duration} of a movie that is recorded, {duration, photoDisplayTime, livePhotoMovie} of one that is made,
    /// {error, photos} of the last.
    public let json: JSONValue

    public init(uniqueID: String, name: String, json: JSONValue) {
        self.uniqueID = uniqueID
        self.name = name
        self.json = json
    }

    /// Nothing comes after it.
    public var isLast: Bool { name == "didFinishCapture" }

    /// Of the last one: why there are fewer photos than were asked for, {code, message, data}; nil: there are all.
    public var error: JSONValue? { json["error"].flatMap { $0.isNull ? nil : $0 } }
}

/// The stages of a photo request, up to the last one. The subscription lasts as long as this value lives.
public final class PhotoStages: AsyncSequence, Sendable {
    public typealias Element = PhotoStage
    public typealias Failure = ClientError

    /// That of the settings.
    public let uniqueID: String
    private let messages: Messages
    private let isOver = Mutex(false)

    init(_ uniqueID: String, _ messages: Messages) {
        self.uniqueID = uniqueID
        self.messages = messages
    }

    static func topic(_ uniqueID: String) -> String { "event/photo/\(uniqueID)/" }

    /// The next stage; nil: the last one was told.
    public func next() async throws(ClientError) -> PhotoStage? {
        let topic = Self.topic(uniqueID)
        while !isOver.withLock({ $0 }) {
            let message = try await messages.next()
            guard message.topic == topic, let name = message.json["event"]?.string else { continue }
            let stage = PhotoStage(uniqueID: uniqueID, name: name, json: message.json)
            if stage.isLast { isOver.withLock { $0 = true } }
            return stage
        }
        return nil
    }

    /// What was published until now can still be taken; nothing comes after it.
    func finish(within time: Duration) async { await messages.finish(within: time) }

    public struct AsyncIterator: AsyncIteratorProtocol {
        let stages: PhotoStages

        public mutating func next(isolation actor: isolated (any Actor)?) async throws(ClientError) -> PhotoStage? {
            try await stages.next()
        }
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(stages: self) }
}
