import BusProtocol
import BusServer
import CaptureCore
import CaptureLibrary
import JSON
import Synchronization
import ZeroMQ

/// The picture of a live photo that is made, and waits to be stored with its movie.
final class HeldPhoto: @unchecked Sendable {
    // But for `isOver` used on the loop; what doesn't change also on the photos' thread.

    let order: PhotoOrder
    private let result: PhotoResult
    /// Of the file; they count as photos' memory.
    private let bytes: Message
    private let isOver = Atomic(false)
    /// Forgets it when nobody wants it stored.
    var timer: Loop.Token?
    /// It is being stored, or has been.
    var isBeingStored = false
    /// What waits for its end.
    var whenOver: [() -> Void] = []

    init(_ order: PhotoOrder, _ result: PhotoResult, _ bytes: Message) {
        self.order = order
        self.result = result
        self.bytes = bytes
    }

    /// Nothing of it is to be stored, if that is not done yet.
    func giveUp() { isOver.store(true, ordering: .relaxed) }

    /// Stores it with its movie, both or neither.
    ///
    /// - Parameter path: of the movie's file, which is whole.
    /// - Returns: {photo, movie}
    func store(_ movie: LivePhotoMovie, _ path: String) -> Result<JSONValue, BusError> {
        Result { () throws(BusError) in
            guard let place = order.place, movie.identifier == order.identifier else {
                throw BusError.invalidParams(
                    "movie.contentIdentifier",
                    "must equal the contentIdentifier of the "
                        + "picture")
            }
            let movie = try PhotoStorage.Movie(movie, path)
            let (entry, _) = try PhotoStorage(order: order, place: place).store(
                bytes.withUnsafeBytes { Array($0) }, as: result, with: movie,
                isWanted: { !isOver.load(ordering: .relaxed) })
            var stored = result
            (stored.path, stored.id) = (entry.path, entry.id)
            return .members(["photo": stored.json, "movie": entry.movie.map(JSONValue.string)])
        }
    }
}
