public import CaptureCore
import FFmpeg
import Glibc
public import LinuxIO

/// Writes one movie, so that a crash or a power cut costs no more than its last fragment (`AVAssetWriter`,
/// `AVCaptureMovieFileOutput`).
///
/// Times are nanoseconds of one clock for picture and sound, and are kept as they are: frames need no constant rate.
/// What comes after the movie has ended is not taken; an end that nobody asked for has a reason, and the file is
/// finished all the same. Used by one thread at a time, which has to wait for the disk.
public final class MovieWriter {
    public let path: String
    public let configuration: MovieConfiguration
    public private(set) var statistics = MovieStatistics()
    /// Why it takes no more; nil: it does.
    public private(set) var end: MovieEnd?

    enum Stage { case new, writing, closed }

    private var file: MovieFile
    private var muxer: Muxer?
    let picture: PictureTrack?
    let sound: SoundTrack?
    var stage = Stage.new
    var timeline = Timeline()
    /// Until there frames or sound have come, whether they are in the movie or not.
    private(set) var reached = Int64.min
    /// Of a constant frame rate.
    private var grid: FrameGrid?
    /// When a pause was to end that ends with the next key frame from then on; and the sound that has come since.
    var resumption: Int64?
    var heldSound: PreRollRing?
    /// When the last picture ends, and where the last pause begins: nanoseconds from the movie's start.
    private(set) var pictureEnd: Int64 = 0
    var pauseStart: Int64 = 0
    /// What lies before the pause has all come.
    var isOver = (picture: false, sound: false)
    /// Nanoseconds from the start at which the fragment began; nil: it is empty.
    private var fragmentStart: Int64?
    private var fragmentHasPicture = false
    /// Frames that are on the disk.
    private var syncedFrames: UInt64 = 0
    /// Bytes of the fragment that has not ended.
    private var pendingBytes: Int64 = 0
    private var packets: Int64 = 0
    private var bytesUntilDiskCheck: Int64 = 0

    /// Bytes between two looks at how much room the disk has.
    private static let diskCheckInterval: Int64 = 1 << 20
    /// Bytes that the index of a finished file takes for each packet, and beside them, at most.
    private static let (indexBytesPerPacket, indexBytes): (Int64, Int64) = (64, 16384)

    /// Makes the file, and nothing but a new one. Nobody else gets its lock (``WholeFileLock``) as long as this lives.
    ///
    /// - Parameters:
    ///   - mode: of the file, exactly that, whatever the umask is; nil: as the umask lets any file be read.
    ///   - temporary: what it is called in its folder until it has its name, where the file system has no files without
    ///     a name; nil: a name that no other process that lives uses.
    ///   - isNamed: false: it never gets its name, and is gone when this is.
    ///   - made: is told which file it is, before it has its name, and before there is anything in it. If it throws,
    ///     nothing is left of the file.
    /// - Throws: ``MovieError/unsupported(_:)`` before there is a file.
    public init(
        _ path: String, _ configuration: MovieConfiguration, mode: UInt32? = nil, temporary: String? = nil,
        isNamed: Bool = true, made: (FileIdentity) throws(MovieError) -> Void = { _ in }
    ) throws(MovieError) {
        self.path = path
        self.configuration = configuration
        try configuration.check()
        grid = configuration.constantFrameRate.map { FrameGrid($0) }
        do throws(MediaError) {
            picture =
                if let video = configuration.video {
                    try PictureTrack(
                        video, configuration.fileType, constantFrameRate: configuration.constantFrameRate)
                } else { nil }
            sound = if let audio = configuration.audio { try SoundTrack(audio) } else { nil }
        } catch {
            throw .media(error)
        }
        do throws(SystemError) {
            file = try MovieFile(path, mode: mode, temporary: temporary)
        } catch {
            throw .file(error)
        }
        do throws(MovieError) {
            try made(identity())
            do throws(SystemError) { if isNamed { try file.publish() } } catch { throw .file(error) }
            try writeBeginning()
        } catch {
            file.withdraw()
            throw error
        }
    }

    /// Means the file as long as this lives, whatever it is called.
    var openPath: String { "/proc/self/fd/\(file.rawValue)" }

    private func identity() throws(MovieError) -> FileIdentity {
        do throws(SystemError) { return try file.identity() } catch { throw .file(error) }
    }

