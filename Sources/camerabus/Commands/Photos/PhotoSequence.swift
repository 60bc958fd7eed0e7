import ArgumentParser
import BusClient
import BusProtocol
import Glibc
import JSON
import LinuxIO

/// The photos of one `camerabus photo`, from the first to the last.
struct PhotoSequence {
    private let command: PhotoCommand
    private let client: Client
    private let places: PhotoFileNames
    /// Cameras that are known before the first photo is taken; empty: those of a session.
    private let devices: [String]
    /// The rig, if one was named instead of its cameras.
    private let rig: String?
    /// The one that was named.
    private let session: String?

    /// Reads the command, and asks the bus for a rig of that name.
    ///
    /// - Throws: ``Failure`` when a file is there already, or its folder is not.
    init(_ command: PhotoCommand, _ client: Client) async throws {
        self.command = command
        self.client = client
        places = try PhotoFileNames(command.output)
        if let typed = command.session {
            session = try await ShortID.session(typed, client, command.timeout)
        } else {
            session = nil
        }
        let name = command.rig ?? (command.devices.count == 1 && command.session == nil ? command.devices[0] : nil)
        let hasRigs = client.greeting.features.contains(Feature.rigs.rawValue)
        let rigs = name == nil || !hasRigs ? [] : try await client.rigs(timeout: command.timeout)
        let known = rigs.first { $0["name"]?.string == name }
        if let rig = command.rig, known == nil {
            let names = rigs.compactMap { $0["name"]?.string }.joined(separator: ", ")
            let there = names.isEmpty ? "there are none" : "known rigs: \(names)"
            throw Failure(status: ExitStatus.refused, description: "rigNotFound: There is no rig '\(rig)'; \(there).")
        }
        rig = known == nil ? nil : name
        devices = known.map { $0["devices"]?.array?.compactMap { $0["id"]?.string } ?? [] } ?? command.devices
        if command.making.live {
            if let rig {
                throw Failure(
                    status: ExitStatus.usage, description: "Error: --live takes one camera, and \(rig) is a rig.")
            }
            guard client.greeting.features.contains(Feature.livePhotos.rawValue) else {
                throw Failure(
                    status: ExitStatus.refused,
                    description: "This bus does not support live photos; 'camerabus status' shows its version.")
            }
        }
        let extent = command.extent(ofDevices: devices.count)
        if let flaw = places.flaw(extent) { throw Failure(status: ExitStatus.usage, description: "Error: \(flaw)") }
        if keepsFiles { try checkNames(extent) }
    }

    /// The photos come to us, and not only into the library.
    private var keepsFiles: Bool { !command.library || command.output != nil }

    /// Takes all of them, live ones with a session of their own unless one was named.
    func run() async throws {
        guard command.making.live, session == nil, let camera = devices.first else { return try await takeAll(session) }
        let live = LivePhotoSession(
            camera: camera, microphone: command.making.microphone, orientation: command.making.orientation,
            isMirrored: command.making.mirrored)
        try await live.run(client, lock: command.lock.lock, timeout: command.timeout) { try await takeAll($0) }
    }

    /// - Parameter session: of which they are, or which takes them; nil: there is none.
    private func takeAll(_ session: String?) async throws {
        let clock = ContinuousClock()
        let start = clock.now
        var (number, count, failures, turns) = (1, 0, 0, 0)
        // Which of the moments of a time-lapse it is, and how many photos were not at theirs.
        var (moment, late) = (0, 0)
        do {
            while turns < command.series.total ?? .max {
                do {
                    try await take(number: number, session)
                    number += command.making.shots
                    count += 1
                } catch let error where count > 0 && Self.isPassing(error) {
                    failures += 1
                    // Names of theirs are taken.
                    if (error as? NotKept)?.hasNames == true { number += command.making.shots }
                    let next =
                        (command.series.total ?? .max) > turns + 1 ? " The series continues with the next photo." : ""
                    Output.note(next.isEmpty ? text(error) : Self.sentence(text(error)) + next)
                }
                turns += 1
                guard let every = command.series.every?.duration, turns < command.series.total ?? .max else { continue }
                // Times that have gone by meanwhile are left out.
                let next = max(moment, Int(((clock.now - start) / every).rounded(.down))) + 1
                if next > moment + 1 { late += 1 }
                moment = next
                try await clock.sleep(until: start + every * moment)
            }
        } catch let error as NotKept {
            throw Failure(status: ExitStatus.refused, description: error.description)
        } catch {
            if Signals.interruption != nil, turns > 0 {
                if let behind = PhotoText.behind(late, of: turns) { Output.note(behind) }
                Output.note(interruption(count))
            }
            throw error
        }
        if let behind = PhotoText.behind(late, of: turns) { Output.note(behind) }
        guard failures > 0 else { return }
        Output.note("\(failures) of \(turns) could not be taken or not be stored.")
        throw ExitCode(ExitStatus.refused)
    }

