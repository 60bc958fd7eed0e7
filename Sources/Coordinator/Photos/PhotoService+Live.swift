import BusProtocol
import CaptureCore
import JSON
import ZeroMQ

/// The movies of live photos: made around the moment that the camera's worker reports, and stored with their pictures.
extension PhotoService {
    private static let movieKey = "movie"

    /// The picture is taken: its movie is to be made.
    func record(_ run: Run) {
        let id = run.request.id
        guard let identifier = run.request.identifier, let session = run.request.session,
            let moment = run.moment
        else { return perform(queue.recorded(id, .failure(Self.noLivePhotos))) }
        let order = LivePhotoOrder(
            job: id, moment: moment, identifier: identifier, attaches: run.request.isAttached && !run.isTooLarge)
        live.record(order, of: session) { [weak self] result, file in
            guard let self else { return }
            do throws(BusError) {
                let answer = try result.get()
                if order.attaches, !run.isTooLarge { try keep(file, Self.movieKey, answer.movie.bytes, run) }
                run.movie = answer
                perform(queue.recorded(id, .success(answer.movie)))
            } catch {
                perform(queue.recorded(id, .failure(error)))
            }
        }
    }

    /// Picture and movie are whole: both are stored, or neither.
    func store(_ run: Run, _ device: String) {
        let id = run.request.id
        guard let answer = run.movie else { return perform(queue.stored(id, .failure(Self.noLivePhotos))) }
        guard run.request.isStored else {
            live.finish(id)
            return perform(queue.stored(id, .success(answer.movie)))
        }
        if let refusal = access.libraryRefusal(run.request) {
            order(.dropPhoto(job: id), device, run) { _, _ in }
            return notStored(run, answer, refusal)
        }
        order(.publishPhoto(job: id, movie: answer.movie, file: answer.file), device, run) { [weak self] _, result in
            guard let self else { return }
            live.finish(id)
            do throws(BusError) {
                let json = try result.get()
                let photo = try PhotoResult(json: json["photo"] ?? .null)
                var movie = answer.movie
                movie.path = json["movie"]?.string
                perform(queue.stored(id, .success(movie), photo: photo))
            } catch {
                notStored(run, answer, error)
            }
        }
    }

    // What goes with the reply as well is there all the same.
    private func notStored(_ run: Run, _ answer: LivePhotoAnswer, _ error: BusError) {
        let id = run.request.id
        live.finish(id)
        let leavesReply = [.diskFull, .unauthorized, .internalError].contains(error.reason)
        guard run.request.isAttached, !run.isTooLarge, leavesReply else {
            return perform(queue.stored(id, .failure(error)))
        }
        run.request.notStored = error
        perform(queue.stored(id, .success(answer.movie)))
    }

    /// What goes with the reply behind the photos; nil: it is not there.
    func movieFile(_ run: Run) -> Message? { run.files[Self.movieKey] }

    /// How large the movie will be, as far as that is known when the photo begins.
    func resolved(_ members: JSONValue, _ run: Run) -> JSONValue {
        guard run.request.settings.isLive, let size = run.request.session.flatMap({ live.dimensions(of: $0) }),
            var resolved = members.object
        else { return members }
        resolved["livePhotoMovie"] = ["width": JSONValue(size.width), "height": JSONValue(size.height)]
        return .object(resolved)
    }

    static let noLivePhotos = BusError(.internalError, "The movie of the live photo can't be made; see the log.")
}

extension PhotoService: LivePhotoObserver {
    func livePhotosReconfigured(_ session: String) {
        // Photos of a session that does not run get that error.
        guard sessions.entries[session]?.session.run.state == .running else { return }
        endAll { $0.session == session && $0.settings.isLive ? LivePhotoSupervisor.reconfigured : nil }
    }
}