    private func writeBeginning() throws(MovieError) {
        do throws(MediaError) {
            let muxer = try Muxer(configuration.fileType.container, to: file.rawValue)
            try picture?.add(to: muxer)
            try sound?.add(to: muxer)
            try muxer.start(creationDate: configuration.creationDate, tags: configuration.tags)
            self.muxer = muxer
        } catch {
            throw .media(error)
        }
        do throws(SystemError) { try file.sync() } catch { throw .file(error) }
        statistics.syncedSize = file.syncedSize
        statistics.recordedFileSize = file.syncedSize
    }

    // MARK: Writing

    /// Says which time is the movie's zero. What lies before it is left out. Without this it is the first frame's or
    /// sound's.
    public func startSession(atSourceTime time: Int64) {
        guard stage == .new else { return }
        timeline.begin(at: time)
        stage = .writing
    }

    /// Says when the movie is over, at the latest: its last frame is shown no longer. It counts for what is added after
    /// this.
    public func endSession(atSourceTime time: Int64) {
        guard stage != .closed, let end = timeline.movieTime(time) else { return }
        picture?.end = end
    }

    /// Goes on with pictures that lie otherwise in memory, whatever their size: they keep their shape, with black
    /// around them.
    ///
    /// - Throws: when what comes is not encoded here, or these can't be.
    public func setSource(_ layout: FrameLayout) throws(MovieError) {
        do throws(MediaError) { try picture?.setSource(layout) } catch { throw .media(error) }
    }

    /// Adds a frame, whose bytes are copied or encoded.
    ///
    /// - Parameters:
    ///   - payload: as the configuration describes it.
    ///   - time: later than that of the frame before; another is dropped and counted.
    ///   - presentationDelay: nanoseconds from then to when it is shown, of H.264 whose pictures come in the order in
    ///     which they are decoded: `time` is when then.
    ///   - isKeyFrame: it builds on none before it; of H.264 that is stored as it comes, which begins with such a
    ///     frame.
    /// - Returns: true if it is in the movie; false if it was dropped, skipped or cut out, or the movie has ended.
    /// - Throws: what is wrong with the frame; the movie can go on with another.
    @discardableResult
    public func append(
        _ payload: UnsafeRawBufferPointer, at time: Int64, presentationDelay: Int64 = 0, isKeyFrame: Bool = true
    ) throws(MovieError) -> Bool {
        guard let picture, stage != .closed, end == nil else { return false }
        if let resumption, isKeyFrame, time >= resumption {
            endCut(at: time - gap(before: presentationDelay))
            try appendHeldSound()
        }
        reached = max(reached, time &+ 1)
        guard var relative = timeline.movieTime(time) else {
            isOver.picture = true
            try endPausedFragment()
            return false
        }
        // The movie begins when its first picture is shown.
        if timeline.start == nil { relative -= presentationDelay }
        let place = grid?.place(at: relative)
        if let grid, let place, !grid.isFree(place) {
            statistics.skipped += 1
            return false
        }
        let target = if let grid, let place { grid.time(of: place) } else { relative }
        guard relative + presentationDelay >= 0, picture.accepts(target, isKeyFrame: isKeyFrame) else {
            statistics.dropped += 1
            return false
        }
        startSession(atSourceTime: time + presentationDelay)
        if let place { guard try fillGrid(before: place, picture) else { return false } }
        let bytes = picture.expectedBytes(payload)
        let isTaken = try append(to: picture, at: target, presentationDelay: presentationDelay, bytes: bytes) {
            (muxer, isFirst) throws(MediaError) in
            try picture.write(
                payload, at: target, presentationDelay: presentationDelay, isKeyFrame: isKeyFrame,
                beginsFragment: isFirst, to: muxer)
        }
        guard isTaken else { return false }
        if let place { grid?.take(place) }
        statistics.frames += 1
        return true
    }

    private func append(
        to picture: PictureTrack, at time: Int64, presentationDelay: Int64 = 0, bytes: Int,
        _ body: (Muxer, _ isFirst: Bool) throws(MediaError) -> Written
    ) throws(MovieError) -> Bool {
        guard try prepare(time, bytes: bytes) else { return false }
        let isFirst = !fragmentHasPicture
        guard try write({ (muxer) throws(MediaError) in try body(muxer, isFirst) }) else { return false }
        fragmentHasPicture = true
        pictureEnd = max(pictureEnd, time + presentationDelay + picture.frameDuration)
        statistics.recordedDuration = max(statistics.recordedDuration, pictureEnd)
        return true
    }