    /// Photos that were taken but could not be stored.
    private struct NotKept: Error {
        /// Files of that name are there, theirs or another's.
        var hasNames: Bool
        /// Printable.
        var description: String
    }

    private static func sentence(_ text: String) -> String { text.hasSuffix(".") ? text : "\(text)." }

    private func text(_ error: any Error) -> String {
        switch error {
        case let error as NotKept: error.description
        case let error as ClientError:
            Table.printable(ErrorText(command: "photo", device: command.devices.first).text(error))
        default: Table.printable("\(error)")
        }
    }

    // What the next try may not meet any more.
    private static func isPassing(_ error: any Error) -> Bool {
        switch error {
        case ClientError.refused(let refusal):
            ![.invalidParams, .unauthorized, .methodNotFound].contains(refusal.reason)
        case ClientError.timedOut, ClientError.connectionLost: true
        default: error is NotKept
        }
    }

    private func interruption(_ count: Int) -> String {
        let whole = command.series.total.map { "\(count) of \($0)" } ?? "\(count)"
        return "Interrupted after \(whole) \((command.series.total ?? count) == 1 ? "photo" : "photos")."
    }

    // MARK: One job

    /// - Parameter number: of its first photo of each camera.
    private func take(number: Int, _ session: String?) async throws {
        let asJSON = command.options.json
        let tell: @Sendable (PhotoStage) -> Void = { PhotoText.tell($0, asJSON: asJSON) }
        let patience = max(command.timeout, Client.photoTimeout) + command.making.duration
        let capture: PhotoCapture
        let (client, devices, timeout) = (client, devices, command.timeout)
        let telling = Task { await Self.noteEarlierRequests(devices, client, timeout) }
        defer { telling.cancel() }
        do throws(ClientError) {
            capture = try await client.capturePhoto(
                wishes(session), timeout: patience, onStage: command.stages ? tell : nil)
        } catch {
            noteKept(error)
            if Signals.interruption != nil { noteNothing() }
            throw error
        }
        telling.cancel()
        let extent = command.extent(ofDevices: Set(capture.photos.map(\.device)).count)
        if let flaw = places.flaw(extent) { throw Failure(status: ExitStatus.refused, description: flaw) }
        let movie = capture.livePhotoMovie
        guard movie != nil || !command.making.live else {
            throw ClientError.unreadable("The bus answered without the live photo's movie.")
        }
        var (files, losses): ([Files], [Loss]) = ([], [])
        for photo in capture.photos {
            var kept = Files(photo: nil, movie: nil)
            do {
                if keepsFiles { kept = try keep(photo, movie, number: number + photo.index, extent) }
            } catch let loss as Loss {
                losses.append(loss)
                files.append(kept)
                continue
            }
            files.append(kept)
            guard !asJSON else { continue }
            let place = place(photo.id, photo.path)
            let own = [place?.text, place?.advice == nil ? movie?.path : nil]
            let stored = keepsFiles ? [kept.photo, kept.movie] : own
            for path in stored.compactMap(\.self) { try Output.line(Table.printable(path)) }
            Output.note(Table.printable(PhotoText.summary(photo)))
            if !keepsFiles, let advice = place?.advice { Output.note(advice) }
            guard let movie else { continue }
            Output.note(PhotoText.summary(movie))
            if let shortness = PhotoText.shortness(movie) { Output.note(shortness) }
        }
        if asJSON { try Output.json(Self.json(capture, files)) }
        for adjusted in capture.adjusted { Output.note(Table.printable(PhotoText.adjustment(adjusted))) }
        // Two files of one frame are one photo.
        let taken = capture.photos.filter { !command.making.withRaw || $0.fileType != "dng" }
        if let late = PhotoText.late(taken) { Output.note(late) }
        if let spread = capture.spread, !asJSON { Output.note(PhotoText.spread(spread)) }
        if let loss = losses.first {
            let names = losses.count < capture.photos.count || losses.contains(where: \.isNamed)
            throw NotKept(hasNames: names, description: Self.text(loss, losses.count, of: capture.photos.count))
        }
        // Told last, as the photos are there.
        if let error = capture.photos.lazy.compactMap(\.error).first {
            let why = ErrorText(command: "photo").text(.refused(error))
            throw NotKept(
                hasNames: true, description: Table.printable("\(why) The photo is not in the library of the bus."))
        }
    }

