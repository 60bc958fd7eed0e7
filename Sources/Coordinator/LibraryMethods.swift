import BusProtocol
import CaptureCore
import JSON

/// `library.*`
extension Coordinator {
    static let libraryServices: [String: Service] = [
        "library.list": { $0.listLibrary }, "library.get": { $0.getFromLibrary },
        "library.delete": { $0.deleteFromLibrary },
    ]

    /// Has the library looked after as movies are made.
    func connectLibrary() {
        library.directory = moviePlace.library
        movies.onFinished = { [weak self] movie in
            guard let self, !isStopping else { return }
            returnLoans(of: movie)
            let isOfTake = takes.finished(movie)
            if movie.result?.reason == .recorderCrashed, !isOfTake { library.recover(movie.id) }
        }
    }

    private func listLibrary(_ call: Call, _ respond: @escaping Responder) {
        askLibrary(
            .list(
                LibrarianRequest.Filter(
                    since: call.params["since"]?.integer, kind: call.string("kind"), device: call.string("device"),
                    state: call.string("state"), take: call.string("take"), photo: call.string("photo"),
                    prefix: call.string("prefix"),
                    limit: call.params["limit"]?.integer.flatMap { Int(exactly: $0) }
                        ?? LibrarianRequest.Filter.usualLimit)), call, respond)
    }

    private func getFromLibrary(_ call: Call, _ respond: @escaping Responder) {
        askLibrary(.get(call.string("id") ?? ""), call, respond)
    }

    private func deleteFromLibrary(_ call: Call, _ respond: @escaping Responder) {
        let id = call.string("id") ?? ""
        askLibrary(.delete(id), call) { [weak self] result in
            if case .success = result { self?.takes.isGone(id) }
            respond(result)
        }
    }

    // What others recorded is theirs: who may see a camera now may not see what it saw before.
    private func askLibrary(
        _ action: LibrarianRequest.Action, _ call: Call, _ respond: @escaping Responder
    ) {
        let peer = call.caller.peer
        do throws(BusError) {
            try permission.authorize(call.caller, [.library])
        } catch {
            permission.tried(
                uid: peer.uid, gid: peer.gid, pid: peer.pid, .library, program: programName(call.caller))
            return respond(.failure(error))
        }
        library.ask(
            LibrarianRequest(action, uid: permission.isAdmin(call.caller) ? nil : peer.uid), by: peer.uid,
            completion: respond)
    }
}