    // False: the movie has ended meanwhile.
    private func fillGrid(before place: Int64, _ picture: PictureTrack) throws(MovieError) -> Bool {
        guard let grid, let first = grid.next else { return true }
        guard Double(grid.hole(before: place)) <= FrameGrid.longestHole * grid.rate else {
            throw .media(MediaError("append", message: "a gap of more than \(FrameGrid.longestHole) s"))
        }
        for place in first..<place {
            let time = grid.time(of: place)
            let isTaken = try append(to: picture, at: time, bytes: picture.expectedBytesAgain) {
                (muxer, isFirst) throws(MediaError) in
                try picture.writeAgain(at: time, beginsFragment: isFirst, to: muxer)
            }
            guard isTaken else { return false }
            self.grid?.take(place)
            statistics.repeated += 1
        }
        return true
    }

    /// Adds sound, of whole moments, as the configuration describes it; a hole before it is filled with silence.
    ///
    /// - Returns: false if the movie has ended.
    /// - Throws: what is wrong with it; the movie can go on.
    @discardableResult
    public func append(sound samples: UnsafeRawBufferPointer, at time: Int64) throws(MovieError) -> Bool {
        guard let sound, stage != .closed, end == nil else { return false }
        if let resumption, time + sound.duration(of: samples) > resumption {
            // Where it goes on is known when the key frame is there.
            heldSound?.append(.sound, samples, at: time)
            return true
        }
        reached = max(reached, time &+ sound.duration(of: samples))
        return try append(samples, at: time, to: sound)
    }

    func append(
        _ samples: UnsafeRawBufferPointer, at time: Int64, to sound: SoundTrack
    ) throws(MovieError) -> Bool {
        let (rate, frameBytes) = (sound.format.rate, sound.format.frameBytes)
        let count = samples.count / frameBytes
        var next = 0
        while let kept = timeline.moments(from: next, of: count, at: time, rate: rate) {
            let piece = UnsafeRawBufferPointer(
                rebasing: samples[kept.lowerBound * frameBytes..<kept.upperBound * frameBytes])
            let begin = time + Int64(kept.lowerBound) * 1_000_000_000 / Int64(rate)
            guard try add(piece, at: begin, to: sound) else { return false }
            next = kept.upperBound
        }
        if next < count {
            isOver.sound = true
            try endPausedFragment()
        }
        return true
    }

    private func add(
        _ samples: UnsafeRawBufferPointer, at time: Int64, to sound: SoundTrack
    ) throws(MovieError) -> Bool {
        guard let relative = timeline.movieTime(time) else { return true }
        let duration = sound.duration(of: samples)
        guard relative + duration > 0 else { return true }
        startSession(atSourceTime: time)
        guard try prepare(max(0, relative), bytes: sound.expectedBytes(samples)) else { return false }
        guard try write({ (muxer) throws(MediaError) in try sound.write(samples, at: relative, to: muxer) }) else {
            return false
        }
        statistics.recordedDuration = max(statistics.recordedDuration, relative + duration)
        return true
    }

    // MARK: Fragments

    /// Counts frames that were lost before they came here.
    public func noteDropped(_ frames: UInt64) { statistics.dropped += frames }

    /// Ends the fragment and waits until it is on the disk: for when nothing comes for longer than the interval.
    public func endFragment() throws(MovieError) {
        guard stage == .writing, fragmentStart != nil else { return }
        let isWritten = try write { (muxer) throws(MediaError) in
            try muxer.endFragment()
            return Written()
        }
        guard isWritten else { return }
        do throws(SystemError) {
            try file.sync()
        } catch {
            return fail(error.code)
        }
        fragmentStart = nil
        fragmentHasPicture = false
        pendingBytes = 0
        statistics.fragments += 1
        statistics.syncedDuration = statistics.recordedDuration
        statistics.syncedSize = file.syncedSize
        statistics.recordedFileSize = file.syncedSize
        syncedFrames = statistics.frames
    }