    /// What was written of a photo.
    private struct Files {
        /// nil: it went to standard output, or not to us.
        var photo: String?
        /// Of a live one.
        var movie: String?
    }

    /// A photo that could not be written.
    private struct Loss: Error {
        /// Another file has its name.
        var isNamed: Bool
        var why: String
    }

    private static func text(_ loss: Loss, _ count: Int, of all: Int) -> String {
        let why = Table.printable(loss.why)
        return all == 1 ? why : "\(why)\n\(count) of \(all) photos could not be written."
    }

    // Notes after 3 s whose photos are taken first.
    private static func noteEarlierRequests(_ devices: [String], _ client: Client, _ timeout: Duration) async {
        guard (try? await Task.sleep(for: .seconds(3))) != nil else { return }
        for device in devices {
            guard let state = try? await client.device(device, timeout: timeout), !Task.isCancelled else { return }
            guard let note = PhotoText.before(device, state["photo"], own: client.greeting.pid) else { continue }
            Output.note(Table.printable(note))
            return
        }
    }

    // Several photos are one job.
    private func noteNothing() {
        guard command.making.shots > 1 || devices.count > 1 || command.making.withRaw else { return }
        let library =
            command.library ? " 'camerabus library --kind photo' lists the photos in the library of the bus." : ""
        Output.note((keepsFiles ? "None of these photos was stored." : "Not all of these photos were taken.") + library)
    }

    // If one camera fails, the photos of the others stay in the library.
    private func noteKept(_ error: ClientError) {
        guard case .refused(let refusal) = error else { return }
        for photo in refusal.data["photos"]?.array ?? [] {
            guard let place = place(photo["id"]?.string, photo["path"]?.string) else { continue }
            Output.note(Table.printable("Still stored in the library of the bus: \(place.text)"))
        }
    }

    // A path that this user can't read is of no use: an id is.
    private func place(_ id: String?, _ path: String?) -> (text: String, advice: String?)? {
        path.map { Download.place(of: id ?? $0, $0, client) }
    }

    /// Of a live photo both files are written, or neither.
    ///
    /// - Throws: ``Loss`` when it can't be written.
    private func keep(
        _ photo: ClientPhoto, _ movie: ClientLivePhotoMovie?, number: Int, _ extent: PhotoFileNames.Extent
    ) throws -> Files {
        guard let data = photo.data else {
            throw ClientError.unreadable("The bus answered without the photo's bytes.")
        }
        if places.isStandardOutput {
            try data.withUnsafeBytes { try Output.write($0) }
            return Files(photo: nil, movie: nil)
        }
        var path = places.path(
            of: PhotoFileNames.Photo(
                device: photo.device, number: number, realtime: photo.realtime,
                fileType: command.making.fileType ?? photo.fileType), extent)
        if command.making.withRaw, photo.fileType == "dng" { path = PhotoFileNames.raw(beside: path) }
        let also = place(photo.id, photo.path).map { " The photo is in the library of the bus: \($0.text)" } ?? ""
        try store(data, to: path, also)
        guard let movie else { return Files(photo: path, movie: nil) }
        let beside = PhotoFileNames.movie(beside: path)
        do {
            guard let data = movie.data else {
                throw ClientError.unreadable("The bus answered without the movie's bytes.")
            }
            try store(data, to: beside, also)
        } catch {
            File.remove(path)
            throw error
        }
        return Files(photo: path, movie: beside)
    }

    private func store(_ data: Payload, to path: String, _ also: String) throws {
        do throws(SystemError) {
            try data.withUnsafeBytes { bytes throws(SystemError) in
                try AtomicFile.store(bytes, to: path, replaces: command.force)
            }
        } catch {
            let why = error.isThereAlready ? Self.isThere(path) : "\(error)"
            throw Loss(isNamed: error.isThereAlready, why: also.isEmpty ? why : Self.sentence(why) + also)
        }
    }

    private func wishes(_ session: String?) -> [String: JSONValue] {
        var wishes: [String: JSONValue] = [:]
        if let rig {
            wishes["rig"] = .string(rig)
        } else if let session {
            wishes["session"] = .string(session)
            wishes["device"] = command.devices.first.map(JSONValue.string)
        } else if command.devices.count == 1 {
            wishes["device"] = .string(command.devices[0])
        } else {
            wishes["devices"] = JSONValue(command.devices)
        }
        wishes["settings"] = command.making.settings(fileType: places.fileType)
        wishes["deliver"] = JSONValue((keepsFiles ? ["reply"] : []) + (command.library ? ["library"] : []))
        if command.making.changesDevice, let lock = command.lock.lock ?? client.defaultLock {
            wishes["lock"] = .string(lock)
        }
        return wishes
    }

    private static func json(_ capture: PhotoCapture, _ files: [Files]) -> JSONValue {
        func placed(_ json: JSONValue, _ file: String?) -> JSONValue {
            var members = json.object ?? [:]
            members["file"] = file.map(JSONValue.string)
            return .object(members)
        }
        var members = capture.json.object ?? [:]
        members["photos"] = .array(zip(capture.photos, files).map { placed($0.json, $1.photo) })
        members["livePhotoMovie"] = capture.livePhotoMovie.map { placed($0.json, files.first?.movie) }
        return .object(members)
    }

    // MARK: Names

    // Refuses before the photo is taken if it could not be stored.
    private func checkNames(_ extent: PhotoFileNames.Extent) throws {
        if places.isStandardOutput { return }
        // A name without an ending is that of a JPEG unless something says otherwise, as most photos are.
        let type = command.making.fileType ?? places.fileType ?? "jpeg"
        func path(_ device: String, _ number: Int) -> String {
            places.path(
                of: PhotoFileNames.Photo(device: device, number: number, realtime: 0, fileType: type), extent)
        }
        // Of a live photo and of one with a DNG two.
        func names(_ device: String, _ number: Int) -> [String] {
            let name = path(device, number)
            if command.making.withRaw { return [name, PhotoFileNames.raw(beside: name)] }
            return command.making.live ? [name, PhotoFileNames.movie(beside: name)] : [name]
        }
        let last = min(extent.count ?? 1, 100_000)
        for device in devices.isEmpty ? ["x"] : devices {
            let name = path(device, last)
            if command.making.live || command.making.withRaw, AtomicFile.isSpecial(name) {
                let what = command.making.live ? "of a live photo" : "of --format \(command.making.format ?? "")"
                throw Failure(
                    status: ExitStatus.refused,
                    description: Table.printable(
                        "\(name) can't hold the two files \(what). Give a file name or a folder."))
            }
            for name in names(device, last) { try PhotoFileNames.check(name) }
        }
        guard places.areKnown, !command.force else { return }
        for device in devices {
            for name in (1...last).lazy.flatMap({ names(device, $0) }) {
                guard MovieFileNames.exists(name), !AtomicFile.isSpecial(name) else { continue }
                throw Failure(status: ExitStatus.refused, description: Table.printable(Self.isThere(name)))
            }
        }
    }

    private static func isThere(_ path: String) -> String { "\(path) exists already; --force replaces it." }
}