    // Ends the fragment when it is time, and the movie at its limits, before anything of that size is added.
    private func prepare(_ time: Int64, bytes: Int) throws(MovieError) -> Bool {
        let limits = configuration.limits
        if let most = limits.maxRecordedDuration, time >= most {
            end = .maximumDurationReached
            return false
        }
        let fragmentIsFull = pendingBytes + Int64(bytes) > Int64(configuration.fragmentSize)
        if let start = fragmentStart, time - start >= configuration.movieFragmentInterval || fragmentIsFull {
            try endFragment()
            guard end == nil else { return false }
        }
        let more = pendingBytes + Int64(bytes) + (packets + 1) * Self.indexBytesPerPacket + Self.indexBytes
        if let most = limits.maxRecordedFileSize, file.syncedSize + more > most {
            end = .maximumFileSizeReached
            return false
        }
        if let least = limits.minFreeDiskSpaceLimit {
            bytesUntilDiskCheck -= Int64(bytes)
            if bytesUntilDiskCheck <= 0 {
                guard let room = Self.room(file.freeDiskSpace ?? .max, leaving: least, for: more) else {
                    end = .minimumFreeDiskSpaceReached
                    return false
                }
                bytesUntilDiskCheck = min(Self.diskCheckInterval, room)
            }
        }
        fragmentStart = fragmentStart ?? time
        return true
    }

    /// What is left of the free space beside that; nil: there is less. A client may ask for more than any disk has.
    static func room(_ free: Int64, leaving least: Int64, for more: Int64) -> Int64? {
        let (room, isOver) = (free - more).subtractingReportingOverflow(least)
        return isOver || room < 0 ? nil : room
    }

    // False: the disk took no more.
    private func write(_ body: (Muxer) throws(MediaError) -> Written) throws(MovieError) -> Bool {
        guard let muxer else { return false }
        do throws(MediaError) {
            let written = try body(muxer)
            pendingBytes += Int64(written.bytes)
            packets += Int64(written.packets)
            statistics.recordedFileSize = file.syncedSize + pendingBytes
            return true
        } catch {
            guard let code = muxer.writeFailure else { throw .media(error) }
            fail(code)
            return false
        }
    }

    // Keeps what is on the disk, and makes room with what isn't.
    private func fail(_ code: Int32) {
        end = code == ENOSPC || code == EDQUOT ? .diskFull : .writeFailed(code)
        muxer = nil
        try? file.cutToSynced()
        pendingBytes = 0
        statistics.recordedDuration = statistics.syncedDuration
        statistics.recordedFileSize = file.syncedSize
        statistics.dropped += statistics.frames - syncedFrames
        statistics.frames = syncedFrames
    }

    // MARK: The end

    /// Ends the movie: what is in it is written, with the index that a player expects, and is on the disk when this
    /// returns.
    ///
    /// - Returns: why it ended, if not because of this. What could be kept is a whole movie then, too, as far as there
    ///   is room for its index; without one it plays all the same.
    /// - Throws: what could not be finished; the fragments that are on the disk play.
    @discardableResult
    public func finishWriting() throws(MovieError) -> MovieEnd? {
        guard stage != .closed else { return end }
        // What encoders hold back may belong to a fragment that has ended already, as before a pause.
        if muxer != nil, fragmentStart != nil || statistics.fragments > 0 {
            let before = packets
            _ = try write { (muxer) throws(MediaError) in
                var written = try picture?.finish(muxer) ?? Written()
                written += try sound?.finish(muxer) ?? Written()
                return written
            }
            if packets > before { fragmentStart = fragmentStart ?? statistics.recordedDuration }
            try endFragment()
        }
        stage = .closed
        try writeIndex()
        muxer = nil
        do throws(SystemError) {
            statistics.recordedFileSize = try file.size()
        } catch {
            throw .file(error)
        }
        return end
    }

    private func writeIndex() throws(MovieError) {
        let hasFailed = muxer == nil
        do throws(MediaError) {
            if statistics.fragments > 0,
                try MovieIndex.complete(
                    file.rawValue, as: configuration.fileType.container,
                    lastPicture: picture?.frameDuration, delays: picture?.delays)
            {
                return
            }
        } catch {
            guard let code = error.errorNumber else { throw .media(error) }
            return hasFailed ? () : fail(code)
        }
        guard
            try write({ (muxer) throws(MediaError) in
                try muxer.finish()
                return Written()
            })
        else { return }
        do throws(SystemError) { try file.sync() } catch { fail(error.code) }
    }

    /// Ends the movie and removes its file (`AVAssetWriter.cancelWriting`).
    public func cancelWriting() {
        guard stage != .closed else { return }
        stage = .closed
        muxer = nil
        file.withdraw()
        try? File.syncFolder(of: path)
    }
}
